"""Every online method on CIFAR-10 by the paper's protocol: `everhash bench run table1`.

python benchmarks/online_peers.py [--seeds N] [--methods NAMES] [--bits 8,32]
        [--jobs 2] [--rows FILE]
"""

from __future__ import annotations

import sys

from everhash.cli import app

if __name__ == "__main__":
    app(["bench", "run", "table1", "--methods", "online", *sys.argv[1:]])
