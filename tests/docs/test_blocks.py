"""Every block of README and docs runs, twice in a row in one folder; and a wrong one is seen."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README, blocks, name_of
from tests.docs.running import RUN, SHOWN, run_page
from tests.ray_head import ray_head

QUICK = {"README.md", "docs/tutorial.md"}
"""Pages that `make test` runs, once; `make test-all` runs all, twice in a row."""
RUNNING = [page for page in PAGES if any(block.tag in RUN for block in blocks(page))]


def run(page: Path, tmp_path: Path, times: int) -> None:
    """Run a page in one folder, so that it finds what it has left the time before."""
    folder, private = tmp_path / "folder", tmp_path / "private"
    folder.mkdir()
    private.mkdir()
    for _ in range(times):
        run_page(page, folder, private)


@pytest.mark.parametrize("page", [page for page in RUNNING if name_of(page) in QUICK], ids=name_of)
def test_every_block_of_the_first_pages_runs(page: Path, tmp_path: Path) -> None:
    run(page, tmp_path, times=1)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_every_block_runs_twice_in_a_row(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ray_for(page) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        run(page, tmp_path, times=2)


def ray_for(page: Path) -> AbstractContextManager[dict[str, str]]:
    """Return a Ray for a page that needs one; a process of the page finds it by itself."""
    texts = [block.text for block in blocks(page) if block.tag in RUN]
    needed = any(re.search(r"everhash[ .]cluster", text) for text in texts)
    return ray_head() if needed else nullcontext({})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_says_whether_it_runs(page: Path) -> None:
    assert {block.tag for block in blocks(page)} <= RUN | SHOWN


def test_quick_pages_are_there() -> None:
    assert {name_of(page) for page in RUNNING} >= QUICK
    assert README in RUNNING


RIGHT = """
```sh
mkdir -p here && cd here
name=everhash

# a remark stands apart from commands

echo "$name" > "name.txt"
cat name.txt
# everhash
python - <<'END'
print({"a": [1, 2]})
END
```
```python
name = open("name.txt").read().strip()
```
```console
>>> name, 1 / 3
('everhash', 0.3...)
```
```toml
# mine.toml
title = "Mine"
```
```console
$ tr -d '"' \\
>     < mine.toml
# mine.toml
title = ...
$ cat nothing-here.txt || { echo "error: nothing here"; false; }
...
error: nothing here
$ make never
$ echo '{"a": [1, 2]}'
{"a":
 [1, 2]}
```
"""
WRONG = {
    "a command that fails": "```sh\nfalse\n```\n",
    "another output, in a comment": "```sh\necho ant\n# bee\n```\n",
    "another output, in a console": "```console\n$ echo ant\nbee\n```\n",
    "an error that does not come": "```console\n$ echo ant\nerror: bee\n```\n",
    "Python that raises": "```python\nassert False\n```\n",
    "another value": "```console\n>>> 1 + 1\n3\n```\n",
    "not twice": "```sh\nmkdir only-once\n```\n",
    "a server that does not start": "```sh\neverhash serve nothing-here.ever\n```\n",
    "a part of a pipe that fails": "```sh\nfalse | true\n```\n",
    "a block that never ends": "```sh\ntrue\n",
}


def twice(text: str, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(text)
    run(page, folder, times=2)


def test_a_right_page_passes(tmp_path: Path) -> None:
    twice(RIGHT, tmp_path)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_wrong_page_fails(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        twice(text, tmp_path)


SERVED = """
```sh
rm -f few.ever
everhash create few.ever --dim 4
everhash serve few.ever --port 9000
curl localhost:9000/has -H 'Content-Type: application/json' -d '{"ids": [3]}'
# {"has": [false]}
```
```console
$ everhash serve few.ever --readonly --port 9000
serving few.ever at http://127.0.0.1:9000
```
```console
>>> import everhash
>>> with everhash.connect("http://127.0.0.1:9000") as col:
...     len(col)
0
```
"""


@pytest.mark.slow  # README has a server too
def test_a_page_with_servers_passes(tmp_path: Path) -> None:
    twice(SERVED, tmp_path)
