"""Options that several commands share, and how a report leaves the program."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from analyzer import report
from analyzer.errors import UserError

if TYPE_CHECKING:
    from analyzer.pipeline import Options
    from analyzer.report.model import Report

Paths = Annotated[list[str] | None, typer.Argument(help="Logs, archives or folders; - for standard input.")]
Format = Annotated[report.Format, typer.Option("--format", "-f", help="What to print on standard output.")]
Output = Annotated[
    list[Path] | None,
    typer.Option("--output", "-o", help="Also write a file: .html .md .json .sarif .junit.xml .txt; may be repeated."),
]
ModelDir = Annotated[Path | None, typer.Option("--model-dir", help="The model's folder, read as a further witness.")]
DraftDir = Annotated[Path | None, typer.Option("--draft-dir", help="The draft's folder, if it is another one.")]
DraftFileBytes = Annotated[
    str | None, typer.Option("--draft-file-bytes", help="Size of the draft's tensors on disk, like 0.85GiB.")
]
ExitCode = Annotated[int | None, typer.Option("--exit-code", help="The exit code of the server or its container.")]
OomKilled = Annotated[bool, typer.Option("--oom-killed", help="The container's State.OOMKilled was true.")]
RuleDirs = Annotated[list[Path] | None, typer.Option("--rules", help="A folder with further rules; may be repeated.")]
FailOn = Annotated[
    Literal["critical", "warning", "info", "never"],
    typer.Option("--fail-on", help="Exit with 1 if a finding is at least this severe."),
]


def paths_or_stdin(paths: list[str] | None) -> list[str]:
    """The given paths; without any, standard input if something is piped in. Raises ``UserError`` otherwise."""
    if paths:
        return paths
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError("no log given: name a file, or pipe a log in (docker logs NAME 2>&1 | kvautopsy)")
    return ["-"]


def check_outputs(output: list[Path] | None, inputs: Iterable[str] = ()) -> None:
    """Raises ``UserError`` for an output that names no format, cannot be written or is one of ``inputs``."""
    from analyzer.report.write import format_of
    from analyzer.whole import check_place

    for path in output or ():
        format_of(path)
        check_place(path, inputs)


def options_from(
    *,
    model_dir: Path | None = None,
    draft_dir: Path | None = None,
    draft_file_bytes: str | None = None,
    exit_code: int | None = None,
    oom_killed: bool = False,
    rules: list[Path] | None = None,
    merge: bool = False,
    metrics: list[str] | None = None,
    nvidia_smi: Path | None = None,
    prometheus: str | None = None,
    url: str | None = None,
) -> Options:
    """Pipeline options from command line values; reads the small witnesses (metrics text, nvidia-smi) at once.

    Raises ``UserError`` for one that is none.
    """
    from analyzer.pipeline import Options
    from analyzer.run.facts import Fact, Where

    facts: list[Fact] = []
    if draft_file_bytes is not None:
        from analyzer.units import parse_bytes

        try:
            size = parse_bytes(draft_file_bytes)
        except ValueError as error:
            raise UserError(f"--draft-file-bytes {draft_file_bytes}: {error}") from None
        where = (Where("--draft-file-bytes", 0, draft_file_bytes),)
        facts.append(Fact("draft.weights.on_disk", size, "bytes", where, origin="argument"))
    if exit_code is not None:
        where = (Where("--exit-code", 0, str(exit_code)),)
        facts.append(Fact("container.exit_code", exit_code, "count", where, origin="argument"))
    if oom_killed:
        facts.append(Fact("container.oom_killed", True, "bool", (Where("--oom-killed"),), origin="argument"))
    for folder in (model_dir, draft_dir):
        if folder is not None and not folder.is_dir():
            raise UserError(f"{folder} is not a folder: give the folder that holds the model's config.json")
        if folder is not None:
            from analyzer.evidence.model_dir import inspect_model

            inspect_model(folder)  # what is wrong with it is said before a pipe is read, which is read once only
    if url is not None or prometheus is not None:
        from analyzer.evidence.http import address

        url = None if url is None else address(url)
        prometheus = None if prometheus is None else address(prometheus, "http://127.0.0.1:9090")
    read_facts = None
    if metrics or nvidia_smi or prometheus or url:
        from analyzer.evidence.witnesses import reader_of

        read_facts = reader_of(metrics=metrics or [], nvidia_smi=nvidia_smi, prometheus=prometheus, url=url)
    return Options(
        model_dir=model_dir,
        draft_dir=draft_dir,
        rule_dirs=tuple(rules or ()),
        facts=tuple(facts),
        merge=merge,
        read_facts=read_facts,
    )


def finish(
    report: Report,
    *,
    format: str = "text",
    output: list[Path] | None = None,
    fail_on: str = "critical",
    noise: bool = False,
    baseline: Path | None = None,
) -> int:
    """Prints and writes ``report``; the exit status of contract.md."""
    from analyzer.report import print_report, write_report

    status, failed = 0, None
    try:
        status = exit_status(report, fail_on, baseline)  # before a file is written: the baseline may be one of them
    except UserError as error:
        failed = error
    for path in output or ():
        try:
            write_report(report, path)
        except UserError as error:
            failed = failed or error
    if format == "json-line":
        import json

        from analyzer.report import to_json

        typer.echo(json.dumps(to_json(report), ensure_ascii=False, separators=(",", ":")))
    else:
        print_report(report, format, noise=noise)
    if failed is not None:  # said last: what was read is not lost with the file
        sys.stdout.flush()
        raise failed
    return status


def exit_status(report: Report, fail_on: str, baseline: Path | None = None) -> int:
    """0 nothing at or above ``fail_on``, 1 something, 3 nothing recognised in the input."""
    from analyzer.diagnosis.judgement import reaches

    if not report.runs or not any(i.recognised_lines for i in report.inputs):
        return 3
    if fail_on == "never":
        return 0
    if baseline is not None:
        from analyzer.report.baseline import without_known

        report = without_known(report, baseline)
    worst = report.worst()
    return int(worst is not None and reaches([worst], fail_on))
