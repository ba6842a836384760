"""Predict the pool and limits of a launch before it is made.

MODEL_DIR is the model's folder. Behind it stand the engine's own flags, spelled as on its command line, like
--tp 2 --mem-fraction-static 0.85 or --gpu-memory-utilization 0.9 --max-model-len 32k.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from analyzer.cli.common import FailOn
from analyzer.errors import UserError

CONTEXT_SETTINGS: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": True}


def command(
    words: Annotated[list[str], typer.Argument(metavar="MODEL_DIR [ENGINE FLAGS]...")],
    engine: Annotated[Literal["sglang", "vllm"], typer.Option("--engine", help="The engine.")],
    gpu_memory: Annotated[str, typer.Option("--gpu-memory", help="Memory of one device, like 80GiB (nvidia-smi).")],
    version: Annotated[str, typer.Option("--version", help="The engine's version; the newest known without.")] = "",
    draft_dir: Annotated[Path | None, typer.Option("--draft-dir", help="The folder of a separate draft.")] = None,
    taken: Annotated[str, typer.Option("--taken", help="Memory that other programs hold, like 6GiB.")] = "",
    weights: Annotated[
        str, typer.Option("--weights", help="Size of all weight files, where the folder holds only the config.")
    ] = "",
    like: Annotated[
        str | None, typer.Option("--like", help="A log of the same set-up: its figures replace estimates.")
    ] = None,
    target_context: Annotated[
        str | None, typer.Option("--target-context", help="Search flags that serve this context, like 32k.")
    ] = None,
    target_concurrency: Annotated[
        int | None, typer.Option("--target-concurrency", min=1, help="… for so many requests at once.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    fail_on: FailOn = "critical",
) -> int:
    from analyzer.diagnosis.judgement import reaches
    from analyzer.planning.command import launch_of, target_of, tokens_of
    from analyzer.planning.forecast import document, forecast, judge

    context = None if target_context is None else tokens_of("--target-context", target_context)
    launch = launch_of(engine, version, gpu_memory, words, draft_dir=draft_dir, taken=taken, weights=weights)
    if like is not None:
        from analyzer.planning.likeness import like as with_figures

        launch = with_figures(launch, like)
    found = forecast(launch)
    if found.model is None and found.trouble:
        raise UserError(found.trouble, status=3)
    judgement = judge(found)
    target, answer = target_of(launch, context, target_concurrency), None
    if target is not None:
        from analyzer.planning.search import search

        answer = search(launch, target)
    if json:
        from json import dumps

        from analyzer.planning.search import document as answer_document

        about = document(found, judgement)
        if target is not None:
            about["target"] = answer_document(answer, target)
        typer.echo(dumps(about, indent=1, ensure_ascii=True))
    else:
        from analyzer.planning.paper import print_sheet
        from analyzer.planning.plan_page import write, write_answer

        print_sheet(lambda sheet: write(found, judgement, sheet))
        if target is not None:
            print_sheet(lambda sheet: write_answer(answer, target, sheet))
    severities = [f.severity for f in judgement.findings]
    return int(reaches([*severities, *(["critical"] if found.trouble else [])], fail_on))
