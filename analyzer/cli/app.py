"""The commands, gathered; each is imported only when it is called or listed."""

from __future__ import annotations

import importlib
from typing import Any

import click
import typer
from typer.main import get_command

SHORT = {
    "explain": "Say why the KV cache pool is the size it is, what caps concurrency, and what failed.",
    "events": "Print the typed events that the grammars read from a log.",
    "follow": "Follow a growing file or a pipe and say what is found the moment it is proved.",
    "attach": "Follow a running container's output, history first.",
    "prove-spec": "Prove or refute, in four layers, that speculative decoding works.",
    "inspect": "Read a model folder: bytes by component, KV bytes per token, package consistency.",
    "plan": "Predict the pool and limits of a launch before it is made.",
    "audit": "Read an archive of many runs into one table of runs, ranks and findings.",
    "query": "Ask SQL of an audit's result.",
    "compare": "Explain why one run's pool differs from another's.",
    "rules": "List, describe and test the rules.",
    "docs": "Write the documentation pages that are made from the rules and grammars.",
}


class _LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported at first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in SHORT if name != "docs"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SHORT:
            return None
        module = importlib.import_module(f"analyzer.cli.{cmd_name.replace('-', '_')}")
        one = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        one.command(name=cmd_name, help=module.__doc__)(module.command)
        command = get_command(one)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SHORT[name]) for name in self.list_commands(ctx)])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from analyzer import __version__

        click.echo(f"kvautopsy {__version__}")
        ctx.exit()


def build_app() -> click.Group:
    """The whole command."""
    options: list[Any] = [
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
        )
    ]
    return _LazyGroup(
        name="kvautopsy",
        help="Why an LLM server has the capacity it has: read from its log, with proof.\n\n"
        "kvautopsy server.log is short for kvautopsy explain server.log, and a log may be piped in.",
        params=options,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
