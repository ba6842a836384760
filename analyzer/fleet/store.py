"""The tables of an audit on disk: parts while it runs, whole sorted files at its end, nothing half written.

A folder holds one Parquet file a table. While an audit runs, finished rows lie in ``.partial``; an audit that is
interrupted finds them there and goes on. A file whose size, time and fingerprint are unchanged is not read again.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.errors import UserError
from analyzer.fleet.rows import TABLES, Row

if TYPE_CHECKING:
    import polars as pl

_PART_ROWS = 50_000


def schema_of(table: str) -> dict[str, Any]:
    """The polars schema of ``table``."""
    import polars as pl

    types = {"str": pl.String, "float": pl.Float64, "int": pl.Int64, "bool": pl.Boolean}
    return {column: types[kind] for column, kind in TABLES[table].items()}


def frame_of(table: str, rows: list[Row]) -> pl.DataFrame:
    """``rows`` as a data frame of the table's schema; missing columns are null."""
    import polars as pl

    schema = schema_of(table)
    return pl.DataFrame({c: [r.get(c) for r in rows] for c in schema}, schema=schema, strict=False)


class Store:
    """The folder of one audit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.partial = folder / ".partial"
        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._next = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Locks the folder for one writer. Raises ``UserError`` if another audit writes to it or it is not writable."""
        try:
            self.partial.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / ".lock").open("w")
        except OSError as error:
            raise UserError(f"cannot write to {self.folder}: {error.strerror or error}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(
                    f"another audit is writing to {self.folder}: wait for it, or give another folder"
                ) from None
            self._next = len(list(self.partial.glob("*.parquet")))
            yield

    def known(self) -> dict[str, tuple[int, int, str]]:
        """Path -> size, time and fingerprint of every file whose rows are already here."""
        import polars as pl

        files = self._scan("files")
        if files is None:
            return {}
        rows = files.filter(pl.col("fingerprint") != "").select("path", "size", "mtime", "fingerprint").collect()
        return {path: (size, mtime, digest) for path, size, mtime, digest in rows.iter_rows()}

    def add(self, tables: dict[str, list[Row]]) -> None:
        """Takes the rows of one file; writes a part when enough have gathered."""
        for name, rows in tables.items():
            self._rows[name].extend(rows)
        if sum(map(len, self._rows.values())) >= _PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes what has gathered as one more part of each table."""
        # The files table last: a file counts as read only when its other rows are on disk.
        for name in sorted(TABLES, key=lambda table: table == "files"):
            if rows := self._rows[name]:
                self._write(frame_of(name, rows), self.partial / f"{name}-{self._next:06}.parquet")
                self._rows[name] = []
        self._next += 1

    def finish(self, paths: list[str]) -> None:
        """Merges old tables and parts into one sorted file a table, keeping the rows of ``paths`` only."""
        import polars as pl

        self.flush()
        order = {path: i for i, path in enumerate(paths)}
        files = self._scan("files")
        if files is None:
            files = frame_of("files", []).lazy()
        # A file that was read again has a newer row: the last one of its source counts.
        kept = (
            files.collect()
            .filter(pl.col("path").is_in(list(order)))
            .unique(subset=["source"], keep="last", maintain_order=True)
            .with_columns(pl.col("path").replace_strict(order, return_dtype=pl.Int64).alias("#"))
            .sort("#", "source")
        )
        sources = kept.select("source", "#").lazy()
        for name in TABLES:
            if name == "files":
                self._write(kept.drop("#"), self.folder / "files.parquet")
                continue
            table = self._scan(name)
            if table is None:
                self._write(frame_of(name, []), self.folder / f"{name}.parquet")
                continue
            source = pl.col("source") if "source" in TABLES[name] else pl.col("run").str.replace(r"#\d+$", "")
            whole = table.with_columns(source.alias("@")).join(
                sources.rename({"source": "@"}), on="@", how="inner", maintain_order="left"
            )
            whole = whole.unique(maintain_order=True) if name != "events" else whole
            self._write(whole.sort("#", maintain_order=True).drop("#", "@").collect(), self.folder / f"{name}.parquet")
        shutil.rmtree(self.partial, ignore_errors=True)

    def forget(self, paths: set[str]) -> None:
        """Drops the rows of files that have changed, before they are read again."""
        import polars as pl

        files = self._scan("files")
        if not paths or files is None:
            return
        stale = files.filter(pl.col("path").is_in(list(paths))).select("source").collect()["source"].to_list()
        for name in TABLES:
            source = pl.col("source") if "source" in TABLES[name] else pl.col("run").str.replace(r"#\d+$", "")
            for path in self._parts(name):
                part = pl.read_parquet(path)
                left = part.filter(~source.is_in(stale))
                if left.height != part.height:
                    self._write(left, path)

    def _parts(self, table: str) -> list[Path]:
        whole = self.folder / f"{table}.parquet"
        return ([whole] if whole.exists() else []) + sorted(self.partial.glob(f"{table}-*.parquet"))

    def _scan(self, table: str) -> pl.LazyFrame | None:
        import polars as pl

        parts = self._parts(table)
        return pl.concat([pl.scan_parquet(p) for p in parts], how="diagonal") if parts else None

    @staticmethod
    def _write(frame: pl.DataFrame, path: Path) -> None:
        part = path.with_name(f"{path.name}.part")
        try:
            frame.write_parquet(part, compression="zstd")
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise UserError(f"cannot write {path}: {error.strerror or error}") from None
