"""Pre-training a judge: classify digits from a few random legal pixels (Irving et al. 2018, section 3.1).

Batch `n` is a pure function of the seed and `n`: the images come from epoch-wise permutations, the masks and the dropped units from a
generator seeded with both. A run's random state is therefore its batch number, and a run killed at any moment and resumed from its last
checkpoint ends with the weights of an uninterrupted one (on the CPU, with the same number of threads).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE
from debate_rl.judges.networks import DENSE_UNITS, DROPOUT, PaperConvNet, SparseMLP, new_network
from debate_rl.judges.sparse import MASKS, Masks, PixelPool, draw_training_masks, pixel_values, training_pools
from debate_rl.judges.sparse_conv import sparse_logits
from debate_rl.runs import sync

# what a generator is for: the second word of its seed
_INITIAL, _EPOCH, _BATCH, _DROPOUT = range(4)

WARMUP_BATCHES: Final = 500  # of a decaying schedule


@dataclass(frozen=True)
class JudgeTraining:
    """The settings of one training run.

    Attributes:
        dataset: recorded in the card; the caller hands over the images.
        pixels: how many pixels are revealed, at least 1. An image with fewer legal ones has all of them revealed.
        architecture: `mlp` (`SparseMLP`) or `paper` (`PaperConvNet`).
        widths: of the two hidden layers of an `mlp`, multiples of 32.
        batches: how many batches to train for.
        batch_size: images per batch.
        learning_rate: Adam's, at its highest.
        schedule: `constant`, or a short linear warm-up and then `linear` or `cosine` decay to zero.
        average: decay of the running mean of the weights that becomes the judge; 0 keeps the last weights themselves.
        label_smoothing: share of the target spread over all classes.
        weight_decay: decoupled (AdamW), per batch times the learning rate.
        seed: of everything random.
        threshold: a pixel may be revealed if its value in [0, 1] is greater than this.
        black: any pixel may be revealed, black ones too.
        masks: with `black`, which pixels are shown in training: `uniform`, all alike; `near`, only those close to a lit one; `mixed`, for
            half of the masks only lit ones. A judge that hardly ever saw a lit pixel in training would be easy to fool with them.
        holdout: how many of the last training images to keep out of training, to choose settings on.
    """

    dataset: str = "mnist"
    pixels: int = 6
    architecture: Literal["mlp", "paper"] = "mlp"
    widths: tuple[int, int] = (256, 64)
    batches: int = 60_000
    batch_size: int = 512
    learning_rate: float = 2e-3
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    average: float = 0.999
    label_smoothing: float = 0.0
    weight_decay: float = 0.0
    seed: int = 0
    threshold: float = 0.0
    black: bool = False
    masks: Masks = "uniform"
    holdout: int = 0

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON and YAML give lists
        for name, low in (("pixels", 1), ("batches", 1), ("batch_size", 1), ("seed", 0), ("holdout", 0)):
            if getattr(self, name) < low:
                raise UserError(f"judge training: {name} is {getattr(self, name)}; it must be at least {low}")
        if self.pixels > PIXELS_PER_IMAGE:
            raise UserError(f"judge training: pixels is {self.pixels}; an image has {PIXELS_PER_IMAGE}")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0.0):
            raise UserError(f"judge training: learning_rate is {self.learning_rate}; it must be positive")
        if self.schedule not in ("constant", "linear", "cosine"):
            raise UserError(f"judge training: schedule is {self.schedule!r}; it must be 'constant', 'linear' or 'cosine'")
        if self.masks not in MASKS or (self.masks != "uniform" and not self.black):
            wanted = f"one of {', '.join(MASKS)}" if self.masks not in MASKS else "'uniform' unless black pixels may be revealed (black)"
            raise UserError(f"judge training: masks is {self.masks!r}; it must be {wanted}")
        for name in ("average", "threshold", "label_smoothing"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(f"judge training: {name} is {getattr(self, name)}; it must lie in [0, 1)")
        if self.weight_decay < 0.0:
            raise UserError(f"judge training: weight_decay is {self.weight_decay}; it must not be negative")


def paper_training(pixels: int, **changes: Any) -> JudgeTraining:
    """The paper's own settings: Adam 1e-4, batches of 128, 30,000 of them for 6 pixels and 50,000 for 4."""
    settings: dict[str, Any] = {
        "pixels": pixels,
        "architecture": "paper",
        "batches": 50_000 if pixels == 4 else 30_000,
        "batch_size": 128,
        "learning_rate": 1e-4,
        "schedule": "constant",
        "average": 0.0,
    }
    return JudgeTraining(**{**settings, **changes})


@dataclass(frozen=True)
class Progress:
    """Where a run stands, for a progress bar."""

    batch: int  # batches done
    batches: int  # batches in all
    loss: float  # mean cross entropy per image since the last report


