"""The page about the judges says what their cards say."""

from pathlib import Path

from debate_rl.judges.cards import BEGIN, END, draw_table, shipped_table

PAGE = Path(__file__).parents[2] / "docs" / "judges.md"


def test_the_table_in_the_docs_is_the_one_drawn_from_the_cards() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert draw_table(page) == page, "write debate_rl.judges.cards.draw_table(page) to docs/judges.md"


def test_drawing_replaces_what_stood_there() -> None:
    drawn = draw_table(f"before\n{BEGIN}\nan old table\n{END}\nafter\n")
    assert drawn == f"before\n{BEGIN}\n{shipped_table()}\n{END}\nafter\n"
    assert "| `mlp-6` | mnist | 6 | 256 x 32 |" in drawn
