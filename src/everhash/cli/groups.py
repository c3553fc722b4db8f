"""How commands and groups of them behave: help without types of flags, `-h`, Ctrl-C in one line."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from everhash.cli import INTERRUPTED

HELP = {"help_option_names": ["-h", "--help"]}


def _shown_plainly(parameters: list[Any]) -> list[Any]:
    """Return parameters: flags without the type of a value, arguments in capitals."""
    for parameter in parameters:
        if parameter.metavar is None and getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if parameter.metavar is None and parameter.param_type_name == "argument":
            parameter.metavar = parameter.name.upper()
    return parameters


def _unwrapped(text: str | None) -> str | None:
    """Return paragraphs as one line each: a terminal has its own width."""
    return text and "\n\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))


class Command(TyperCommand):
    """A command."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["help"] = _unwrapped(options.get("help"))
        super().__init__(*arguments, **options)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, `--help` among them."""
        return _shown_plainly(super().get_params(ctx))


class Group(TyperGroup):
    """All commands, or some of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, `--help` among them."""
        return _shown_plainly(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named; Typer would end without a word after Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


def add_group(app: typer.Typer, group: typer.Typer) -> None:
    """Add a group of commands, which behave like all others."""
    for command in group.registered_commands:
        command.cls = Command
    app.add_typer(group, cls=Group)
