"""Every block of Python in the README and the docs runs, the blocks of a page one after another in one namespace."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from debate_rl.evaluation.reproduce import Reproduction, collect, plan, play_jobs, write_results
from debate_rl.judges.pretrained import load_judge
from debate_rl.runs import RunFolder

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^( *)```python[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    str(page.relative_to(ROOT)) for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if "```python" in page.read_text("utf-8")
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, mnist_test: Any) -> Path:
    """The folder of a small finished run."""
    settings = Reproduction(
        judges={6: "mlp-6"}, count=2, repetitions=1, agent={"name": "mcts", "rollouts": 4}, budgets=(), sweep_pixels=(), masks=2
    )
    judges = {6: load_judge("mlp-6")}
    jobs = plan(settings, mnist_test, judges)
    with RunFolder.open(tmp_path_factory.mktemp("outputs"), "reproduce", "docs", {"of": "the docs"}) as folder:
        play_jobs(folder, jobs, mnist_test, 2, lambda *_: None)
        write_results(folder, collect(folder, settings, jobs, mnist_test, judges, folder.provenance))
    return folder.path


def test_there_are_blocks_to_run() -> None:
    assert {"README.md", "docs/search.md", "docs/agents.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page: str, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```python")
    monkeypatch.chdir(tmp_path)
    for name in set(re.findall(r"outputs/reproduce/[a-z]+-[0-9a-f]{12}", "".join(block[2] for block in blocks))):
        shutil.copytree(finished, tmp_path / name)
    space: dict[str, Any] = {"__name__": "docs"}
    for block in blocks:
        lines = text[: block.start(2)].count("\n")  # so that an error names the page's own line
        exec(compile("\n" * lines + block[2], page, "exec"), space)
