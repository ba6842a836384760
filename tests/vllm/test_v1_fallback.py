"""What the V1 engine does not take, as a sentence names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import explain
from tests.vllm.read import line


@pytest.mark.parametrize(
    ("printed", "named"),
    [
        (
            "['Gemma3ForConditionalGeneration'] is not supported by the V1 Engine. Falling back to V0. ",
            "take Gemma3For",
        ),
        ("--kv-cache-dtype is not supported by the V1 Engine. Falling back to V0.", "take --kv-cache-dtype, so"),
        ("ngram is experimental on VLLM_USE_V1=1. Falling back to V0 Engine.", "take ngram, so"),
    ],
)
def test_the_name_stands_without_brackets(printed: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(line("vLLM API server version 0.8.3", "APIServer") + line(printed, "APIServer", "WARNING"))
    (run,) = explain([str(file)]).runs
    (summary,) = [finding.summary for finding in run.findings if finding.rule == "CC043"]
    assert named in summary and not set("[]'") & set(summary)
