"""An audit: every log under some paths, read once, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analyzer.errors import UserError
from analyzer.fleet.store import Store
from analyzer.fleet.worker import FileResult, ReadOptions, fingerprint


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How an audit is run. ``engine`` is ``local`` or ``ray``."""

    engine: str = "local"
    workers: int | None = None
    ray_address: str | None = None
    read: ReadOptions = field(default_factory=ReadOptions)


@dataclass(slots=True)
class AuditResult:
    """What an audit did; the tables are in ``folder``."""

    folder: Path
    files: int = 0
    unchanged: int = 0
    bytes: int = 0
    errors: list[tuple[str, str]] = field(default_factory=list)


def find_files(paths: Sequence[str]) -> list[str]:
    """Every file under ``paths`` (files, folders, globs, object store addresses), sorted, each once.

    Raises ``UserError`` (status 3) for a path that does not exist.
    """
    import glob

    from analyzer.sources.remote import is_remote, objects

    found: dict[str, None] = {}
    for path in paths:
        if is_remote(path):
            found.update(dict.fromkeys(o.name for o in objects(path)) if "::" not in path else {path: None})
        elif Path(path).is_dir():
            for place in sorted(p for p in Path(path).rglob("*") if p.is_file() and not p.name.startswith(".")):
                found[str(place)] = None
        elif Path(path).exists():
            found[path] = None
        elif matches := sorted(glob.glob(path, recursive=True)):  # noqa: PTH207 - the pattern may be absolute
            found.update(dict.fromkeys(m for m in matches if Path(m).is_file()))
        else:
            raise UserError(f"{path}: no such file, folder or pattern", status=3)
    return list(found)


def audit(
    paths: Sequence[str],
    folder: Path,
    options: AuditOptions | None = None,
    progress: Callable[[int, int, FileResult | None], None] | None = None,
) -> AuditResult:
    """Reads every log under ``paths`` into the tables of ``folder``; files that have not changed are not read again.

    ``progress(done, total, result)`` is called after every file. One bad file never stops the rest: it is listed in
    ``AuditResult.errors`` and in the ``files`` table with its reason.
    """
    from analyzer.redact import clean

    options = options or AuditOptions()
    files = find_files(paths)
    store = Store(folder)
    result = AuditResult(folder)
    with store.writing():
        known = store.known()
        shown = {p: clean(p) for p in files}  # as the tables name them
        todo = [p for p in files if known.get(shown[p]) != fingerprint(p)]
        store.forget({shown[p] for p in todo if shown[p] in known})
        result.unchanged = len(files) - len(todo)
        if progress is not None:
            progress(result.unchanged, len(files), None)
        try:
            for read in _read_all(todo, options):
                store.add(read.tables)
                result.files += 1
                result.bytes += read.bytes
                result.errors += [(r["source"], r["error"]) for r in read.tables["files"] if r["error"]]
                if progress is not None:
                    progress(result.unchanged + result.files, len(files), read)
        except KeyboardInterrupt:
            store.flush()  # what was read is kept; the next audit goes on from here
            raise
        store.finish(list(shown.values()))
    return result


def _read_all(paths: Iterable[str], options: AuditOptions) -> Iterator[FileResult]:
    if options.engine == "ray":
        from analyzer.fleet.ray_engine import run_ray

        return run_ray(paths, options.read, address=options.ray_address)
    from analyzer.fleet.local import run_local

    return run_local(paths, options.read, workers=options.workers)
