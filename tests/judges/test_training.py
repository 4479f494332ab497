"""Training: it learns, and a killed run ends like an uninterrupted one."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from debate_rl.errors import UserError
from debate_rl.judges.assessment import assess_judge
from debate_rl.judges.networks import SparseMLP
from debate_rl.judges.paper import load_any
from debate_rl.judges.pretrained import load_judge
from debate_rl.judges.publish import publish_judge
from debate_rl.judges.sparse import Masks
from debate_rl.judges.training import JudgeTraining, Progress, learning_rate, paper_training, split_holdout, train_judge

TINY = JudgeTraining(pixels=3, widths=(32, 32), batches=90, batch_size=16, learning_rate=0.01, average=0.9, seed=5)


def bars(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten easy classes: class c lights rows 2c and 2c + 1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count).astype(np.uint8)
    images = np.zeros((count, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 2] = rng.integers(1, 256, (2, 28))
    return images, labels


def tensors(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in network.named_parameters()}


def assert_same(left: torch.nn.Module, right: torch.nn.Module) -> None:
    for name, value in tensors(left).items():
        assert torch.equal(value, tensors(right)[name]), name


def test_it_learns_what_can_be_learned(tmp_path: Path) -> None:
    images, labels = bars(500)
    trained = train_judge(replace(TINY, batches=400, batch_size=64), images, labels)
    judge, found = publish_judge(tmp_path / "bars.safetensors", trained, *bars(300, seed=1), command="a test", name="bars")
    assert found.accuracy > 0.9
    assert judge.card["test"]["accuracy"] == round(found.accuracy, 6)
    again = load_judge(tmp_path / "bars.safetensors")
    assert again.name == "bars"
    assert again.hash == judge.hash
    assert again.card["data_hashes"]["t10k-images-idx3-ubyte"] == "md5:2646ac647ad5339dbf082846283269ea"
    assert assess_judge(again, *bars(300, seed=1)).accuracies == found.accuracies


def test_pixels_that_are_never_lit_say_nothing() -> None:
    images, labels = bars(100)
    network = train_judge(TINY, images, labels).network
    assert isinstance(network, SparseMLP)
    lit = images.reshape(100, -1).any(0)
    assert not network.w_mask.detach().numpy()[~lit].any()
    assert not network.w_value.detach().numpy()[~lit].any()
    assert network.w_mask.detach().numpy()[lit].any(1).all()


@pytest.mark.parametrize(("masks", "shown"), [("uniform", 784), ("mixed", 784), ("near", 784 - 6 * 28)])
def test_black_pixels_are_shown_in_training_as_asked(masks: Masks, shown: int) -> None:
    images, labels = bars(100)  # rows 20 to 27 are never lit, rows 22 to 27 never near
    network = train_judge(replace(TINY, black=True, masks=masks), images, labels).network
    assert isinstance(network, SparseMLP)
    assert int(network.w_mask.detach().any(1).sum()) == shown


MIXED = replace(TINY, black=True, masks="mixed")


@pytest.mark.parametrize("settings", [TINY, MIXED, replace(TINY, architecture="paper", average=0.0, batches=12, schedule="constant")])
def test_stopped_and_resumed_equals_uninterrupted(settings: JudgeTraining, tmp_path: Path) -> None:
    images, labels = bars(50)
    whole = train_judge(settings, images, labels, tmp_path / "whole", every=settings.batches)

    class StoppedError(Exception):
        pass

    def stop_at(batch: int) -> None:
        def progress(where: Progress) -> None:
            if where.batch >= batch:
                raise StoppedError

        with pytest.raises(StoppedError):
            train_judge(settings, images, labels, tmp_path / "parts", every=4, progress=progress)

    stop_at(6)
    stop_at(settings.batches - 1)
    resumed = train_judge(settings, images, labels, tmp_path / "parts", every=4)
    assert_same(whole.network, resumed.network)
    assert_same(whole.network, train_judge(settings, images, labels).network)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [f"batch-{settings.batches:08d}"]


SCRIPT = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.judges.test_training import TINY, bars
from debate_rl.judges.training import train_judge
print("ready", flush=True)
train_judge(TINY, *bars(50), folder=Path(sys.argv[1]), every=2)
print("done", flush=True)
"""


