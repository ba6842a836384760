"""The audit command: progress on standard error, summary on standard output, exports by ending."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import OutputError, UserError
from analyzer.fleet.audit import AuditOptions, AuditResult, audit
from analyzer.fleet.worker import ReadOptions
from analyzer.units import several, show_bytes
from analyzer.whole import check_place

if TYPE_CHECKING:
    from analyzer.fleet.worker import FileResult

_EXPORTS = {".csv", ".jsonl", ".ndjson", ".json", ".parquet"}
_PAGES = {".html", ".htm"}


def run_audit(
    paths: Sequence[str],
    outputs: Sequence[Path],
    *,
    engine: str,
    workers: int | None,
    ray_address: str | None,
    events: bool,
    rule_dirs: tuple[str, ...],
    fail_on: str,
    run_pages: bool = True,
) -> int:
    """Runs the audit, prints its summary and writes ``outputs``; the exit status of contract.md."""
    from rich.console import Console

    from analyzer.fleet.query import export
    from analyzer.fleet.show import print_summary
    from analyzer.fleet.summary import load, summarise

    folders = [p for p in outputs if p.suffix not in _EXPORTS | _PAGES]
    if len(folders) > 1:
        raise UserError("give one folder to -o; the other outputs are files (.csv .jsonl .html)")
    for path in outputs:
        if path.suffix in _EXPORTS:
            check_place(path, paths)
        elif path.suffix in _PAGES and path.is_dir():
            raise OutputError(f"{path} cannot be written: it is a folder")
    with tempfile.TemporaryDirectory(prefix="kvautopsy-") as temporary:
        folder = folders[0] if folders else Path(temporary)
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file: give a folder, or a name that ends in .csv, .jsonl or .html")
        page = next((p for p in outputs if p.suffix in _PAGES), None)
        pages = page.with_name(f"{page.stem}_runs") if page is not None and run_pages else None
        with _staged(pages) as staging:
            read = ReadOptions(events, rule_dirs, str(staging.absolute()) if staging is not None else "")
            options = AuditOptions(engine, workers, ray_address, read)
            try:
                result = _with_progress(paths, folder, options)
            except KeyboardInterrupt as error:
                kept = f"what was read is kept in {folder}, the same command goes on from there"
                raise type(error)(kept if folders else "nothing was written") from None
        summary = summarise(folder)
        print_summary(summary, Console(highlight=False, soft_wrap=False))
        for path in outputs:
            if path.suffix in _EXPORTS:
                export(load(folder, "runs"), path)
            elif path.suffix in _PAGES:
                from analyzer.fleet.page import write_page

                write_page(folder, summary, path, pages)
        if not summary.totals["runs"]:
            _say(f"nothing recognised in {several(len(result.errors), 'file')}", result)
            return 3
        if fail_on != "never":
            from analyzer.diagnosis.judgement import reaches

            failed = ["critical"] if summary.totals["failed"] else []
            return int(reaches([*load(folder, "findings")["severity"].unique(), *failed], fail_on))
    return 0


@contextmanager
def _staged(pages: Path | None) -> Iterator[Path | None]:
    """A folder beside ``pages`` whose files go there when the block ends; what fails leaves ``pages`` as it was."""
    if pages is None:
        yield None
        return
    try:
        pages.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=pages.parent, prefix=f".{pages.name}.") as temporary:
            yield Path(temporary)
            pages.mkdir(exist_ok=True)
            for made in Path(temporary).iterdir():
                made.replace(pages / made.name)
    except OSError as error:
        raise OutputError(f"{pages} cannot be written: {error.strerror or error}") from None


def _say(text: str, result: AuditResult) -> None:
    print(f"kvautopsy: {text}", file=sys.stderr)  # noqa: T201
    for source, error in result.errors[:5]:
        print(f"  {source}: {error}", file=sys.stderr)  # noqa: T201


def _with_progress(paths: Sequence[str], folder: Path, options: AuditOptions) -> AuditResult:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        return audit(paths, folder, options)
    columns = (
        TextColumn("reading"), BarColumn(), TextColumn("{task.completed:,.0f}/{task.total:,.0f} files"),
        TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("audit", total=None, rate="")
        seen = 0

        def progress(done: int, total: int, result: FileResult | None) -> None:
            nonlocal seen
            seen += result.bytes if result else 0
            elapsed = bars.tasks[task].elapsed or 0.001
            rate = f"{done / elapsed:,.0f} files/s  {show_bytes(seen / elapsed)}/s"
            bars.update(task, completed=done, total=total, rate=rate)

        return audit(paths, folder, options, progress)
