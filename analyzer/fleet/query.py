"""SQL over the tables of an audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import UserError
from analyzer.fleet.rows import TABLES
from analyzer.whole import replacing

if TYPE_CHECKING:
    import polars as pl


def query(folder: Path, sql: str) -> pl.DataFrame:
    """The answer to ``sql`` over ``runs``, ``ranks``, ``findings``, ``events``, ``series`` and ``files``.

    Raises ``UserError`` for a folder without tables (status 3) and for SQL that polars refuses.
    """
    import polars as pl
    from polars.exceptions import PolarsError

    frames = {name: pl.scan_parquet(p) for name in TABLES if (p := folder / f"{name}.parquet").exists()}
    if not frames:
        raise UserError(f"{folder} holds no audit: give the folder that `kvautopsy audit -o` wrote", status=3)
    try:
        with pl.SQLContext(frames=frames, eager=True) as context:
            return context.execute(sql)
    except PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(f"the query was refused: {first}. Tables: {', '.join(frames)}") from None


def export(frame: pl.DataFrame, path: Path) -> None:
    """Writes ``frame`` by the file's ending: ``.csv``, ``.jsonl``/``.ndjson``, ``.json`` or ``.parquet``."""
    writers: dict[str, Callable[[Path], object]] = {
        ".csv": frame.write_csv,
        ".jsonl": frame.write_ndjson,
        ".ndjson": frame.write_ndjson,
        # polars' own writer of JSON ends without a word where a full disk cut its last piece.
        ".json": lambda part: part.write_text(frame.write_json(), encoding="utf-8"),
        ".parquet": frame.write_parquet,
    }
    if path.suffix not in writers:
        raise UserError(f"{path}: the ending must be one of {' '.join(sorted(writers))}")
    with replacing(path) as part:
        writers[path.suffix](part)
