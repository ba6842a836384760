"""Typed events gathered into tables, one folder of Parquet files for each kind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.bulk.claim import Claim
from analyzer.bulk.template import GREATEST
from analyzer.events import Event
from analyzer.parsing import Catalog
from analyzer.redact import clean, clean_value

if TYPE_CHECKING:
    import polars as pl

_ROWS = 120_000
"""Rows of a kind that are gathered before they are written."""
_MASKED_HINTS = (
    r"(?i)key|secret|passw|pwd|credential|signature|sig=|token|hf_|sk-|gh._|_pat_|glpat|xox|akia|asia|aiza|eyj|nvapi"
    r"|auth|bearer|://|[^ -~]"
)
"""Texts without any of these are shown as they are (``analyzer.redact``)."""
Kind = tuple[str, str]
"""Engine and kind of event."""


@dataclass(slots=True)
class Tables:
    """The tables of an export under way."""

    folder: Path
    catalog: Catalog
    kinds: frozenset[str] = frozenset()
    """The kinds wanted; all if there are none."""
    rows: dict[Kind, int] = field(default_factory=dict)
    """Rows of each kind so far."""
    _frames: dict[Kind, list[pl.DataFrame]] = field(default_factory=dict)
    _events: dict[Kind, list[dict[str, Any]]] = field(default_factory=dict)
    _waiting: dict[Kind, int] = field(default_factory=dict)
    _parts: dict[Kind, int] = field(default_factory=dict)

    def add_claim(self, claim: Claim, source: str, base: int) -> None:
        """Takes the lines of a template, of which row 0 has the number ``base``."""
        import polars as pl

        template, frame = claim.template, claim.frame()
        if self.kinds and template.kind not in self.kinds:
            return
        kind = (template.engine, template.kind)
        time = pl.lit(None, dtype=pl.Datetime("ms"))
        if claim.stamps is not None:
            year = "" if template.dated else "1972-"
            stamps = pl.Series([f"{year}{stamp}" for stamp in claim.stamps.texts], dtype=pl.String)
            time = pl.lit(stamps.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False).gather(claim.stamps.codes))
        known = {column.name: column.kind for column in template.columns}
        fields = [
            _cleaned(frame, name).alias(name) if dtype == pl.String and known.get(name, "figures") != "figures"
            else (pl.col(name).cast(dtype) if name in known else pl.lit(None, dtype=dtype).alias(name))
            for name, dtype in self._schema(kind).items()
        ]  # fmt: skip
        self._take(
            kind,
            frame.select(
                pl.lit(source).alias("source"),
                (pl.col("row").cast(pl.UInt64) + base).alias("line"),
                time.cast(pl.Datetime("ms")).alias("time"),
                pl.col("rank"),
                pl.lit(template.process).alias("process"),
                *fields,
            ),
        )

    def add_event(self, event: Event) -> None:
        """Takes one event that was read by itself."""
        if self.kinds and event.kind not in self.kinds:
            return
        record, kind = event.record, (event.engine, event.kind)
        row = {
            "source": _short(record.source), "line": record.line, "time": record.time, "rank": _short(record.rank),
            "process": _short(record.process), **{name: _plain(value, name) for name, value in event.fields.items()},
        }  # fmt: skip
        rows = self._events.setdefault(kind, [])
        rows.append(row)
        if len(rows) >= _ROWS // 10:
            self._take_events(kind)

    def finish(self) -> None:
        """Writes what has been gathered."""
        for kind in list(self._events):
            self._take_events(kind)
        for kind in list(self._frames):
            self._write(kind)

    def _schema(self, kind: Kind) -> dict[str, Any]:
        """The columns of a kind's own fields."""
        import polars as pl

        types = {"int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean, "clock": pl.Float64, "size": pl.Float64}
        types |= {"hex": pl.Int64, "size_decimal": pl.Float64}
        scaled = {1.0}
        shape = self.catalog.shape(kind[1], kind[0])
        return {
            name: pl.Float64 if form == "int" and scale not in scaled else types.get(form, pl.String)
            for name, form, scale in shape.fields
        }

    def _take_events(self, kind: Kind) -> None:
        import polars as pl

        rows = self._events.pop(kind)
        schema = self._schema(kind)
        columns: dict[str, Any] = {"source": pl.String, "line": pl.UInt64, "time": pl.Float64}
        columns |= {"rank": pl.String, "process": pl.String}
        texts = {name for name, dtype in schema.items() if dtype == pl.String}
        for row in rows:
            for name in texts & row.keys():
                row[name] = None if row[name] is None else str(row[name])
        frame = pl.DataFrame(rows, schema={**columns, **schema}, strict=False)
        time = (
            pl.from_epoch((pl.col("time") * 1000).cast(pl.Int64), time_unit="ms").cast(pl.Datetime("ms")).alias("time")
        )
        self._take(kind, frame.with_columns(time))

    def _take(self, kind: Kind, frame: pl.DataFrame) -> None:
        self.rows[kind] = self.rows.get(kind, 0) + frame.height
        self._frames.setdefault(kind, []).append(frame)
        self._waiting[kind] = self._waiting.get(kind, 0) + frame.height
        if self._waiting[kind] >= _ROWS:
            self._write(kind)

    def _write(self, kind: Kind) -> None:
        """Writes what is gathered of a kind as its next part."""
        import polars as pl

        frames = self._frames.pop(kind)
        self._waiting[kind] = 0
        self._parts[kind] = part = self._parts.get(kind, 0) + 1
        folder = self.folder / f"{kind[0]}.{kind[1]}"
        folder.mkdir(exist_ok=True)
        table = pl.concat(frames)
        if not table["line"].is_sorted():
            table = table.sort("line")
        table.write_parquet(folder / f"{part:05}.parquet", compression="zstd", compression_level=1)


@lru_cache(1 << 14)
def _short(text: str) -> str:
    """A text that comes again and again, cleaned."""
    return clean(text)


def _plain(value: Any, name: str) -> Any:
    """A field's value as a cell; a nested one as JSON, a whole number that no column holds as null."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and abs(value) > GREATEST:
        return None
    if isinstance(value, str | dict | list | tuple):
        value = clean_value(value, name)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value


def _cleaned(frame: pl.DataFrame, name: str) -> pl.Expr:
    """The texts of a column without secrets; most columns hold a few words, which are looked at once."""
    import polars as pl

    texts = frame[name].filter(frame[name].str.contains(_MASKED_HINTS)).unique()
    changed = {text: new for text in texts if (new := clean(text)) != text}
    return pl.col(name).replace(changed) if changed else pl.col(name)
