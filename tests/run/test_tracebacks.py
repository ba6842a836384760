# ruff: noqa: E501  (messages are quoted whole)
"""Tracebacks as text: chains, groups, remote ones, cut and headless ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.run.tracebacks import exception_line, parse

PLAIN = """Traceback (most recent call last):
  File "/opt/vllm/v1/engine/core.py", line 10, in run
    self.step()
    ^^^^^^^^^^^
  File "/opt/torch/x.py", line 4, in forward
    return op(a)
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported"""


def test_frames_exception_and_message() -> None:
    root = parse(PLAIN).root
    assert root is not None
    assert (root.exception, root.end, root.start) == ("RuntimeError", 6, 0)
    assert [f.function for f in root.frames] == ["run", "forward"]
    assert root.message.startswith("CUDA error: an illegal memory access")
    assert not parse(PLAIN).cut


def test_direct_cause_is_the_root() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in build\nImportError: no such thing\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in load\nRuntimeError: Failed to import a because of: x'
    )
    parsed = parse(text)
    assert [link.short for link in parsed.links] == ["ImportError", "RuntimeError"]
    assert parsed.root is not None
    assert parsed.root.exception == "ImportError"


def test_a_command_that_failed_says_less_than_who_reports_it() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in run\nsubprocess.CalledProcessError: Command '['ninja']'"
        " returned non-zero exit status 1.\n\nThe above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in build\nRuntimeError: Ninja build failed. Ninja output:\n'
        "FAILED: x.o\nninja: build stopped\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "c.py", line 3, in __init__\n'
        "Exception: Capture cuda graph failed: Ninja build failed. Ninja output:\nPossible solutions:\n1. set x"
    )
    root = parse(text).root
    assert root is not None
    assert (root.exception, root.message.split("\n")[0]) == ("RuntimeError", "Ninja build failed. Ninja output:")


def test_an_error_while_handling_another_stands_for_itself() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'qwen'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in g\nValueError: the model type is not known'
    )
    root = parse(text).root
    assert root is not None
    assert root.exception == "ValueError"


def test_remote_traceback_inside_a_message() -> None:
    text = (
        'Traceback (most recent call last):\n  File "worker.py", line 9, in get\n    raise value\n'
        "ray.exceptions.RayTaskError(ValueError): ray::Worker.run() (pid=7, ip=10.0.0.2)\n"
        '  File "model.py", line 3, in call\n    a, b = c\nValueError: not enough values to unpack (expected 22, got 21)'
    )
    root = parse(text).root
    assert root is not None
    assert (root.exception, root.relation) == ("ValueError", "remote")


def test_exception_group() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "app.py", line 1, in run\n'
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "stream.py", line 5, in send\n'
        "    | OSError: [Errno 28] No space left on device\n"
        "    +------------------------------------"
    )
    root = parse(text).root
    assert root is not None
    assert (root.exception, root.message) == ("OSError", "[Errno 28] No space left on device")


def test_pydantic_puts_the_message_on_the_next_line() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, Quantization method differs [type=value_error]\n    For further information visit"
    )
    root = parse(text).root
    assert root is not None
    assert root.key_line == 3
    assert "Quantization method differs" in root.message


def test_triton_names_the_reason_after_its_excerpt() -> None:
    excerpt = "\n".join(f"        line {n}" for n in range(30))
    text = (
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        f"triton.compiler.errors.CompilationError: at 322:24:\n{excerpt}\nAssertionError('initial value is fp16')"
    )
    root = parse(text).root
    assert root is not None
    assert root.key_line == 33
    assert "initial value is fp16" in root.message


def test_cut_and_headless() -> None:
    cut = parse('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()')
    assert cut.cut and cut.root is None and [f.function for f in cut.frames] == ["f"]
    headless = parse('  File "a.py", line 1, in f\n    g()\nKeyError: 3')
    assert headless.headless and headless.root is not None and headless.root.exception == "KeyError"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ValueError: x", "ValueError"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError"),
        ("[multiproc_executor.py:492] ValueError: Free memory", "ValueError"),
        ("AssertionError", "AssertionError"),
        ("Warning: something", None),
        ("See the error above", None),
        ("Note: this is no Error", None),
    ],
)
def test_exception_line(text: str, name: str | None) -> None:
    found = exception_line(text)
    assert (found[0] if found else None) == name


@given(st.text(alphabet=st.sampled_from(list('Tracebk (mostlas):\n File"a.py,1in +|-EROV')), max_size=400))
def test_never_raises(text: str) -> None:
    parse("Traceback (most recent call last):\n" + text)
    parse(text)


def test_frames_of_a_notebook() -> None:
    parsed = parse(
        "KeyError                                  Traceback (most recent call last)\n"
        "Cell In[3], line 6\n"
        "File /opt/vllm/models/falcon.py:480, in FalconForCausalLM.load_weights(self, path)\n"
        "--> 480 param = state_dict[name]\n"
        "KeyError: 'transformer.h.0.mlp.bias'"
    )
    assert parsed.root is not None
    assert parsed.root.exception == "KeyError"
    assert [(f.file, f.line, f.function) for f in parsed.root.frames] == [
        ("/opt/vllm/models/falcon.py", 480, "load_weights")
    ]


def test_an_exception_in_the_heading_of_a_process() -> None:
    text = "Scheduler hit an exception: torch._dynamo.exc.Unsupported: Logger not supported"
    assert exception_line(text) == ("torch._dynamo.exc.Unsupported", "Logger not supported")
    assert exception_line("Scheduler hit an exception: Traceback (most recent call last):") is None


@pytest.mark.parametrize("inside", ["    ", "          "])
def test_an_exception_as_far_in_as_its_frame_is_the_end_and_no_source(inside: str) -> None:
    text = (
        f'{inside}File ".../speculative/worker.py", line 9, in forward\n{inside}  if pool.ratio != 128:\n'
        f"{inside}AttributeError: 'Pool' object has no attribute 'ratio'"
    )
    root = parse(text).root
    assert root is not None
    assert (root.exception, root.end) == ("AttributeError", 2)
    assert [frame.function for frame in root.frames] == ["forward"]


def test_source_that_reads_like_an_exception_is_source() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    ValueError: int = 3\nKeyError: 1'
    root = parse(text).root
    assert root is not None
    assert root.exception == "KeyError"


def test_an_assertion_without_a_message_says_what_was_asserted() -> None:
    head = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    told = parse(f"{head}    assert cd.host is not None\n           ^^^^^^^^^^^^^^^^^^^\nAssertionError").root
    assert told is not None
    assert told.message == "assert cd.host is not None"
    for source in ("    assert f(\n", "    g()\n", ""):
        bare = parse(f"{head}{source}AssertionError").root
        assert bare is not None
        assert bare.message == ""
    other = parse(f"{head}    assert x\nAssertionError: too small").root
    assert other is not None
    assert other.message == "too small"
