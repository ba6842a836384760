"""What the package may not hold: code from data, shells, and network calls that no flag asks for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.security.run_cli import CRASH, ROOT, SAMPLE, quiet, run

FORBIDDEN_IMPORTS = {"pickle", "cPickle", "dill", "marshal", "shelve", "subprocess", "pty", "cloudpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {("os", "system"), ("os", "popen"), ("yaml", "unsafe_load"), ("yaml", "full_load")}
FORBIDDEN_PREFIXES = ("exec", "spawn", "posix_spawn")


def offences(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [name for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS]
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in FORBIDDEN_CALLS:
            found.append(called.id)
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            owner, name = called.value.id, called.attr
            if (owner, name) in FORBIDDEN_METHODS or (owner == "os" and name.startswith(FORBIDDEN_PREFIXES)):
                found.append(f"{owner}.{name}")
        if any(k.arg == "shell" and getattr(k.value, "value", None) is True for k in node.keywords):
            found.append("shell=True")
    return found


def test_the_search_finds_what_it_looks_for() -> None:
    for text in ("eval('1')", "import pickle", "from subprocess import run", "os.system('x')", "f(shell=True)"):
        assert offences(ast.parse(text)), text


def test_no_code_from_data() -> None:
    files = sorted((ROOT / "analyzer").rglob("*.py"))
    assert len(files) > 100
    bad = {str(path.relative_to(ROOT)): found for path in files if (found := offences(ast.parse(path.read_text())))}
    assert not bad


GUARD = """
import socket, sys
def refuse(*args, **kwargs):
    sys.stderr.write("NETWORK\\n")
    raise OSError("no network in this test")
class Guarded(socket.socket):
    def __init__(self, family=-1, *args, **kwargs):
        if family in (-1, socket.AF_INET, socket.AF_INET6):
            refuse()
        super().__init__(family, *args, **kwargs)
socket.socket = Guarded
socket.create_connection = socket.getaddrinfo = refuse
"""


@pytest.mark.parametrize(
    "args",
    [
        ["explain", str(SAMPLE), "-f", "html"],
        ["explain", str(CRASH)],
        ["explain", str(SAMPLE), "--model-dir", "{empty}"],
        ["events", str(SAMPLE)],
        ["compare", str(SAMPLE), str(CRASH)],
        ["prove-spec", str(SAMPLE)],
        ["rules"],
        ["audit", str(SAMPLE), "-j", "1"],
        ["inspect", "{empty}"],
        ["--version"],
    ],
    ids=lambda args: args[0],
)
def test_no_network_without_a_flag(tmp_path: Path, args: list[str]) -> None:
    import os

    (tmp_path / "guard").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "guard")}
    done = run(*[arg.replace("{empty}", str(tmp_path / "empty")) for arg in args], env=env)
    assert "NETWORK" not in quiet(done)


def test_the_guard_would_tell(tmp_path: Path) -> None:
    import os

    (tmp_path / "sitecustomize.py").write_text(GUARD)
    done = run("explain", SAMPLE, "--url", "http://127.0.0.1:1", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert b"NETWORK" in done.stderr


@pytest.mark.parametrize("behaviour", ["endless", "slow"])
def test_a_server_that_never_ends(behaviour: str) -> None:
    from tests.support.server import serve

    with serve({"/metrics": behaviour}) as url:
        done = run("explain", SAMPLE, "--metrics", f"{url}/metrics", timeout=40)
    assert done.returncode in (0, 1, 3)
    quiet(done)
