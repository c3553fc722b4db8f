"""`python -m everhash.kernels` compiles the kernels, or finds them compiled, and says which."""

from __future__ import annotations

import sys
from time import perf_counter

from everhash import kernels


def main() -> None:
    """Warm the cache and write one line a kernel."""
    start = perf_counter()
    modules = (
        kernels.load(),
        kernels.load_refresh(),
        kernels.load_search(),
        kernels.load_likeness(),
        kernels.load_peers(),
        kernels.load_forest(),
    )
    total = perf_counter() - start
    for module in modules:
        for name, kernel in module.KERNELS.items():
            found = "cached" if kernel.stats.cache_hits else "compiled"
            sys.stdout.write(f"{name:<16} {found:<8} {module.SECONDS[name]:6.2f} s\n")
    directory = next(iter(modules[0].KERNELS.values())).stats.cache_path
    sys.stdout.write(f"ready in {total:.2f} s, cache in {directory}\n")


if __name__ == "__main__":
    main()
