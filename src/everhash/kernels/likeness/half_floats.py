"""The float32 of a half's bits: by an instruction where the processor has one."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic

from everhash.kernels.compiling import inlined
from everhash.kernels.search.topk import bits_float

# As Any: mypy would object to the mixed arithmetic of unsigned scalars that Numba types well.
U4: Any = np.uint32
UP: Any = np.float32(2.0**112)
"""How much smaller a float is than the half whose bits it was given."""
_config: Any = config


def _converted(_typing: Any, _half: Any) -> Any:
    """The float32 of a half's bits, as the processor converts it."""

    def emit(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), emit


by_instruction: Any = intrinsic(_converted)


@inlined
def by_bits(half: Any) -> Any:
    """The float32 of a half's bits, if the half is finite."""
    wide = U4(half)
    sign, rest = (wide & U4(0x8000)) << U4(16), (wide & U4(0x7FFF)) << U4(13)
    return bits_float(np.int32(sign | rest)) * UP


def _has_instruction() -> bool:
    """Whether kernels are compiled for a processor that converts halves."""
    if _config.CPU_NAME is not None:  # for another one than this
        return False
    return platform.machine() in ("aarch64", "arm64") or llvm.get_host_cpu_features().get(
        "f16c", False
    )


half_float = by_instruction if _has_instruction() else by_bits
