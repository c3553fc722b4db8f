"""`python -m everhash.kernels` compiles the kernels, or finds them compiled, and says which."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from time import perf_counter

from everhash import kernels


def main() -> None:
    """Warm the cache and write one line a kernel."""
    from everhash.kernels import compiling, disk_cache

    kernels.announce = nullcontext  # it is what was asked for
    start = perf_counter()
    kernels.load_all()
    total = perf_counter() - start
    for name, found in compiling.READY.items():
        how = "compiled" if found.compiled else "cached"
        sys.stdout.write(f"{name:<20} {how:<8} {found.seconds:6.2f} s\n")
    with disk_cache.cache_of_these_sources() as folder:
        sys.stdout.write(f"ready in {total:.2f} s, cache in {folder.path}\n")


if __name__ == "__main__":
    main()
