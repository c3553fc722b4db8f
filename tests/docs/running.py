"""Run the blocks of a page as a reader would, and hold what they print against the page.

    fence      what happens
    python     runs; all blocks of a page in one interpreter, in order
    sh         each command runs, in one shell a page; a comment right below a command is its output
    console    `$ ` lines are commands, `> ` lines go on with them, what follows is the output; with
               `>>> ` it is a doctest
    toml       is written to the file that its first line names: `# mine.toml`
    text, dockerfile   are shown only

In output, `...` stands for anything and blanks count once. JSON is compared without blanks. A
command must succeed, unless its output says `error: `. `everhash serve`, `everhash cluster serve`
and `everhash demo --serve` go on in the background until the page ends, or until the next one on
their port.
"""

from __future__ import annotations

import doctest
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Block, blocks, name_of
from tests.docs.session import Session

RUN = {"python", "sh", "console", "toml"}
SHOWN = {"text", "dockerfile"}
NOT_HERE = {
    "make ": "runs these very tests, or sets up an environment",
    "pip install ": "changes the environment of the tests",
    "ray start ": "starts Ray for the whole machine; the tests have one of their own",
}
"""Commands that are shown and not run, by how they begin, and why."""
SERVING = re.compile(r"everhash (serve |cluster serve |demo .*--serve)")


@dataclass(frozen=True)
class Step:
    """A command of a page, what it should print (empty: anything), and its line in the page."""

    command: str
    output: str
    line: int


def run_page(page: Path, folder: Path, private: Path) -> None:
    """Run all blocks of a page in a folder; an AssertionError tells the line that fails."""
    with Session(folder, private) as session:
        for block in blocks(page):
            match block.tag:
                case "python":
                    _run_python(session, block, page)
                case "console" if block.text.startswith(">>> "):
                    _run_python(session, block, page)
                case "sh":
                    _run_steps(session, sh_steps(block), page)
                case "console":
                    _run_steps(session, console_steps(block), page)
                case "toml":
                    _write(block, session.folder)


def _run_python(session: Session, block: Block, page: Path) -> None:
    told, code = session.python(block, page)
    assert code == 0, f"{name_of(page)}:{block.line}: this block fails\n{told}"


def _run_steps(session: Session, steps: Iterator[Step], page: Path) -> None:
    for step in steps:
        if step.command.startswith(tuple(NOT_HERE)):
            continue
        run = session.serve if SERVING.match(step.command) else session.command
        told, code = run(step.command)
        wanted = session.here(step.output)
        where = f"{name_of(page)}:{step.line}: $ {step.command}\n"
        if "error: " in wanted:
            assert code != 0, f"{where}is said to fail, and prints\n{told}"
        else:
            assert code == 0, f"{where}fails with {code}\n{told}"
        assert not wanted or same(wanted, told), f"{where}should print\n{wanted}\nbut does\n{told}"


def _write(block: Block, folder: Path) -> None:
    named = re.match(r"# (\w+\.toml)\n", block.text)
    if named:
        (folder / named[1]).write_text(block.text)


def same(wanted: str, told: str) -> bool:
    """Whether an output is what the page says.

    >>> same("2 rows in ... s", "2 rows  in 0.3 s"), same("2 rows", "3 rows")
    (True, False)
    >>> same('{"a": [1,\\n  2], "b": ...}', '{"a":[1,2],"b":0.25}')
    True
    """
    if is_json(told):
        wanted, told = ("".join(text.split()) for text in (wanted, told))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(wanted.strip(), told.strip(), flags)


def is_json(text: str) -> bool:
    """Whether a text is an object or a list of JSON."""
    try:
        return isinstance(json.loads(text), dict | list)
    except json.JSONDecodeError:
        return False


def console_steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a console block, each with the lines below it."""
    lines = block.text.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"line {block.line}: a console block begins with `$ ` or `>>> `"
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        command, output = [lines[start][2:]], start + 1
        while output < stop and lines[output].startswith("> "):
            command.append(lines[output][2:])
            output += 1
        yield Step("\n".join(command), "\n".join(lines[output:stop]).strip(), block.line + start)


def sh_steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a block for the shell, each with the comment right below it."""
    lines = block.text.splitlines()
    place = 0
    while place < len(lines):
        start = place
        if not lines[place].strip() or lines[place].startswith("#"):
            place += 1
            continue
        while not is_whole("\n".join(lines[start : place + 1])):
            place += 1
            assert place < len(lines), f"line {block.line + start}: a command that never ends"
        place += 1
        command, output = "\n".join(lines[start:place]), []
        while place < len(lines) and lines[place].startswith("#"):
            output.append(lines[place].removeprefix("#").removeprefix(" "))
            place += 1
        yield Step(command, "\n".join(output), block.line + start)


def is_whole(command: str) -> bool:
    r"""Whether the shell takes these lines for whole commands.

    >>> [is_whole(text) for text in ("cat <<END", "cat <<END\nEND", "echo 'a", "echo \\", "ls")]
    [False, True, False, False, True]
    """
    told = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)  # noqa: PLW1510, S607
    return told.returncode == 0 and not told.stderr and not command.endswith("\\")
