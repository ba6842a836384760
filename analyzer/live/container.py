"""The output of a container through the Docker Engine API: history first, then live; a Podman socket works the same.

stdout and stderr are read apart, each with the daemon's own nanosecond stamps, and merged by them. After a break (the
daemon restarts, the container restarts) reading goes on behind the last stamp, so that no line is lost or doubled.
"""

from __future__ import annotations

import difflib
import heapq
import itertools
import queue
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from analyzer.errors import UserError
from analyzer.live.daemon import connect, why

BLOCK = 5000
"""Lines of one stream that are handed out at once."""
HOLD = 0.03
"""Seconds that a line waits for an earlier one of the other stream."""
FIRST_HOLD = 0.2
"""The same in the first second, when one stream may be opened later than the other."""
GRACE = 5.0
"""Seconds that a container whose policy is to be restarted may look ended."""
PATIENCE = 30.0
"""Seconds that a daemon or container may be away before following ends."""


@dataclass(frozen=True, slots=True)
class End:
    """How the container stands when following ends."""

    exit_code: int | None = None
    oom_killed: bool = False
    status: str = ""
    health: str = ""
    memory_limit: int = 0
    """Bytes of host memory that it may use; 0 without a limit."""


@dataclass(slots=True)
class _Position:
    """How far a stream was read: its last stamp, and how many lines carried that stamp."""

    last: str = ""
    same: int = 0
    _seen: int = 0

    def again(self) -> None:
        """Reading starts over from ``last``."""
        self._seen = 0

    def takes(self, stamp: str) -> bool:
        """True for a line that was not read before."""
        if stamp == self.last:
            self._seen += 1
            if stamp and self._seen <= self.same:
                return False
            self.same = self._seen
            return True
        if stamp < self.last:
            return not stamp
        self.last, self.same, self._seen = stamp, 1, 1
        return True