def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    images, labels = bars(50)
    whole = train_judge(TINY, images, labels)
    killed = 0
    for delay in (0.05, 0.2):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed >= 1
    resumed = train_judge(TINY, images, labels, tmp_path, every=2)
    assert_same(whole.network, resumed.network)


def test_a_damaged_or_foreign_checkpoint_is_one_clear_line(tmp_path: Path) -> None:
    images, labels = bars(50)
    train_judge(replace(TINY, batches=4), images, labels, tmp_path, every=2)
    with pytest.raises(UserError, match="another batches"):
        train_judge(TINY, images, labels, tmp_path)
    model = tmp_path / "batch-00000004" / "model.safetensors"
    os.truncate(model, 100)
    with pytest.raises(UserError, match="cannot be read") as caught:
        train_judge(replace(TINY, batches=4), images, labels, tmp_path)
    assert "\n" not in str(caught.value)


def test_seeds_differ() -> None:
    images, labels = bars(50)
    one, two = (train_judge(replace(TINY, batches=3, seed=seed), images, labels).network for seed in (0, 1))
    assert not torch.equal(one.get_parameter("w2"), two.get_parameter("w2"))


def test_holdout_is_never_trained_on() -> None:
    images, labels = bars(60)
    other = images.copy()
    other[40:] = 255 - other[40:]
    settings = replace(TINY, holdout=20, batches=10)
    assert_same(train_judge(settings, images, labels).network, train_judge(settings, other, labels).network)
    (train, _), (held, _) = split_holdout(settings, images, labels)
    assert (len(train), len(held)) == (40, 20)


def test_schedules() -> None:
    cosine = JudgeTraining(batches=10_000, learning_rate=1.0)
    assert learning_rate(cosine, 0) == pytest.approx(1 / 500)
    assert learning_rate(cosine, 5_000) == pytest.approx(0.5)
    assert learning_rate(replace(cosine, schedule="linear"), 7_500) == pytest.approx(0.25)
    assert learning_rate(replace(cosine, schedule="constant"), 0) == 1.0


def test_the_papers_settings() -> None:
    six, four = paper_training(6), paper_training(4)
    assert (six.batches, four.batches) == (30_000, 50_000)
    for settings in (six, four):
        assert (settings.batch_size, settings.learning_rate, settings.schedule, settings.average) == (128, 1e-4, "constant", 0.0)


def test_a_paper_judge_is_saved_and_loaded(tmp_path: Path) -> None:
    images, labels = bars(50)
    trained = train_judge(paper_training(3, batches=2, batch_size=8), images, labels)
    judge, _ = publish_judge(tmp_path / "p.safetensors", trained, images, labels, command="a test", seeds=(0,))
    assert judge.name == "paper-3"
    planes = np.zeros((2, 2, 28, 28), dtype=np.float32)
    planes[0, :, 3, 4] = 1.0
    with torch.no_grad():
        wanted = trained.network(torch.from_numpy(planes)).numpy()
    loaded = load_any(tmp_path / "p.safetensors")
    np.testing.assert_allclose(loaded.logits(planes), wanted, rtol=1e-5, atol=1e-6)
    moves = np.array([[3 * 28 + 4, -1], [-1, -1]])
    image = np.full((1, 784), 255, dtype=np.uint8)
    np.testing.assert_allclose(loaded.set_logits(image, np.zeros(2, dtype=np.int64), moves), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="needs an 'mlp' judge"):
        load_judge(tmp_path / "p.safetensors")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pixels": 0}, "at least 1"),
        ({"pixels": 785}, "784"),
        ({"learning_rate": float("nan")}, "positive"),
        ({"schedule": "step"}, "cosine"),
        ({"average": 1.0}, r"\[0, 1\)"),
        ({"weight_decay": -1.0}, "negative"),
        ({"masks": "far", "black": True}, "one of uniform, near, mixed"),
        ({"masks": "near"}, "black"),
    ],
)
def test_bad_settings(changes: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        replace(TINY, **changes)  # type: ignore[arg-type]


def test_bad_data() -> None:
    images, labels = bars(10)
    with pytest.raises(UserError, match="one label per image"):
        train_judge(TINY, images, labels[:5])
    with pytest.raises(UserError, match="between 0 and 9"):
        train_judge(TINY, images, labels + 10)
    with pytest.raises(UserError, match="holdout"):
        train_judge(replace(TINY, holdout=10), images, labels)
