"""Read a model folder: bytes by component, KV bytes per token, package consistency.

MODEL_DIR is a folder with config.json and safetensors or GGUF files; a single GGUF file will do. Only headers are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from analyzer.cli.common import FailOn


def command(
    model_dir: Annotated[Path, typer.Argument(help="The model's folder, or a GGUF file.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    tp: Annotated[int, typer.Option("--tp", min=1, help="Tensor-parallel size.")] = 1,
    pp: Annotated[int, typer.Option("--pp", min=1, help="Pipeline-parallel size.")] = 1,
    ep: Annotated[int, typer.Option("--ep", min=1, help="Expert-parallel size.")] = 1,
    dp_attention: Annotated[int, typer.Option("--dp-attention", min=1, help="DP-attention groups in TP.")] = 1,
    kv_dtype: Annotated[str, typer.Option("--kv-dtype", help="KV type: auto, bfloat16, fp8_e4m3, fp4.")] = "auto",
    ssm_dtype: Annotated[str, typer.Option("--ssm-dtype", help="State type: auto, float32, bfloat16.")] = "auto",
    engine: Annotated[Literal["sglang", "vllm"], typer.Option("--engine", help="Whose layout to use.")] = "sglang",
    version: Annotated[str, typer.Option("--version", help="The engine's version; the newest known without.")] = "",
    draft_tokens: Annotated[int, typer.Option("--draft-tokens", min=0, help="Speculative tokens of one step.")] = 0,
    draft_dir: Annotated[Path | None, typer.Option("--draft-dir", help="The folder of a separate draft.")] = None,
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor instead.")] = False,
    fail_on: FailOn = "critical",
) -> int:
    from analyzer.diagnosis.judgement import reaches
    from analyzer.planning.inspection import Serving, document, inspect

    serving = Serving(engine, version, tp, pp, ep, dp_attention, kv_dtype, ssm_dtype, draft_tokens)
    inspection = inspect(model_dir, serving, draft_dir)
    if json:
        from json import dumps

        typer.echo(dumps(document(inspection), indent=1, ensure_ascii=True))
    elif tensors:
        from analyzer.redact import clean

        for tensor in inspection.folder.tensors:
            shape = " x ".join(map(str, tensor.shape))
            typer.echo(clean(f"{tensor.bytes:>14,}  {tensor.dtype:<8} {tensor.name}  [{shape}]  {tensor.file}"))
    else:
        from analyzer.planning.inspection_page import write
        from analyzer.planning.paper import print_sheet

        print_sheet(lambda sheet: write(inspection, sheet))
    return int(reaches((f.severity for f in inspection.findings), fail_on))
