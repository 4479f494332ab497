"""Training: it learns, and a killed run ends like an uninterrupted one."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from debate_rl.errors import UserError
from debate_rl.judges import training
from debate_rl.judges.assessment import assess_judge
from debate_rl.judges.networks import SparseMLP
from debate_rl.judges.paper import load_any
from debate_rl.judges.pretrained import load_judge
from debate_rl.judges.publish import publish_judge
from debate_rl.judges.sparse import Masks
from debate_rl.judges.training import JudgeTraining, Progress, TrainedJudge, learning_rate, paper_training, split_holdout, train_judge

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


def broken_state(**changes: Any) -> Callable[[Path], None]:
    def change(checkpoint: Path) -> None:
        path = checkpoint / "state.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def broken_tensors(name: str, change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def rewrite(checkpoint: Path) -> None:
        found = load_file(checkpoint / name)
        change(found)
        save_file(found, checkpoint / name)

    return rewrite


@pytest.mark.parametrize(
    "damage",
    [
        *(broken_state(batch=batch) for batch in ("x", None, [], float("inf"))),
        broken_state(seconds="long"),
        *(broken_state(losses=losses) for losses in (5, [1, 2], [[1, 2, 3]], [["a", "b"]], [[float("inf"), 1.0]])),
        *(broken_state(settings=settings) for settings in (None, {}, {"colour": "red"}, {"pixels": 0}, {"pixels": "x"})),
        *(lambda at, text=text: (at / "state.json").write_bytes(text) for text in (b"", b"[]", b"\xff", b"[" * 100_000)),
        lambda at: (at / "state.json").unlink(),
        *(
            lambda at, name=name: (at / f"{name}.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
            for name in ("model", "optimizer", "average")
        ),
        *(lambda at, name=name: (at / f"{name}.safetensors").unlink() for name in ("model", "optimizer", "average")),
        broken_tensors("model.safetensors", lambda found: found.pop("w2")),
        broken_tensors("optimizer.safetensors", lambda found: found.pop("exp_avg_sq.b1")),
        broken_tensors("average.safetensors", lambda found: found.pop("w3")),
        broken_tensors("model.safetensors", lambda found: found.update(w2=torch.zeros(32, 33))),
        broken_tensors("model.safetensors", lambda found: found.update(b2=torch.zeros(1))),  # torch would spread it over all units
        broken_tensors("optimizer.safetensors", lambda found: found.update({"exp_avg.w2": torch.zeros(32)})),
        broken_tensors("average.safetensors", lambda found: found.update(w3=torch.zeros(10))),
    ],
)
def test_a_checkpoint_that_lies_is_one_clear_line(checkpoint: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    damage(folder / "batch-00000002")
    with pytest.raises(UserError, match=r"batch-00000002 cannot be read .*remove the folder|holds a run with another") as caught:
        train_judge(replace(TINY, batches=2), *bars(50), folder)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds one whole checkpoint."""
    folder = tmp_path_factory.mktemp("checkpoint")
    train_judge(replace(TINY, batches=2), *bars(50), folder)
    return folder


