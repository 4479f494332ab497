from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from debate_rl import results
from debate_rl.errors import UserError
from debate_rl.evaluation.report.docs import DRAWINGS, KINDS, TABLES, draw, stale
from debate_rl.evaluation.report.rows import Row
from debate_rl.judges.pretrained import load_judge, shipped_judges
from tests.evaluation.report.conftest import Run, pick

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "draw_docs.py"


def test_the_repositorys_tables_and_pictures_are_what_their_rows_say() -> None:
    assert stale(ROOT) == [], "run scripts/draw_docs.py"


def rows_of_other_verbs(run: Run) -> list[Row]:
    """What `solve`, sweeps of `evaluate` and `bench` would add to a run's rows."""
    base = pick(run.rows, "honest_win_rate", rollouts=40, commit="precommit", lies="worst", first="mean", pixels=4)
    rule = {"game": "pixels", "dataset": "mnist", "pixels": 4, "commit": "precommit", "first": "mean"}
    strengths = [
        {**base, "agents": {"honest": {"name": "mcts", "rollouts": own}, "liar": {"name": "mcts", "rollouts": other}}}
        for own in (1, 2)
        for other in (1, 2)
    ]
    return [
        {**base, "agents": {seat: {"name": "exact"} for seat in ("honest", "liar")}},
        {**base, "metric": "proved_share", "protocol": {**rule, "outcome": "honest"}},
        {**base, "metric": "losing_move_rate", "protocol": {**rule, "seat": "honest"}},
        {**base, "metric": "successful_lie_rate", "protocol": {**rule, "lie": 3}},
        *strengths,
        *(row.to_dict() for name in ("exploitability", "bench") for row in results.read(ROOT / "docs" / "results" / f"{name}.jsonl")),
    ]


@pytest.fixture
def repository(run: Run, tmp_path: Path) -> Path:
    """A repository whose README and one docs page show everything that can be drawn."""
    (tmp_path / "docs" / "results").mkdir(parents=True)
    file = tmp_path / "docs" / "results" / "small.jsonl"
    shutil.copy(run.folder / "results.jsonl", file)
    with file.open("a") as rows:
        rows.writelines(json.dumps(row) + "\n" for row in rows_of_other_verbs(run))
    block = "<!-- drawn: {} docs/results/small.jsonl -->\n<!-- /drawn -->\n"
    (tmp_path / "README.md").write_text("# Title\n\n" + "\nbetween\n\n".join(block.format(kind) for kind in TABLES) + "\nend\n")
    (tmp_path / "docs" / "page.md").write_text("".join(block.format(kind) for kind in DRAWINGS))
    return tmp_path


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run the script's `main`; its exit code and output."""
    main = runpy.run_path(str(SCRIPT))["main"]

    def run(root: Path, *words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["draw_docs.py", "--root", str(root), *words])
        code = main()
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def test_the_script_runs_by_itself(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("<!-- drawn: table2 docs/results/none.jsonl -->\n<!-- /drawn -->\n")
    done = subprocess.run([sys.executable, str(SCRIPT), "--root", str(tmp_path), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("draw_docs: ") and done.stderr.count("\n") == 1 and "cannot be read" in done.stderr


def test_the_script_draws_checks_and_notices_a_changed_figure(repository: Path, script: Callable[..., tuple[int, str]]) -> None:
    assert script(repository, "--check")[0] == 1
    code, out = script(repository)
    assert code == 0 and "drawn: README.md" in out
    assert script(repository, "--check") == (0, "")
    readme = repository / "README.md"
    text = readme.read_text()
    assert text.startswith("# Title\n") and text.endswith("\nend\n") and text.count("\nbetween\n") == len(TABLES) - 1
    at = text.index("**") + 2
    digit = text[at]
    readme.write_text(f"{text[:at]}{(int(digit) + 1) % 10}{text[at + 1 :]}")
    assert script(repository, "--check") == (1, "out of date: README.md\n")
    assert script(repository)[0] == 0 and readme.read_text() == text


def test_shipped_judges_are_drawn_from_their_cards(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("before\n<!-- drawn: shipped -->\nan old table\n<!-- /drawn -->\nafter\n")
    text = draw(tmp_path)[tmp_path / "README.md"]
    assert text.startswith("before\n<!-- drawn: shipped -->\n\n| judge |") and text.endswith("|\n\n<!-- /drawn -->\nafter\n")
    for name in shipped_judges():
        card = load_judge(name).card
        assert f"| `{name}` | {card['dataset']} | {card['pixels']} |" in text
        assert f"| {100 * card['test']['accuracy']:.2f} ± " in text and f"`{card['sha256'][:16]}`" in text


def test_an_example_in_a_code_block_is_left_alone(repository: Path) -> None:
    page = repository / "docs" / "how.md"
    page.write_text("Write\n\n    <!-- drawn: table2 docs/results/none.jsonl -->\n    <!-- /drawn -->\n")
    assert page not in draw(repository)


def test_a_changed_row_makes_the_docs_stale(repository: Path) -> None:
    for path, drawn in draw(repository).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, encoding="utf-8")
    assert stale(repository) == []
    rows = repository / "docs" / "results" / "small.jsonl"
    lines = rows.read_text().splitlines(keepends=True)
    rows.write_text("".join(line for line in lines if '"greedy"' not in line))
    assert {path.name for path in stale(repository)} == {"README.md", "small-controls.svg", "small-exploitability.svg"}


def test_pictures_are_whole_svg_files_with_alternative_texts(repository: Path) -> None:
    drawn = draw(repository)
    pictures = {path: text for path, text in drawn.items() if path.suffix == ".svg"}
    assert {path.name for path in pictures} == {f"small-{kind.removesuffix('-picture')}.svg" for kind in DRAWINGS}
    page = drawn[repository / "docs" / "page.md"]
    for path, text in pictures.items():
        assert f"](pictures/{path.name})" in page
        root = ET.fromstring(text)
        assert root.attrib["role"] == "img"
        assert all(root.findtext(f"{{http://www.w3.org/2000/svg}}{name}") for name in ("title", "desc"))
        assert "prefers-color-scheme:dark" in text and "https:" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- drawn: nonsense docs/results/small.jsonl -->\n<!-- /drawn -->", f"cannot draw 'nonsense'; choose one of {KINDS[0]}"),
        ("<!-- drawn: table2 docs/results/none.jsonl -->\n<!-- /drawn -->", "none.jsonl cannot be read"),
        ("<!-- drawn: table2 -->\n<!-- /drawn -->", "name the files of rows"),
        ("<!-- drawn: shipped docs/results/small.jsonl -->\n<!-- /drawn -->", "name no files"),
        ("<!-- drawn: table2 docs/results/small.jsonl -->\n", "end each with '<!-- /drawn -->'"),
        ("<!-- drawn: table2 docs/results/empty.jsonl -->\n<!-- /drawn -->", "holds no rows to draw 'table2' from"),
        ("<!-- drawn: curve-picture docs/results/empty.jsonl -->\n<!-- /drawn -->", "holds no rows to draw 'curve-picture' from"),
    ],
)
def test_mistakes_in_a_page_are_named(repository: Path, text: str, message: str) -> None:
    (repository / "docs" / "results" / "empty.jsonl").touch()
    (repository / "README.md").write_text(text)
    with pytest.raises(UserError) as caught:
        draw(repository)
    assert message in str(caught.value) and "\n" not in str(caught.value)
