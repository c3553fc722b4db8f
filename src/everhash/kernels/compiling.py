"""Compiling a kernel when it is first asked for, for its one signature, and keeping account of it.

Only what Python calls is a kernel. Its parts (`part`, `inner`, `inlined`) are compiled into it.
They have no entry for Python, which would take about as long to compile: calling one would crash.
Numba compiles a part again for every other type of argument, and a literal is a type of its own:
`take(0)` and `take(m)` are two parts, `take(I(0))` and `take(m)` are one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from threading import RLock
from time import perf_counter
from typing import Any, NamedTuple, TypeVar, cast

import numba
from numba.core import event

from everhash import kernels
from everhash.kernels.disk_cache import Folder, cache_of_these_sources, one_compiler_at_a_time

F = TypeVar("F", bound=Callable[..., Any])
_COMPILE = "numba:compile"
# As Any: their types do not know all options.
_njit: Any = numba.njit
_events: Any = event
_SIGNATURES: dict[Any, str] = {}
"""Of all kernels, by the dispatcher."""
_ONE_THREAD = RLock()


class Found(NamedTuple):
    """How a kernel was made ready."""

    compiled: bool
    """Or read from the cache."""
    seconds: float


READY: dict[str, Found] = {}
"""The kernels that this process has asked for, by name."""


def kernel(signature: str, **options: Any) -> Callable[[F], F]:
    """Make a kernel, which `make_ready` compiles for exactly this signature."""

    def declare(function: F) -> F:
        dispatcher = _njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
        _SIGNATURES[dispatcher] = signature
        return cast(F, dispatcher)

    return declare


def part(**options: Any) -> Callable[[F], F]:
    """Compile, with these options, when first used by a kernel, whose cached code contains it."""

    def declare(function: F) -> F:
        no_entry = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return cast(F, _njit(nogil=True, **no_entry, **options)(function))

    return declare


def inner(function: F) -> F:
    """Make a `part` without options."""
    return part()(function)


def inlined(function: F) -> F:
    """Compile into its callers: for straight lines of scalars inside hot loops."""
    return part(forceinline=True)(function)


def make_ready(dispatcher: Any) -> None:
    """Compile a kernel or read it from the cache, once; anything else is left alone."""
    signature = _SIGNATURES.get(dispatcher)
    name = getattr(dispatcher, "__name__", "")
    if signature is None or name in READY:
        return
    with _ONE_THREAD, one_compiler_at_a_time(), cache_of_these_sources() as folder:
        if name in READY:  # another thread was first
            return
        start = perf_counter()
        dispatcher.enable_caching()
        with _Announcing(dispatcher, folder):
            dispatcher.compile(signature)
        dispatcher.disable_compile()  # a second signature would cost a user seconds unasked
        READY[name] = Found(not dispatcher.stats.cache_hits, perf_counter() - start)


class _Announcing(event.Listener):
    """Announces that one kernel is being compiled, from when Numba says so to the end."""

    def __init__(self, dispatcher: Any, folder: Folder) -> None:
        self._dispatcher, self._folder, self._scope = dispatcher, folder, ExitStack()

    def __enter__(self) -> None:
        _events.register(_COMPILE, self)

    def __exit__(self, *_: object) -> None:
        _events.unregister(_COMPILE, self)
        self._scope.close()

    def on_start(self, begun: Any) -> None:
        if begun.data["dispatcher"] is self._dispatcher:
            self._scope.enter_context(kernels.announce(_message(self._folder)))

    def on_end(self, ended: Any) -> None:
        """Numba wants it."""


def _message(folder: Folder) -> str:
    what = "compiling search kernels for this machine (20 seconds in all, 40 for a service)"
    if not folder.is_kept:
        return (
            f"{what} in every process again: there is no folder to keep them in; "
            "name one that can be written to in NUMBA_CACHE_DIR"
        )
    return (
        f"{what} once: they are kept in {folder.path}; "
        "`python -m everhash.kernels` compiles all of them ahead of time"
    )
