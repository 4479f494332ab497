"""Every example of the help and every agent: settings are built, and what is played is planned, as the verb itself does it."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from debate_rl.agents import make_agent
from debate_rl.cli import bench, evaluate, play, reproduce
from debate_rl.cli import help as pages
from debate_rl.cli.app import _action
from debate_rl.cli.choices import fitting_judge
from debate_rl.cli.verbs import VERBS
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.reproduce import Job
from tests.conf.test_conf import typed

OWN = "tests.conf.own_agent.Own"


def planned(verb: str, *overrides: str) -> list[Job]:
    """Build a verb's settings, and for verbs that play their judges, agents and jobs. No judge may need a note."""
    settings = typed(verb, *overrides)
    notes: list[str] = []
    jobs: list[Job] = []
    if isinstance(settings, reproduce.Settings):
        jobs = reproduce.prepare(settings, digits(settings.dataset.name), reproduce.load_judges(settings, notes.append))
    elif isinstance(settings, evaluate.Settings):
        jobs = evaluate.prepare(settings, digits(settings.dataset.name), notes.append)
    elif isinstance(settings, play.Settings | bench.Settings):
        name = settings.judged_by or f"{settings.dataset.name}-mlp-{settings.pixels}"
        judge = fitting_judge(name, settings.dataset.name, settings.pixels, setting="judged_by", note=notes.append)
        seats = (settings.honest, settings.liar) if isinstance(settings, play.Settings) else (settings.agent,)
        for agent in seats:
            make_agent(agent, judge)
    assert notes == []
    return jobs


def digits(name: str) -> Digits:
    """A whole test split of white images."""
    return Digits(name, "test", np.full((10_000, 28, 28), 255, np.uint8), np.zeros(10_000, np.uint8), "")


def examples() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every example, a sweep as the runs it consists of."""
    for verb in VERBS.values():
        for text, _ in verb.examples:
            words = _action(verb, [verb.name, *shlex.split(text)])[1:]
            if "-m" not in words:
                yield verb.name, tuple(words)
                continue
            words.remove("-m")
            parsed = OverridesParser.create().parse_overrides(words)
            values = [
                [f"{override.key_or_group}={value}" for value in override.sweep_string_iterator()]
                if override.is_sweep_override()
                else [override.input_line or ""]
                for override in parsed
            ]
            for run in itertools.product(*values):
                yield verb.name, run


@pytest.mark.parametrize(("verb", "words"), list(examples()))
def test_every_example_can_be_planned(verb: str, words: tuple[str, ...]) -> None:
    jobs = planned(verb, *words)
    assert (len(jobs) > 0) == (verb in ("reproduce", "evaluate")) and all(job.indices and job.work() > 0 for job in jobs)
    if "control_count=0" in words:
        assert [job.study.name for job in jobs] == ["table-4", "table-6"]


def agents(setting: str, option: str) -> list[str]:
    """The overrides that choose an agent."""
    return [f"{setting}={option}", *([f"{setting.rpartition('@')[2]}.name={OWN}"] if option == "own" else [])]


@pytest.mark.parametrize("option", pages.options("agent"))
def test_every_agent_can_be_planned_or_is_refused_in_a_line(option: str) -> None:
    words = agents("agent", option)
    if option == "silent":
        for verb in ("reproduce", "bench"):
            with pytest.raises(UserError, match="agent is silent, which only debate-rl evaluate can play"):
                planned(verb, *words)
    elif option == "best_response":  # to whom?
        with pytest.raises(UserError, match="against of agent best_response is None"):
            planned("reproduce", *words)
    else:
        assert {"table-4", "table-6"} <= {job.study.name for job in planned("reproduce", *words)}
    for seat, other in (("honest", "liar"), ("liar", "honest")):
        chosen = agents(f"agent@{seat}", option)
        assert len(planned("evaluate", *chosen, f"agent@{other}=greedy")) == 2
        if option == "silent":
            with pytest.raises(UserError, match=f"{seat} is silent, which only debate-rl evaluate can play"):
                planned("play", *chosen)
        elif option == "best_response":
            with pytest.raises(UserError, match="against of agent best_response is None"):
                planned("play", *chosen)
        else:
            planned("play", *chosen)


def test_two_silent_seats_are_refused() -> None:
    with pytest.raises(UserError, match="both seats are silent"):
        planned("evaluate", "agent@honest=silent", "agent@liar=silent")


def test_a_broken_choice_would_be_found() -> None:
    wrong: Any
    for wrong in (("judges.6=mlp-9",), ("agent=own", "agent.name=tests.conf.own_agent.Nobody"), ("judges.4=fashion_mnist-mlp-4",)):
        with pytest.raises(UserError):
            planned("reproduce", *wrong)
