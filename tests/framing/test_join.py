"""Records of several lines, also when processes are interleaved."""

from __future__ import annotations

from analyzer.framing import Framer
from analyzer.framing.blocks import MAX_LINES
from tests.framing.support import framed, texts

TRACE = [
    "Traceback (most recent call last):",
    '  File "/opt/vllm/core.py", line 1, in run',
    "    engine = EngineCore()",
    "             ^^^^^^^^^^^^",
    "ValueError: To serve at least one request",
]


def with_header(lines: list[str], header: str, end: str = "\n") -> list[str]:
    return [f"{header} {line}{end}" for line in lines]


def test_a_message_and_its_traceback_under_one_header() -> None:
    header = "(EngineCore pid=9) ERROR 09-12 10:00:00 [core.py:1]"
    message, trace, other = framed(
        "".join(with_header(["EngineCore failed to start.", *TRACE], header))
        + "(EngineCore pid=9) Process EngineCore:\n"
    )
    assert (message.text, message.form) == ("EngineCore failed to start.", "log")
    assert (trace.form, trace.text, trace.line, trace.last_line) == ("traceback", "\n".join(TRACE), 2, 6)
    assert (trace.level, trace.module, trace.pid, trace.lines) == ("ERROR", "core.py:1", 9, None)
    assert other.text == "Process EngineCore:"


def test_interleaved_processes() -> None:
    one = with_header(TRACE, "(Worker_TP0 pid=1) ERROR 09-12 10:00:00 [w.py:1]")
    two = with_header(TRACE, "(Worker_TP1 pid=2) ERROR 09-12 10:00:00 [w.py:1]")
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    mixed.insert(5, "(APIServer pid=3) INFO 09-12 10:00:00 [a.py:1] between\n")
    first, second, between = framed("".join(mixed))
    assert first.text == second.text == "\n".join(TRACE)
    assert (first.rank, second.rank, between.text) == ("Worker_TP0", "Worker_TP1", "between")
    assert first.lines == (1, 3, 5, 8, 10)
    assert [first.line_of(index) for index in range(5)] == [1, 3, 5, 8, 10]


def test_services_with_equal_process_tags_are_kept_apart() -> None:
    header = "(APIServer pid=1) ERROR 09-12 10:00:00 [w.py:1]"
    one, two = (with_header(TRACE, f"{name}  | {header}") for name in ("a-1", "b-1"))
    records = framed("".join(line for pair in zip(one, two, strict=True) for line in pair))
    assert [(record.stream, record.text) for record in records] == [
        ("a-1", "\n".join(TRACE)),
        ("b-1", "\n".join(TRACE)),
    ]


def test_sglang_traceback_without_prefix() -> None:
    message, trace, end = framed(
        "[2026-02-27 15:27:13 TP11] Scheduler hit an exception: " + "\n".join(TRACE) + "\n\n"
        "[2026-02-27 15:27:13] Received sigquit from a child process.\n"
    )
    assert message.text == "Scheduler hit an exception: Traceback (most recent call last):"
    assert (trace.rank, trace.line, trace.last_line, trace.text) == ("TP11", 1, 5, "\n".join(TRACE))
    assert end.text.startswith("Received sigquit")


def test_another_rank_speaks_within_a_traceback() -> None:
    lines = ["[2026-02-27 15:27:13 TP1] Scheduler hit an exception: " + TRACE[0], *TRACE[1:3]]
    lines += ["[2026-02-27 15:27:13 TP0] still here", *TRACE[3:], ""]
    records = framed("\n".join(lines))
    assert [record.text for record in records][1:] == ["\n".join(TRACE), "still here"]


def test_chained_tracebacks_are_one_record() -> None:
    chain = "\n".join([*TRACE, "", "The above exception was the direct cause of the following exception:", "", *TRACE])
    (record,) = framed(chain + "\n")
    assert (record.form, record.text, record.lines) == ("traceback", chain, None)


