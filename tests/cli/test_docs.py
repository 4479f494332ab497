from __future__ import annotations

from pathlib import Path

from debate_rl.cli import help as pages
from debate_rl.cli.verbs import VERBS
from debate_rl.runs import NOT_HASHED

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_the_command_line_is_drawn_from_the_configuration() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == pages.markdown(), "run python -m debate_rl.cli.help > docs/cli.md"


def test_the_page_mentions_every_verb_option_and_key() -> None:
    page = pages.markdown()
    for verb in VERBS:
        part = page.split(f"\n## {verb}\n")[1].split("\n## ")[0]
        for entry in pages.entries(verb):
            assert not entry.value or f"`{entry.key}={entry.value}`" in part or entry in pages.read("base").entries
        for group, _, _ in pages.groups(verb):
            assert all(f"={option}`" in part for option in pages.options(group))


def test_the_configuration_page_names_every_option_of_every_group() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    groups = {group for verb in VERBS for group, _, _ in pages.groups(verb)}
    for group in groups:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{group}` |")]
        assert [option for option in pages.options(group) if f"`{option}`" not in row] == []
    assert [key for key in NOT_HASHED if "." not in key and f"`{key}`" not in page] == []
