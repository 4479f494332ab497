from __future__ import annotations

import re
import shlex
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


def test_the_table_alone_is_the_table_alone() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    examples = [(f"debate-rl reproduce {overrides}", what) for overrides, what in VERBS["reproduce"].examples]
    examples += re.findall(r"(debate-rl reproduce [^#\n]*?) *# (.*)", readme)
    alone = [shlex.split(call)[2:] for call, what in examples if what.startswith("the table alone")]
    assert len(alone) == 2
    assert all({"budget_count=0", "control_count=0", "sweep_count=0"} <= set(words) for words in alone)


def test_run_folders_in_the_docs_have_the_name_that_runs_have() -> None:
    name = next(entry.value for entry in pages.entries("reproduce") if entry.key == "name")
    texts = [pages.markdown(), *(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))]
    found = {folder for text in texts for folder in re.findall(r"outputs/reproduce/([a-z]+)-[0-9a-f]{12}", text)}
    assert found == {name}