class Container:
    """One container whose output is followed."""

    def __init__(self, name: str, client: Any = None) -> None:
        """Finds the container ``name`` (or id). Raises ``UserError`` (status 3) that suggests close names."""
        from docker.errors import APIError, DockerException, NotFound

        if not name.strip():
            raise UserError("no container given: name one, as `docker ps` lists them")
        self.client = client or connect()
        try:
            self._container = self.client.containers.get(name)
        except NotFound:
            names = [c.name for c in self.client.containers.list(all=True)]
            close = difflib.get_close_matches(name, names, 3, 0.4) or names[:3]
            hint = f"did you mean {' or '.join(close)}?" if close else "there is no container on this daemon"
            raise UserError(f"no container named {name}: {hint}", status=3) from None
        except (APIError, DockerException) as error:
            raise UserError(why(error), status=3) from None
        self.name: str = self._container.name
        self.id: str = self._container.id
        self.broken = ""
        """Why following ended early, if it did."""
        self.behind = False
        """Whether more lines wait already while one part of them is handed out."""

    def follow(self, stop: threading.Event) -> Iterator[tuple[str, bytes]]:
        """``(stream, lines)`` in the order of their stamps; ``("", b"")`` whenever there is nothing new."""
        tty = bool(self._container.attrs.get("Config", {}).get("Tty"))
        streams = ("stdout",) if tty else ("stdout", "stderr")
        read = {stream: _Position() for stream in streams}
        yield from self._history(read, stop)
        arrived: queue.Queue[tuple[str, str, bytes] | None] = queue.Queue(maxsize=50_000)
        for stream in streams:
            threading.Thread(target=self._read, args=(stream, read[stream], arrived, stop), daemon=True).start()
        yield from self._merge(arrived, len(streams), stop)

    def _history(self, read: dict[str, _Position], stop: threading.Event) -> Iterator[tuple[str, bytes]]:
        """What was printed before now, both streams merged by their stamps without holding them in memory."""

        def one(stream: str) -> Iterator[tuple[str, str, bytes]]:
            for stamp, line in self._lines(stream, "", follow=False):
                if stamp > cut:
                    return  # the other stream may have been read before this moment: the live part orders them
                if read[stream].takes(stamp):
                    yield stamp, stream, line

        cut = self._daemon_time()
        block: list[bytes] = []
        held = ""
        self.behind = True
        try:
            for _, stream, line in heapq.merge(*(one(s) for s in read), key=lambda item: item[0]):
                if block and (stream != held or len(block) >= BLOCK):
                    yield held, b"".join(block)
                    block = []
                held = stream
                block.append(line)
                if stop.is_set():
                    break
        except Exception as error:  # the daemon went away: reading goes on from here once it is back
            if getattr(error, "status_code", None) == HTTPStatus.NOT_IMPLEMENTED:
                raise UserError(
                    f"the output of {self.name} cannot be read: its logging driver keeps none "
                    "(docker inspect: HostConfig.LogConfig); give the log where that driver puts it",
                    status=3,
                ) from None
            self.broken = f"{type(error).__name__}: {error}"
        self.behind = False
        if block:
            yield held, b"".join(block)

    def _daemon_time(self) -> str:
        """Now by the daemon's clock, as it stamps lines; what sorts behind every stamp if it does not say."""
        import datetime

        try:
            text = str(self.client.info()["SystemTime"])
            head, zone = re.fullmatch(r"([\d-]+T[\d:]+)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", text).groups()  # type: ignore[union-attr]
            moment = datetime.datetime.fromisoformat(head + zone.replace("Z", "+00:00")).astimezone(datetime.UTC)
        except Exception:  # a daemon that lacks it, or one that has just gone
            return "~"
        return f"{moment:%Y-%m-%dT%H:%M:%S}.000000000Z"

    def _merge(
        self, arrived: queue.Queue[tuple[str, str, bytes] | None], streams: int, stop: threading.Event
    ) -> Iterator[tuple[str, bytes]]:
        held: list[tuple[str, int, float, str, bytes]] = []
        order = itertools.count()
        open_streams = streams
        begun = time.monotonic()
        while open_streams or held:
            hold = HOLD if time.monotonic() - begun > 1.0 else FIRST_HOLD
            timeout = hold if not held else max(0.0, held[0][2] + hold - time.monotonic())
            try:
                item = arrived.get(timeout=timeout) if open_streams else None
            except queue.Empty:
                item = ("", "", b"")
            if item is None:
                open_streams -= open_streams > 0
            elif item[0]:
                heapq.heappush(held, (item[1], next(order), time.monotonic(), item[0], item[2]))
            ready: list[tuple[str, bytes]] = []
            while held and (
                not open_streams or streams == 1 or held[0][2] + hold <= time.monotonic() or len(held) > 9999
            ):
                _, _, _, stream, line = heapq.heappop(held)
                if ready and ready[-1][0] == stream:
                    ready[-1] = (stream, ready[-1][1] + line)
                else:
                    ready.append((stream, line))
            self.behind = arrived.qsize() >= BLOCK
            yield from ready or [("", b"")]
            if stop.is_set():
                return

    def _read(
        self,
        stream: str,
        read: _Position,
        arrived: queue.Queue[tuple[str, str, bytes] | None],
        stop: threading.Event,
    ) -> None:
        """Reads one stream from ``read`` to its end, through breaks, into ``arrived``; None at the end."""
        try:
            while not stop.is_set():
                read.again()
                try:
                    for stamp, line in self._lines(stream, read.last):
                        if not read.takes(stamp):
                            continue
                        arrived.put((stream, stamp, line))
                        if stop.is_set():
                            return
                except Exception as error:
                    self.broken = f"{type(error).__name__}: {error}"
                if not self._wait(stop):
                    return
        finally:
            arrived.put(None)

    def _lines(self, stream: str, since: str, *, follow: bool = True) -> Iterator[tuple[str, bytes]]:
        """``(stamp, line)`` of one stream. Parts of a long line that the daemon stored apart are joined again."""
        import datetime

        arguments: dict[str, Any] = {"follow": follow, "stream": True, "timestamps": True}
        if since:
            whole = datetime.datetime.fromisoformat(since[:19]).replace(tzinfo=datetime.UTC)
            arguments["since"] = int(whole.timestamp())
        chunks = self._container.logs(stdout=stream == "stdout", stderr=stream == "stderr", **arguments)
        rest = b""
        for chunk in chunks:
            # A line over 16 KiB is stored in parts, and each part is sent with a stamp of its own.
            rest += _stamped(chunk)[1][:-1] if rest else chunk
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield _stamped(line)
        if rest:
            stamp, text = _stamped(rest)
            yield stamp, text

    def _wait(self, stop: threading.Event) -> bool:
        """Waits while a stream has ended: True to read on, False when the container is over for good.

        A daemon that shuts down stops its containers first and still answers then; those that it will start again
        look like ended ones for that moment.
        """
        away = ended = 0.0
        while not stop.wait(0.1):
            now = time.monotonic()
            state = self._state()
            if state is None:
                away, ended = away or now, 0.0
                if now - away > PATIENCE:
                    return False
            elif state.get("Running") or state.get("Restarting"):
                return True
            else:
                away, ended = 0.0, ended or now
                if not self._comes_back(state) or now - ended > GRACE:
                    return False
        return False

    def _comes_back(self, state: dict[str, Any]) -> bool:
        """Whether the daemon starts the container again, by its restart policy."""
        policy = ((self._container.attrs.get("HostConfig") or {}).get("RestartPolicy") or {}).get("Name")
        return policy in ("always", "unless-stopped") or (policy == "on-failure" and state.get("ExitCode") != 0)

    def _state(self) -> dict[str, Any] | None:
        try:
            self._container.reload()
        except Exception:
            return None
        state: dict[str, Any] = self._container.attrs.get("State", {})
        return state

    def end(self) -> End:
        """The container's state now."""
        state = self._state()
        if state is None:
            return End(status="gone")
        alive = bool(state.get("Running")) or state.get("Status") == "created"
        return End(
            None if alive else state.get("ExitCode"),
            bool(state.get("OOMKilled")),
            str(state.get("Status", "")),
            str((state.get("Health") or {}).get("Status", "")),
            int((self._container.attrs.get("HostConfig") or {}).get("Memory") or 0),
        )


def _stamped(line: bytes) -> tuple[str, bytes]:
    stamp, space, text = line.partition(b" ")
    if space and len(stamp) >= 20 and stamp[4:5] == b"-" and stamp[10:11] == b"T":
        return stamp.decode("ascii", "replace"), text + b"\n"
    return "", line + b"\n"
