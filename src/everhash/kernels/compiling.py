"""Compiling a kernel for one signature, and keeping account of it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
COMPILED: dict[str, dict[str, Any]] = {}
"""Kernels by name, for each module."""
SECONDS: dict[str, float] = {}
"""How long each kernel took to compile, or to read from the cache."""


def compile_kernel(signature: str, **options: Any) -> Callable[[F], F]:
    """Compile for exactly this signature, and keep account of it for the report."""

    def compile_now(function: F) -> F:
        start = perf_counter()
        kernel = numba.njit(signature, cache=True, nogil=True, **options)(function)
        SECONDS[function.__name__] = perf_counter() - start
        COMPILED.setdefault(function.__module__, {})[function.__name__] = kernel
        return cast(F, kernel)

    return compile_now
