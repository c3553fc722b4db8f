"""The command line that scripts in this folder share: named parts, options, a machine line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from time import perf_counter

from everhash.bench.machine import describe_machine


def run_parts(
    doc: str,
    parts: Mapping[str, Callable[[Namespace], None]],
    **options: float | str | tuple[int | str, ...],
) -> None:
    """Parse the command line and run the parts it names, or all of them.

    Args:
        doc: the script's docstring; its first line becomes the help text.
        parts: functions by name, in the order in which they run. Each gets the parsed options.
        options: the default of each option; a tuple takes several values.
    """
    parser = ArgumentParser(description=doc.splitlines()[0])
    known = ", ".join(parts)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {known}; default: all")
    for name, default in options.items():
        many = isinstance(default, tuple)
        kind = type(default[0] if isinstance(default, tuple) else default)
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
        parser.add_argument(
            f"--{name}",
            nargs="+" if many else None,
            type=kind,
            default=default,
            help=f"default: {shown}",
        )
    args = parser.parse_args()
    if unknown := set(args.parts) - set(parts):
        parser.error(f"unknown part {min(unknown)!r} (expected one of: {known})")
    print(describe_machine())
    for name in args.parts or parts:
        start = perf_counter()
        parts[name](args)
        print(f"({name}: {perf_counter() - start:.0f} s)", flush=True)
