"""No warning of finite numbers, whatever an earlier function has left on the stack."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, c_uint32
from importlib import import_module
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import codes
from everhash.kernels import reference
from everhash.peers.batch.mlh import descent, losses
from everhash.peers.ksh import Residual
from everhash.products import product

Call = Callable[[], object]
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SIGNALLING = 0x7FA00000
"""The bits of a signalling NaN."""
FILL = """
define void @fill(i32 %bits) {
begin:
  %room = alloca [65536 x i32]
  br label %next
next:
  %i = phi i64 [0, %begin], [%up, %next]
  %place = getelementptr [65536 x i32], ptr %room, i64 0, i64 %i
  store volatile i32 %bits, ptr %place
  %up = add i64 %i, 1
  %full = icmp eq i64 %up, 65536
  br i1 %full, label %end, label %next
end:
  ret void
}
"""


@pytest.fixture(scope="module")
def fill_stack() -> Iterator[Callable[[int], None]]:
    """Give a function that fills the stack below its caller with these bits."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(llvm.parse_assembly(FILL), machine) as engine:
        engine.finalize_object()
        yield CFUNCTYPE(None, c_uint32)(engine.get_function_address("fill"))


def finite(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def halves() -> Call:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        cut = import_module("large_rows").halves
    finally:
        sys.path.remove(str(BENCHMARKS))
    X, part = finite(75, 5), np.arange(75)
    return lambda: cut(X, part)


def calls() -> dict[str, Call]:
    """Return calls that multiply (n, 5) by (5,), all they need at hand."""
    X, x, word, sign = finite(75, 5), finite(5), finite(1, 1, 5), np.ones((1, 5), np.int8)
    entry, few = codes.Codes.pack(sign, version=0), Residual(finite(5, 3), np.arange(5), 2)
    few.hold(finite(75, 5))
    loss = losses(1, 0)[:1].repeat(75, axis=0)
    return {
        "product": lambda: product(X, x),
        "asymmetric": lambda: codes.asymmetric(X, entry),
        "margins": lambda: reference.margins(X, word),
        "word_scores": lambda: reference.word_scores(X, sign, 1),
        "shk": lambda: few.form(x),
        "mlh": lambda: descent(x[None], X, X, loss),
        "halves": halves(),
    }


@pytest.mark.parametrize("name", calls())
def test_products_of_finite_numbers_do_not_warn(
    name: str, fill_stack: Callable[[int], None]
) -> None:
    """Warnings are errors in all tests. Without AVX-512 nothing is wrong with any product."""
    call = calls()[name]
    for _ in range(3):
        fill_stack(SIGNALLING)
        call()


def test_an_overflow_still_warns() -> None:
    huge = np.full((3, 5), 3e38, np.float32)
    with pytest.warns(RuntimeWarning, match="overflow"):
        product(huge, huge[0])


def test_a_product_is_that_of_numpy() -> None:
    A, b = finite(74, 5), finite(5)
    np.testing.assert_allclose(product(A, b), A.astype(np.float64) @ b, rtol=1e-5, atol=1e-6)
