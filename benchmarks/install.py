"""From nothing to a first search: build the wheel, install it into empty environments, search.

    python benchmarks/install.py [python3.11 python3.12 ...] [--extras cli]

For each Python: seconds to install the wheel with its dependencies, megabytes on disk, seconds to
the first answer (create, ingest, search in a new process, kernels compiled on the way) and to the
next.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
FIRST_SEARCH = """
import numpy as np, everhash
rng = np.random.default_rng(0)
places = rng.normal(size=(3, 64))
y = rng.integers(0, 3, 300)
with everhash.create(None, dim=64) as things:
    things.ingest(places[y] + rng.normal(size=(300, 64)), y)
    assert things.search(places, k=1).labels[:, 0].tolist() == [0, 1, 2]
"""


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--extras", default="cli", help="extras to install; default: cli")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        print(f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB")
        print(f"{'':<14}{'install':>10}{'on disk':>10}{'first search':>14}{'next':>8}")
        for number, python in enumerate(args.pythons):
            print(row(python, wheel, args.extras, Path(folder) / str(number)), flush=True)


def build(folder: Path) -> Path:
    """Return a new wheel of this checkout."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    return next(folder.glob("*.whl"))


def row(python: str, wheel: Path, extras: str, folder: Path) -> str:
    """Return a line of the table: an environment made, filled and used."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    own = str(folder / "bin" / "python")
    install = seconds(own, "-m", "pip", "install", "--quiet", f"{wheel}[{extras}]")
    on_disk = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
    first, following = (seconds(own, "-c", FIRST_SEARCH) for _ in range(2))
    subprocess.run([str(folder / "bin" / "everhash"), "--version"], check=True, capture_output=True)
    version = subprocess.run([own, "--version"], check=True, capture_output=True, text=True)
    used = f"{on_disk / 1e6:7.0f} MB{first:12.1f} s{following:6.1f} s"
    return f"{version.stdout.strip():<14}{install:8.1f} s{used}"


def seconds(*command: str) -> float:
    """Return how long a command takes; it has to succeed."""
    start = perf_counter()
    subprocess.run(command, check=True, cwd=tempfile.gettempdir())
    return perf_counter() - start


if __name__ == "__main__":
    main()
