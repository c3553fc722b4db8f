"""The batch methods of the paper beside ours: `everhash bench run batch`.

python benchmarks/batch_peers.py [--seeds N] [--methods NAMES] [--bits 8,32]
        [--jobs 2] [--rows FILE]
"""

from __future__ import annotations

import sys

from everhash.cli import app

if __name__ == "__main__":
    app(["bench", "run", "batch", *sys.argv[1:]])
