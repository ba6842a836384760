"""Facts of lines as the versions print them: ranks, arguments, speculation, refusals, statistics."""

from __future__ import annotations

import pytest

from analyzer.run.facts import Facts, Where
from analyzer.run.vllm_refusals import facts_from_exception
from analyzer.run.vllm_version import before, version_key
from analyzer.units import GIB
from tests.vllm.read import line, read


def engine(config: str, version: str = "0.13.0") -> str:
    return line(f"Initializing a V1 LLM engine (v{version}) with config: model='m', {config}")


def test_lines_of_several_workers_in_one_process_are_told_apart() -> None:
    log = "".join(line(f"GPU KV cache size: {n:,} tokens", "EngineCore") for n in (9168, 9072, 9072, 9584))
    fact = read(log).facts.get("pool.tokens")
    assert fact is not None
    assert sorted(fact.ranks.values()) == [9072, 9072, 9168, 9584]
    assert fact.value == 9072


def test_cores_of_data_parallel_groups_are_ranks_and_their_sum_is_divided() -> None:
    log = (
        "".join(line("GPU KV cache size: 576,432 tokens", f"EngineCore_DP{n}") for n in (0, 1))
        + line("Maximum concurrency for 4,096 tokens per request: 140.73x", "EngineCore_DP0")
        + line("vllm cache_config_info with initialization after num_gpu_blocks is: 72054", "APIServer")
    )
    facts = read(log).facts
    assert facts.value("pool.tokens") == 576_432
    assert facts.value("pool.blocks") == 36_027


def test_resolved_configuration_wins_over_arguments() -> None:
    log = line("non-default args: {'model_tag': 'm', 'kv_cache_dtype': 'fp8', 'max_model_len': 4096}") + engine(
        "max_seq_len=2048, tensor_parallel_size=4, kv_cache_dtype=fp8_ds_mla, quantization=None, "
        "speculative_config=None"
    )
    facts = read(log).facts
    assert facts.value("args.kv_cache_dtype") == "fp8_ds_mla"
    assert facts.value("args.tensor_parallel_size") == 4
    assert facts.value("args.quantization") == "none"
    assert facts.value("limit.context") == 2048
    assert facts.value("sizing.fraction_default") is True
    assert "sizing.fraction" not in facts, "a default is no statement of the log"
    assert facts.value("spec.enabled") is False


@pytest.mark.parametrize(
    ("config", "method", "tokens"),
    [
        ("speculative_config=SpeculativeConfig(method='mtp', model='/m', num_spec_tokens=3)", "mtp", 3),
        ("speculative_config=SpeculativeConfig(draft_model='[ngram]', num_spec_tokens=10)", "ngram", 10),
        ("speculative_config=SpeculativeConfig(draft_model='/m/draft', num_spec_tokens=5)", "draft_model", 5),
    ],
)
def test_speculation_of_the_engine_line(config: str, method: str, tokens: int) -> None:
    facts = read(engine(config)).facts
    assert (facts.value("spec.method"), facts.value("spec.draft_tokens")) == (method, tokens)


@pytest.mark.parametrize(
    "given",
    [
        "'speculative_config': {'method': 'eagle', 'model': '/m', 'num_speculative_tokens': 2}",
        "'spec_method': 'eagle', 'spec_model': '/m', 'spec_tokens': 2",
        '\'speculative_config\': \'{"method": "eagle", "num_speculative_tokens": 2}\'',
    ],
)
def test_speculation_of_the_arguments(given: str) -> None:
    facts = read(line(f"non-default args: {{'model_tag': 'm', {given}}}")).facts
    assert (facts.value("spec.method"), facts.value("spec.draft_tokens")) == ("eagle", 2)


def test_throw_away_pool_of_graph_profiling_is_no_limit_of_the_user() -> None:
    log = line("Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512")
    assert "pool.user_blocks" not in read(log).facts
    real = read(line("Overriding num_gpu_blocks=9526 with num_gpu_blocks_override=512")).facts
    assert (real.value("pool.user_blocks"), real.value("pool.profiled_blocks")) == (512, 9526)


def test_v0_draft_worker_prints_its_own_weights() -> None:
    log = (
        line("Initializing an LLM engine (v0.5.2) with config: model='m', speculative_config=SpeculativeConfig("
             "draft_model='/m/medusa', num_spec_tokens=16), max_seq_len=4096")
        + line("Loading model weights took 13.4966 GB")
        + line("Loading model weights took 4.4062 GB")
    )  # fmt: skip
    facts = read(log).facts
    assert facts.value("weights.loaded") == pytest.approx(13.4966 * GIB)
    assert facts.value("draft.weights.loaded") == pytest.approx(4.4062 * GIB)


REFUSAL = (
    "To serve at least one request with the models's max seq len (202752), (71.16 GiB KV cache is needed, which "
    "is larger "
    "than the available KV cache memory (28.57 GiB). Based on the available memory, the estimated maximum model length "
    "is 81392. Try increasing `gpu_memory_utilization`"
)


