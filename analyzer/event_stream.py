"""All events of one input as lines of JSON, in the order of the log; by columns where a backlog allows it.

It reads the bytes by itself, beside the folding of the run: that one leaves out what no report needs, this one writes
every event. Lines that differ from each other in their figures only are written by columns, all others one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.bulk.claim import Claim
from analyzer.bulk.export import Exporter
from analyzer.event_lines import EventLines, quoted
from analyzer.events import Event
from analyzer.framing import Framer
from analyzer.parsing import Catalog, default_catalog

if TYPE_CHECKING:
    import polars as pl

_FIGURES = r"^[0-9.:]*$"
"""Texts that hold no secret and need no escape: addresses of clients, of which a log holds very many."""


class EventStream:
    """Writes the events of ``source``; ``first`` are members that stand before an event's own.

    ``live``: no look-ahead that holds back the first lines. ``kinds``: those wanted; all if there are none.
    """

    def __init__(
        self,
        source: str,
        first: dict[str, str] | None = None,
        *,
        live: bool = False,
        kinds: frozenset[str] = frozenset(),
    ) -> None:
        self.catalog: Catalog = default_catalog()
        self._writer = EventLines(first)
        self._reader = Exporter(source, self, kinds)
        self._kinds = kinds
        if live:
            self._reader.framer = Framer(source, unwrap=False)
        self._lines: list[int] = []
        self._texts: list[str] = []
        self._frames: list[pl.DataFrame] = []

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        self._reader.feed(chunk)

    def flush(self) -> None:
        """Takes what is held back for a next line: the input has fallen silent."""
        self._reader.flush()

    def close(self) -> None:
        """The end of the input."""
        self._reader.close()

    def take(self) -> str:
        """The events since the last call, a line each."""
        if not self._frames:
            text = "\n".join(self._texts)
        else:
            text = self._merged()
            self._frames = []
        self._lines, self._texts = [], []
        return text + "\n" if text else ""

    def _merged(self) -> str:
        import polars as pl

        alone = pl.DataFrame({"line": self._lines, "text": self._texts}, schema={"line": pl.Int64, "text": pl.String})
        together = pl.concat([alone, *self._frames]).sort("line", maintain_order=True)
        text: str = together["text"].str.join("\n").item()
        return text

    # what the reader calls

    def add_event(self, event: Event) -> None:
        """Takes one event that was read by itself."""
        if self._kinds and event.kind not in self._kinds:
            return
        self._lines.append(event.record.line)
        self._texts.append(self._writer.line(event))

    def add_claim(self, claim: Claim, source: str, base: int) -> None:
        """Takes the lines of a template, of which row 0 has the number ``base``."""
        import polars as pl

        template, frame = claim.template, claim.frame()
        units = self.catalog.shape(template.kind, template.engine).units
        line = (pl.col("row").cast(pl.Int64) + base).cast(pl.String)
        stamp = [pl.lit('"'), pl.col("stamp"), pl.lit('"')] if template.stamp[1] else [pl.lit("null")]
        parts: list[pl.Expr] = [
            pl.lit(self._writer.head(source) + ', "line": '), line, pl.lit(', "last_line": '), line,
            pl.lit(', "time": '), *stamp, pl.lit(', "rank": "'), pl.col("rank"),
            pl.lit(f'", "process": {quoted(template.process)}, "engine": {quoted(template.engine)}, '
                   f'"kind": {quoted(template.kind)}, "fields": {{'),
        ]  # fmt: skip
        for number, column in enumerate(template.columns):
            name = quoted(column.name)
            parts += (pl.lit(f'{", " if number else ""}{name}: {{"value": '), _value(frame, column.name))
            parts.append(pl.lit(f', "unit": {quoted(units.get(column.name, "any"))}}}'))
        parts.append(pl.lit("}}"))
        rows = (pl.col("row").cast(pl.Int64) + base).alias("line")
        self._frames.append(frame.select(rows, pl.concat_str(parts).alias("text")))


def _value(frame: pl.DataFrame, name: str) -> pl.Expr:
    """The values of a column as JSON."""
    import polars as pl

    column = frame[name]
    if column.dtype == pl.Boolean:
        return pl.when(pl.col(name)).then(pl.lit("true")).otherwise(pl.lit("false"))
    if column.dtype != pl.String:
        return pl.col(name).cast(pl.String)
    if column.str.contains(_FIGURES).all():
        return pl.concat_str([pl.lit('"'), pl.col(name), pl.lit('"')])
    texts = column.unique().to_list()  # mostly few: methods, paths, states
    return pl.col(name).replace_strict(texts, [quoted(text) for text in texts], return_dtype=pl.String)
