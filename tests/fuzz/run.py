"""A fuzzing run guided by coverage: ``python -m tests.fuzz.run SECONDS [--keep FOLDER]``.

The whole program, from bytes to a page in every format, on inputs that atheris grows from windows of the sample logs.
What it found is written to FOLDER and named; the exit status is then 1. Without atheris the inputs are mutated at
random, without guidance.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

WINDOW = 2_000


def check(data: bytes) -> None:
    """Raises if the program falls over ``data``, lets a control character out, or depends on where it is cut."""
    from analyzer.report import FORMATS, render
    from tests.fuzz.test_program import analyse, document

    report = analyse([data])
    for format in FORMATS:
        page = render(report, format, noise=True)
        assert not any(c in page for c in "\x00\x07\x08\x1b\x9b\u202e\u2066"), format
    at = len(data) // 3
    assert document(analyse([data[:at], data[at : 2 * at], data[2 * at :]])) == document(report), "cuts matter"


def seeds() -> list[bytes]:
    """Windows of the sample logs, and their lines of start and end."""
    from tests.fuzz.test_program import LOGS

    found = []
    for log in LOGS:
        data = log.read_bytes()
        found += [data[at : at + WINDOW] for at in range(0, min(len(data), 60_000), WINDOW)]
        found.append(data[-WINDOW:])
    return found


def guided(seconds: int, keep: Path) -> int:
    """Under atheris, in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["analyzer"], enable_loader_override=False):
        for name in ("pipeline", *(f"report.{form}" for form in ("html", "junit", "markdown", "sarif", "terminal"))):
            importlib.import_module(f"analyzer.{name}")
    check(seeds()[0])
    corpus = keep / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    words = keep / "words.dict"
    words.write_text("".join(f'"{word}"\n' for word in _words()))
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-max_total_time={seconds}",
            "-max_len=8000",
            "-timeout=20",
            "-rss_limit_mb=1500",
            f"-dict={words}",
            f"-artifact_prefix={keep}/found-",
        ],
        check,
    )
    atheris.Fuzz()
    return 0


def _words() -> list[str]:
    """Literals of the grammars that a dictionary of libFuzzer can hold."""
    import re

    from analyzer.resources import data_dir

    texts = [path.read_text(encoding="utf-8") for path in sorted(data_dir("grammars").rglob("*.lark"))]
    found = {word for text in texts for word in re.findall(r'"([\w #:=.,(-]{6,60})"', text)}
    return sorted(found)[:3000]


def unguided(seconds: int, keep: Path) -> int:
    """Random mutation for ``seconds``; 1 if something was found."""
    from tests.fuzz.test_mutations import hostile_log

    end, seed, found = time.monotonic() + seconds, random.SystemRandom().randrange(1 << 30), 0
    first = seed
    while time.monotonic() < end:
        seed += 1
        data = hostile_log(seed)[:20_000]
        try:
            check(data)
        except Exception:
            found += 1
            place = keep / f"found-{seed}.log"
            place.write_bytes(data)
            print(f"seed {seed}: {place}\n{traceback.format_exc(limit=-4)}")
    print(f"{seed - first} inputs in {seconds} s, {found} found")
    return int(found > 0)


def main() -> Any:
    """Reads the arguments and runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=int, nargs="?", default=300)
    parser.add_argument("--keep", type=Path, help="where to write what was found")
    parser.add_argument("--unguided", action="store_true", help="do not use atheris")
    options = parser.parse_args()
    keep = options.keep or Path(tempfile.mkdtemp(prefix="kvautopsy-fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    try:
        import atheris  # noqa: F401

        with_coverage = not options.unguided
    except ImportError:
        with_coverage = False
    print(f"{options.seconds} s, {'guided by coverage' if with_coverage else 'unguided'}, what is found goes to {keep}")
    return guided(options.seconds, keep) if with_coverage else unguided(options.seconds, keep)


if __name__ == "__main__":
    sys.exit(main())
