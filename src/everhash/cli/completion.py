"""What the shell offers for a word that is being typed, where Typer does not know it by itself.

Whatever goes wrong, nothing is offered: a shell has no place for an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import typer


def _starting_with(incomplete: str, names: Callable[[], Iterable[object]]) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [str(name) for name in names() if str(name).startswith(incomplete)]
    except Exception:  # see above
        return []


def complete_label(context: typer.Context, incomplete: str) -> list[str]:
    """Return labels of the collection whose file was typed before; a service is not asked."""

    def labels() -> list[object]:
        import everhash

        # behind an option without its value, arguments are not assigned yet
        path = context.params["target"] or context.args[0]
        with everhash.open(path, readonly=True) as collection:
            return [info.label for info in collection.labels()]

    return _starting_with(incomplete, labels)


def complete_method(incomplete: str) -> list[str]:
    """Return methods."""

    def methods() -> list[str]:
        from everhash import peers

        return peers.names()

    return _starting_with(incomplete, methods)


def complete_online_method(incomplete: str) -> list[str]:
    """Return methods that a collection can learn by."""

    def methods() -> list[str]:
        from everhash import peers

        return [name for name in peers.names() if peers.describe(name).online]

    return _starting_with(incomplete, methods)


def complete_methods(incomplete: str) -> list[str]:
    """Return methods for the last of several that are separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    groups = ["all", "online", "batch"] if not comma else []
    found = [*_starting_with(last, lambda: groups), *complete_method(last)]
    return [before + comma + name for name in found]


def complete_experiment(incomplete: str) -> list[str]:
    """Return experiments."""

    def experiments() -> list[str]:
        from everhash.bench import experiment

        return experiment.names()

    return _starting_with(incomplete, experiments)


def complete_dataset(incomplete: str) -> list[str]:
    """Return data sets."""

    def datasets() -> list[str]:
        from everhash.bench import datasets

        return datasets.names()

    return _starting_with(incomplete, datasets)
