"""Which lines of a block are of a known template, which say nothing to anybody, and which must be read one by one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzer.bulk.claim import Claim
from analyzer.bulk.cursor import Ints
from analyzer.bulk.effects import effect_of
from analyzer.bulk.extract import extract, is_rust
from analyzer.bulk.lines import Lines
from analyzer.bulk.quiet import is_marked
from analyzer.bulk.template import Template, learn, learn_free
from analyzer.framing.plain import Plain, read_plain
from analyzer.parsing import Catalog
from analyzer.parsing.shape import Shape
from analyzer.run.signals import bears

MOST_TEMPLATES = 24
"""Each is looked for in every block."""
_WORTH, _MOST_RARE = 64, 1024
"""Lines of a block that a template must find to stay known; how many that did not are remembered."""
_SAMPLE = 384
"""Lines without a template that are looked at in one block, spread evenly."""
_LEFT_OVER = 40
"""Characters behind a match that are taken for free text."""
_COMMON = 2
"""How often a form must be in the sample to be worth a template."""


@dataclass(slots=True)
class Claims:
    """What a block of lines holds. ``rest`` are the rows to be read one by one, in order."""

    rest: Ints
    found: list[Claim] = field(default_factory=list)


@dataclass(slots=True)
class Templates:
    """The templates known so far, those of which most lines were found last time first."""

    catalog: Catalog
    every: bool = False
    """Whether all fields become columns, not only those that a run looks at."""
    kinds: frozenset[str] = frozenset()
    """The kinds wanted; all if there are none."""
    known: list[Template] = field(default_factory=list)
    _hits: dict[Template, int] = field(default_factory=dict)
    _alone: dict[str, bool] = field(default_factory=dict)
    """Of the beginnings of free texts, whether one shape alone begins so."""
    _rare: set[Template] = field(default_factory=set)
    """Those that were known and found next to nothing."""

    def claim(self, lines: Lines, engine: str, wanted: Callable[[Ints], Ints] | None = None) -> Claims:
        """Sorts the ``lines`` of a block; ``engine`` is that of the run.

        ``wanted`` tells which rows of those without a known template matter.
        """
        result = Claims(rest=np.arange(len(lines)))
        for template in sorted(self.known, key=lambda t: -self._hits[t]):
            self._take(template, lines, result)
        if wanted is not None:
            result.rest = wanted(result.rest)
        for template in self._learnt(lines, result.rest, engine):
            self.known.append(template)
            self._take(template, lines, result)
        self._retire(len(lines))
        return result

    def _retire(self, lines: int) -> None:
        """Forgets templates that found next to nothing: a few lines are read sooner one by one."""
        self.known.sort(key=lambda t: -self._hits[t])
        least = _least(lines)
        for template in self.known:
            if self._hits[template] < least and len(self._rare) < _MOST_RARE:
                self._rare.add(template)
        self.known[:] = [t for t in self.known[:MOST_TEMPLATES] if self._hits[t] >= least]

    def _take(self, template: Template, lines: Lines, result: Claims) -> None:
        """Moves the rows of ``template`` from the rest of ``result`` to what is found."""
        if not len(result.rest):
            return
        claim, taken = extract(template, lines, result.rest)
        self._hits[template] = len(claim)
        if len(claim):
            result.found.append(claim)
            result.rest = result.rest[~taken]

    def _learnt(self, lines: Lines, rows: Ints, engine: str) -> list[Template]:
        """Templates of the forms that are common among the lines that none was known for, most common first."""
        if len(rows) < _least(len(lines)):
            return []
        known = self._rare.union(self.known)
        counts: Counter[Template] = Counter()
        size = _SAMPLE if len(rows) > len(lines) // 8 else _SAMPLE // 16
        for row in rows[:: max(1, len(rows) // size)]:
            template = self._of(lines[row], engine)
            if template is not None and template not in known:
                counts[template] += 1
        return [template for template, count in counts.most_common() if count >= _COMMON]

    def _of(self, line: str, engine: str) -> Template | None:
        plain = None if is_marked(line) else read_plain("", 1, line)
        found = self.catalog.find(plain.record.text, engine) if plain is not None else None
        if plain is None or found is None or (self.kinds and found[0].kind not in self.kinds):
            return None
        shape, match = found
        free = None
        if not (self.every or effect_of(shape.engine, shape.kind) or bears(shape.engine, shape.kind)):
            free = self._free(plain, line, shape, match)
        if free is not None and len(plain.record.text) - match.end() > _LEFT_OVER:
            return free
        return learn(plain, line, shape, match, self.every) or free

    def _free(self, plain: Plain, line: str, shape: Shape, match: re.Match[str]) -> Template | None:
        template = learn_free(plain, line, shape, match)
        if template is None or not self._is_alone(shape, plain.record.text[: template.tail.back]):
            return None
        return template if is_rust(template.tail.expression) else None

    def _is_alone(self, shape: Shape, head: str) -> bool:
        """Whether no other shape may begin as ``head`` does."""
        if (known := self._alone.get(head)) is None:
            others = (other for some in self.catalog.shapes if some is not shape for other in some.heads)
            known = self._alone[head] = not any(other.startswith(head) or head.startswith(other) for other in others)
        return known


def _least(lines: int) -> int:
    """How many of so many lines must be of a template to make it worth while."""
    return min(_WORTH, lines // 100)


def runs_of(rows: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Sorted ``rows`` as half-open ranges of consecutive ones."""
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and rows[end] == rows[end - 1] + 1:
            end += 1
        yield rows[at], rows[end - 1] + 1
        at = end


def last_below(rows: Ints, bound: int, first: int) -> int | None:
    """The last of the sorted ``rows`` that is below ``bound`` and not below ``first``."""
    at = int(np.searchsorted(rows, bound)) - 1
    return int(rows[at]) if at >= 0 and rows[at] >= first else None
