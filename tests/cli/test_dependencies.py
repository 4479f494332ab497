"""What the package imports is what pyproject.toml declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imported() -> set[str]:
    """Top-level names of all third-party modules that the package imports, anywhere in its code."""
    names: set[str] = set()
    for top in ("debate_rl", "envs", "conf"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"debate_rl"}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {_plain(re.split(r"[<>=!~\[ ]", requirement)[0]) for requirement in project["dependencies"]}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def test_everything_imported_is_declared() -> None:
    owners = packages_distributions()
    missing = {name for name in imported() if not {_plain(owner) for owner in owners.get(name, [name])} & declared()}
    assert missing == set()


def test_scipy_is_declared_only_if_it_is_imported() -> None:
    assert ("scipy" in declared()) == ("scipy" in imported())
