"""Judges on disk: the shipped ones, and everything that can be wrong with a file."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.judges.assessment import assess_judge
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.judges.pretrained import FOLDER, find_judge, load_judge, logits_dense, save_judge, shipped_judges
from tests.weights import random_weights

CARD = {"name": "tiny", "architecture": "mlp", "dataset": "mnist", "pixels": 6}
BARS = {4: 0.482, 6: 0.594}  # the paper's, on MNIST


def tiny() -> dict[str, np.ndarray]:
    return random_weights(0, hidden=32, second=64)._asdict()


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_judge(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tiny.safetensors"
    weights = tiny()
    name = save_judge(path, weights, CARD)
    judge = load_judge(path)
    assert (judge.name, judge.pixels, judge.dataset, judge.hash) == ("tiny", 6, "mnist", name)
    assert len(name) == 16
    for field, value in judge.weights._asdict().items():
        assert np.array_equal(value, weights[field])
        assert value.dtype == np.float32
        assert value.flags.c_contiguous
    assert [entry.name for entry in sorted(path.parent.iterdir())] == ["tiny.json", "tiny.safetensors"]


def test_half_precision_is_rounded_once(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, tiny(), CARD, half=True)
    once = load_judge(path)
    assert once.weights.w2.dtype == np.float32
    assert np.array_equal(once.weights.w2, tiny()["w2"].astype(np.float16).astype(np.float32))
    assert save_judge(tmp_path / "again.safetensors", once.weights._asdict(), CARD, half=True) == once.hash


def test_logits_of_planes_and_of_sets_agree(tmp_path: Path) -> None:
    save_judge(tmp_path / "tiny.safetensors", tiny(), CARD)
    judge = load_judge(tmp_path / "tiny.safetensors")
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (3, 784)).astype(np.uint8)
    moves = np.array([[1, 500, 783], [7, -1, -1], [0, 1, 2]])
    planes = np.zeros((3, 2, 784), dtype=np.float32)
    for row, pixels in enumerate(moves):
        for pixel in pixels[pixels >= 0]:
            planes[row, :, pixel] = 1.0, images[row, pixel] / 255
    planes = planes.reshape(3, 2, 28, 28)
    np.testing.assert_allclose(judge.set_logits(images, np.arange(3), moves), judge.logits(planes), rtol=1e-4, atol=1e-4)


def test_missing_files(tmp_path: Path) -> None:
    assert "there is no judge file" in refused(tmp_path / "none.safetensors")
    save_judge(tmp_path / "tiny.safetensors", tiny(), CARD)
    (tmp_path / "tiny.json").unlink()
    assert "no card" in refused(tmp_path / "tiny.safetensors")


@pytest.mark.parametrize("keep", [0, 5, 200, -1])
def test_truncated_weights(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, tiny(), CARD)
    path.write_bytes(path.read_bytes()[:keep])
    assert "damaged" in refused(path)


def test_one_flipped_bit(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, tiny(), CARD)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(bytes(content))
    assert "damaged" in refused(path)


def test_not_safetensors_though_the_card_vouches_for_it(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "tiny.safetensors"
    path.write_bytes(b"hello")
    path.with_suffix(".json").write_text(json.dumps({**CARD, "sha256": hashlib.sha256(b"hello").hexdigest()}))
    assert "not a readable safetensors file" in refused(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"w3": np.zeros((64, 9), np.float32)}, "w3 has shape (64, 9); it must be (64, 10)"),
        ({"w_mask": np.zeros((100, 32), np.float32)}, "w_mask has shape"),
        ({"w2": np.zeros(32, np.float32)}, "must be"),
        ({"b1": np.full(32, np.nan, np.float32)}, "b1 holds values that are not finite"),
        ({"extra": np.zeros(3, np.float32)}, "must hold exactly"),
        ({"w_mask": np.full((784, 32), 1e30, np.float32), "w2": np.full((32, 64), 1e30, np.float32)}, "logits could overflow"),
        ({"w3": np.full((64, 10), 1e38, np.float32)}, "logits could overflow"),
        ({"b3": np.full(10, -1e37, np.float32)}, "logits could overflow"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_unfit_weights(tmp_path: Path, change: dict[str, np.ndarray], says: str) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, {**tiny(), **change}, CARD)
    assert says in refused(path)


def test_widths_that_the_kernels_cannot_run(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    odd = tiny()
    odd.update(w2=odd["w2"][:, :20], b2=odd["b2"][:20], w3=odd["w3"][:20])
    save_judge(path, odd, CARD)
    assert "multiple of 32" in refused(path)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"name": "x"}', "\xff"])
def test_bad_cards(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, tiny(), CARD)
    path.with_suffix(".json").write_bytes(content.encode("latin-1"))
    assert "card" in refused(path)


def test_a_card_nested_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, tiny(), CARD)
    path.with_suffix(".json").write_text('{"a":' * 100_000)
    assert "not readable JSON" in refused(path)


@pytest.mark.parametrize(
    "change",
    [
        *({"training": {"threshold": threshold}} for threshold in (1.5, 1.0, -0.1, "x", True, None, [], float("nan"), 10**400)),
        *({"training": {"black": black}} for black in ("yes", 1, None)),
        *({"training": training} for training in (None, [], "x")),
        *({"pixels": pixels} for pixels in (True, "6", 6.0, 0, 785)),
    ],
    ids=lambda change: str(change)[:40],
)
def test_cards_that_lie(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "tiny.safetensors"
    save_judge(path, tiny(), {**CARD, "training": {"threshold": 0.5, "black": True}})
    card = path.with_suffix(".json")
    load_judge(path)
    card.write_text(json.dumps({**json.loads(card.read_text()), **change}))
    assert f"the judge's card {card}: {next(iter(change))} " in refused(path)
    with pytest.raises(UserError, match="the new card: "):  # nor is it written
        save_judge(tmp_path / "other.safetensors", tiny(), {**CARD, **change})
    assert not (tmp_path / "other.safetensors").exists()


@pytest.mark.parametrize("renamed", [0, 1])
def test_a_kill_while_a_judge_is_replaced_never_leaves_a_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int) -> None:
    """`renamed` of the two files are in their place when it comes."""
    path = tmp_path / "tiny.safetensors"
    old = save_judge(path, tiny(), CARD)
    real, left = os.replace, renamed

    class KilledError(BaseException):
        """Stands for the end of the process."""

    def kill(draft: str, target: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError
        real(draft, target)

    other = random_weights(1, hidden=32, second=64)._asdict()
    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(os, "replace", kill)
        save_judge(path, other, {**CARD, "name": "other"})
    if renamed:
        assert "damaged or not the one on its card" in refused(path)
    else:
        assert (load_judge(path).name, load_judge(path).hash) == ("tiny", old)
        assert np.array_equal(load_judge(path).weights.w2, tiny()["w2"])
    assert save_judge(path, other, {**CARD, "name": "other"}) == load_judge(path).hash != old


def test_save_refuses(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="safetensors"):
        save_judge(tmp_path / "tiny.bin", tiny(), CARD)
    with pytest.raises(UserError, match="pixels"):
        save_judge(tmp_path / "tiny.safetensors", tiny(), {**CARD, "pixels": 0})
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        save_judge(tmp_path / "file" / "tiny.safetensors", tiny(), CARD)


def test_names() -> None:
    assert find_judge("mlp-6") == find_judge("mnist-mlp-6") == FOLDER / "mnist-mlp-6.safetensors"
    with pytest.raises(UserError, match=r"give one of .*mlp-4.*mlp-6"):
        load_judge("mlp-7")


@pytest.mark.parametrize("name", shipped_judges())
def test_shipped_judges_are_sound_and_small(name: str) -> None:
    judge = load_judge(name)
    assert judge.name == name
    assert judge.pixels == int(name.rsplit("-", 1)[1])
    assert (FOLDER / f"{judge.dataset}-mlp-{judge.pixels}.safetensors").stat().st_size < 1_500_000
    card: dict[str, Any] = judge.card
    assert len(card["test"]["mask_seeds"]) >= 5
    assert card["test"]["accuracy"] == pytest.approx(np.mean(card["test"]["accuracies"]), abs=1e-6)
    assert card["command"].startswith("debate-rl judge action=train")
    assert card["data_hashes"]
    assert card["licence"]
    if judge.dataset == "mnist":
        assert card["test"]["accuracy"] >= BARS[judge.pixels]


@pytest.mark.parametrize("pixels", [4, 6])
def test_shipped_judges_are_as_good_as_their_cards(pixels: int, mnist_test: Digits) -> None:
    judge = load_judge(f"mlp-{pixels}")
    found = assess_judge(judge, mnist_test.images, mnist_test.labels)
    assert found.images == 10_000
    assert found.accuracy >= BARS[pixels]
    np.testing.assert_allclose(found.accuracies, judge.card["test"]["accuracies"], atol=2e-4)  # a logit may tip over with the machine
    assert found.ece == pytest.approx(judge.card["test"]["ece"], abs=1e-3)
    other = assess_judge(judge, mnist_test.images, mnist_test.labels, seeds=range(100, 105))
    assert other.accuracy >= BARS[pixels] - 0.003  # other masks: the standard error is 0.002


def test_loading_imports_no_torch() -> None:
    code = "import sys; from debate_rl.judges.pretrained import load_judge; load_judge('mlp-6'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_logits_dense_by_hand() -> None:
    weights = JudgeWeights(**tiny())
    planes = np.zeros((1, 2, 28, 28), dtype=np.float32)
    planes[0, :, 2, 3] = 1.0, 0.25
    pixel = 2 * 28 + 3
    first = [max(0.0, float(b + m + 0.25 * v)) for b, m, v in zip(weights.b1, weights.w_mask[pixel], weights.w_value[pixel], strict=True)]
    second = [max(0.0, float(weights.b2[j]) + sum(first[i] * float(weights.w2[i, j]) for i in range(32))) for j in range(64)]
    logits = [float(weights.b3[k]) + sum(second[j] * float(weights.w3[j, k]) for j in range(64)) for k in range(10)]
    np.testing.assert_allclose(logits_dense(weights, planes)[0], logits, rtol=1e-4, atol=1e-4)
