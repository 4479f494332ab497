"""Every configuration file: it composes, all its keys are commented, and its values pass as the verb's settings."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from debate_rl.cli import help as pages
from debate_rl.cli.compose import compose, dotted
from debate_rl.cli.context import Common
from debate_rl.cli.typed import build
from debate_rl.cli.verbs import VERBS
from debate_rl.errors import UserError

CONF = Path(str(importlib.resources.files("debate_rl.conf")))
FILES = sorted(str(path.relative_to(CONF).with_suffix("")) for path in CONF.rglob("*.yaml"))
COMMON = set(Common.__dataclass_fields__)


def typed(verb: str, *overrides: str) -> Any:
    """The typed settings of a verb."""
    config = compose(verb, list(overrides))
    build(Common, {key: value for key, value in config.items() if key in COMMON})
    return build(VERBS[verb].load()[0], {key: value for key, value in config.items() if key not in COMMON})


def choices() -> Iterator[tuple[str, str]]:
    """Every option of every group of every verb."""
    for verb in VERBS:
        for group, package, _ in pages.groups(verb):
            for option in pages.options(group):
                yield verb, f"{group}={option}" if group == package else f"{group}@{package}={option}"


def test_verbs_and_primary_files_are_the_same() -> None:
    primary = {name for name in FILES if "/" not in name} - {"base"}
    assert primary == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_composes_to_its_settings(verb: str) -> None:
    if any(entry.value == "???" for entry in pages.entries(verb)):
        pytest.skip("a setting of this verb has to be given")
    typed(verb)


@pytest.mark.parametrize(("verb", "choice"), list(choices()))
def test_every_option_composes_to_settings(verb: str, choice: str) -> None:
    given = [f"{entry.key}=given" for entry in pages.entries(verb) if entry.value == "???"]
    if choice.endswith("=own"):
        given.append(f"{choice.partition('=')[0].rpartition('@')[2]}.name=my_package.MyAgent")
    if choice.endswith("=silent") and verb != "evaluate":
        with pytest.raises(UserError, match="is silent, which only debate-rl evaluate can play"):
            typed(verb, choice, *given)
        return
    typed(verb, choice, *given)


@pytest.mark.parametrize("name", FILES)
def test_every_key_has_a_comment_and_every_file_a_summary(name: str) -> None:
    file = pages.read(name)
    assert file.summary, "the first comment says what the file is"
    values = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8")) or {}
    values.pop("defaults", None)
    assert [entry.key for entry in file.entries] == dotted(values)
    leaves = [entry for entry in file.entries if entry.value]
    assert [entry.key for entry in leaves if not entry.comment] == []


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_exactly_the_composed_keys(verb: str) -> None:
    given = [f"{entry.key}=given" for entry in pages.entries(verb) if entry.value == "???"]
    experiments = {f"experiment/{option}" for group, _, option in pages.groups(verb) if group == "experiment"}
    extra = {entry.key for name in experiments for entry in pages.read(name).entries}
    assert {entry.key for entry in pages.entries(verb)} | extra == set(_kept(compose(verb, given))) | extra


def shown_and_composed(verb: str, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that help shows for the chosen options, interpolations filled in, and those that are composed."""
    chosen = dict(word.rpartition("@")[2].split("=") for word in words)
    config = compose(verb, list(words))

    def value(key: str) -> Any:
        found: Any = config
        for part in key.split("."):
            found = found[part]
        return found

    entries = [entry for entry in pages.entries(verb, chosen) if entry.value]
    texts = {entry.key: re.sub(r"\$\{([\w.]+)\}", lambda match: str(value(match[1])), entry.value) for entry in entries}
    return {key: yaml.safe_load(text) for key, text in texts.items()}, {entry.key: value(entry.key) for entry in entries}


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_the_values_that_are_composed(verb: str) -> None:
    shown, composed = shown_and_composed(verb)
    assert shown == composed


@pytest.mark.parametrize(("verb", "choice"), [pair for pair in choices() if not pair[1].endswith("=own")])
def test_the_values_of_every_option_are_those_that_are_composed(verb: str, choice: str) -> None:
    shown, composed = shown_and_composed(verb, choice)
    assert shown == composed


def _kept(config: Mapping[str, Any]) -> list[str]:
    groups = {package for verb in VERBS for _, package, _ in pages.groups(verb)}
    return [key for key in dotted(config) if key not in groups]


def test_shipped_judges_were_trained_with_the_settings_in_conf() -> None:
    from debate_rl.judges.pretrained import find_judge, read_judge, shipped_judges
    from debate_rl.judges.training import JudgeTraining

    assert shipped_judges()
    for name in shipped_judges():
        dataset, _, stem = name.rpartition("mlp-")
        chosen = compose("judge", [f"judge=mlp-{stem}", f"dataset={dataset.removesuffix('-') or 'mnist'}"])["judge"]
        assert find_judge(chosen.pop("name")) == find_judge(name)
        trained = {key: value for key, value in read_judge(find_judge(name)).card["training"].items() if key not in ("seconds", "losses")}
        assert build(JudgeTraining, chosen) == build(JudgeTraining, trained), name


@pytest.mark.parametrize("pixels", [4, 6])
def test_the_papers_judge_has_the_papers_training(pixels: int) -> None:
    from debate_rl.judges.training import JudgeTraining, paper_training

    chosen = compose("judge", [f"judge=paper-{pixels}"])["judge"]
    chosen.pop("name")
    settings = build(JudgeTraining, chosen)
    assert settings == paper_training(pixels, widths=settings.widths)


def test_the_default_search_is_the_papers() -> None:
    from debate_rl.search.puct import PuctSettings

    agent = compose("reproduce", [])["agent"]
    assert agent.pop("name") == "mcts"
    assert build(PuctSettings, agent) == PuctSettings() == PuctSettings(rollouts=10_000, c_puct=1.0)


def test_the_full_experiment_is_the_papers_size() -> None:
    full = typed("reproduce", "experiment=full")
    assert (full.start, full.count, full.repetitions, full.agent["rollouts"]) == (0, 10_000, 3, 10_000)
    assert (set(full.first), set(full.commit), set(full.judges)) == ({"honest", "liar"}, {"precommit", "none"}, {4, 6})
