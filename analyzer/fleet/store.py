"""The tables of an audit on disk: parts while it runs, whole sorted files at its end, nothing half written.

A folder holds one Parquet file a table. While an audit runs, finished rows lie in ``.partial``; an audit that is
interrupted finds them there and goes on. A file whose size, time and fingerprint are unchanged is not read again.

At its end the merged tables are written to ``.partial/merged`` first. One rename, to ``.partial/committed``, says that
all of them are whole; only then do they take their places. An audit that is killed in between is carried to its end by
the next one, so that no folder keeps the tables of two audits, nor rows twice.
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
from analyzer.whole import SCRAP, replacing

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
            self._recover()
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
                write_table(frame_of(name, rows), self.partial / f"{name}-{self._next:06}.parquet")
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
        merged = self.partial / "merged"
        merged.mkdir(exist_ok=True)
        try:
            for name in TABLES:
                frame = kept.drop("#") if name == "files" else self._merged(name, sources)
                write_table(frame, merged / f"{name}.parquet")
        except BaseException:
            shutil.rmtree(merged, ignore_errors=True)
            raise
        merged.replace(self._committed)
        self._commit()
        shutil.rmtree(self.partial, ignore_errors=True)

    def _merged(self, name: str, sources: pl.LazyFrame) -> pl.DataFrame:
        """The rows of table ``name`` that belong to ``sources``, in their order."""
        import polars as pl

        table = self._scan(name)
        if table is None:
            return frame_of(name, [])
        source = pl.col("source") if "source" in TABLES[name] else pl.col("run").str.replace(r"#\d+$", "")
        whole = table.with_columns(source.alias("@")).join(
            sources.rename({"source": "@"}), on="@", how="inner", maintain_order="left"
        )
        whole = whole.unique(maintain_order=True) if name != "events" else whole
        return whole.sort("#", maintain_order=True).drop("#", "@").collect()

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
                    write_table(left, path)

    def _parts(self, table: str) -> list[Path]:
        whole = self.folder / f"{table}.parquet"
        return ([whole] if whole.exists() else []) + sorted(self.partial.glob(f"{table}-*.parquet"))

    def _scan(self, table: str) -> pl.LazyFrame | None:
        import polars as pl

        parts = self._parts(table)
        return pl.concat([pl.scan_parquet(p) for p in parts], how="diagonal") if parts else None

    @property
    def _committed(self) -> Path:
        return self.partial / "committed"

    def _commit(self) -> None:
        """Puts the merged tables in their places; may be done again from any point at which it was stopped."""
        for table in self._committed.glob("*.parquet"):
            table.replace(self.folder / table.name)
        for part in self.partial.glob("*.parquet"):
            part.unlink()
        self._committed.rmdir()

    def _recover(self) -> None:
        """Ends or undoes what a killed audit had begun."""
        if self._committed.exists():
            self._commit()
        shutil.rmtree(self.partial / "merged", ignore_errors=True)
        for folder in (self.folder, self.partial):
            for scrap in folder.glob(f".*{SCRAP}"):
                scrap.unlink()
        # A part without its files, which are written last, would be read again and then stand there twice.
        whole = {part.name.rpartition("-")[2] for part in self.partial.glob("files-*.parquet")}
        for part in self.partial.glob("*.parquet"):
            if part.name.rpartition("-")[2] not in whole:
                part.unlink()


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Writes ``frame`` as Parquet, whole or not at all. Raises ``UserError`` if it cannot be written."""
    with replacing(path) as part:
        frame.write_parquet(part, compression="zstd")
