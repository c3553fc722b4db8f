"""One line that describes the machine and the versions of the software."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np

import everhash

VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
"""Instructions that decide speed and rounding, the widest first: a name may not tell which."""


def describe_machine() -> str:
    """Return processor, cores and versions as one line."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        processor = _processor(cpuinfo.read_text(), processor)
    return (
        f"{processor}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}, everhash {everhash.__version__}"
    )


def _processor(cpuinfo: str, otherwise: str) -> str:
    r"""Return the processor's name and its vector instructions.

    >>> _processor("model name : AMD EPYC\nflags : sse avx2 avx512f", "")
    'AMD EPYC with AVX-512'
    """
    facts = {
        name.strip(): value.strip()
        for name, _, value in (line.partition(":") for line in cpuinfo.splitlines())
    }
    flags = facts.get("flags", facts.get("Features", "")).split()
    vectors = [name for flag, name in VECTORS.items() if flag in flags]
    name = facts.get("model name", otherwise)
    return f"{name} with {vectors[0]}" if vectors else name
