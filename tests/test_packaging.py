"""pyproject.toml, constraints.txt and the Makefile agree with the tree and with each other."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_of_the_tree_goes_into_the_wheel(project: dict[str, Any]) -> None:
    listed = project["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for top in ("debate_rl", "envs", "conf") for path in (ROOT / top).rglob("__init__.py")}
    assert sorted(listed) == sorted(
        ".".join(folder.parts if folder.parts[0] == "debate_rl" else ("debate_rl", *folder.parts)) for folder in folders
    )


def test_every_file_of_data_goes_into_the_wheel(project: dict[str, Any]) -> None:
    places = project["tool"]["setuptools"]["package-dir"]
    taken = set()
    for package, patterns in project["tool"]["setuptools"]["package-data"].items():
        folder = ROOT / places.get(package, package.replace(".", "/"))
        taken |= {path for pattern in patterns for path in folder.glob(pattern)}
    tracked = subprocess.run(["git", "ls-files", "debate_rl", "envs", "conf"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    data = {ROOT / name for name in tracked.stdout.split() if not name.endswith(".py")}
    assert {path for path in data if path.exists()} <= taken


def test_every_dependency_is_pinned_inside_its_range(project: dict[str, Any]) -> None:
    lines = [line.split("#")[0].split(";")[0].strip() for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]
    pins = {_plain(name): version for name, version in (line.split("==") for line in lines if line)}
    for requirement in [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]:
        name, lowest = requirement.split(">=")
        assert _numbers(pins[_plain(name)]) >= _numbers(lowest), requirement


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def test_make_alone_lists_the_targets() -> None:
    listed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("install", "data", "test", "check", "reproduce", "reproduce-full", "judges", "report", "bench", "clean"):
        assert re.search(rf"^  make {target} +\w", listed, re.MULTILINE), target