@pytest.mark.parametrize("wrap", [0, 40, 93])
def test_refusal_in_a_traceback_even_if_a_terminal_wrapped_it(wrap: int) -> None:
    text = REFUSAL if not wrap else "\n".join(REFUSAL[i : i + wrap] for i in range(0, len(REFUSAL), wrap))
    facts = Facts()
    assert facts_from_exception(f"ValueError: {text}", Where("server.log", 9, "x"), facts)
    assert facts.value("pool.needed_bytes") == pytest.approx(71.16 * GIB)
    assert facts.value("pool.available_bytes") == pytest.approx(28.57 * GIB)
    assert facts.value("limit.context_estimated") == 81_392
    assert facts.value("limit.context") == 202_752
    assert facts.where("pool.needed_bytes")[0].line == 9


def test_other_exceptions_state_nothing() -> None:
    facts = Facts()
    assert not facts_from_exception("RuntimeError: Unexpected head dim size, 32", Where("server.log", 1), facts)
    assert len(facts) == 0


def test_refusal_that_is_only_in_a_traceback() -> None:
    log = (
        line("EngineCore failed to start.", level="ERROR")
        + line("Traceback (most recent call last):", level="ERROR")
        + line('  File "/usr/lib/python3/vllm/v1/engine/core.py", line 700, in run_engine_core', level="ERROR")
        + line("    engine_core = EngineCoreProc(*args, **kwargs)", level="ERROR")
        + line(f"ValueError: {REFUSAL}", level="ERROR")
    )
    facts = read(log).facts
    assert facts.value("pool.needed_bytes") == pytest.approx(71.16 * GIB)


def stats(running: int, waiting: int, usage: float, rate: float = 50.0, more: str = "") -> str:
    return line(
        f"Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: {rate} tokens/s, Running: "
        f"{running} "
        f"reqs, Waiting: {waiting} reqs{more}, GPU KV cache usage: {usage}%, Prefix cache hit rate: 12.5%",
        "APIServer",
    )


def test_statistics_become_the_common_series() -> None:
    run = read(stats(3, 0, 20.0) + stats(8, 5, 30.0) + stats(8, 9, 99.5, more=", Preemptions: 2"))
    facts = run.facts
    assert facts.value("load.max_running") == 8
    assert facts.value("load.max_queue") == 9
    assert facts.value("load.max_usage") == pytest.approx(0.995)
    assert facts.value("load.waiting_pool_low") == 1
    assert facts.value("load.retractions") == 2
    assert facts.value("load.prefix_hit") == pytest.approx(0.125)
    assert run.series["running"]["max"] == 8


def test_nan_acceptance_of_a_server_without_speculation_is_no_measurement() -> None:
    log = stats(1, 0, 1.0) + line(
        "SpecDecoding metrics: Draft acceptance rate: nan%, Accepted: 0 tokens, Drafted: 0 tokens"
    )
    facts = read(log).facts
    assert "spec.acceptance" not in facts
    assert "spec.enabled" not in facts


def test_mean_length_of_0_8_5_lacks_the_bonus_token() -> None:
    metrics = line(
        "SpecDecoding metrics: Draft acceptance rate: 66.7%, Mean acceptance length: 2.00, Accepted: 6 tokens, "
        "Drafted: 9 "
        "tokens, Per-position acceptance rate: 1.000, 0.667, 0.333"
    )
    assert read(metrics).facts.value("spec.accept_length") == pytest.approx(3.0)
    later = metrics.replace("length: 2.00", "length: 3.00")
    assert read(later).facts.value("spec.accept_length") == pytest.approx(3.0)
    short = metrics.split(", Per-position")[0] + "\n"
    old = read(engine("max_seq_len=2048", "0.8.5") + short).facts
    new = read(engine("max_seq_len=2048", "0.9.2") + short).facts
    assert old.value("spec.accept_length") == pytest.approx(3.0)
    assert new.value("spec.accept_length") == pytest.approx(2.0)


def test_other_accelerators() -> None:
    xpu = read(
        line("Before memory profiling run, total GPU memory: 65520.00 MB, model load takes 12870.74 MB, free gpu "
             "memory is 52435.44 MB.")
        + line("After memory profiling run, peak memory usage is 13552.69 MB,torch mem is 12870.74 MB, non-torch "
               "mem is 426.94 MB, free gpu memory is 51896.32 MB.")
    ).facts  # fmt: skip
    assert xpu.value("gpu.total") == 65520 * 2**20
    assert xpu.value("activation.bytes") == pytest.approx((13552.69 - 12870.74 - 426.94) * 2**20)
    tpu = read(
        line(
            "Memory statistics | total_hbm_limit_gb=15.75GiB | total_hbm_limit_cap_gb=14.49GiB | "
            "total_hbm_used_gb=8.97GiB | total_hbm_avail_gb=5.52GiB"
        )
    ).facts
    assert tpu.value("pool.available_bytes") == pytest.approx(5.52 * GIB)


