"""The judge's figures against hand-made cases and a plain-Python twin."""

import json
import math

import numpy as np
import pytest

from debate_rl.errors import UserError
from debate_rl.judges.assessment import assess_judge, summarize
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.judges.pretrained import Judge


def row_reader() -> Judge:
    """A judge that knows how many revealed pixels lie in rows 2c and 2c + 1, and says the class c with most."""
    w_mask = np.zeros((784, 32), dtype=np.float32)
    for pixel in range(560):
        w_mask[pixel, pixel // 56] = 1.0
    eye = np.eye(32, dtype=np.float32)
    zeros = np.zeros(32, dtype=np.float32)
    weights = JudgeWeights(w_mask, np.zeros_like(w_mask), zeros, eye, zeros, np.ascontiguousarray(eye[:, :10]), zeros[:10])
    return Judge("rows", "0" * 16, 3, "mnist", weights, {})


def test_a_known_judge() -> None:
    images = np.zeros((20, 28, 28), dtype=np.uint8)
    labels = np.arange(20) % 10
    for image, label in zip(images, labels, strict=True):
        image[2 * label] = 200
    truth = np.where(np.arange(20) == 19, 0, labels)  # one image is wrongly labelled
    found = assess_judge(row_reader(), images, truth)
    assert found.accuracies == (0.95,) * 5
    assert found.spread == 0.0
    assert found.confusion[0, 9] == pytest.approx(5.0)
    assert found.confusion.sum() == pytest.approx(100.0)
    assert found.pixels == 3
    p = math.exp(3) / (math.exp(3) + 9)
    assert found.cross_entropy == pytest.approx(-0.95 * math.log(p) - 0.05 * math.log((1 - p) / 9), rel=1e-5)
    assert found.ece == pytest.approx(0.95 - p, rel=1e-4)


def test_progress_and_batches_change_nothing() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, (37, 784)).astype(np.uint8) * 255
    labels = rng.integers(0, 10, 37)
    seen: list[tuple[int, int]] = []
    one = assess_judge(row_reader(), images, labels, seeds=(0, 1), batch_size=5, progress=lambda done, total: seen.append((done, total)))
    two = assess_judge(row_reader(), images, labels, seeds=(0, 1))
    assert json.dumps(one.as_json()) == json.dumps(two.as_json())
    assert seen[-1] == (74, 74)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_calibrated_and_an_overconfident_judge() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1.5, (1, 20_000, 10))
    p = np.exp(logits[0]) / np.exp(logits[0]).sum(1, keepdims=True)
    labels = (p.cumsum(1) > rng.random((20_000, 1))).argmax(1)
    calibrated, sharp = summarize(logits, labels, 6, (0,)), summarize(3.0 * logits, labels, 6, (0,))
    assert calibrated.ece < 0.015
    assert sharp.ece > 0.1
    assert sharp.accuracies == calibrated.accuracies
    assert sharp.cross_entropy > calibrated.cross_entropy


def test_refusals() -> None:
    images = np.ones((3, 784), dtype=np.uint8)
    with pytest.raises(UserError, match="one label per image"):
        assess_judge(row_reader(), images, np.zeros(2, dtype=np.int64))
    with pytest.raises(UserError, match="mask seed"):
        assess_judge(row_reader(), images, np.zeros(3, dtype=np.int64), seeds=())
    with pytest.raises(UserError, match="at least 1"):
        assess_judge(row_reader(), images, np.zeros(3, dtype=np.int64), pixels=0)
