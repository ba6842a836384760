"""The same per-file function on the cores of this machine, with bounded work in flight and results in order."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from analyzer.fleet.worker import FileResult, ReadOptions, read_file
from analyzer.lean import run_lean


def run_local(paths: Iterable[str], options: ReadOptions, *, workers: int | None = None) -> Iterator[FileResult]:
    """The result of each of ``paths``, in their order. ``workers`` defaults to the number of cores.

    A worker that dies (out of memory) costs the file it read and nothing more: the file is listed with that reason.
    """
    count = workers or os.cpu_count() or 1
    todo = iter(paths)
    if count == 1:
        for path in todo:
            yield read_file(path, options)
        return
    context = multiprocessing.get_context(
        "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    )
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["analyzer.fleet.worker", "analyzer.pipeline"])
    pending: deque[tuple[str, Future[FileResult]]] = deque()
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin)
    done = False
    try:
        while True:
            while len(pending) < count * 8 and (ahead := next(todo, None)) is not None:
                pending.append((ahead, pool.submit(read_file, ahead, options)))
            if not pending:
                done = True
                return
            current, future = pending.popleft()
            try:
                yield future.result()
            except BrokenProcessPool:
                pool.shutdown(wait=False)
                yield _alone(current, options)
                pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin)
                pending = deque((p, pool.submit(read_file, p, options)) for p, _ in pending)
    finally:
        results = getattr(pool, "_result_queue", None)  # a pool that is shut down knows it no more
        pool.shutdown(wait=False, cancel_futures=True)
        if not done:  # interrupted: nobody waits for the files that are being read
            for worker in multiprocessing.active_children():
                worker.kill()
            _end(results)


def _end(results: object) -> None:
    """Lets a pool whose workers were killed see that no more results come.

    One of them may have died in the middle of a result: the pool waits for the rest of it as long as somebody could
    write it, and this process still could (Python 3.11).
    """
    writer = getattr(results, "_writer", None)
    if writer is not None:
        writer.close()


def _begin() -> None:
    """In a worker, once: Ctrl-C is the first process's to answer, and a worker does not outlive it."""
    run_lean()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _alone(path: str, options: ReadOptions) -> FileResult:
    """Reads ``path`` in a process of its own, after a pool broke while it was being read."""
    with ProcessPoolExecutor(1, initializer=_begin) as pool:
        try:
            return pool.submit(read_file, path, options).result()
        except BrokenProcessPool:
            result = FileResult(path, error="the process that read it died (out of memory, or killed)")
            row = {"source": path, "path": path, "size": 0, "mtime": 0, "fingerprint": "", "error": result.error}
            result.tables["files"].append(row)
            return result
