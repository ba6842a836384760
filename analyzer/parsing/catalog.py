"""The catalog of all message shapes: from a record to the event it is, or None.

Order of trying: shapes that match at the start of the message before those found further in; the shapes of the run's
engine (if it is known) and the common ones before those of the other engine; more fixed text (of the alternative that
may match) before less; then the order of the files. The first match wins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.parsing.index import Index
from analyzer.parsing.shape import Shape
from analyzer.parsing.table import load_table

if TYPE_CHECKING:
    from analyzer.parsing.reference import Reference

COMMON = "common"

_MOST_TRIED = 64
"""Shapes searched for in one text: more have their fixed text in a whole log taken for one record, not in a message."""


class Catalog:
    """Shapes of one grammar folder. ``shapes`` are sorted, most fixed text first."""

    def __init__(self, table: dict[str, Any], folder: Path | None = None) -> None:
        self.folder = folder
        self.shapes = sorted((Shape(entry) for entry in table["shapes"]), key=lambda shape: -shape.weight)
        self.problems: list[str] = [f"{file}:{line}: {text}" for file, line, text in table["problems"]]
        """What is wrong with grammar files; the rules concerned are not in the catalog."""
        self._indexes: dict[str, Index] = {}

    @classmethod
    def load(cls, folder: Path | None = None) -> Catalog:
        """The catalog of a grammar folder; the shipped one by default."""
        return cls(load_table(folder), folder)

    def match(self, record: Record, engine: str = "") -> Event | None:
        """The event that ``record`` is. ``engine`` is the engine of its run, where that is known.

        Where it is not, a header that names the source file is vLLM's: of what both engines say, it says it.
        """
        found = self.find(record.text, engine or ("vllm" if record.module else ""))
        return found[0].event(found[1], record) if found else None

    def find(self, text: str, engine: str = "") -> tuple[Shape, Any] | None:
        """The shape that recognises ``text`` and its match."""
        index = self._indexes.get(engine)
        if index is None:
            index = self._index(engine)
        if candidates := index.by_head(text):
            if len(candidates) > 1:
                candidates = self._ordered(candidates, text, engine)
            for shape in candidates:
                if match := shape.match_start(text):
                    return shape, match
        if places := index.anywhere(text):
            for shape in self._ordered(places, text, engine)[:_MOST_TRIED]:
                if match := shape.search(text, places[shape]):
                    return shape, match
        return None

    @staticmethod
    def _ordered(shapes: Collection[Shape], text: str, engine: str) -> Sequence[Shape]:
        """Those of ``shapes`` that ``text`` does not rule out, in the order in which they are tried."""
        weighed = [(-weight, shape) for shape in shapes if (weight := shape.weight_in(text)) >= 0]
        if len(weighed) > 1:
            weighed.sort(key=lambda pair: (bool(engine) and pair[1].engine not in (engine, COMMON), pair[0]))
        return [shape for _, shape in weighed]

    def find_all(self, text: str, engine: str = "") -> list[Shape]:
        """Every shape that recognises ``text``, in order of trying (to find ambiguities)."""
        index = self._index(engine)
        found = [s for s in self._ordered(index.by_head(text), text, engine) if s.match_start(text)]
        places = index.anywhere(text)
        found += [s for s in self._ordered(places, text, engine) if s not in found and s.search(text, places[s])]
        return found

    def _index(self, engine: str) -> Index:
        if engine not in self._indexes:
            preferred = [s for s in self.shapes if not engine or s.engine in (engine, COMMON)]
            others = [s for s in self.shapes if engine and s.engine not in (engine, COMMON)]
            self._indexes[engine] = Index(preferred + others)
        return self._indexes[engine]

    @property
    def literals(self) -> list[str]:
        """Literals of which every recognised text holds at least one: for a bulk search ahead of ``match``."""
        return sorted({key for shape in self.shapes for key in shape.keys})

    def shape(self, kind: str, engine: str = "") -> Shape:
        """The shape of ``kind``; ``KeyError`` without one."""
        for shape in self.shapes:
            if shape.kind == kind and engine in ("", shape.engine):
                return shape
        raise KeyError(f"no shape is called {kind!r}")

    def reference(self, kind: str, engine: str = "") -> Reference:
        """Lark's own parser for the shape of ``kind``: slow, gives the same events. For tests."""
        from analyzer.parsing.reference import reference_of

        shape = self.shape(kind, engine)
        return reference_of(self.folder, shape)


@cache
def default_catalog() -> Catalog:
    """The catalog of the shipped grammars."""
    return Catalog.load()
