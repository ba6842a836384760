"""The page "add a line, add a rule" works as it is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from analyzer.resources import data_dir

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "add-a-line-or-a-rule.md"


def block(marker: str) -> str:
    """The indented block of the page that holds ``marker``."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE.read_text(), re.MULTILINE)
    return textwrap.dedent(next(b for b in blocks if marker in b))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the parts of a checkout that a contributor changes."""
    for name in ("grammars", "rules"):
        shutil.copytree(data_dir(name), tmp_path / name)
    shutil.copytree(ROOT / "analyzer", tmp_path / "analyzer", ignore=shutil.ignore_patterns("_data", "__pycache__"))
    return tmp_path


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(checkout), "KVAUTOPSY_CACHE": str(checkout / "cache")}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=checkout, env=env, capture_output=True, text=True, timeout=120
    )


def test_the_page_works_as_written(checkout: Path) -> None:
    line = "[2026-11-30 03:24:48] KV pool trimmed: 774081 -> 700000 tokens (page 128)\n"
    (checkout / "server.log").write_text(line)
    with (checkout / "grammars" / "sglang" / "pool.lark").open("a") as grammar:
        grammar.write("\n" + block("pool_trimmed:"))
    rule = block("id: KV046").partition("kvautopsy rules test")[0]
    (checkout / "rules" / "sglang" / "KV046.yaml").write_text(rule)

    checked = run(checkout, "analyzer.parsing.check", "grammars", "pool_trimmed")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    event = run(checkout, "analyzer", "events", "--kind", "pool_trimmed", "server.log")
    assert "trimmed_from=774,081" in event.stdout
    tested = run(checkout, "analyzer", "rules", "test", "rules/sglang/KV046.yaml")
    assert "2 passed, 0 failed" in tested.stdout, tested.stdout + tested.stderr
    page = run(checkout, "analyzer", "explain", "server.log")
    assert "KV046" in page.stdout
    assert "774,081 tokens became 700,000" in " ".join(page.stdout.split())


def test_the_commands_of_the_tutorial_exist() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    for log in re.findall(r"samples/\S+\.log", text):
        assert (ROOT / log).exists(), log
    from analyzer.cli.app import SHORT

    for command in re.findall(r"^    kvautopsy (\w[\w-]*)", text, re.MULTILINE):
        assert command in SHORT or command == "samples", command


def test_the_commands_of_the_ci_page(tmp_path: Path) -> None:
    log = str(data_dir("samples") / "sglang" / "wrapper_nextn.log")
    text = (ROOT / "docs" / "ci.md").read_text()
    commands = list(re.findall(r"^    (kvautopsy explain .*)$", text, re.MULTILINE))
    assert len(commands) == 3
    statuses = []
    for command in commands:
        words = [log if w.endswith(".log") else w for w in command.split()[1:]]
        done = subprocess.run(
            [sys.executable, "-m", "analyzer", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        statuses.append(done.returncode)
    assert statuses == [1, 0, 0]
    assert {p.name for p in tmp_path.iterdir()} == {"report.json", "report.html", "report.junit.xml", "baseline.json"}


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """(command, output) of each block of ``page`` that shows a run of kvautopsy."""
    return re.findall(r"^```\n\$ kvautopsy ([^\n]+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), blocks_of(ROOT / "README.md"), ids=lambda value: value[:10])
def test_the_readme_shows_what_is_printed(command: str, shown: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    words = [sys.executable, "-m", "analyzer", *command.split()]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    printed, at = re.sub(r"\d+\.\d\d s\n", "0.00 s\n", done.stdout, count=1), 0
    for number, part in enumerate(re.sub(r"\d+\.\d\d s\n", "0.00 s\n", shown, count=1).split("[...]\n")):
        found = printed.find(part.strip("\n"), at)
        assert found == 0 if number == 0 else found > at, f"README.md differs from what is printed: {part[:300]}"
        at = found + len(part.strip("\n"))
    assert printed[at:].strip() == ""


def test_the_readme_counts_rules_and_shapes() -> None:
    from analyzer.parsing import default_catalog

    text = " ".join((ROOT / "README.md").read_text().split())
    shapes, rules = re.search(r"Over (\d+) message shapes", text), re.search(r"Over (\d+) rules", text)
    assert shapes and rules
    assert 0 <= len(default_catalog().shapes) - int(shapes[1]) < 100
    assert 0 <= len(list((ROOT / "rules").rglob("*.yaml"))) - int(rules[1]) < 50
