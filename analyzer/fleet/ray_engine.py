"""The same per-file function on a Ray cluster: bounded tasks in flight, retries by Ray, results in order."""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from analyzer.errors import OutputError, UserError
from analyzer.fleet.worker import FileResult, ReadOptions, read_file

CONNECT = 10.0
"""Seconds that a cluster may take to answer at its address."""


def _cores(ray: Any) -> int:
    """The cores of the whole cluster."""
    return int(ray.cluster_resources().get("CPU", 1))


def _knock(address: str) -> None:
    """Asks whether anything listens at ``address``, since Ray tries a dead one for minutes. Raises ``UserError``."""
    if address in ("", "auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = "an address is HOST:PORT" if isinstance(error, ValueError) else str(error)
        raise UserError(f"no Ray cluster at {address}: {reason}") from None


def run_ray(
    paths: Iterable[str],
    options: ReadOptions,
    *,
    address: str | None = None,
    in_flight: int | None = None,
) -> Iterator[FileResult]:
    """The result of each of ``paths``, in their order.

    ``address`` is the cluster's (else ``RAY_ADDRESS``, else one is started here). The files must be readable from
    every node (a shared file system or an object store). Raises ``UserError`` if Ray is missing or not reachable.
    """
    try:
        import ray
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install 'kvautopsy[ray]', or use --engine local") from None
    mine = not ray.is_initialized()
    if mine:
        _knock(address or os.environ.get("RAY_ADDRESS", ""))
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UserError(f"no Ray cluster at {address or 'RAY_ADDRESS'}: {error}") from None
    remote = ray.remote(max_retries=3)(read_file)
    limit = in_flight or 4 * max(1, _cores(ray))
    todo = iter(paths)
    pending: deque[tuple[str, Any]] = deque()
    try:
        while True:
            while len(pending) < limit and (path := next(todo, None)) is not None:
                pending.append((path, remote.remote(path, options)))
            if not pending:
                return
            path, reference = pending.popleft()
            try:
                yield ray.get(reference)
            except ray.exceptions.RayError as error:
                if isinstance(cause := getattr(error, "cause", None), OutputError):
                    raise cause from None
                result = FileResult(path, error=f"the Ray task failed: {str(error).splitlines()[0]}")
                row = {"source": path, "path": path, "size": 0, "mtime": 0, "fingerprint": "", "error": result.error}
                result.tables["files"].append(row)
                yield result
    finally:
        if mine:
            ray.shutdown()