@dataclass
class TrainedJudge:
    """The end of a run. The network carries the averaged weights if there is an average; columns of pixels never seen lit are zero."""

    network: SparseMLP | PaperConvNet
    settings: JudgeTraining
    seconds: float  # spent in training, over all its parts
    losses: list[tuple[int, float]] = field(default_factory=list)  # (batch, mean loss up to it)


def split_holdout(
    settings: JudgeTraining, images: NDArray[np.uint8], labels: NDArray[np.integer]
) -> tuple[tuple[NDArray[np.uint8], NDArray[np.integer]], tuple[NDArray[np.uint8], NDArray[np.integer]]]:
    """The training split `(N, …)` as (what to train on, what was held out)."""
    keep = len(images) - settings.holdout
    if keep < 1:
        raise UserError(f"judge training: holdout is {settings.holdout} but there are only {len(images)} training images")
    return (images[:keep], labels[:keep]), (images[keep:], labels[keep:])


def train_judge(
    settings: JudgeTraining,
    images: NDArray[np.uint8],
    labels: NDArray[np.integer],
    folder: Path | None = None,
    every: int = 5_000,
    progress: Callable[[Progress], None] | None = None,
) -> TrainedJudge:
    """Train a judge.

    Args:
        settings: the run's.
        images: `(N, 28, 28)` or `(N, 784)` uint8 of the *training* split; the last `settings.holdout` are not used.
        labels: `(N,)` in 0–9.
        folder: for checkpoints; a run finds its own there and goes on from it. None keeps none.
        every: batches between checkpoints and between calls of `progress`.
        progress: called every few batches.

    Raises:
        UserError: wrong shapes or labels, or a folder that holds the checkpoints of another run.
    """
    (images, labels), _ = split_holdout(settings, images, labels)
    if len(images) != len(labels):
        raise UserError(f"{len(images)} training images but {len(labels)} labels; there must be one label per image")
    if len(labels) == 0 or int(labels.min()) < 0 or int(labels.max()) >= CLASSES:
        raise UserError("training labels must lie between 0 and 9, and there must be at least one")
    run = _Run(settings, images.reshape(len(images), -1), labels, progress)
    if folder is not None:
        run.resume(folder)
    while run.batch < settings.batches:
        stop = min(settings.batches, run.batch + every - run.batch % every)
        run.advance(stop)
        if folder is not None:
            run.save(folder)
    return run.result()


