"""The batch methods of the paper beside ours: retrieval, training time, encoding time.

    python benchmarks/batch_peers.py [--rows FILE] [--report] [--quick] [--orderings 3]
        [--data NAME ...] [--only METHOD ...] [--bits N ...]

CIFAR-10 GIST by the paper's protocol: 100 queries and 200 training rows a label, 59,000 entries.
Caltech-256 with 30 training rows a label of its 257, all rows that are no test rows as entries, and
1,000 of its test rows as queries. Ours learns the same rows in one pass. Everything runs on one
thread. Rows are kept and tables made as in `online_peers.py`.
"""

from __future__ import annotations

import online_peers  # first: it holds NumPy and Numba to one thread
from everhash import peers

PLANS = {
    "cifar10-gist": online_peers.Plan((8, 16, 32, 64), (200,), 60),
    "caltech256-cnn": online_peers.Plan((8, 16, 32, 64), (30,), 4),
}
OURS = ("everhash", "paper", "onehot")


def main() -> None:
    batch = [name for name in peers.names() if not peers.describe(name).online]
    online_peers.main(PLANS, [*OURS, *batch], orderings=3, text=__doc__ or "")


if __name__ == "__main__":
    main()
