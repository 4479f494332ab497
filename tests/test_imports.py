"""Who may import whom: the table in docs/architecture.md is parsed and held against every import in the tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ANYTHING = "anything"


@dataclass
class Rules:
    """What the page says: per package the parts of ours it may import and the outside libraries it may not; and the leaves."""

    may: dict[str, set[str] | None] = field(default_factory=dict)  # None: anything
    never: dict[str, set[str]] = field(default_factory=dict)
    only: dict[str, set[str]] = field(default_factory=dict)  # module of ours -> the only outside libraries it may import
    leaves: set[str] = field(default_factory=set)
    leaves_may: set[str] = field(default_factory=set)


def parse_page(text: str) -> Rules:
    """Read both tables of the page; a cell it does not understand is an error, so that the table cannot say more than is checked."""
    rules = Rules()
    folders, table = text.split("## Who may import whom")[0], text.split("## Who may import whom")[1].split("\n## ")[0]
    for cells in _rows(folders):
        if "leaves" in cells[2]:
            rules.leaves = {Path(name).stem for name in re.findall(r"`([\w/]+\.py)`", cells[0])}
            rules.leaves_may = set(re.findall(r"nothing of ours but `(\w+)`", cells[2]))
            assert rules.leaves_may, cells[2]
        elif match := re.fullmatch(r"`debate_rl\.(\w+)`", cells[1]):
            rules.never.setdefault(match[1], set()).update(
                word for word in re.findall(r"no (\w+)", cells[2]) if word in ("torch", "gymnasium")
            )
    for package, allowed in _rows(table):
        names = package.split(", ")
        if allowed == f"{ANYTHING}; nothing imports them":
            rules.may.update(dict.fromkeys(names))
            continue
        for module, libraries in re.findall(r" \(`([\w.]+)`: ([\w ,]+) only\)", allowed):
            rules.only[module] = set(re.split(r", | and ", libraries))
        parts = re.sub(r" \(.*?\)", "", allowed).split("; never ")
        may = set() if parts[0] == "nothing of ours" else {part.strip("`") for part in parts[0].split(", ")}
        assert all(re.fullmatch(r"\w+(\.\w+)?", name) for name in may), f"cannot read {allowed!r}"
        for name in names:
            rules.may[name] = may
            rules.never.setdefault(name, set()).update(parts[1].split(", ") if len(parts) == 2 else [])
    assert rules.leaves and rules.may
    return rules


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and not set(line) <= set("|- ") and cells[0] not in ("folder", "package"):
            yield cells


def modules_of(root: Path) -> dict[str, Path]:
    """Every Python file of the tree by import name; envs/ is debate_rl.envs, scripts/ and tests/ keep their own names."""
    found = {}
    for top, prefix in (
        ("debate_rl", "debate_rl"),
        ("envs", "debate_rl.envs"),
        ("conf", "debate_rl.conf"),
        ("scripts", "scripts"),
        ("tests", "tests"),
    ):
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root / top).with_suffix("").parts
            found[".".join((prefix, *parts)).removesuffix(".__init__")] = path
    return found


def imports_of(module: str, path: Path, known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of all that a file imports, inside functions too; a submodule imported by name counts as that submodule."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
                home = package[: len(package) - node.level + 1]
                base = ".".join([*home, node.module] if node.module else home)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if full in known else base


def violations(root: Path, rules: Rules) -> list[str]:
    """One line for each import that the rules forbid."""
    modules = modules_of(root)
    found = []
    for module, path in modules.items():
        where = path.relative_to(root)
        for line, target in imports_of(module, path, set(modules)):
            if fault := _fault(module, target, rules):
                found.append(f"{where}:{line}: {module} imports {target}: {fault}")
    return found


def _fault(module: str, target: str, rules: Rules) -> str | None:
    top = target.split(".")[0]
    package = _package(module)
    if top in ("envs", "conf", "scripts", "tests"):
        # tests share helpers, and a script renews the files that a test compares with
        return None if top == "tests" and package in ("tests", "scripts") else "never imported by this name"
    inside = module.removeprefix("debate_rl.")
    if top != "debate_rl":
        if top in rules.never.get(package, ()):
            return f"{package} never imports {top}"
        if inside in rules.only and top not in rules.only[inside] | set(sys.stdlib_module_names):
            return f"only {', '.join(sorted(rules.only[inside]))} are allowed there"
        return None
    part = target.removeprefix("debate_rl").removeprefix(".")
    if part == "" or _package(target) == package:
        return None
    if package in rules.leaves:
        return None if part in rules.leaves_may else "a leaf imports nothing of ours but errors"
    may = rules.may.get(package, set())
    if may is None:
        return None
    if part.split(".")[0] in rules.leaves or any(part == name or part.startswith(f"{name}.") for name in may):
        return None
    return f"{package} may import {', '.join(sorted(may)) or 'nothing of ours'}"


def _package(module: str) -> str:
    """The row of the table that a module falls under."""
    parts = module.split(".")
    if parts[0] != "debate_rl":
        return parts[0]
    return "cli" if parts[1:] == ["__main__"] else ".".join(parts[1:2])


@pytest.fixture(scope="module")
def rules() -> Rules:
    return parse_page(PAGE.read_text(encoding="utf-8"))


def test_the_tree_obeys_the_table(rules: Rules) -> None:
    assert violations(ROOT, rules) == []


def test_every_package_has_a_row_and_every_leaf_is_named(rules: Rules) -> None:
    packages = {_package(module) for module, path in modules_of(ROOT).items()} - {"", "conf"}
    assert packages <= set(rules.may) | rules.leaves


def test_the_page_is_read_as_it_is_meant(rules: Rules) -> None:
    assert rules.may["games"] == set()
    assert rules.may["search"] == {"games", "judges.kernels"}
    assert rules.may["cli"] is None
    assert rules.only["judges.kernels"] == {"numpy", "numba"}
    assert {"torch"} <= rules.never["envs"] and {"torch", "gymnasium"} <= rules.never["games"]
    assert {"errors", "results"} <= rules.leaves and rules.leaves_may == {"errors"}


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("debate_rl/games/rules.py", "import torch"),
        ("debate_rl/games/rules.py", "def f():\n    from debate_rl.judges import kernels"),
        ("debate_rl/games/rules.py", "from ..data import load"),
        ("debate_rl/games/rules.py", "import debate_rl.cli"),
        ("debate_rl/games/rules.py", "from debate_rl import evaluation"),
        ("debate_rl/judges/kernels.py", "import scipy"),
        ("debate_rl/search/puct.py", "from debate_rl.judges.networks import Mlp"),
        ("debate_rl/results.py", "from debate_rl.games import pixels"),
        ("envs/pixels.py", "import torch.nn"),
        ("envs/pixels.py", "from debate_rl.agents import greedy"),
        ("envs/pixels.py", "import envs.text"),
        ("debate_rl/cli/play.py", "import envs"),
        ("debate_rl/cli/play.py", "from tests import conftest"),
        ("scripts/draw.py", "from envs import pixels"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, rules: Rules, file: str, source: str) -> None:
    for name in ("games", "judges", "agents", "evaluation", "data", "cli"):
        (tmp_path / "debate_rl" / name).mkdir(parents=True)
        (tmp_path / "debate_rl" / name / "__init__.py").touch()
    for name in ("judges/kernels.py", "judges/networks.py"):
        (tmp_path / "debate_rl" / name).touch()
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert len(violations(tmp_path, rules)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("debate_rl/games/rules.py", "from debate_rl.errors import UserError\nimport numba"),
        ("debate_rl/search/puct.py", "from debate_rl.judges import kernels\nfrom debate_rl.judges.kernels import logits"),
        ("debate_rl/results.py", "from debate_rl import __version__\nfrom debate_rl.errors import UserError"),
        ("envs/pixels.py", "from . import text\nfrom .text import draw\nfrom debate_rl.judges.pretrained import load_judge"),
        ("debate_rl/cli/play.py", "import torch\nfrom debate_rl import envs"),
        ("tests/search/test_puct.py", "from tests.search import twin"),
        ("scripts/renew.py", "from tests.golden import games"),
        ("debate_rl/__main__.py", "from debate_rl.cli import main"),
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, rules: Rules, file: str, source: str) -> None:
    for name in ("debate_rl/judges/kernels.py", "debate_rl/judges/__init__.py", "envs/text.py", "envs/__init__.py", file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / file).write_text(source)
    assert violations(tmp_path, rules) == []


@pytest.mark.parametrize("package", ["data", "envs", "games", "judges.pretrained", "search"])
def test_importing_it_loads_no_torch(package: str, tmp_path: Path) -> None:
    code = f"import sys, debate_rl.{package}; print('torch' in sys.modules or 'torchvision' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"
