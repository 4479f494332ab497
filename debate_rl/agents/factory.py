"""Agents from settings: `{"name": "mcts", "rollouts": 1000}` and the like."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

from debate_rl.agents.base import Agent
from debate_rl.errors import UserError
from debate_rl.judges.kernels import JudgeWeights

if typing.TYPE_CHECKING:
    from debate_rl.judges.pretrained import Judge

T = TypeVar("T")


def make_agent(settings: Mapping[str, Any], judge: Judge | JudgeWeights) -> Agent:
    """Build an agent.

    Args:
        settings: `name` is `random`, `greedy`, `mcts`, `exact`, `best_response`, `human`, or the dotted path of a class of yours; the
            other keys are that agent's settings. Your class is called as `MyAgent(judge, **settings)`.
        judge: the judge that the agent debates before.

    Raises:
        UserError: an unknown name, a class that cannot be imported or is not an agent, an unknown setting or one of the wrong type.
    """
    rest = {str(key): value for key, value in settings.items()}
    name = rest.pop("name", None)
    if not isinstance(name, str) or not name:
        raise UserError(f"an agent needs a name: one of {', '.join(_BUILDERS)}, or the dotted path of a class (got {name!r})")
    if name in _BUILDERS:
        return _BUILDERS[name](rest, judge if isinstance(judge, JudgeWeights) else judge.weights)
    if "." in name:
        return _own_agent(name, rest, judge)
    close = get_close_matches(name, _BUILDERS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "a class of your own needs its dotted path, like my_package.MyAgent"
    raise UserError(f"there is no agent {name!r}; it must be one of {', '.join(_BUILDERS)} ({hint})")


def _random(rest: dict[str, Any], weights: JudgeWeights) -> Agent:
    from debate_rl.agents.random import RandomAgent

    _refuse_unknown("random", rest, ())
    return RandomAgent()


def _greedy(rest: dict[str, Any], weights: JudgeWeights) -> Agent:
    from debate_rl.agents.greedy import GreedyAgent

    _refuse_unknown("greedy", rest, ())
    return GreedyAgent(weights)


def _mcts(rest: dict[str, Any], weights: JudgeWeights) -> Agent:
    from debate_rl.agents.mcts import MctsAgent
    from debate_rl.search.puct import PuctSettings

    return MctsAgent(weights, _settings("mcts", PuctSettings, rest))


def _exact(rest: dict[str, Any], weights: JudgeWeights) -> Agent:
    from debate_rl.agents.exact import ExactAgent, ExactSettings

    return ExactAgent(weights, _settings("exact", ExactSettings, rest))


def _best_response(rest: dict[str, Any], weights: JudgeWeights) -> Agent:
    from debate_rl.agents.best_response import BestResponseAgent

    _refuse_unknown("best_response", rest, ("against", "budget"))
    against = rest.get("against")
    if not isinstance(against, Mapping):
        raise UserError(f"against of agent best_response is {against!r}; it must be the settings of an agent, such as {{name: greedy}}")
    if against.get("name") == BestResponseAgent.name:
        raise UserError("a best response to a best response has no end; choose another agent for one of the seats")
    return BestResponseAgent(weights, make_agent(against, weights), _typed("best_response", "budget", rest.get("budget"), int | None))


def _human(rest: dict[str, Any], weights: JudgeWeights) -> Agent:
    from debate_rl.agents.human import HumanAgent, HumanSettings

    return HumanAgent(weights, _settings("human", HumanSettings, rest))


_BUILDERS: Final[dict[str, Callable[[dict[str, Any], JudgeWeights], Agent]]] = {
    "random": _random,
    "greedy": _greedy,
    "mcts": _mcts,
    "exact": _exact,
    "best_response": _best_response,
    "human": _human,
}


def _settings(name: str, kind: type[T], rest: Mapping[str, Any]) -> T:
    """An agent's settings dataclass from plain values."""
    hints = typing.get_type_hints(kind)
    _refuse_unknown(name, rest, list(hints))
    return kind(**{key: _typed(name, key, value, hints[key]) for key, value in rest.items()})


def _refuse_unknown(name: str, rest: Mapping[str, Any], known: typing.Sequence[str]) -> None:
    for key in rest:
        if key not in known:
            raise UserError(f"agent {name} has no setting {key!r}; it takes {', '.join(known) if known else 'none'}")


def _typed(name: str, key: str, value: Any, wanted: Any) -> Any:
    """`value` if it has the wanted type; an int becomes a float where one is wanted."""
    if get_origin(wanted) is Literal:
        choices = get_args(wanted)
        if value in choices:
            return value
        raise UserError(f"{key} of agent {name} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
    accepted = {float: (int, float)}.get(wanted, wanted)
    if not isinstance(value, accepted) or (isinstance(value, bool) and wanted is not bool):
        kind = wanted if isinstance(wanted, UnionType) else wanted.__name__
        raise UserError(f"{key} of agent {name} is {value!r}; it must be of type {kind}")
    return float(value) if wanted is float else value


def _own_agent(path: str, rest: dict[str, Any], judge: Judge | JudgeWeights) -> Agent:
    module_name, _, class_name = path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(error.name + ".")):
            raise  # a module that *it* imports is missing: the traceback says where
        raise UserError(f"agent {path!r}: no module {error.name!r}; install it or put its folder on PYTHONPATH") from None
    maker = getattr(module, class_name, None)
    if not callable(maker):
        raise UserError(f"agent {path!r}: module {module_name} has no class {class_name!r}")
    try:
        inspect.signature(maker).bind(judge, **rest)
    except TypeError as error:
        raise UserError(f"agent {path!r} does not take these settings: {error}; it is called as {class_name}(judge, **settings)") from None
    except ValueError:
        pass  # a class in C may have no signature to check
    agent = maker(judge, **rest)
    missing = [part for part in ("name", "settings", "choose") if not hasattr(agent, part)]
    if missing:
        raise UserError(f"{path!r} is not an agent: it lacks {', '.join(missing)} (see debate_rl.agents.base.Agent)")
    return typing.cast(Agent, agent)
