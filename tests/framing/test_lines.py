"""Several things in one physical line: carriage returns, progress bars, glued messages."""

from __future__ import annotations

from tests.framing.support import framed, texts

BAR = "Loading safetensors checkpoint shards: {:3}% Completed | {}/4 [00:01<00:02,  1.08it/s]"


def test_frames_of_a_bar_and_a_line_behind_it() -> None:
    frames = "\r".join(BAR.format(25 * n, n) for n in range(5))
    bar, line, after = framed(f"\r{frames}\r[2026-11-30 02:55:49 TP0] Load weight end.\nx\n")
    assert (bar.form, bar.text, bar.line) == ("bar", BAR.format(100, 4), 1)
    assert (line.text, line.line) == ("Load weight end.", 1)
    assert after.line == 2


def test_frames_on_lines_of_their_own_are_one_bar() -> None:
    (bar,) = framed("".join(f"(RayWorkerWrapper pid=3) \n{BAR.format(25 * n, n)}\n" for n in range(5)))
    assert (bar.line, bar.last_line, bar.line_of(0), bar.text) == (2, 10, 10, BAR.format(100, 4))


def test_frames_glued_without_cr() -> None:
    line = "  0%|          | 0/52 [00:00<?, ?it/s]"
    line += "Capturing batches (bs=512 avail_mem=39.89 GB):   0%|   | 0/52 [00:00<?, ?it/s]"
    records = framed(line + "[aiter] import [module]\n")
    assert [record.form for record in records] == ["bar", "bar", "raw"]
    assert records[-1].text == "[aiter] import [module]"


def test_a_bar_behind_a_process_tag() -> None:
    (bar,) = framed("(EngineCore pid=212) \r" + BAR.format(0, 0) + "\n")
    assert (bar.form, bar.process) == ("bar", "EngineCore")


def test_a_message_that_looks_like_a_bar_is_a_message() -> None:
    (record,) = framed("[2026-11-30 02:55:49] loaded: 50%|##| 1/2 [00:01<00:01, 1it/s]\n")
    assert record.form == "log"


def test_glued_messages() -> None:
    assert texts("See refleaks.html[2026-11-30 02:55:49] kill_process_tree called\n") == [
        "See refleaks.html",
        "kill_process_tree called",
    ]
    assert texts("See refleaks.html/usr/lib/x.py:254: UserWarning: y\n") == [
        "See refleaks.html",
        "/usr/lib/x.py:254: UserWarning: y",
    ]
    first, second = framed("some text(EngineCore pid=1) INFO 09-12 10:00:00 [core.py:59] next\n")
    assert (first.form, first.text, first.process) == ("raw", "some text", "")
    assert (second.text, second.process, second.line) == ("next", "EngineCore", 1)
    first, second = framed("INFO 09-12 10:00:00 [a.py:1] oneINFO 09-12 10:00:01 [b.py:2] two\n")
    assert (first.text, second.text, second.module) == ("one", "two", "b.py:2")


def test_newlines_lost_in_a_paste() -> None:
    lines = [f"[2026-11-30 02:55:4{n} TP0] Memory pool end. avail mem={n} GB" for n in range(6)]
    assert texts(" ".join(lines) + "\n") == [
        f"Memory pool end. avail mem={n} GB{' ' if n < 5 else ''}" for n in range(6)
    ]


def test_crlf_everywhere_joins_nothing() -> None:
    lines = ["plain", *(f"INFO 09-12 10:00:00 [launcher.py:36] Route: /{n}" for n in range(3))]
    records = framed("".join(line + "\r\n" for line in lines))
    assert [record.text for record in records] == ["plain", "Route: /0", "Route: /1", "Route: /2"]
    assert all(record.form != "bar" for record in records)


def test_a_message_with_a_process_tag_behind_a_bar() -> None:
    bar, message = framed(
        BAR.format(0, 0) + "(Worker_TP1 pid=2) INFO 09-12 10:00:00 [a.py:1] Graph capturing finished\n"
    )
    assert (bar.form, bar.process) == ("bar", "")
    assert (message.text, message.rank) == ("Graph capturing finished", "Worker_TP1")


def test_a_very_long_line_of_messages_takes_linear_time() -> None:
    line = "INFO 09-12 10:00:00 [a.py:1] x " * 9000
    assert len(framed(line + "\n")) == 9000
