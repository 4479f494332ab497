"""Tables and pictures of README and docs, drawn from committed result rows and from the shipped judges' cards.

A page says what to draw between two comments:

    <!-- drawn: table2 docs/results/reproduce.jsonl -->
    … replaced whenever the docs are drawn …
    <!-- /drawn -->

Each comment starts its line. Paths are relative to the repository's root; several files of rows may follow one another, and `shipped`
takes none. `KINDS` lists what can be drawn. Pictures are SVG files under `docs/pictures/`: the same to the byte on every machine, so that a
check can compare them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from debate_rl import results
from debate_rl.errors import UserError
from debate_rl.evaluation.report import charts, exact, markdown, speed, variants
from debate_rl.evaluation.report.content import CONTROLS, GAPS, BarWords, Content, Control, gather
from debate_rl.evaluation.report.rows import Row
from debate_rl.evaluation.report.svg import Board, nest

BLOCK: Final = re.compile(
    r"(?P<open>^<!-- drawn: (?P<kind>\S+)(?P<files>[^\n]*?) -->\n)(?P<body>.*?)(?P<close>^<!-- /drawn -->)", re.DOTALL | re.MULTILINE
)
PICTURES: Final = "docs/pictures"


def _bars_picture(controls: Sequence[Control], words: BarWords) -> Board | None:
    boards = charts.controls_boards(controls, words)
    return nest(boards, 24, words.title, " ".join(board.description for board in boards)) if boards else None


TABLES: Final[dict[str, Callable[[Sequence[Row]], str]]] = {
    "table2": markdown.table2_markdown,
    "controls": markdown.controls_markdown,
    "curve": markdown.curves_markdown,
    "accuracy": markdown.accuracy_markdown,
    "judges": markdown.judges_markdown,
    "speed": markdown.speed_markdown,
    "perfect": exact.perfect_markdown,
    "losing-moves": exact.losing_moves_markdown,
    "proved": exact.proved_markdown,
    "exploitability": exact.exploitability_markdown,
    "leaf-speed": speed.leaves_markdown,
    "search-speed": speed.search_markdown,
    "contenders": speed.contenders_markdown,
    "scaling": speed.scaling_markdown,
    "variants": variants.variants_markdown,
    "lies": variants.lies_markdown,
}
DRAWINGS: Final[dict[str, Callable[[Content], Board | None]]] = {
    "curve-picture": lambda content: charts.curves_board(content.curves) if content.curves else None,
    "accuracy-picture": lambda content: charts.accuracy_board(content) if content.accuracy else None,
    "controls-picture": lambda content: _bars_picture(content.controls, CONTROLS),
    "strengths-picture": lambda content: variants.strengths_board(content.rows),
    "exploitability-picture": lambda content: _bars_picture(content.gaps, GAPS),
}
SHIPPED: Final = "shipped"
KINDS: Final = (*TABLES, *DRAWINGS, SHIPPED)


def draw(root: Path) -> dict[Path, str]:
    """What every drawn file should hold: README.md and docs pages with at least one block, and the pictures that they show.

    Raises:
        UserError: an unknown kind, a missing or broken file of rows, or rows that do not hold what is to be drawn.
    """
    drawn: dict[Path, str] = {}
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if not page.is_file():
            continue
        text = page.read_text(encoding="utf-8")
        opened = len(re.findall("^<!-- drawn: ", text, re.MULTILINE))
        blocks = list(BLOCK.finditer(text))
        if len(blocks) != opened:
            raise UserError(f"{page} has {opened} comments '<!-- drawn: …' but {len(blocks)} whole blocks: end each with '<!-- /drawn -->'")
        for block in reversed(blocks):
            body = _draw_block(root, page, block["kind"], block["files"].split(), drawn)
            text = text[: block.start("body")] + body + text[block.end("body") :]
        if blocks:
            drawn[page] = text
    return drawn


def stale(root: Path) -> list[Path]:
    """Files that differ from what their rows say."""
    return [path for path, text in draw(root).items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def _draw_block(root: Path, page: Path, kind: str, files: Sequence[str], drawn: dict[Path, str]) -> str:
    if kind not in KINDS:
        raise UserError(f"{page}: cannot draw {kind!r}; choose one of {', '.join(KINDS)}")
    if kind == SHIPPED and not files:
        return f"\n{markdown.shipped_markdown()}\n"
    if kind == SHIPPED:
        raise UserError(f"{page}: {kind!r} is drawn from the judges' cards: name no files after it")
    if not files:
        raise UserError(f"{page}: name the files of rows after {kind!r}")
    rows = [row.to_dict() for file in files for row in results.read(root / file)]
    if kind in TABLES:
        body = TABLES[kind](rows)
        if not body:
            raise UserError(f"{page}: {', '.join(files)} holds no rows to draw {kind!r} from")
        return f"\n{body}\n"
    board = DRAWINGS[kind](gather(rows))
    if board is None:
        raise UserError(f"{page}: {', '.join(files)} holds no rows to draw {kind!r} from")
    subject, drawing = Path(files[0]).stem, kind.removesuffix("-picture")
    name = subject if subject == drawing else f"{subject}-{drawing}"
    picture = root / PICTURES / f"{name}.svg"
    drawn[picture] = board.standalone(name)
    words = board.title.replace("[", "(").replace("]", ")")
    return f"\n![{words}]({Path(os.path.relpath(picture, page.parent)).as_posix()})\n\n"
