"""The first day of four people on an empty kernel cache: every command, its answer and its time.

    python benchmarks/first_day.py ["data scientist" ...] [--out docs/results/first_day.md]

Each person starts with kernels that nobody has compiled yet. `tests/first_day` holds the answers.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from everhash.bench.machine import describe_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.first_day.roles import ROLES
from tests.first_day.steps import Answer, Day

MOST = 24
"""Lines of an answer that are shown."""


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("roles", nargs="*", help=f"of {', '.join(ROLES)}; default: all")
    parser.add_argument("--out", type=Path, help="a page of Markdown to write")
    args = parser.parse_args()
    page = [
        "# The first day of four people",
        "`python benchmarks/first_day.py --out docs/results/first_day.md` wrote this page: every "
        f"command in an empty folder, on an empty kernel cache, and its answer.\n\n"
        f"{describe_machine()}.",
    ]
    for role in args.roles or ROLES:
        page.append(f"## {role.capitalize()}")
        with (
            tempfile.TemporaryDirectory() as folder,
            tempfile.TemporaryDirectory() as cache,
            Day(Path(folder), {"NUMBA_CACHE_DIR": cache}) as day,
        ):
            for answer in day.run(ROLES[role]):
                page.append(shown(answer).replace(cache, "$NUMBA_CACHE_DIR"))
                print(page[-1], flush=True)
    if args.out:
        args.out.write_text("\n\n".join(page) + "\n")


def shown(answer: Answer) -> str:
    """Return a step as Markdown: its time, the command and the answer."""
    lines = answer.text.rstrip().splitlines()
    lines = lines[:MOST] + ([f"… {len(lines) - MOST} more lines"] if len(lines) > MOST else [])
    ended = f", exit code {answer.code}" if answer.code else ""
    wrong = f" **{answer.problem}**" if answer.problem else ""
    body = "\n".join((f"$ {answer.step.command}", *lines))
    return f"{answer.seconds:.1f} s{ended}{wrong}\n\n```text\n{body}\n```"


if __name__ == "__main__":
    main()
