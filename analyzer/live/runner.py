"""The loop of `follow` and `attach`: bytes in, notices out, and the full report at the end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from analyzer.live.session import Notice, Session
from analyzer.redact import clean

if TYPE_CHECKING:
    from analyzer.event_stream import EventStream
    from analyzer.live.container import Container, End
    from analyzer.pipeline import Options

Feed = Iterator[tuple[str, bytes, bool]]
"""The input's name, its next bytes (``b""``: nothing came for a moment), and whether more are waiting already."""


class View(Protocol):
    """What shows a session while it runs."""

    def notice(self, notice: Notice) -> None:
        """Shows something new."""

    def tick(self, session: Session) -> None:
        """Refreshes what is shown."""

    def close(self) -> None:
        """Leaves the screen as it was."""


class Plain:
    """Notices as lines, for a log or a pipe."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def notice(self, notice: Notice) -> None:
        where = f" l. {notice.line}" if notice.line else ""
        rule = f" {notice.rule}" if notice.rule else ""
        print(clean(f"{notice.severity:8}{rule}{where}  {notice.text}"), file=self.out, flush=True)

    def tick(self, session: Session) -> None:
        """Nothing to refresh."""

    def close(self) -> None:
        """Nothing to restore."""


class JsonLines:
    """Events and notices as JSON lines, for machines; those of one piece of input are written at once."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self._streams: dict[str, EventStream] = {}
        self._held: list[str] = []

    def feed(self, source: str, chunk: bytes) -> None:
        """Takes bytes of one input, for their events."""
        stream = self._streams.get(source)
        if stream is None:
            from analyzer.event_stream import EventStream

            stream = self._streams[source] = EventStream(source, {"type": "event"}, live=True)
        stream.feed(chunk)
        self._held.append(stream.take())

    def flush(self) -> None:
        """The last records are whole, as far as anyone can tell."""
        for stream in self._streams.values():
            stream.flush()
            self._held.append(stream.take())

    def end(self) -> None:
        """All inputs have ended."""
        for stream in self._streams.values():
            stream.close()
            self._held.append(stream.take())

    def notice(self, notice: Notice) -> None:
        from analyzer.event_lines import json_line

        kind = "withdrawn" if notice.withdrawn else "finding"
        self._held.append(
            json_line({"type": kind, "run": notice.run, "rule": notice.rule, "severity": notice.severity,
                       "line": notice.line, "text": notice.text}) + "\n"
        )  # fmt: skip

    def tick(self, session: Session) -> None:
        """Writes what is held."""
        self._write()

    def close(self) -> None:
        """Writes what an interruption left."""
        self._write()

    def _write(self) -> None:
        text, self._held = "".join(self._held), []
        if text:
            self.out.write(text)
            self.out.flush()


def make_view(kind: str, out: TextIO) -> View:
    """``screen`` (a terminal only), ``plain`` or ``jsonl``; ``auto`` chooses between the first two."""
    if kind == "jsonl":
        return JsonLines(out)
    if kind == "screen" or (kind == "auto" and out.isatty()):
        from analyzer.live.screen import Screen

        return Screen(out)
    return Plain(out)


def run(feed: Callable[[threading.Event], Feed], options: Options, view: View) -> Session:
    """Feeds a session until the feed ends, or Ctrl-C or SIGTERM. The session is closed when it returns."""
    stop = threading.Event()
    session = Session(options)
    events = view if isinstance(view, JsonLines) else None
    restore = _on_signals(stop)
    try:
        for source, chunk, behind in feed(stop):
            if chunk:
                session.feed(source, chunk, behind=behind)
                if events is not None:
                    events.feed(source, chunk)
            else:
                session.silent()
                if events is not None and session.settled:
                    events.flush()
            view.tick(session)  # a judgement takes a moment: what was read is shown before it
            for notice in session.notices(behind=behind):
                view.notice(notice)
            view.tick(session)
        if events is not None:
            events.end()
        for notice in session.close():
            view.notice(notice)
        view.tick(session)
    finally:
        stop.set()
        view.close()
        restore()
    return session


def _on_signals(stop: threading.Event) -> Callable[[], None]:
    """Lets the first Ctrl-C or SIGTERM end the following in order; a second one is immediate."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None

    def ask(number: int, _: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    old = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in old.items():
            signal.signal(number, handler)

    return restore


def file_feed(path: str, *, once: bool = False) -> Callable[[threading.Event], Feed]:
    """A feed of one file, or of standard input for ``-``."""

    def feed(stop: threading.Event) -> Feed:
        from analyzer.live.tail import CHUNK, follow_file, follow_stdin

        name = "standard input" if path == "-" else path
        chunks = follow_stdin(stop) if path == "-" else follow_file(Path(path), stop, once=once)
        return ((name, chunk, len(chunk) >= CHUNK) for chunk in chunks)

    return feed


def container_feed(container: Container) -> Callable[[threading.Event], Feed]:
    """A feed of one container: both of its streams merged by time, as one input."""

    def feed(stop: threading.Event) -> Feed:
        return ((container.name, lines, container.behind) for _, lines in container.follow(stop))

    return feed


def end_facts(end: End, name: str) -> list[Any]:
    """What the container's state says, as facts."""
    from analyzer.run.facts import Fact, Where

    source = f"container {name}"
    where = (Where(source, 0, f"State: {end.status}, ExitCode {end.exit_code}, OOMKilled {end.oom_killed}"),)
    facts = []
    if end.exit_code is not None:  # of a container that still runs the flag tells of a process, not of the server
        facts.append(Fact("container.oom_killed", end.oom_killed, "bool", where, origin="container"))
        facts.append(Fact("container.exit_code", end.exit_code, "count", where, origin="container"))
    if end.memory_limit:
        limit = (Where(source, 0, f"HostConfig: Memory {end.memory_limit}"),)
        facts.append(Fact("container.memory_limit", end.memory_limit, "bytes", limit, origin="container"))
    if end.health:
        facts.append(Fact("container.health", end.health, "name", where, origin="container"))
    return facts


def end_text(end: End, name: str) -> str:
    """How the container stands, in a sentence."""
    if end.status == "created":
        text = f"Container {name} has never been started"
    elif end.exit_code is None:
        text = f"Container {name} is {end.status or 'running'}"
    else:
        text = f"Container {name} ended with exit code {end.exit_code}"
    if end.oom_killed:
        text += "; the kernel killed a process of it for memory (OOMKilled is true)"
    return text + (f"; its health check says {end.health}." if end.health else ".")


def say(text: str) -> None:
    """A note on standard error."""
    print(clean(f"kvautopsy: {text}"), file=sys.stderr, flush=True)  # noqa: T201
