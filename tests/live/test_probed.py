"""A log and the server behind it: what the probes find stands in the report of the whole program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.test_probes import healthy
from tests.support.server import Answer, serve

SAMPLE = Path(__file__).parents[2] / "samples" / "vllm" / "cpu_0.32.0_ngram_spec_greedy.log"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample up to where it serves."""
    path = tmp_path_factory.mktemp("probed") / "serving.log"
    lines = SAMPLE.read_text().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if "Application startup complete" in line)
    path.write_text("".join(lines[: end + 1]))
    return path


def explain(log: Path, *options: str, command: str = "explain") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analyzer", command, str(log), *options], capture_output=True, text=True, timeout=90
    )


def report(log: Path, *options: str) -> dict[str, Any]:
    done = explain(log, *options, "--format", "json")
    value: dict[str, Any] = json.loads(done.stdout)["runs"][0]
    return value


def test_a_dead_engine_behind_a_green_health_check(log: Path) -> None:
    routes: dict[str, Answer] = {**healthy(), "/v1/completions": (500, "EngineDeadError")}
    with serve(routes) as url:
        run = report(log, "--url", url)
        page = explain(log, "--url", url)
    assert run["outcome"] == "degraded"
    assert {(f["cause"], f["severity"]) for f in run["findings"]} >= {("service-dead", "critical")}
    assert page.returncode == 1
    text = " ".join(page.stdout.split())
    assert "healthy ok" in text
    assert "generates broken" in text


def test_a_healthy_server_stays_one(log: Path) -> None:
    with serve(healthy()) as url:
        run = report(log, "--url", url)
    assert run["outcome"] == "serving"
    assert "service-dead" not in {f["cause"] for f in run["findings"]}


def test_a_context_that_the_pool_cannot_hold(log: Path) -> None:
    models = json.dumps({"data": [{"id": "tiny", "max_model_len": 10_000_000}]})
    with serve({**healthy(), "/v1/models": (200, models)}) as url:
        run = report(log, "--url", url)
    assert "context-exceeds-pool" in {f["cause"] for f in run["findings"]}


def test_metrics_of_another_server_disagree(log: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.txt"
    metrics.write_text('vllm:cache_config_info{block_size="16",num_gpu_blocks="7",kv_cache_size_tokens="112"} 1.0\n')
    run = report(log, "--metrics", str(metrics))
    assert "metrics-disagree" in {f["cause"] for f in run["findings"]}


def test_preemptions_that_only_the_counter_shows(log: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.txt"
    metrics.write_text("vllm:num_preemptions_total 14\nvllm:kv_cache_usage_perc 0.99\n")
    run = report(log, "--metrics", str(metrics))
    assert "cap-kv-full" in {f["cause"] for f in run["findings"]}


def test_counters_that_show_no_draft(log: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.txt"
    metrics.write_text(
        "vllm:generation_tokens_total 2056\nvllm:spec_decode_num_drafts_total 0\n"
        "vllm:spec_decode_num_draft_tokens_total 0\nvllm:spec_decode_num_accepted_tokens_total 0\n"
    )
    run = report(log, "--metrics", str(metrics))
    assert "spec-inactive" in {f["cause"] for f in run["findings"]}
    proof = explain(log, "--metrics", str(metrics), command="prove-spec")
    assert proof.returncode == 1
    assert proof.stdout.startswith("refuted")


def test_nothing_listens(log: Path) -> None:
    run = report(log, "--url", "http://127.0.0.1:9")
    assert run["outcome"] == "degraded"
    assert "service-dead" in {f["cause"] for f in run["findings"]}


def test_another_program_at_the_address(log: Path) -> None:
    with serve({"/": (200, "<html>"), "/health": (200, "fine")}) as url:
        run = report(log, "--url", url)
    (found,) = [f for f in run["findings"] if f["rule"] == "TM011"]
    assert found["title"] == "What answers at the address is no LLM server"
    assert run["outcome"] == "serving"


def test_a_server_that_wants_a_token_is_not_called_dead(log: Path) -> None:
    with serve({**healthy(), "/v1/models": (401, ""), "/v1/completions": (401, "")}) as url:
        run = report(log, "--url", url)
    assert run["outcome"] == "serving"
    assert not {f["cause"] for f in run["findings"]} & {"service-dead", "metrics-disagree"}
    (link,) = [link for link in run["chain"] if link["name"] == "generates"]
    assert link["state"] == "unknown"
    assert "KVAUTOPSY_TOKEN" in link["text"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--url", "localhost:8000"], "not an address"),
        (["--prometheus", "nonsense"], "not an address"),
        (["--metrics", "no/such/file"], "cannot read the metrics"),
        (["--nvidia-smi", str(SAMPLE)], "no nvidia-smi text"),
    ],
)
def test_a_witness_that_is_none_is_one_sentence(log: Path, options: list[str], sentence: str) -> None:
    done = explain(log, *options)
    assert done.returncode in (2, 3)
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["--prometheus", "--metrics"])
def test_metrics_that_do_not_answer_cost_no_report(log: Path, option: str) -> None:
    given = [option, "http://127.0.0.1:9"]
    alone, done = explain(log), explain(log, *given)
    assert done.returncode == alone.returncode == 0
    assert done.stderr == ""
    said = " ".join(done.stdout.split())
    assert "The metrics could not be had: " in said
    assert "nothing listens there. What rests on metrics is left open" in said
    whole = json.loads(explain(log, *given, "--format", "json").stdout)
    assert whole["runs"][0]["facts"].keys() == report(log)["facts"].keys()
    assert len(whole["notes"]) == 1
    if option == "--metrics":
        proof = explain(log, *given, command="prove-spec")
        assert "The metrics could not be had" in proof.stderr
        assert "tokens accepted" in proof.stdout


def test_a_wrong_witness_is_refused_before_a_pipe_is_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for option in ("--model-dir", "--metrics"):
        command = [sys.executable, "-m", "analyzer", "explain", "-", option, str(tmp_path / "empty")]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.wait(30) == 3  # its standard input is still open
        assert child.stderr is not None
        assert "empty" in child.stderr.read().decode()


def test_foreign_memory_by_nvidia_smi(tmp_path: Path) -> None:
    saved = tmp_path / "smi.txt"
    saved.write_text("| N/A   34C    P0   121W /  700W |   60000MiB / 143771MiB |      0%      Default |\n")
    log = SAMPLE.parents[1] / "sglang" / "wrapper_nospec.log"
    done = explain(log, "--nvidia-smi", str(saved), "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    facts = json.loads(done.stdout)["runs"][0]["facts"]
    assert facts["gpu.foreign"]["value"] == 60000 << 20