def test_chain_under_a_header() -> None:
    chain = [*TRACE, "", "During handling of the above exception, another exception occurred:", "", *TRACE]
    (record,) = framed(
        "".join(with_header(chain, "(Worker pid=1) ERROR 09-12 10:00:00 [w.py:1]", "\r\n")[:-1]) + "x\n"
    )[:1]
    assert record.text.count("Traceback") == 2


def test_two_reports_of_one_process_are_two_records() -> None:
    header = "(EngineCore pid=9) ERROR 09-12 10:00:00 [core.py:1]"
    report = with_header(["Worker failed.", *TRACE], header)
    records = framed("".join(report + report))
    assert [record.form for record in records] == ["log", "traceback"] * 2


def test_details_behind_the_exception() -> None:
    text = "\n".join(
        [
            *TRACE[:-1],
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
            "  Value error, Quantization method differs [type=value_error]",
            "    For further information visit https://errors.pydantic.dev/2.11/v/value_error",
        ]
    )
    trace, other = framed("".join(f"(APIServer pid=7) {line}\n" for line in [*text.split("\n"), "Process EngineCore:"]))
    assert (trace.text, trace.pid, other.text) == (text, 7, "Process EngineCore:")


def test_cuda_details() -> None:
    text = "\n".join(
        [
            *TRACE[:-1],
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            "CUDA kernel errors might be asynchronously reported at some other API call.",
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        ]
    )
    trace, warning = framed(text + "\n\n[rank0]:[W1130 02:55:55.59 ProcessGroupNCCL.cpp:1575] Warning: leak\n")
    assert trace.text == text
    assert (warning.process, warning.form) == ("rank0", "raw")


def test_exception_group() -> None:
    text = "\n".join(
        [
            "  + Exception Group Traceback (most recent call last):",
            '  |   File "a.py", line 1, in f',
            "  |     raise ExceptionGroup('x', [y])",
            "  | ExceptionGroup: x (1 sub-exception)",
            "  +-+---------------- 1 ----------------",
            "    | Traceback (most recent call last):",
            '    |   File "a.py", line 2, in g',
            "    | ValueError: no",
            "    +------------------------------------",
        ]
    )
    trace, other = framed(text + "\nINFO:     Shutting down\n")
    assert (trace.form, trace.text, other.text) == ("traceback", text, "Shutting down")


def test_traceback_cut_at_either_end() -> None:
    (record,) = framed("\n".join(TRACE[1:]) + "\n")
    assert record.form == "traceback"
    (record,) = framed("\n".join(TRACE[:3]))
    assert (record.form, record.text) == ("traceback", "\n".join(TRACE[:3]))


def test_segfault_dump() -> None:
    dump = "\n".join(
        [
            "!!!!!!! Segfault encountered !!!!!!!",
            '  File "<unknown>", line 0, in __restore_rt',
            '  File "x.cc", line 5, in f',
        ]
    )
    stack, line = framed(dump + "\n(APIServer pid=3) INFO 09-12 10:00:00 [a.py:1] on\n")
    assert (stack.form, stack.text, line.text) == ("stack", dump, "on")


def test_fatal_python_error() -> None:
    dump = "\n".join(
        [
            "Fatal Python error: Segmentation fault",
            "",
            "Thread 0x00007f0a (most recent call first):",
            '  File "/usr/lib/python3.12/threading.py", line 324 in wait',
            "",
            "Extension modules: numpy._core (total: 1)",
        ]
    )
    (stack,) = framed(dump + "\n")
    assert (stack.form, stack.text) == ("stack", dump)


def test_banner_with_carriage_returns() -> None:
    header = "(APIServer pid=1) INFO 09-12 10:00:00 [utils.py:297]"
    banner = [
        "",
        "       █     █     █▄   ▄█",
        " ▄▄ ▄█ █  █  █ ▀▄▀ █  version 0.18.1",
        "  █▄█▀ █  █  █  █  model   /m",
        "",
    ]
    for end in ("\r\n", "\n"):
        text = (
            "".join(with_header(banner[:-1], header, end))
            + f"{header} \n(APIServer pid=1) INFO 09-12 10:00:00 [b.py:2] x\n"
        )
        logo, after = framed(text)
        assert (logo.line, logo.last_line, after.text) == (1, 5, "x")
        assert "version 0.18.1" in logo.text


