"""The commands, gathered; each is imported only when it is called."""

from __future__ import annotations

import difflib
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from analyzer.cli.stopping import stopped
from analyzer.cli.streams import forget_output, refused

SHORT = {
    "explain": "Say why the KV cache pool is the size it is, what caps concurrency, and what failed.",
    "events": "Print the typed events that the grammars read from a log.",
    "follow": "Follow a growing file or a pipe and say what is found the moment it is proved.",
    "attach": "Follow a running container's output, history first.",
    "prove-spec": "Prove or refute, in four layers, that speculative decoding works.",
    "inspect": "Read a model folder: bytes by component, KV bytes per token, consistency.",
    "plan": "Predict the pool and limits of a launch before it is made.",
    "audit": "Read an archive of many runs into one table of runs, ranks and findings.",
    "query": "Ask SQL of an audit's result.",
    "compare": "Explain why one run's pool differs from another's.",
    "rules": "List, describe and test the rules.",
    "docs": "Write the documentation pages that are made from the rules and grammars.",
}
HIDDEN = {"docs"}


class _LazyGroup(TyperGroup):
    """A group whose commands are modules of this package, imported at first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in SHORT if name not in HIDDEN]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in SHORT:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            ctx.fail(f"There is neither a command nor a file '{args[0]}'." + (f" Is {near[0]} meant?" if near else ""))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in SHORT:
            return None
        module = importlib.import_module(f"analyzer.cli.{cmd_name.replace('-', '_')}")
        one = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        settings = getattr(module, "CONTEXT_SETTINGS", None)
        one.command(name=cmd_name, help=module.__doc__, context_settings=settings)(_leaving(module.command))
        command = get_command(one)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SHORT[name]) for name in self.list_commands(ctx)])


def _leaving(command: Callable[..., int]) -> Callable[..., None]:
    """``command`` with its return value as the exit status; a reader that went away (head, less) ends it quietly."""

    @functools.wraps(command)
    def leave(*args: Any, **kwargs: Any) -> None:
        try:
            status = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_output()
            status = 0
        except KeyboardInterrupt as error:  # typer would make it a silent exit
            raise stopped(error) from None
        except OSError as error:
            forget_output()
            raise refused(error) from None
        raise typer.Exit(status)

    return leave


def _version(wanted: bool) -> None:
    if wanted:
        from analyzer import __version__

        typer.echo(f"kvautopsy {__version__}")
        raise typer.Exit()


def build_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="kvautopsy",
        cls=_LazyGroup,
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback()
    def kvautopsy(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None:
        """Why an LLM server has the capacity it has: read from its log, with proof.

        kvautopsy server.log is short for kvautopsy explain server.log, and a log may be piped in.
        """

    return app