def test_versions_sort() -> None:
    order = ["0.6.4", "0.6.4.post1", "0.20.1.dev0", "0.20.1rc1", "0.20.1", "0.26.0"]
    assert sorted((order[i] for i in (3, 1, 5, 0, 4, 2)), key=version_key) == order
    assert before("0.19.1", "0.20")
    assert not before("0.1.dev15917+g0a6396b45", "0.20"), "a fork's number says nothing"


def test_version_is_bracketed_from_shapes() -> None:
    run = read(line("Available KV cache memory: 2.43 GiB") + line("GPU KV cache size: 39,072 tokens"))
    assert run.version is None
    assert run.version_range == (">=0.10.2", "<=0.27.1")
    assert run.version_basis == "shapes"


def test_command_line_of_a_paste() -> None:
    log = "$ vllm serve Qwen/Qwen3-8B --max-model-len 32768 -tp 2 --gpu-memory-utilization=0.95 --enforce-eager\n"
    facts = read(log + line("GPU KV cache size: 39,072 tokens")).facts
    assert facts.value("limit.context") == 32_768
    assert facts.value("args.tensor_parallel_size") == 2
    assert facts.value("sizing.fraction") == 0.95
    assert facts.value("args.enforce_eager") is True
    assert facts.value("model.path") == "Qwen/Qwen3-8B"


def test_nodes_that_were_given_different_arguments() -> None:
    head = line(
        "non-default args: {'model_tag': 'm', 'nnodes': 2, 'spec_method': 'mtp', 'spec_tokens': 1}", "APIServer"
    )
    worker = line("non-default args: {'model_tag': 'm', 'nnodes': 2, 'headless': True, 'node_rank': 1}")
    assert read(head + worker).facts.value("launch.differs") == "spec_method, spec_tokens"
    assert "launch.differs" not in read(head + head).facts


def test_v0_prints_totals_of_speculation() -> None:
    text = (
        "Speculative metrics: Draft acceptance rate: {r}, System efficiency: 0.3, Number of speculative tokens: 4, "
        "Number of accepted tokens: {a}, Number of draft tokens: {d}, Number of emitted tokens: {e}."
    )
    log = line(text.format(r=0.5, a=200, d=400, e=300)) + line(text.format(r=0.4, a=240, d=600, e=390))
    facts = read(log).facts
    assert (facts.value("spec.drafted"), facts.value("spec.accepted")) == (600, 240)
    assert facts.value("spec.accept_length") == pytest.approx(90 / (200 / 4))
    assert facts.value("spec.acceptance") == pytest.approx(40 / 200)


def _overridden(tokens: int) -> str:
    return (
        line("Available KV cache memory: 81.38 GiB")
        + line("Overriding num_gpu_blocks=333325 with num_gpu_blocks_override=100")
        + line(f"GPU KV cache size: {tokens:,} tokens")
        + line(f"Maximum concurrency for 1,000 tokens per request: {tokens / 1000:.2f}x")
    )


@pytest.mark.parametrize("printed", [5_333_200, 1_600])
def test_the_blocks_that_were_given_make_the_pool_whatever_was_printed(printed: int) -> None:
    facts = read(_overridden(printed)).facts
    assert facts.value("pool.tokens") == 1_600
    assert facts.value("limit.concurrency") == pytest.approx(1.6, rel=1e-3)


def test_the_profiling_run_says_what_was_free() -> None:
    facts = Facts()
    text = "AssertionError: Error in memory profiling. Initial free memory 20938752, current free memory 20938752. This"
    assert facts_from_exception(text, Where("a.log", 1, text), facts)
    assert facts.value("profile.free_before") == facts.value("profile.free_after") == 20_938_752


def test_graphs_take_no_negative_memory() -> None:
    assert "graphs.bytes" not in read(line("Graph capturing finished in 4 secs, took -0.41 GiB")).facts
    assert read(line("Graph capturing finished in 4 secs, took 0.41 GiB")).facts.value("graphs.bytes") > 0


def _checkpoint(size: float) -> str:
    return line(f"Filesystem type for checkpoints: EXT4. Checkpoint size: {size} GiB. Available RAM: 19.39 GiB.")


@pytest.mark.parametrize(
    ("sizes", "whole"), [((92.85, 2.08), 94.93), ((92.85,), 92.85), ((92.85, 92.85), 92.85), ((7.0, 0.5, 7.0), 7.5)]
)
def test_the_drafters_files_add_to_the_targets(sizes: tuple[float, ...], whole: float) -> None:
    facts = read(
        "".join(map(_checkpoint, sizes)) + line("Model loading took 95.63 GiB memory and 595.559227 seconds")
    ).facts
    assert facts.value("weights.checkpoint") == pytest.approx(whole * GIB)
    assert len(facts.where("weights.checkpoint")) == len(set(sizes))