def test_memory_summary_of_v0() -> None:
    header = "INFO 04-10 08:57:52 [worker.py:267]"
    lines = [
        "Memory profiling takes 22.84 seconds",
        "the current vLLM instance can use total_gpu_memory (39.38GiB) x gpu_memory_utilization (0.90) = 35.44GiB",
        "model weights take 16.00GiB; the rest of the memory reserved for KV Cache is 18.14GiB.",
    ]
    for end in ("\r\n", "\n"):
        summary, after = framed("".join(with_header(lines, header, end)[:2]) + f"{header} {lines[2]}\nINFO:     next\n")
        assert (summary.text, summary.line, summary.last_line, after.text) == ("\n".join(lines), 1, 3, "next")


def test_equal_headers_are_not_joined() -> None:
    lines = with_header(["Route: /docs, Methods: GET", "Route: /health, Methods: GET"], "INFO 09-12 10:00:00 [l.py:36]")
    assert len(framed("".join(lines))) == 2


def test_a_dump_over_several_lines() -> None:
    text = "server_args=ServerArgs(model_path='/m',\n    tp_size=2,\n    quantization=None)"
    dump, after = framed(f"[2026-11-30 02:55:49] {text}\n[2026-11-30 02:55:50] next\n")
    assert (dump.text, dump.last_line, after.line) == (text, 3, 4)


def test_out_of_memory_text() -> None:
    text = "Prefill out of memory. Try to lower your batch size.\nTry to allocate 512 tokens.\nAvailable tokens: 3"
    (record, _) = framed(f"[2026-11-30 02:55:49 TP0] {text}\n[2026-11-30 02:55:50] next\n")
    assert record.text == text


def test_unprefixed_lines_are_records_of_their_own() -> None:
    assert texts("[2026-11-30 02:55:49] Memory pool end. avail mem=1 GB\nNCCL version 2.30\n") == [
        "Memory pool end. avail mem=1 GB",
        "NCCL version 2.30",
    ]


def test_a_huge_traceback_is_bounded_and_says_so() -> None:
    frames = [f'  File "a.py", line {n}, in f' for n in range(5 * MAX_LINES)]
    (record,) = framed("\n".join([TRACE[0], *frames, TRACE[-1]]) + "\n")
    lines = record.text.split("\n")
    assert len(lines) == MAX_LINES + 1
    assert f"[… {5 * MAX_LINES + 2 - MAX_LINES} lines left out]" in lines
    assert lines[-1] == TRACE[-1]
    assert record.line_of(len(lines) - 1) == record.last_line == 5 * MAX_LINES + 2


def test_records_come_in_the_order_of_their_lines_and_none_is_held_for_ever() -> None:
    framer = Framer("log", unwrap=False)
    records = framer.feed("\n".join(TRACE[:3]).encode() + b"\n")
    for n in range(5000):
        records += framer.feed(f"[2026-11-30 02:55:49 TP0] line {n}\nraw {n}\n".encode())
    assert len(records) > 9000
    assert [record.line for record in records] == sorted(record.line for record in records)


def test_flush_hands_out_what_is_held() -> None:
    framer = Framer("log", unwrap=False)
    assert framer.feed(b"[2026-11-30 02:55:49 TP0] one\n") == []
    assert [record.text for record in framer.flush()] == ["one"]
    assert framer.close() == []


