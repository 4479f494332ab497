"""What the package imports is what pyproject.toml declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Modules of a package that only an extra installs, so that it may be missing here: module -> (package, extra).
OF_EXTRAS = {"open_spiel": ("open-spiel", "bench"), "pyspiel": ("open-spiel", "bench")}


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


def declared(extra: str | None = None) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return {_plain(re.split(r"[<>=!~\[ ]", requirement)[0]) for requirement in requirements}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def test_everything_imported_is_declared() -> None:
    owners = packages_distributions()
    names = imported()
    missing = {name for name in names - set(OF_EXTRAS) if not {_plain(owner) for owner in owners.get(name, [name])} & declared()}
    assert missing == set()
    assert names >= set(OF_EXTRAS)
    for package, extra in OF_EXTRAS.values():
        assert package in declared(extra) and package not in declared()


def test_scipy_is_declared_only_if_it_is_imported() -> None:
    assert ("scipy" in declared()) == ("scipy" in imported())
