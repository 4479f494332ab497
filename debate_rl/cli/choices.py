"""What verbs ask of the judges and agents that are chosen for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from debate_rl.errors import UserError
from debate_rl.evaluation.protocol import SILENT
from debate_rl.games.pixels import special_rules
from debate_rl.judges.pretrained import AnyJudge, Judge, find_judge, load_judge, read_judge

Note = Callable[[str], object]


def fitting_judge(name: str, dataset: str, pixels: int, *, setting: str, note: Note, threshold: float = 0.0, black: bool = False) -> Judge:
    """Load the judge for games of `pixels` pixels of images of `dataset`.

    Args:
        name: a shipped judge's name or a path.
        dataset: the run's data set.
        pixels: revealed in a game.
        setting: where the judge was chosen, e.g. `judges.6`; for messages.
        note: told in a line if the judge was trained for another number of pixels, or on others.
        threshold: which pixels may be revealed, see `games.pixels.Rules`.
        black: likewise.

    Raises:
        UserError: there is no such judge, or it was trained on another data set.
    """
    judge = load_judge(name)
    check_fit(judge, dataset, pixels, setting=setting, note=note, threshold=threshold, black=black)
    return judge


def judge_of_any_kind(name: str) -> AnyJudge:
    """Load a judge of any architecture; torch is brought in only where it is needed."""
    path = find_judge(name)
    if read_judge(path).card["architecture"] == "mlp":
        return load_judge(path)
    from debate_rl.judges.paper import load_any

    return load_any(path)


def check_fit(judge: AnyJudge, dataset: str, pixels: int, *, setting: str, note: Note, threshold: float = 0.0, black: bool = False) -> None:
    """Raise UserError for a judge of another data set, and note one that was trained for other games; see `fitting_judge`."""
    if judge.dataset != dataset:
        raise UserError(
            f"{setting} is {judge.name}, a judge trained on {judge.dataset}, but dataset.name is {dataset}; they must agree:"
            f" choose dataset={judge.dataset} or another judge"
        )
    if judge.pixels != pixels:
        note(f"note: {setting} is {judge.name}, a judge trained on {judge.pixels} pixels; these games reveal {pixels}")
    training = judge.card.get("training")
    trained = special_rules(training.get("threshold", 0.0), training.get("black", False)) if isinstance(training, Mapping) else {}
    if trained != special_rules(threshold, black):
        here = _words(special_rules(threshold, black))
        note(f"note: {setting} is {judge.name}, a judge trained on {_words(trained)}; these games reveal {here}")


def check_pixels(pixels: Sequence[int], judges: Mapping[int, str]) -> None:
    """Raise UserError unless there are games to play, each kind once, and a judge for each."""
    if not pixels:
        raise UserError("pixels is empty; it must list at least one number of pixels")
    if len(set(pixels)) != len(pixels):
        raise UserError(f"pixels is {list(pixels)}; each number may stand there once")
    for number in pixels:
        if number not in judges:
            raise UserError(
                f"pixels lists {number}, but judges names none for it; there are {', '.join(map(str, sorted(judges)))}"
                f" (or add one with +judges.{number}=...)"
            )


def _words(rules: Mapping[str, Any]) -> str:
    if rules.get("black"):
        return "any pixels"
    return f"pixels above {rules['threshold']}" if rules else "nonzero pixels"


def refuse_silent(agent: Mapping[str, Any], setting: str, choices: str) -> None:
    """Raise UserError for a silent agent, in verbs where every seat has to move."""
    if agent.get("name") == SILENT["name"]:
        raise UserError(f"{setting} is silent, which only debate-rl evaluate can play, in one of its seats; choose {choices}")