def test_a_traceback_pasted_without_its_indentation() -> None:
    flat = [
        "Traceback (most recent call last):",
        'File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap',
        "self.run()",
        'File "/opt/vllm/v1/engine/core.py", line 1350, in run_engine_core',
        "raise e",
        "Exception: WorkerProc initialization failed",
    ]
    trace, other = framed("".join(f"(EngineCore pid=3) {line}\n" for line in flat) + "(APIServer pid=1) next\n")
    assert (trace.form, trace.text, other.text) == ("traceback", "\n".join(flat), "next")


def test_a_line_after_a_flat_frame_may_be_a_stranger() -> None:
    texts_ = texts(
        "Traceback (most recent call last):\n"
        'File "/a.py", line 1, in run\n'
        "ValueError: no\n"
        "INFO 09-12 10:00:00 [core.py:1] hello\n"
    )
    assert texts_[-1] == "hello"
    assert texts_[0].endswith("ValueError: no")


def test_the_traceback_of_a_notebook() -> None:
    cell = [
        "KeyError                                  Traceback (most recent call last)",
        "Cell In[3], line 6",
        "      2 out = 'x'",
        "----> 6 model = LLM(name)",
        "File /opt/vllm/models/falcon.py:480, in FalconForCausalLM.load_weights(self, path)",
        "--> 480 param = state_dict[name]",
        "KeyError: 'transformer.h.0.mlp.bias'",
    ]
    (trace,) = framed("\n".join(cell) + "\n")
    assert (trace.form, trace.text) == ("traceback", "\n".join(cell))


def test_a_message_that_begins_below_its_exception() -> None:
    lines = [
        *TRACE[:2],
        "ImportError: ",
        "[sgl_kernel] CRITICAL: Could not load any common_ops library!",
        "",
        "Attempted locations:",
        "- ImportError: libnuma.so.1: cannot open shared object file",
    ]
    trace, other = framed("\n".join([*lines, "[2026-04-25 01:40:11] Received sigquit from a child process."]) + "\n")
    assert trace.text == "\n".join(lines)
    assert other.text.startswith("Received sigquit")


def test_figures_under_a_heading_belong_to_the_message() -> None:
    lines = [*TRACE[:2], "ValueError: pool memory leak detected! [full] total=9", "[swa] total=8, available=3"]
    trace, other = framed("\n".join([*lines, "[aiter] import [module_x]"]) + "\n")
    assert trace.text == "\n".join(lines)
    assert other.text == "[aiter] import [module_x]"


def test_a_dump_that_was_cut_does_not_swallow_the_traceback_below_it() -> None:
    text = (
        "[2026-09-22 06:49:56] server_args={'model_path': '/models/a', 'tokenizer_b\n"
        '  File "/s/sglang/srt/managers/detokenizer_manager.py", line 124, in init_ipc_channels\n'
        "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:29236')\n"
    )
    first, second = framed(text)
    assert (first.last_line, second.form, second.line) == (1, "traceback", 2)


def test_an_exception_alone_keeps_the_lines_that_its_message_goes_on_with() -> None:
    kernel, mlir, end = framed(
        "tvm.error.InternalError: Failed at\n  /x/csrc/gemm/scaled_mm_sm120.cuh:426\n"
        "MLIRError: Operation creation failed:\nexpects `coord` and shape of view are weakly congruent\n"
        "Received sigquit from a child process.\n"
    )
    assert kernel.text == "tvm.error.InternalError: Failed at\n  /x/csrc/gemm/scaled_mm_sm120.cuh:426"
    assert mlir.text == "MLIRError: Operation creation failed:\nexpects `coord` and shape of view are weakly congruent"
    assert end.text == "Received sigquit from a child process."


def test_what_an_exception_alone_does_not_say_is_a_record_of_its_own() -> None:
    records = framed(
        "ValueError: it ended:\nLoad weight begin. avail mem=9.00 GB\nValueError: it ended:\nmax_total_num_tokens=7\n"
        'ValueError: it ended\n  File "/x/a.py", line 1, in f\n    g()\nKeyError: 1\n'
    )
    assert [record.line for record in records] == [1, 2, 3, 4, 5, 6]