class _Run:
    """The state of a training run."""

    def __init__(
        self,
        settings: JudgeTraining,
        images: NDArray[np.uint8],
        labels: NDArray[np.integer],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.settings = settings
        self.images = images
        self.labels = torch.from_numpy(labels.astype(np.int64))
        self.pools: tuple[PixelPool, ...] = training_pools(images, settings.threshold, settings.black, settings.masks)
        self.progress = progress
        self.network = new_network(settings.architecture, settings.widths, _generator(settings, _INITIAL), settings.pixels)
        self.parameters: dict[str, Tensor] = dict(self.network.named_parameters())
        self.averages = {name: value.detach().clone() for name, value in self.parameters.items()} if settings.average else {}
        self.optimizer = torch.optim.AdamW(
            list(self.parameters.values()), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.batch = 0
        self.seconds = 0.0
        self.losses: list[tuple[int, float]] = []
        self._epoch = -1
        self._order: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def advance(self, stop: int) -> None:
        """Train up to batch `stop`."""
        began = time.perf_counter()
        total = torch.zeros(())
        seen, report_every = 0, max(1, min(500, stop - self.batch))
        self.network.train()
        while self.batch < stop:
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(self.settings, self.batch)
            loss = self._loss(self.batch)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.batch += 1
            if self.averages:
                # early on a plain mean, so that the first weights do not linger
                keep = min(self.settings.average, self.batch / (self.batch + 10.0))
                torch._foreach_lerp_(list(self.averages.values()), [p.detach() for p in self.parameters.values()], 1.0 - keep)
            total += loss.detach()
            seen += 1
            if self.progress is not None and (self.batch % report_every == 0 or self.batch == stop):
                self.progress(Progress(self.batch, self.settings.batches, float(total) / seen))
        self.losses.append((self.batch, float(total) / max(seen, 1)))
        self.seconds += time.perf_counter() - began

    def _loss(self, batch: int) -> Tensor:
        image_of = self._images_of(batch)
        pixels = draw_training_masks(self.pools, image_of, self.settings.pixels, _generator(self.settings, _BATCH, batch))
        values = pixel_values(self.images, image_of, pixels)
        if isinstance(self.network, SparseMLP):
            logits = self.network.sparse(pixels, values)
        else:
            drawn = _generator(self.settings, _DROPOUT, batch).random((len(pixels), DENSE_UNITS), dtype=np.float32)
            logits = sparse_logits(self.network, pixels, values, torch.from_numpy(drawn < DROPOUT))
        return functional.cross_entropy(logits, self.labels[image_of], label_smoothing=self.settings.label_smoothing)

    def _images_of(self, batch: int) -> NDArray[np.int64]:
        """Image indices `(batch_size,)` of a batch: a slice of the endless row of epoch-wise permutations."""
        count = len(self.images)
        position, left, parts = batch * self.settings.batch_size, self.settings.batch_size, []
        while left:
            epoch, start = divmod(position, count)
            if epoch != self._epoch:
                self._epoch, self._order = epoch, _generator(self.settings, _EPOCH, epoch).permutation(count)
            part = self._order[start : start + left]
            parts.append(part)
            position, left = position + len(part), left - len(part)
        return np.concatenate(parts)

    def result(self) -> TrainedJudge:
        """The trained judge, with the averaged weights where there are any."""
        with torch.no_grad():
            for name, average in self.averages.items():
                self.parameters[name].copy_(average)
            if isinstance(self.network, SparseMLP):
                # a pixel that training never shows says nothing: its column is the random one it began with
                unseen = torch.ones(PIXELS_PER_IMAGE, dtype=torch.bool)
                for pool in self.pools:
                    unseen[torch.from_numpy(pool.pixels.astype(np.int64))] = False
                self.network.w_mask[unseen] = 0.0
                self.network.w_value[unseen] = 0.0
        self.network.eval()
        return TrainedJudge(self.network, self.settings, self.seconds, self.losses)

    def save(self, folder: Path) -> None:
        """Write `folder/batch-N` whole or not at all, then remove the older ones."""
        final = folder / f"batch-{self.batch:08d}"
        if final.exists():
            return
        draft = folder / f"{final.name}.tmp-{os.getpid()}"
        model = {name: value.detach().contiguous() for name, value in self.parameters.items()}
        moments: dict[str, Tensor] = {}
        for name, value in self.parameters.items():
            for key in ("exp_avg", "exp_avg_sq"):
                moments[f"{key}.{name}"] = self.optimizer.state[value][key].contiguous()
        state = {"settings": asdict(self.settings), "batch": self.batch, "seconds": self.seconds, "losses": self.losses}
        try:
            draft.mkdir(parents=True, exist_ok=True)
            save_file(model, draft / "model.safetensors")
            save_file(moments, draft / "optimizer.safetensors")
            if self.averages:
                save_file(self.averages, draft / "average.safetensors")
            (draft / "state.json").write_text(json.dumps(state, indent=1))
            for path in draft.iterdir():
                sync(path)
            os.rename(draft, final)
            sync(folder)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise UserError(f"the checkpoint {final} cannot be written ({_one_line(error)}); the one before it is whole") from error
        for old in _checkpoints(folder)[:-1]:
            shutil.rmtree(old, ignore_errors=True)
        for stale in folder.glob("batch-*.tmp-*"):
            shutil.rmtree(stale, ignore_errors=True)

    def resume(self, folder: Path) -> None:
        """Go on from the last checkpoint in the folder, if there is one."""
        found = _checkpoints(folder)
        if not found:
            return
        last = found[-1]
        try:
            state = json.loads((last / "state.json").read_text())
            model, moments = load_file(last / "model.safetensors"), load_file(last / "optimizer.safetensors")
            averages = load_file(last / "average.safetensors") if self.averages else {}
            other = JudgeTraining(**state["settings"])
            batch, seconds = int(state["batch"]), float(state["seconds"])
            losses = [(int(at), float(loss)) for at, loss in state["losses"]]
            for name, value in self.parameters.items():
                kept = [model[name], moments[f"exp_avg.{name}"], moments[f"exp_avg_sq.{name}"], *([averages[name]] if averages else [])]
                if any(tensor.shape != value.shape for tensor in kept):
                    raise ValueError(f"{name} has another shape than {tuple(value.shape)}")
        except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError, SafetensorError) as error:
            raise UserError(f"the checkpoint {last} cannot be read ({_one_line(error)}); remove the folder to start afresh") from error
        if other != self.settings:
            differing = [name for name in asdict(other) if getattr(other, name) != getattr(self.settings, name)]
            raise UserError(f"{folder} holds a run with another {', '.join(differing)}; use another folder or the same settings")
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(model[name])
                self.optimizer.state[value] = {
                    "step": torch.tensor(float(batch)),
                    "exp_avg": moments[f"exp_avg.{name}"].clone(memory_format=torch.preserve_format),
                    "exp_avg_sq": moments[f"exp_avg_sq.{name}"].clone(memory_format=torch.preserve_format),
                }
                if self.averages:
                    self.averages[name].copy_(averages[name])
        self.batch, self.seconds, self.losses = batch, seconds, losses


def learning_rate(settings: JudgeTraining, batch: int) -> float:
    """The learning rate of batch number `batch`."""
    if settings.schedule == "constant":
        return settings.learning_rate
    warm = min(1.0, (batch + 1) / min(WARMUP_BATCHES, settings.batches))
    done = batch / settings.batches
    decay = 1.0 - done if settings.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return settings.learning_rate * warm * decay


def _generator(settings: JudgeTraining, purpose: int, number: int = 0) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([settings.seed, purpose, number]))


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("batch-*") if path.is_dir() and ".tmp-" not in path.name)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
