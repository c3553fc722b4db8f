"""Pages of Markdown: their blocks, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
LANDING = ROOT / "docs" / "README.md"
PAGES = (README, *sorted((ROOT / "docs").rglob("*.md")))
FENCE = "```"
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)|<img[^>]* src=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block: its tag, its text, and the number of its first line in the page."""

    tag: str
    text: str
    line: int


def name_of(path: Path) -> str:
    """Return the path of a file in the repository."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found: list[Block] = []
    lines = page.read_text().splitlines()
    opened: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith(FENCE):
            continue
        if opened is None:
            opened = number
        else:
            text = "\n".join(lines[opened + 1 : number]) + "\n"
            found.append(Block(lines[opened].removeprefix(FENCE).strip(), text, opened + 2))
            opened = None
    assert opened is None, f"{name_of(page)}:{(opened or 0) + 1}: a block that never ends"
    return found


def prose(page: Path) -> str:
    """Return a page without its blocks and without code in backticks."""
    text = re.sub(rf"^{FENCE}.*?^{FENCE}$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the heading that each relative link or picture of a page points at."""
    for found in LINK.finditer(prose(page)):
        target = found[1] or found[2]
        if not re.match(r"[a-z]+:", target):
            path, _, heading = target.partition("#")
            yield (page.parent / path).resolve() if path else page, heading


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page are linked by, as GitHub writes it."""
    text = re.sub(rf"^{FENCE}.*?^{FENCE}$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
