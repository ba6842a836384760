"""The witness Prometheus, a real one that scrapes a server of the test's own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.evidence import prometheus as module
from analyzer.evidence.prometheus import prometheus_facts
from tests.evidence.test_metrics import AFTER, BEFORE
from tests.support.server import serve


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A Prometheus and the text that its target gives (exchangeable)."""
    text = {"now": BEFORE}
    port = free_port()
    with serve({"/metrics": lambda: (200, text["now"])}) as target:
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: engine\n  static_configs:\n"
            f"  - targets: ['{target.removeprefix('http://')}']\n"
        )
        process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port}", text
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.prometheus
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed (.ci/services installs it)")
def test_a_real_prometheus(prometheus: tuple[str, dict[str, str]]) -> None:
    url, text = prometheus
    end = time.monotonic() + 40
    facts: dict[str, object] = {}
    while time.monotonic() < end and facts.get("metrics.drafted") != 54:
        try:
            facts = {f.name: f.value for f in prometheus_facts(url)}
        except UserError as error:
            assert error.status == 3
        else:
            text["now"] = AFTER  # a first scrape is there: now the counters move
        time.sleep(0.5)
    assert facts["metrics.drafted"] == 54
    assert facts["metrics.accepted"] == 41
    assert facts["metrics.max_running"] == 5 or facts["metrics.max_running"] == 3
    assert facts["metrics.blocks"] == 131072


def test_no_prometheus_there() -> None:
    with pytest.raises(UserError, match="does not answer"):
        prometheus_facts("http://127.0.0.1:9")


def test_another_server_there() -> None:
    with serve({}) as url, pytest.raises(UserError, match="answers 404"):
        prometheus_facts(url)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, ""), "KVAUTOPSY_TOKEN"),
        ((200, "<html>"), "its answer is no JSON"),
        ((200, "{}"), "none of the query API"),
        ((200, '{"data": {"result": [1]}}'), "none of the query API"),
        ((200, '{"data": {"result": []}}'), "holds no series"),
    ],
)
def test_each_wrong_answer_has_its_sentence(answer: tuple[int, str], sentence: str) -> None:
    with serve({"*": answer}) as url, pytest.raises(UserError, match=sentence) as error:
        prometheus_facts(url)
    assert error.value.status == 3


def test_a_prometheus_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own connection tries for minutes."""
    monkeypatch.setattr(module, "TIMEOUT", 0.5)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        started = time.monotonic()
        with pytest.raises(UserError, match="no answer in time"):
            prometheus_facts(f"http://127.0.0.1:{server.getsockname()[1]}")
    assert time.monotonic() - started < 5
