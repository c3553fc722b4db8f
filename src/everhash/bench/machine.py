"""One line that describes the machine and the versions of the software."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np

import everhash


def describe_machine() -> str:
    """Return processor, cores and versions as one line."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    return (
        f"{processor}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}, everhash {everhash.__version__}"
    )
