# Everything a person or CI needs: `make demo`, `make test`. Needs python3 (3.11 or later), make and a package registry.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
FUZZ_SECONDS ?= 300
BENCH_MB ?= 50
LOG    ?= samples/sglang/wrapper_nextn.log

.PHONY: setup demo test lint unit package bench fuzz docs services clean

setup: $(BIN)/.ready

$(BIN)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("kvautopsy needs Python 3.11 or later, this is " + sys.version.split()[0] + "; run: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@echo "Setting up $(VENV); this takes a minute the first time." >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@$(BIN)/python -m compileall -q analyzer
	@touch $@

demo: setup
	@$(BIN)/kvautopsy explain --fail-on never $(LOG)

test: setup lint unit package

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest -n auto

# The wheel and the sdist, built and installed into an empty environment, must work without the checkout.
package: setup
	$(BIN)/python tests/package_check.py

# System packages for the tests with a real Docker engine, Prometheus and browser (root, Debian); without them those
# tests are skipped by name.
services:
	.ci/services

# Beside public tools: Drain3 comes with the extra; ripgrep, lnav, pgBadger and GoAccess are measured where they are
# installed (apt install ripgrep lnav pgbadger goaccess) and named as missing elsewhere.
bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' || echo 'no Drain3'
	$(BIN)/python -m benchmarks $(BENCH_MB)

fuzz: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris || echo 'no atheris: unguided'
	$(BIN)/python -m tests.fuzz.run $(FUZZ_SECONDS)
	$(BIN)/python -m pytest -q tests/fuzz --hypothesis-profile=long -n auto

docs: setup
	$(BIN)/kvautopsy docs build/docs

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
