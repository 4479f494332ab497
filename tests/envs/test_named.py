"""The environment on real digits with the shipped judges, and the code on docs/environment.md."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from debate_rl.envs import pixels
from debate_rl.envs.pool import named_pool

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.judges.kernels import set_logits
from debate_rl.judges.pretrained import load_judge

DOCS = Path(__file__).parents[2] / "docs" / "environment.md"


@pytest.mark.parametrize("count", [4, 6])
def test_real_debates_are_judged_by_the_shipped_judge(mnist_test: Digits, count: int) -> None:
    env = pixels.env(pixels=count, split="test")
    env.reset(seed=1, options={"index": 99})
    assert np.array_equal(env.unwrapped.game.images[0], mnist_test.images[99].ravel())
    assert env.infos["honest"]["label"] == mnist_test.labels[99]
    rng = np.random.default_rng(0)
    while not any(env.terminations.values()):
        env.step(int(rng.choice(np.flatnonzero(env.observe(env.agent_selection)["action_mask"]))))
    game = env.unwrapped.game
    weights = load_judge(f"mlp-{count}").weights
    assert env.infos["honest"]["logits"] == set_logits(weights, game.images, game.image_of, game.moves)[0].tolist()


@pytest.mark.parametrize("judge", ["mlp-4", load_judge("mlp-4"), load_judge("mlp-4").weights], ids=["name", "Judge", "weights"])
def test_a_judge_may_be_given_in_three_ways(judge: object) -> None:
    env = pixels.raw_env(judge=judge, split="test", pixels=2)  # type: ignore[arg-type]
    env.reset(seed=0)
    assert env.logits().tolist() == pytest.approx(load_judge("mlp-4").logits(np.zeros((1, 2, 28, 28), np.float32))[0].tolist(), abs=1e-4)


def test_debates_for_training_use_the_training_split_by_default(mnist_train: Digits) -> None:
    env = pixels.env()
    env.reset(seed=0, options={"index": 59_999})
    assert np.array_equal(env.unwrapped.game.images[0], mnist_train.images[59_999].ravel())


def test_environments_share_one_copy_of_a_data_set() -> None:
    pool = pixels.raw_env(split="test")._pool
    assert pixels.raw_env(split="test", pixels=4)._pool is pool is named_pool("mnist", "test", 0.0, False)
    assert copy.deepcopy(pool) is pool
    sent = pickle.dumps(pool)
    assert len(sent) < 500 and pickle.loads(sent) is pool
    with pytest.raises(ValueError, match="read-only"):
        pool.images[0, 0] = 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judge": "mlp-99"}, "unknown judge 'mlp-99'"),
        ({"pixels": 5}, "unknown judge 'mnist-mlp-5'"),
        ({"dataset": "emnist"}, "emnist"),
        ({"split": "validation"}, "validation"),
    ],
)
def test_unknown_names_get_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        pixels.env(**settings)
    assert "\n" not in str(caught.value)


def test_the_documented_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {"__name__": "documented"}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= {"honest", "liar"}
    assert names["model"].num_timesteps == 64  # type: ignore[attr-defined]
