"""The Python that the blocks of a page share: takes one request a line, runs it, says how it went.

Started by `tests.docs.session`, in a process of its own. A request is JSON: the text of a block,
the page and line it stands at, whether it is a doctest, the folder and environment to run it in.
"""

from __future__ import annotations

import doctest
import json
import os
import sys
import traceback
from typing import Any

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(request: dict[str, Any], names: dict[str, Any]) -> bool:
    """Run a block and return whether it went well; what went wrong is printed."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    page, line = request["page"], request["line"]
    if request["doctest"]:
        test = doctest.DocTestParser().get_doctest(request["text"], names, page, page, line - 1)
        test.globs = names
        told = doctest.DocTestRunner(optionflags=OPTIONS).run(test, clear_globs=False)
        return told.failed == 0
    try:
        # as many empty lines as stand above it: tracebacks name the line of the page
        exec(compile("\n" * (line - 1) + request["text"], page, "exec"), names)  # noqa: S102
    except BaseException:
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    mark = sys.argv[1]
    shared: dict[str, Any] = vars(sys.modules["__main__"])
    sys.path.insert(0, "")
    for asked in sys.stdin:
        went_well = run(json.loads(asked), shared)
        sys.stderr.flush()
        print(f"\n{mark} {0 if went_well else 1}", flush=True)  # noqa: T201
