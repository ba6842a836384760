"""Builds wheel and sdist, installs the wheel into an empty environment, and runs it there, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "samples" / "sglang" / "wrapper_nextn.log"


def run(*command: str, cwd: Path, expect: int = 0) -> str:
    """Runs ``command`` without this project on the path; its standard output. Ends the check if it fails."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != expect:
        sys.exit(f"package check: {' '.join(command)} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """The check."""
    with tempfile.TemporaryDirectory(prefix="kvautopsy-package-") as temporary:
        place = Path(temporary)
        run(sys.executable, "-m", "build", "--outdir", str(place / "dist"), str(ROOT), cwd=place)
        wheels, sdists = list((place / "dist").glob("*.whl")), list((place / "dist").glob("*.tar.gz"))
        if len(wheels) != 1 or len(sdists) != 1:
            sys.exit(f"package check: expected one wheel and one sdist, found {wheels} and {sdists}")
        venv.create(place / "env", with_pip=True)
        python = place / "env" / "bin" / "python"
        run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheels[0]), cwd=place)
        command = place / "env" / "bin" / "kvautopsy"
        version = run(str(command), "--version", cwd=place).split()[-1]
        if version not in wheels[0].name:
            sys.exit(f"package check: --version says {version}, the wheel is {wheels[0].name}")
        page = run(str(command), "explain", "--fail-on", "never", str(LOG), cwd=place)
        if "774,081" not in page:
            sys.exit(f"package check: the installed command does not explain the sample:\n{page}")
        run(str(command), "rules", "test", cwd=place)
        typed = "import analyzer, pathlib; assert (pathlib.Path(analyzer.__file__).parent / 'py.typed').exists()"
        run(str(python), "-c", typed, cwd=place)
    print("package check: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
