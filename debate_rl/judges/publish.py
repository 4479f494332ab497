"""From a finished training run to a judge on disk: weights, figures on the test split, card."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from debate_rl import __version__
from debate_rl.data.catalog import CATALOG
from debate_rl.judges.assessment import MASK_SEEDS, Assessment, assess_judge
from debate_rl.judges.paper import load_any
from debate_rl.judges.pretrained import DEFAULT_DATASET, AnyJudge, Card, save_judge
from debate_rl.judges.training import JudgeTraining, TrainedJudge

DATA_NOTES: Final = {
    "mnist": "Trained on MNIST (Y. LeCun, C. Cortes, C. J. C. Burges); the data are not included.",
    "fashion_mnist": "Trained on Fashion-MNIST (Zalando SE, MIT licence); the data are not included.",
}
LICENCE: Final = "MIT, as the package. "


def judge_name(settings: JudgeTraining) -> str:
    """A judge's name in records, which says what sets it apart: `mlp-6`, `fashion_mnist-mlp-6`, `mlp-6-black-near-seed1`."""
    parts = [settings.architecture, str(settings.pixels)]
    parts += [f"threshold{settings.threshold:g}"] if settings.threshold else []
    parts += ["black"] if settings.black else []
    parts += [settings.masks] if settings.masks != "uniform" else []
    parts += [f"seed{settings.seed}"] if settings.seed else []
    stem = "-".join(parts)
    return stem if settings.dataset == DEFAULT_DATASET else f"{settings.dataset}-{stem}"


def publish_judge(
    path: Path,
    trained: TrainedJudge,
    images: NDArray[np.uint8],
    labels: NDArray[np.integer],
    command: str,
    data_hashes: Mapping[str, str] | None = None,
    half: bool | None = None,
    seeds: Sequence[int] = MASK_SEEDS,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[AnyJudge, Assessment]:
    """Save a trained judge with its card; the figures on the card are those of the weights as stored.

    Args:
        path: of the weight file, `.safetensors`; the card goes beside it.
        trained: what `train_judge` returned.
        images: of the test split, `(N, 28, 28)` uint8.
        labels: `(N,)`.
        command: that trains this judge again.
        data_hashes: of the data files, by file name; by default the official md5s that `debate_rl.data` checks.
        half: store float16; by default for `mlp` judges only.
        seeds: of the masks of the assessment.
        name: in records; by default `judge_name`.
        progress: of the assessment, called with (images done, images in all).
    """
    settings = trained.settings
    half = settings.architecture == "mlp" if half is None else half
    tensors = {key: value.detach().cpu().contiguous().numpy() for key, value in trained.network.state_dict().items()}
    card: Card = {
        "name": name or judge_name(settings),
        "architecture": settings.architecture,
        "dataset": settings.dataset,
        "pixels": settings.pixels,
        "widths": list(settings.widths) if settings.architecture == "mlp" else None,
        "parameters": int(sum(value.size for value in tensors.values())),
        "stored": "float16" if half else "float32",
        "input": "planes (2, 28, 28): {0, 1} mask of revealed pixels, value / 255 of the revealed pixels",
    }
    # the assessment is of the stored weights, and the card is stored with the weights: so assess a draft first
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "draft.safetensors"
        save_judge(draft, tensors, card, half)
        found = assess_judge(
            load_any(draft), images, labels, seeds=seeds, threshold=settings.threshold, black=settings.black, progress=progress
        )
    card["test"] = {"split": "test", "masks": "random legal pixels, without replacement", **found.as_json()}
    card["training"] = {**asdict(settings), "seconds": round(trained.seconds, 1), "losses": _thinned(trained.losses)}
    card["command"] = command
    card["data_hashes"] = dict(_official_hashes(settings.dataset) if data_hashes is None else data_hashes)
    card["made_with"] = {
        "debate-rl": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    card["licence"] = LICENCE + DATA_NOTES.get(settings.dataset, "")
    save_judge(path, tensors, card, half)
    return load_any(path), found


def _official_hashes(dataset: str) -> dict[str, str]:
    known = CATALOG.get(dataset)
    return {file.name: f"md5:{file.md5}" for file in known.files} if known else {}


def _thinned(losses: Sequence[tuple[int, float]], most: int = 20) -> list[list[Any]]:
    step = max(1, len(losses) // most)
    return [[batch, round(loss, 4)] for batch, loss in losses[step - 1 :: step]]
