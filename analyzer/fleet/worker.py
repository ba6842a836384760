"""Reads one file of an archive; the function that local processes and Ray workers both run."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analyzer.errors import OutputError, UserError
from analyzer.fleet.rows import NOT_A_LOG, TABLES, Row, rows_of, run_key

_EDGE = 64 << 10
_BLOCK = 4 << 20
"""Bytes of a long log read at a time: there are as many workers as cores."""


@dataclass(slots=True)
class FileResult:
    """The rows of one file, or why there are none."""

    path: str
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    error: str = ""
    bytes: int = 0


def fingerprint(path: str) -> tuple[int, int, str]:
    """Size, modification time in ns and a digest of both ends of a local file; of an object what its store says.

    ``(0, 0, "")`` for what cannot be recognised again.
    """
    from analyzer.sources.remote import identity, is_remote

    if is_remote(path):
        size, said = identity(path)
        return (size, 0, hashlib.sha256(said.encode()).hexdigest()[:24]) if said else (0, 0, "")
    place = Path(path)
    try:
        status = place.stat()
        with place.open("rb") as file:
            digest = hashlib.sha256(file.read(_EDGE))
            if status.st_size > 2 * _EDGE:
                file.seek(-_EDGE, os.SEEK_END)
                digest.update(file.read(_EDGE))
    except OSError:
        return 0, 0, ""
    return status.st_size, status.st_mtime_ns, digest.hexdigest()[:24]


def page_name(source: str) -> str:
    """The file name of a source's own page."""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16] + ".html"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a worker does with each file. ``pages`` is a folder for one HTML page a log, or empty."""

    events: bool = True
    rule_dirs: tuple[str, ...] = ()
    pages: str = ""


def read_file(path: str, options: ReadOptions) -> FileResult:
    """Explains every log in ``path`` (a file or an archive). Never raises for a bad file: the reason is in the rows.

    Raises ``OutputError`` where the page of a log cannot be written.
    """
    from analyzer.redact import clean
    from analyzer.sources import open_sources

    size, mtime, digest = fingerprint(path)
    result = FileResult(path, bytes=size)

    def note(source: str, error: str) -> None:
        row = {
            "source": clean(source),
            "path": clean(path),
            "size": size,
            "mtime": mtime,
            "fingerprint": digest,
            "error": clean(error),
        }
        result.tables["files"].append(row)

    try:
        for source in open_sources([path], keep_errors=True):
            try:
                note(source.name, _read_source(source, result, options))
            except OutputError:
                raise  # the next file's page could not be written either
            except (UserError, OSError, ValueError) as error:
                note(source.name, str(error))
            except Exception as error:
                # A defect of ours must not end an audit of thousands of files; it is named, with its file.
                note(source.name, f"internal error, please report it: {type(error).__name__}: {error}")
    except OutputError:
        raise
    except (UserError, OSError, EOFError, ValueError) as error:
        note(path, str(error))
        result.error = str(error)
    return result


def _read_source(source: Any, result: FileResult, options: ReadOptions) -> str:
    """Adds the rows of one log to ``result``; why it was not read to its end, or nothing.

    A cut file keeps the rows of what could be read. Raises ``UserError`` where that holds no log.
    """
    from analyzer.pipeline import Analysis, Options, gathered

    analysis = Analysis(Options(rule_dirs=tuple(Path(p) for p in options.rule_dirs)))
    reader = analysis.reader(source.name)
    cut = ""
    try:
        for chunk in gathered(source.chunks(), _BLOCK):
            reader.feed(chunk)
    except UserError as error:
        cut = str(error)
    reader.close()
    if not analysis.inputs[0].lines:
        raise UserError(cut or "empty: no line in it", status=3)
    if not analysis.inputs[0].recognised_lines:
        raise UserError(cut or NOT_A_LOG, status=3)
    unread = f"not read to its end: {cut}" if cut else ""
    analysis.inputs[0].note = "; ".join(n for n in (unread, *source.notes) if n)
    report = analysis.report()
    for name, rows in rows_of(report).items():
        result.tables[name].extend(rows)
    if options.pages:
        from analyzer.report import write_report

        write_report(report, Path(options.pages) / page_name(source.name))
    if options.events:
        keys = {run.id: run_key(run) for run in report.runs}
        for run in analysis.folder.runs():
            result.tables["events"].extend(_event_rows(run, keys.get(run.id, source.name)))
    return unread


def _event_rows(run: Any, key: str) -> list[Row]:
    from analyzer.redact import clean, clean_value

    return [
        {
            "run": key, "source": clean(event.record.source), "line": event.line, "time": event.record.stamp,
            "rank": event.rank, "kind": event.kind,
            "fields": json.dumps(clean_value(event.fields), default=str, ensure_ascii=False)[:20_000],
        }
        for event in run.events
    ]  # fmt: skip
