"""Follow a running container's output, history first.

The daemon is the one that DOCKER_HOST or the Docker context names; a Podman socket works the same way. At the end, or
with Ctrl-C, the full report is printed; the container's exit code and OOM flag enter the verdict.
"""

from __future__ import annotations

from typing import Annotated

import typer

from analyzer.cli.common import DraftDir, FailOn, ModelDir, Output, RuleDirs, check_outputs, finish, options_from
from analyzer.cli.follow import Format, Plain, View, view_of


def command(
    container: Annotated[str, typer.Argument(help="Name or id of a container.")],
    view: View = "auto",
    plain: Plain = False,
    format: Format = "text",
    url: Annotated[str | None, typer.Option("--url", help="Base URL of the server, to probe it at the end.")] = None,
    model_dir: ModelDir = None,
    draft_dir: DraftDir = None,
    rules: RuleDirs = None,
    output: Output = None,
    fail_on: FailOn = "critical",
) -> int:
    import sys
    from dataclasses import replace

    from analyzer.live.container import Container
    from analyzer.live.runner import container_feed, end_facts, end_text, make_view, run, say

    kind = view_of(view, plain, format)
    check_outputs(output)
    options = options_from(model_dir=model_dir, draft_dir=draft_dir, rules=rules, url=url)
    followed = Container(container)
    session = run(container_feed(followed), replace(options, read_facts=None), make_view(kind, sys.stdout))
    if followed.broken:
        say(f"the stream of {followed.name} broke: {followed.broken}")
    end = followed.end()
    facts = end_facts(end, followed.name)
    session.analysis.options = replace(options, facts=(*options.facts, *facts))
    report = session.analysis.report()
    report.notes.append(end_text(end, followed.name))
    return finish(report, format="json-line" if kind == "jsonl" else "text", output=output, fail_on=fail_on)
