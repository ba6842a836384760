"""``python -m analyzer.diagnosis [DIR ...]``: checks rule files and runs their tests, without the rest of the program.

Exit status 1 if anything is wrong. Cases on sample logs are left to ``kvautopsy rules test``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from analyzer.diagnosis import testing
from analyzer.diagnosis.lint import lint
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.ruleset import load_folder
from analyzer.errors import UserError
from analyzer.resources import data_dir


def main(arguments: list[str]) -> int:
    """Checks the given folders, or the shipped rules."""
    wrong: list[str] = []
    rules: list[Rule] = []
    shipped: list[Rule] = []
    try:
        for path in [Path(a) for a in arguments] or [data_dir("rules")]:
            folder = load_folder(path)
            wrong += folder.problems + folder.lint
            rules += folder.rules
        shipped = load_folder(data_dir("rules")).rules
    except UserError as error:
        wrong.append(str(error))
    results = testing.run(rules)
    own = {rule.id for rule in rules}
    wrong += lint(rules, [rule for rule in shipped if rule.id not in own]) + testing.failed(results)
    skipped = sum(r.skipped for r in results)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    counts = f"{len(rules)} rules, {len(results)} cases, {skipped} on samples left out, {len(wrong)} complaints"
    sys.stdout.write(f"{counts}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
