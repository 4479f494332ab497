"""`make_agent`: every name, every mistake, and an agent of one's own as docs/agents.md shows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate_rl.agents import Agent, make_agent
from debate_rl.errors import UserError
from debate_rl.games import pixels as game
from debate_rl.judges.kernels import JudgeWeights
from tests.agents.conftest import random_games

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"


@pytest.mark.parametrize(
    ("settings", "described"),
    [
        ({"name": "random"}, {"name": "random"}),
        ({"name": "greedy"}, {"name": "greedy"}),
        (
            {"name": "mcts", "rollouts": 50, "c_puct": 2, "exact_plies": 1},
            {"name": "mcts", "rollouts": 50, "c_puct": 2.0, "exact_plies": 1, "leaf": "playout", "value": "win", "reuse_tree": False},
        ),
    ],
)
def test_named_agents_play_and_describe_themselves(weights: JudgeWeights, settings: dict[str, Any], described: dict[str, Any]) -> None:
    agent = make_agent(settings, weights)
    assert agent.settings() == described and agent.name == settings["name"]
    batch = random_games(0, 4)
    chosen = agent.choose(batch, np.arange(4, dtype=np.uint64))
    assert game.step(batch, chosen).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs a name"),
        ({"name": None}, "needs a name"),
        ({"name": "mtcs"}, "no agent 'mtcs'.*did you mean 'mcts'"),
        ({"name": "stockfish"}, "random, greedy, mcts, exact, best_response, human.*dotted path"),
        ({"name": "random", "seed": 3}, "random has no setting 'seed'; it takes none"),
        ({"name": "mcts", "rollout": 3}, "mcts has no setting 'rollout'; it takes rollouts"),
        ({"name": "mcts", "rollouts": 0}, "rollouts is 0"),
        ({"name": "mcts", "rollouts": "many"}, "rollouts of agent mcts is 'many'; it must be of type int"),
        ({"name": "mcts", "rollouts": True}, "must be of type int"),
        ({"name": "mcts", "rollouts": 10.0}, "must be of type int"),
        ({"name": "mcts", "reuse_tree": 1}, "must be of type bool"),
        ({"name": "mcts", "leaf": "deep"}, "leaf of agent mcts is 'deep'; it must be one of 'playout', 'partial'"),
        ({"name": "human", "hints": "yes"}, "must be of type bool"),
        ({"name": "human"}, "needs a terminal"),
        ({"name": "no_such_package.Agent"}, "no module 'no_such_package'"),
        ({"name": "debate_rl.no_such.Agent"}, "no module 'debate_rl.no_such'"),
        ({"name": "math.Agent"}, "math has no class 'Agent'"),
        ({"name": "math.pi"}, "math has no class 'pi'"),
        ({"name": "debate_rl.agents.human.HumanSettings"}, "is not an agent: it lacks name, settings, choose"),
        ({"name": "debate_rl.agents.greedy.GreedyAgent", "depth": 2}, "does not take these settings.*depth"),
    ],
)
def test_mistakes_get_one_clear_line(weights: JudgeWeights, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        make_agent(settings, weights)
    assert "\n" not in str(caught.value)


def test_a_dotted_path_reaches_any_class(weights: JudgeWeights) -> None:
    agent = make_agent({"name": "debate_rl.agents.greedy.GreedyAgent"}, weights)
    batch = random_games(0, 3)
    seeds = np.arange(3, dtype=np.uint64)
    assert np.array_equal(agent.choose(batch, seeds), make_agent({"name": "greedy"}, weights).choose(batch, seeds))


def test_an_import_that_fails_inside_the_users_module_keeps_its_traceback(
    weights: JudgeWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_broken_agent.py").write_text("import a_package_that_is_missing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_missing"):
        make_agent({"name": "my_broken_agent.Agent"}, weights)


def test_the_documented_example_works(weights: JudgeWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first Python block of docs/agents.md is a module `my_package`, the page says how to name its class."""
    page = DOCS.read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None and "my_package.BrightestAgent" in page
    (tmp_path / "my_package.py").write_text(code[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_package", raising=False)
    agent: Agent = make_agent({"name": "my_package.BrightestAgent", "darkest": True}, weights)
    assert agent.settings() == {"name": "my_package.BrightestAgent", "darkest": True}
    batch = random_games(1, 6)
    chosen = agent.choose(batch, np.arange(6, dtype=np.uint64))
    legal = game.legal_moves(batch)
    for row in range(6):
        image = batch.images[batch.image_of[row]]
        assert legal[row, chosen[row]] and image[chosen[row]] == image[legal[row]].min()
