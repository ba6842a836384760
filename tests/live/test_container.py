"""attach, against a real Docker engine: history then live, both streams, restarts, exit code, bad names."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.live import container as module
from analyzer.live import daemon
from analyzer.live.container import Container
from analyzer.live.runner import end_facts, end_text
from tests.support import dockerd
from tests.support.server import serve

pytestmark = [
    pytest.mark.docker,
    pytest.mark.xdist_group("docker"),
    pytest.mark.skipif(bool(dockerd.missing()), reason=dockerd.missing() or "docker"),
]
SAMPLES = str((Path(__file__).parents[2] / "samples").resolve())


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with dockerd.engine() as address:
        old = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = address
        yield address
        if old is None:
            os.environ.pop("DOCKER_HOST", None)
        else:
            os.environ["DOCKER_HOST"] = old


def start(host: str, name: str, script: str, *options: str) -> None:
    dockerd.docker(
        host, "run", "-d", "--network", "none", "--name", name, "-v", f"{SAMPLES}:/samples:ro", *options,
        dockerd.IMAGE, "sh", "-c", script,
    )  # fmt: skip


def collect(name: str, stop: threading.Event | None = None) -> tuple[Container, list[tuple[str, bytes]]]:
    followed = Container(name)
    return followed, [(s, part) for s, part in followed.follow(stop or threading.Event()) if part]


def test_history_then_live_in_order(host: str) -> None:
    nap = "busybox sleep 0.2"
    start(host, "both", f"echo one; {nap}; echo two >&2; busybox sleep 0.7; echo three; {nap}; echo four >&2; exit 3")
    followed, parts = collect("both")
    lines = [(s, line) for s, part in parts for line in part.splitlines()]
    assert lines == [("stdout", b"one"), ("stderr", b"two"), ("stdout", b"three"), ("stderr", b"four")]
    end = followed.end()
    assert (end.exit_code, end.oom_killed, end.status) == (3, False, "exited")


def test_a_terminal_has_one_stream(host: str) -> None:
    start(host, "tty", "echo one; echo two >&2; busybox sleep 0.3; echo three", "-t")
    _, parts = collect("tty")
    assert b"".join(part for _, part in parts).split() == [b"one", b"two", b"three"]


def test_long_lines_are_whole(host: str) -> None:
    start(host, "long", "busybox yes x | busybox head -n 50000 | busybox tr -d '\\n'; echo; echo end")
    _, parts = collect("long")
    lines = b"".join(part for _, part in parts).splitlines()
    assert [len(line) for line in lines] == [50000, 3]


def following(name: str) -> tuple[list[bytes], threading.Event, threading.Thread]:
    """The lines of a container as they come, what ends the reading, and the thread that reads."""
    stop = threading.Event()
    seen: list[bytes] = []

    def read() -> None:
        for _, part in Container(name).follow(stop):
            seen.extend(part.splitlines())

    thread = threading.Thread(target=read)
    thread.start()
    return seen, stop, thread


def test_a_restart_loses_and_doubles_nothing(host: str) -> None:
    start(
        host,
        "again",
        "for i in 1 2 3 4 5 6 7 8 9; do echo $(busybox date +%s%N) $i; busybox sleep 0.1; done; busybox sleep 30",
    )
    seen, stop, thread = following("again")
    time.sleep(1.5)
    dockerd.docker(host, "restart", "-t", "0", "again")
    time.sleep(2.5)
    stop.set()
    dockerd.docker(host, "kill", "again")
    thread.join(10)
    everything = dockerd.docker(host, "logs", "again").encode().splitlines()
    assert len(everything) == 18
    assert seen == everything


def test_a_daemon_restart_loses_and_doubles_nothing(host: str) -> None:
    count = "while [ $i -lt 4000 ]; do i=$((i+1)); echo $(busybox date +%s%N) $i; busybox sleep 0.05; done"
    script = f"trap 'exit 0' TERM; i=0; {count}"
    start(host, "survivor", script, "--restart", "always")
    seen, stop, thread = following("survivor")
    time.sleep(1.0)
    before = len(seen)
    dockerd.daemons[host].stop()
    dockerd.daemons[host].start()
    end = time.monotonic() + 30
    while time.monotonic() < end and sum(line.endswith(b" 1") for line in seen) < 2:
        time.sleep(0.1)
    time.sleep(1.0)
    dockerd.docker(host, "update", "--restart", "no", "survivor")
    dockerd.docker(host, "kill", "survivor")
    thread.join(20)
    stop.set()
    everything = dockerd.docker(host, "logs", "survivor").encode().splitlines()
    assert 0 < before < len(seen)
    assert sum(line.endswith(b" 1") for line in everything) == 2, "the container was not started again"
    assert seen == everything


def test_health_enters_the_facts(host: str) -> None:
    start(host, "ill", "echo up; busybox sleep 60", "--health-cmd", "exit 1", "--health-interval", "1s",
          "--health-retries", "1")  # fmt: skip
    followed, limit = Container("ill"), time.monotonic() + 20
    while followed.end().health != "unhealthy" and time.monotonic() < limit:
        time.sleep(0.2)
    facts = {f.name: f.value for f in end_facts(followed.end(), "ill")}
    dockerd.docker(host, "kill", "ill")
    assert facts["container.health"] == "unhealthy"
    assert "container.exit_code" not in facts


def test_oom_flag_enters_the_facts() -> None:
    end = module.End(137, True, "exited", memory_limit=16 << 20)
    assert {f.name: f.value for f in end_facts(end, "x")} == {
        "container.oom_killed": True,
        "container.exit_code": 137,
        "container.memory_limit": 16 << 20,
    }


def test_of_a_running_container_the_oom_flag_is_only_said() -> None:
    end = module.End(None, True, "running")
    assert end_facts(end, "x") == []
    assert end_text(end, "x") == (
        "Container x is running; the kernel killed a process of it for memory (OOMKilled is true)."
    )


def attach(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analyzer", "attach", name, "--plain", *options],
        capture_output=True, text=True, timeout=60, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "last", "code", "outcome"),
    [
        ("itself", "exec busybox tail /dev/zero", 137, "crashed at startup"),
        ("a-child", "busybox tail /dev/zero; exit 1", 1, "crashed at startup"),
        ("served", "busybox tail -n 44 /samples/sglang/wrapper_nextn.log | busybox head -n 20; "
                   "exec busybox tail /dev/zero", 137, "crashed at runtime"),
    ],
)  # fmt: skip
def test_the_kernel_kills_for_memory(host: str, name: str, last: str, code: int, outcome: str, tmp_path: Path) -> None:
    """The container may use 16 MiB; what keeps all of ``/dev/zero`` takes more, and the kernel ends it."""
    if dockerd.docker(host, "info", "--format", "{{.MemoryLimit}}") != "true":
        pytest.skip("this kernel gives the Docker engine no memory cgroup")
    begin = "busybox head -n 40 /samples/sglang/wrapper_nextn.log; busybox sleep 0.2; "
    start(host, name, begin + last, "--memory", "16m", "--memory-swap", "16m")
    done = attach(name, "-o", str(tmp_path / "r.json"))
    assert done.returncode == 1, done.stderr
    page = " ".join(done.stdout.split())
    assert (
        "The kernel killed a process of the container for memory (OOMKilled). The container's state proves it" in page
    )
    assert f"container {name} State: exited, ExitCode {code}, OOMKilled True" in page
    assert "The log says" not in page
    run = json.loads((tmp_path / "r.json").read_text())["runs"][0]
    assert run["outcome"] == outcome
    assert run["failure"]["cause"] == "crash-killed"
    (found,) = [f for f in run["findings"] if f["rule"] == "RF025"]
    assert (found["confidence"], "16.0 MiB" in found["summary"]) == ("proved", True)
    assert run["facts"]["container.memory_limit"]["value"] == 16 << 20


def test_a_kill_by_hand_is_not_said_to_be_for_memory(host: str) -> None:
    start(host, "by-hand", "busybox head -n 40 /samples/sglang/wrapper_nextn.log; busybox sleep 60",
          "--memory", "64m")  # fmt: skip
    time.sleep(0.5)
    dockerd.docker(host, "kill", "by-hand")
    page = " ".join(attach("by-hand").stdout.split())
    assert "ended with exit code 137" in page
    assert "It was not the container's own memory limit: OOMKilled is false." in page
    assert "The kernel killed" not in page


def test_attach_puts_the_exit_code_into_the_verdict(host: str) -> None:
    script = (
        'busybox head -n 70 /samples/sglang/wrapper_nextn.log | while read -r l; do echo "$l"; done; '
        "busybox sleep 0.3; exit 137"
    )
    start(host, "server", script)
    done = subprocess.run(
        [sys.executable, "-m", "analyzer", "attach", "server", "--plain", "--fail-on", "never"],
        capture_output=True, text=True, timeout=60, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert "774,081" in done.stdout, done.stderr
    lines = subprocess.run(
        [sys.executable, "-m", "analyzer", "attach", "server", "--format", "jsonl"],
        capture_output=True, text=True, timeout=60,
    ).stdout.splitlines()  # fmt: skip
    events = [json.loads(line) for line in lines]
    assert any(e.get("kind") == "pool_summary" for e in events)
    report = next(e for e in events if str(e.get("schema", "")).startswith("kvautopsy.report/"))
    assert report["runs"][0]["facts"]["container.exit_code"]["value"] == 137


def test_killed_container(host: str) -> None:
    start(host, "killed", "echo up; busybox sleep 60")
    time.sleep(0.5)
    dockerd.docker(host, "kill", "killed")
    followed, _ = collect("killed")
    assert followed.end().exit_code == 137


def test_no_such_container_suggests_names(host: str) -> None:
    start(host, "my-sglang-server", "exit 0")
    with pytest.raises(UserError, match="did you mean my-sglang-server"):
        Container("my-sglang-serve")


def test_a_container_that_was_never_started(host: str) -> None:
    dockerd.docker(host, "create", "--name", "unborn", "--network", "none", dockerd.IMAGE, "sh")
    followed, parts = collect("unborn")
    assert parts == []
    assert end_text(followed.end(), "unborn") == "Container unborn has never been started."
    assert end_facts(followed.end(), "unborn") == []


def test_output_that_no_driver_keeps(host: str) -> None:
    start(host, "unheard", "busybox sleep 30", "--log-driver", "none")
    began = time.monotonic()
    with pytest.raises(UserError, match="logging driver keeps none"):
        collect("unheard")
    assert time.monotonic() - began < 10
    dockerd.docker(host, "kill", "unheard")


def test_silence_is_no_break(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "TIMEOUT", 1)
    start(host, "silent", "busybox sleep 3; echo one; busybox sleep 3; echo two")
    followed, parts = collect("silent")
    assert b"".join(part for _, part in parts) == b"one\ntwo\n"
    assert followed.broken == ""


def test_no_name_is_wrong_usage() -> None:
    with pytest.raises(UserError, match="no container given") as error:
        Container(" ")
    assert error.value.status == 2


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("unix:///nonexistent/docker.sock", "daemon is not reachable: is it running"),
        ("tcp://127.0.0.1:9", "daemon is not reachable: is it running"),
        ("tcp://no-such-host.invalid:2375", "no host has the name in DOCKER_HOST"),
        ("nonsense", "is no address of a Docker daemon"),
        ("ssh://nobody@127.0.0.1", "needs SSH|not reachable|does not answer"),
    ],
)
def test_unreachable_daemon(monkeypatch: pytest.MonkeyPatch, address: str, sentence: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(UserError, match=sentence) as error:
        Container("anything")
    assert error.value.status == 3
    assert "\n" not in str(error.value)


def test_another_program_than_a_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({}) as url:
        monkeypatch.setenv("DOCKER_HOST", url.replace("http", "tcp"))
        with pytest.raises(UserError, match="is no Docker daemon"):
            Container("anything")


def test_a_daemon_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "TIMEOUT", 1)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(UserError, match="nothing came from"):
            Container("anything")


def test_no_such_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONTEXT", "no-such-context")
    with pytest.raises(UserError, match="no Docker context named no-such-context"):
        Container("anything")


def test_only_a_permission_error_speaks_of_permission() -> None:
    assert "permission" in daemon.why(Exception("('Connection aborted.', PermissionError(13, 'Permission denied'))"))
    assert "not reachable" in daemon.why(Exception("Connection refused"))
