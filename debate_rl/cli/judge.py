"""`debate-rl judge`: show, train or evaluate a judge."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from debate_rl.cli.choices import judge_of_any_kind
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.cli.typed import build
from debate_rl.errors import UserError
from debate_rl.games.pixels import special_rules
from debate_rl.judges.pretrained import AnyJudge, find_judge, read_judge

if TYPE_CHECKING:
    from debate_rl.judges.assessment import Assessment
    from debate_rl.runs import RunFolder

WEIGHTS = "judge.safetensors"  # in the run folder of a training

ASSESSMENT = "assessment.json"  # in a run folder: what the judge was measured to be


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl judge`; `judge` is a `name` and the fields of `JudgeTraining`."""

    judge: Mapping[str, Any]
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    action: Literal["show", "train", "evaluate"] = "show"
    split: Literal["train", "test"] = "test"
    pixels: int | None = None
    mask_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    checkpoint_every: int = 5_000

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if not self.mask_seeds or min(self.mask_seeds) < 0:
            raise UserError(f"mask_seeds is {list(self.mask_seeds)}; it must list at least one seed, each zero or more")
        if self.checkpoint_every < 1:
            raise UserError(f"checkpoint_every is {self.checkpoint_every}; it must be at least 1")
        if not isinstance(self.judge.get("name"), str):
            raise UserError(f"judge.name is {self.judge.get('name')!r}; it must be a judge's name or the path of a .safetensors file")

    @property
    def name(self) -> str:
        """The judge's name or path."""
        return str(self.judge["name"])


def run(settings: Settings, context: Context) -> None:
    """Do what `settings.action` says."""
    if settings.action == "show":
        _show(settings.name, context)
    elif settings.action == "train":
        _train(settings, context)
    else:
        _evaluate(settings, context)


def _show(name: str, context: Context) -> None:
    path = find_judge(name)
    file = read_judge(path)
    card = file.card
    context.say(f"{file.name} ({path})")
    context.say(f"  hash          {file.hash}")
    context.say(f"  trained on    {card['dataset']}, {card['pixels']} random pixels")
    widths = f", widths {' and '.join(map(str, card['widths']))}" if card.get("widths") else ""
    context.say(f"  architecture  {card['architecture']}{widths}, {card.get('parameters', '?')} parameters")
    test = card.get("test")
    if isinstance(test, Mapping):
        _say_figures(context, str(test.get("split")), test, f"the judge's card {path.with_suffix('.json')} lacks figures in its test")
    for key in ("command", "licence"):
        if card.get(key):
            context.say(f"  {key:<13} {card[key]}")


def _train(settings: Settings, context: Context) -> None:
    from debate_rl.judges.publish import publish_judge
    from debate_rl.judges.training import JudgeTraining, Progress, train_judge

    training = build(JudgeTraining, {key: value for key, value in settings.judge.items() if key != "name"}, "judge")
    if training.dataset != settings.dataset.name:
        raise UserError(f"judge.dataset is {training.dataset!r} but dataset.name is {settings.dataset.name!r}; they must agree")
    context.use_threads()
    context.bar.unit = "batches"
    decisive = {"judge": dict(settings.judge), "mask_seeds": list(settings.mask_seeds)}
    with context.open_folder(f"{training.dataset}-{training.architecture}-{training.pixels}", decisive) as folder:
        if not context.finished_before(folder):
            train, test = settings.dataset.load("train"), settings.dataset.load("test")

            def progress(at: Progress) -> None:
                context.bar(f"training, loss {at.loss:.3f}", at.batch, at.batches)

            trained = train_judge(training, train.images, train.labels, folder.path / "checkpoints", settings.checkpoint_every, progress)
            context.bar.unit = "images"
            judge, found = publish_judge(
                folder.path / WEIGHTS,
                trained,
                test.images,
                test.labels,
                context.command,
                seeds=settings.mask_seeds,
                progress=lambda done, total: context.bar("assessment", done, total),
            )
            _finish(folder, judge, found, settings.dataset.name, "test", trained.seconds, _pool(settings.judge))
        context.bar.clear()
        _show(str(folder.path / WEIGHTS), context)


def _evaluate(settings: Settings, context: Context) -> None:
    from debate_rl.judges.assessment import assess_judge

    judge = judge_of_any_kind(settings.name)
    context.use_threads()
    context.bar.unit = "images"
    training = {**_pool(settings.judge), **_pool(judge.card.get("training"))}
    if training != _pool(settings.judge):
        words = ", ".join(f"{key} {value}" for key, value in training.items())
        context.bar.note(f"note: {judge.name} is shown the pixels it was trained on, as its card says: {words}")
    decisive = {
        "judge": {"name": judge.name, "hash": judge.hash, **training},
        "dataset": {"name": settings.dataset.name},
        "split": settings.split,
        "pixels": judge.pixels if settings.pixels is None else settings.pixels,
        "mask_seeds": list(settings.mask_seeds),
    }
    with context.open_folder(judge.name, decisive) as folder:
        if not context.finished_before(folder):
            digits = settings.dataset.load(settings.split)
            began = time.perf_counter()
            found = assess_judge(
                judge,
                digits.images,
                digits.labels,
                settings.pixels,
                settings.mask_seeds,
                progress=lambda done, total: context.bar("assessment", done, total),
                **training,
            )
            _finish(folder, judge, found, digits.name, digits.split, time.perf_counter() - began, training)
        context.bar.clear()
        context.say(f"{judge.name} ({judge.hash}) on random pixels of {settings.dataset.name}")
        _say_figures(context, settings.split, *_figures(folder.path / ASSESSMENT))
        context.say(f"  rows          {folder.results}")


def _pool(settings: Any) -> dict[str, Any]:
    """Which pixels may be revealed, as far as a training's settings say."""
    return {key: settings[key] for key in ("threshold", "black") if key in settings} if isinstance(settings, Mapping) else {}


def _figures(path: Path) -> tuple[Mapping[str, Any], str]:
    """The assessment in a run folder, and what to say where it lacks figures."""
    broken = f"{path} is broken: delete the run folder and run this again"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{broken} ({error})") from error
    if not isinstance(found, Mapping):
        raise UserError(f"{broken} (no JSON object)")
    return found, broken


def _finish(
    folder: RunFolder, judge: AnyJudge, found: Assessment, dataset: str, split: str, seconds: float, pool: Mapping[str, Any]
) -> None:
    from debate_rl.evaluation.rows import assessment_rows

    folder.write(ASSESSMENT, json.dumps(found.as_json(), indent=1) + "\n")
    rules = special_rules(pool.get("threshold", 0.0), pool.get("black", False))
    rows = assessment_rows(found, judge, dataset, split, seconds, folder.provenance, rules)
    folder.finish(row.line() for row in rows)


def _say_figures(context: Context, split: str, figures: Mapping[str, Any], broken: str) -> None:
    """Print a judge's figures; `broken` begins the UserError raised where they are not all there."""
    try:
        lines = (
            f"  accuracy      {100 * figures['accuracy']:.2f} % at {figures['pixels']} pixels"
            f" ({figures['images']:,} {split} images, mean over {len(figures.get('mask_seeds', ()))} mask seeds,"
            f" SD {100 * figures.get('accuracy_sd', 0.0):.2f})",
            f"  calibration   expected error {100 * figures['ece']:.2f} %, cross entropy {figures['cross_entropy']:.4f} nats",
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{broken} ({error!r})") from error
    for line in lines:
        context.say(line)
