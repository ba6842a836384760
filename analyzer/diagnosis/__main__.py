"""``python -m analyzer.diagnosis [DIR ...]``: checks rule files and runs their tests, without the rest of the program.

Exit status 1 if anything is wrong. Cases on sample logs are left to ``kvautopsy rules test``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from analyzer.diagnosis.lint import examine
from analyzer.diagnosis.testing import failed
from analyzer.errors import UserError


def main(arguments: list[str]) -> int:
    """Checks the given folders, or the shipped rules."""
    try:
        found = examine([Path(argument) for argument in arguments])
    except UserError as error:
        sys.stdout.write(f"{error}\n")
        return 2
    wrong = [*found.complaints, *failed(found.results)]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    skipped = sum(result.skipped for result in found.results)
    counts = f"{len(found.rules)} rules, {len(found.results)} cases, {skipped} on samples left out"
    sys.stdout.write(f"{counts}, {len(wrong)} complaints\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