class KilledError(BaseException):
    """Stands for the end of the process."""


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder with their content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("error", [KilledError(), OSError(errno.ENOSPC, "No space left on device")], ids=["killed", "full"])
@pytest.mark.parametrize("step", ["save_file", "sync", "rename"])
def test_the_checkpoint_before_is_whole_until_the_next_one_is(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    settings, data = replace(TINY, batches=5), bars(50)
    folder = tmp_path / "parts"
    stop_after(settings, folder, 2)
    before = files(folder)
    assert {Path(name).parent.name for name in before} == {"batch-00000002"}

    def fail(*given: object) -> None:
        raise error

    with monkeypatch.context() as patched, pytest.raises(KilledError if isinstance(error, KilledError) else UserError) as caught:
        patched.setattr(os if step == "rename" else training, step, fail)
        train_judge(settings, *data, folder, every=2)
    kept = {name: content for name, content in files(folder).items() if ".tmp-" not in name}
    assert kept == before
    if not isinstance(error, KilledError):
        assert "the one before it is whole" in str(caught.value) and "\n" not in str(caught.value)
        assert files(folder) == before  # nothing half-written stays
    resumed = train_judge(settings, *data, folder, every=2)
    assert_same(resumed.network, train_judge(settings, *data).network)
    assert [path.name for path in folder.iterdir()] == ["batch-00000005"]  # drafts are gone, too


def stop_after(settings: JudgeTraining, folder: Path, batch: int) -> None:
    """Train up to the checkpoint of a batch, then stop."""

    def progress(where: Progress) -> None:
        if where.batch > batch:
            raise KilledError

    with pytest.raises(KilledError):
        train_judge(settings, *bars(50), folder, every=batch, progress=progress)


def test_a_really_full_disk_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(disk)]  # room for one checkpoint
    if os.geteuid() != 0 or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    settings, folder = replace(TINY, batches=4), disk / "checkpoints"
    try:
        with pytest.raises(UserError, match=r"batch-00000004 cannot be written .*the one before it is whole") as caught:
            train_judge(settings, *bars(50), folder, every=2)
        assert "\n" not in str(caught.value)
        assert [path.name for path in folder.iterdir()] == ["batch-00000002"]
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        resumed = train_judge(settings, *bars(50), folder, every=2)
        assert resumed.losses[0][0] == 2, "it began anew"
        assert_same(resumed.network, train_judge(settings, *bars(50)).network)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_for_checkpoints_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written") as caught:
        train_judge(replace(TINY, batches=2), *bars(50), tmp_path / "file" / "checkpoints")
    assert "\n" not in str(caught.value)


def test_the_card_tells_what_the_stored_weights_can(tmp_path: Path) -> None:
    """Rounded to half precision, two classes tie that were apart before."""
    network = SparseMLP((32, 32), np.random.default_rng(0))
    with torch.no_grad():
        for value in network.parameters():
            value.zero_()
        network.get_parameter("b3")[:2] = torch.tensor([1.0, 1.0001])
    images, _ = bars(20)
    ones = np.ones(20, dtype=np.uint8)
    for half, accuracy in ((True, 0.0), (False, 1.0)):
        path = tmp_path / f"{half}.safetensors"
        _, found = publish_judge(path, TrainedJudge(network, TINY, 0.0), images, ones, "a test", half=half, seeds=(0,))
        assert found.accuracy == load_judge(path).card["test"]["accuracy"] == accuracy
        assert assess_judge(load_judge(path), images, ones, seeds=(0,)).accuracy == accuracy


@pytest.mark.parametrize(("legal", "shown"), [({"threshold": 0.5}, 2), ({"black": True}, 784), ({}, 4)])
def test_the_card_tells_what_the_judge_can_on_the_pixels_it_was_trained_on(tmp_path: Path, legal: dict[str, Any], shown: int) -> None:
    images = np.zeros((40, 28, 28), dtype=np.uint8)
    images[:, 3, :2], images[:, 3, 2:4] = 255, 60
    labels = np.arange(40, dtype=np.uint8) % 10
    trained = train_judge(replace(TINY, **legal, pixels=1, batches=4), images, labels)
    assert isinstance(trained.network, SparseMLP)
    assert int(trained.network.w_mask.detach().any(1).sum()) == shown
    judge, found = publish_judge(tmp_path / "x.safetensors", trained, images, labels, "a test", seeds=(0, 1))
    same = assess_judge(judge, images, labels, seeds=(0, 1), **legal)
    assert (found.accuracies, found.cross_entropy) == (same.accuracies, same.cross_entropy)
    assert {key: judge.card["training"][key] for key in legal} == legal
    others = [assess_judge(judge, images, labels, seeds=(0, 1), **other) for other in ({"threshold": 0.5}, {"black": True}, {})]
    assert len({other.cross_entropy for other in others}) == 3, "the pixels make no difference: this test proves nothing"


def test_label_smoothing_bounds_the_loss_from_below() -> None:
    images, labels = bars(200)
    settings = replace(TINY, batches=200, batch_size=64)
    sharp, smooth = (train_judge(replace(settings, label_smoothing=share), images, labels, every=40).losses[-1][1] for share in (0.0, 0.6))
    least = -(0.46 * np.log(0.46) + 9 * 0.06 * np.log(0.06))  # the entropy of the smoothed target
    assert sharp < least - 0.5
    assert smooth >= least


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
