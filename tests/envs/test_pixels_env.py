"""What the environment adds to the rules: sampling, observations, rewards, illegal moves, options."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from debate_rl.envs import observations, pixels
from debate_rl.envs.pool import ImagePool
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games import pixels as game
from debate_rl.judges.kernels import JudgeWeights, set_logits

Make = Callable[..., Any]
Digits = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def legal_action(env: Any, rng: np.random.Generator) -> int:
    mask = env.observe(env.agent_selection)["action_mask"]
    return int(rng.choice(np.flatnonzero(mask)))


def play(env: Any, rng: np.random.Generator) -> dict[str, float]:
    """Play to the end with random legal moves; the sum of each agent's rewards from `last()`."""
    returns: Counter[str] = Counter()
    for agent in env.agent_iter():
        _, reward, terminated, truncated, _ = env.last()
        returns[agent] += reward
        env.step(None if terminated or truncated else legal_action(env, rng))
    return dict(returns)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    count=st.integers(1, 8),
    commit=st.sampled_from(["precommit", "none"]),
    first=st.sampled_from(["honest", "liar", "random"]),
    reward=st.sampled_from(["win", "log_odds"]),
)
def test_kernel_and_environment_agree(
    make: Make, weights: JudgeWeights, seed: int, count: int, commit: str, first: str, reward: str
) -> None:
    env = make(pixels=count, commit=commit, first=first, reward=reward)
    env.reset(seed=seed)
    info = env.infos["honest"]
    lie = game.NO_LIE if info["lie"] is None else info["lie"]
    pool: ImagePool = env.unwrapped._pool
    batch = game.new_games(pool.images, [info["label"]], lie, pixels=count, first=game.SEATS.index(info["first"]), image_of=[info["index"]])
    rng = np.random.default_rng(seed)
    while not batch.over()[0]:
        assert env.agent_selection == game.SEATS[batch.movers()[0]]
        mask = env.observe(env.agent_selection)["action_mask"]
        assert np.array_equal(mask.astype(bool), game.legal_moves(batch)[0])
        for seat, agent in enumerate(game.SEATS):
            seen = env.observe(agent)
            assert np.array_equal(seen["observation"]["planes"][1:], game.planes(batch)[0])
            if seat != batch.movers()[0]:
                assert not seen["action_mask"].any()
        pixel = int(rng.choice(np.flatnonzero(mask)))
        env.step(pixel)
        assert game.step(batch, [pixel])[0]
        assert np.array_equal(env.unwrapped.game.moves, batch.moves) and np.array_equal(env.unwrapped.game.counts, batch.counts)
    logits = set_logits(weights, batch.images, batch.image_of, batch.moves)
    honest = bool(game.honest_wins(logits, batch.labels, batch.lies)[0])
    assert all(env.terminations.values()) and not any(env.truncations.values())
    assert env.infos["liar"]["winner"] == ("honest" if honest else "liar")
    assert env.infos["honest"]["logits"] == logits[0].tolist()
    if reward == "win":
        assert env.rewards == {"honest": 1.0 if honest else -1.0, "liar": -1.0 if honest else 1.0}
    elif commit == "precommit":
        assert env.rewards["honest"] == game.margins(logits, batch.labels, batch.lies)[0]
    else:
        chances = np.exp(logits[0].astype(np.float64)) / np.exp(logits[0].astype(np.float64)).sum()
        truth = chances[info["label"]]
        assert env.rewards["honest"] == pytest.approx(np.log(truth / (1 - truth)), rel=1e-4, abs=1e-4)
    assert env.rewards["honest"] == -env.rewards["liar"]


@pytest.mark.parametrize("reward", ["win", "log_odds"])
@pytest.mark.parametrize("count", [1, 4, 5])
def test_returns_sum_to_zero_and_come_only_at_the_end(make: Make, reward: str, count: int) -> None:
    env = make(reward=reward, pixels=count)
    rng = np.random.default_rng(0)
    outcomes = set()
    for seed in range(20):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            assert set(env._cumulative_rewards.values()) == {0.0}
            env.step(legal_action(env, rng))
        env.reset(seed=seed)
        returns = play(env, rng)
        assert returns.keys() == {"honest", "liar"} and sum(returns.values()) == 0.0 and returns["honest"] != 0.0
        outcomes.add(returns["honest"] > 0)
        assert env.agents == []
    assert outcomes == {True, False}  # the random judge lets both win: the test sees both signs


def test_sampling_covers_images_lies_and_orders_evenly(make: Make) -> None:
    env = make()
    seen: list[dict[str, Any]] = []
    for seed in range(600):
        env.reset(seed=None if seed else 11)
        seen.append(env.infos["honest"])
    indices, firsts = Counter(info["index"] for info in seen), Counter(info["first"] for info in seen)
    shifts = Counter((info["lie"] - info["label"]) % 10 for info in seen)
    assert set(indices) == set(range(20)) and max(indices.values()) < 60
    assert set(shifts) == set(range(1, 10)) and min(shifts.values()) > 35
    assert min(firsts.values()) > 240


def test_same_seed_same_debate_and_options_leave_the_other_draws_alone(make: Make) -> None:
    env = make()
    env.reset(seed=3)
    plain = env.infos["honest"]
    env.reset(seed=3)
    assert env.infos["honest"] == plain
    other = (plain["label"] + 1) % 10 if plain["lie"] != (plain["label"] + 1) % 10 else (plain["label"] + 2) % 10
    env.reset(seed=3, options={"lie": other})
    assert env.infos["honest"] == {**plain, "lie": other}
    env.reset(seed=3, options={"first": "liar" if plain["first"] == "honest" else "honest"})
    assert {key: env.infos["honest"][key] for key in ("index", "label", "lie")} == {key: plain[key] for key in ("index", "label", "lie")}


def test_options_choose_the_debate(make: Make, digits: Digits) -> None:
    env = make()
    env.reset(seed=0, options={"index": 6, "lie": 9, "first": "liar"})
    assert env.infos["liar"] == {"index": 6, "label": 3, "lie": 9, "first": "liar"}
    assert env.agent_selection == "liar"
    assert np.array_equal(env.unwrapped.game.images[0], digits[0][6].ravel())
    for seed in range(10):
        env.reset(seed=seed, options={"label": 8})
        assert env.infos["honest"]["label"] == 8 and env.infos["honest"]["index"] in (16, 17)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({}, {"index": 20}, "index is 20.*0 to 19"),
        ({}, {"index": -1}, "index is -1"),
        ({}, {"index": 1.5}, "index is 1.5"),
        ({}, {"index": True}, "index is True"),
        ({}, {"label": 10}, "label is 10"),
        ({}, {"lie": -1}, "lie is -1"),
        ({}, {"index": 6, "lie": 3}, "must differ"),
        ({}, {"index": 6, "label": 4}, "image 6 is a 3, not a 4"),
        ({}, {"first": "judge"}, "first is 'judge'"),
        ({"commit": "none"}, {"lie": 3}, "claims nothing in advance"),
    ],
)
def test_bad_options_are_refused_in_one_line(make: Make, settings: dict[str, Any], options: dict[str, Any], message: str) -> None:
    env = make(**settings)
    with pytest.raises(UserError, match=message) as caught:
        env.reset(seed=0, options=options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pixels": 0}, "pixels is 0"),
        ({"first": "judge"}, "first is 'judge'"),
        ({"commit": "maybe"}, "commit is 'maybe'"),
        ({"threshold": 2.0}, "threshold is 2.0"),
        ({"reward": "money"}, "reward is 'money'.*'win', 'log_odds'"),
        ({"observation": "box"}, "observation is 'box'"),
        ({"render_mode": "video"}, "render_mode is 'video'"),
        ({"labels": None}, "go together"),
        ({"images": np.zeros((2, 28, 28))}, "uint8"),
        ({"images": np.zeros((2, 14, 56), dtype=np.uint8)}, "shape"),
        ({"images": np.zeros((0, 28, 28), dtype=np.uint8), "labels": np.zeros(0, dtype=np.int64)}, "no images"),
        ({"labels": np.full(20, 10)}, "0-9"),
        ({"labels": np.zeros(19, dtype=np.int64)}, r"shape \(20,\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make: Make, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        make("raw_env", **settings)
    assert "\n" not in str(caught.value)


def test_images_with_too_few_pixels_are_never_drawn_and_refused_by_index(make: Make) -> None:
    images = np.zeros((3, 784), dtype=np.uint8)
    images[0, :5], images[1, :6], images[2, :5] = 9, 9, 9
    env = make(images=images, labels=np.array([1, 2, 3]))
    for seed in range(20):
        env.reset(seed=seed)
        assert env.infos["honest"]["index"] == 1
    with pytest.raises(UserError, match="image 2 has 5 pixels to reveal, the game needs 6"):
        env.reset(options={"index": 2})
    with pytest.raises(UserError, match="no image of class 3 has 6 pixels"):
        env.reset(options={"label": 3})


@pytest.mark.parametrize("bad", ["black", "repeated", -1, 784, 2.0, None, "7"])
def test_raw_env_refuses_an_illegal_move_and_changes_nothing(make: Make, bad: Any) -> None:
    env = make("raw_env")
    env.reset(seed=2)
    first = legal_action(env, np.random.default_rng(0))
    env.step(first)
    action = {"black": int(np.flatnonzero(env.game.images[0] == 0)[0]), "repeated": first}.get(bad, bad)
    before = (env.agent_selection, env.game.moves.copy(), dict(env.rewards))
    with pytest.raises(UserError, match=f"{env.agent_selection} cannot reveal"):
        env.step(action)
    assert env.agent_selection == before[0] and np.array_equal(env.game.moves, before[1]) and env.rewards == before[2]
    env.step(legal_action(env, np.random.default_rng(1)))  # the game goes on


@pytest.mark.parametrize("when", [0, 1, 5])
def test_env_ends_the_game_on_an_illegal_move(make: Make, when: int) -> None:
    env = make(render_mode="ansi")
    rng = np.random.default_rng(0)
    env.reset(seed=4)
    for _ in range(when):
        env.step(legal_action(env, rng))
    culprit = env.agent_selection
    mask = env.observe(culprit)["action_mask"]
    env.step(int(np.flatnonzero(mask == 0)[0]))
    assert all(env.terminations.values()) and all(env.truncations.values())
    assert "illegal" in env.render()
    assert not any(env.observe(agent)["action_mask"].any() or env.observe(agent)["observation"]["turn"][0] for agent in game.SEATS)
    returns = {}
    for agent in env.agent_iter():
        returns[agent] = env.last()[1]
        env.step(None)
    assert returns == {culprit: -1.0, game.SEATS[1 - game.SEATS.index(culprit)]: 0.0}
    env.reset(seed=5)  # and the next episode is a whole one
    assert sum(play(env, rng).values()) == 0.0


def test_out_of_range_actions_are_caught_by_the_wrapper(make: Make) -> None:
    env = make()
    env.reset(seed=0)
    for bad in (-1, 784):
        with pytest.raises(AssertionError, match="not in action space"):
            env.step(bad)


def test_raw_env_says_when_reset_is_missing(make: Make) -> None:
    with pytest.raises(UserError, match=r"call reset\(\) first"):
        make("raw_env").observe("honest")


def test_observation_holds_both_claims_and_the_turn(make: Make, digits: Digits) -> None:
    env = make(first="liar")
    env.reset(seed=0, options={"index": 4, "lie": 7})
    honest, liar = env.observe("honest")["observation"], env.observe("liar")["observation"]
    assert np.array_equal(honest["planes"][0], (digits[0][4] / np.float32(255)).astype(np.float32))
    assert not honest["planes"][1:].any()
    assert [row.argmax() for row in honest["claims"]] == [2, 7] and [row.argmax() for row in liar["claims"]] == [7, 2]
    assert honest["role"].tolist() == [1, 0] and liar["role"].tolist() == [0, 1]
    assert honest["turn"][0] == 0 and liar["turn"][0] == 1
    assert honest["first"][0] == 0 and liar["first"][0] == 1
    assert honest["precommit"][0] == liar["precommit"][0] == 1
    env.step(legal_action(env, np.random.default_rng(0)))
    assert env.observe("honest")["observation"]["turn"][0] == 1
    assert env.observe("honest")["observation"]["ply"][0] == pytest.approx(1 / 6)


def test_without_precommitment_nobody_sees_a_lie(make: Make) -> None:
    env = make(commit="none")
    env.reset(seed=0)
    assert env.infos["liar"]["lie"] is None
    seen = env.observe("honest")["observation"]
    assert seen["claims"].sum() == 1 and seen["precommit"][0] == 0


def test_flat_observation_is_the_dictionary_in_order(make: Make) -> None:
    parts, flat = make(), make(observation="flat")
    parts.reset(seed=9)
    flat.reset(seed=9)
    pixel = legal_action(parts, np.random.default_rng(0))
    parts.step(pixel)
    flat.step(pixel)
    for agent in game.SEATS:
        seen = parts.observe(agent)["observation"]
        vector = flat.observe(agent)["observation"]
        assert vector.shape == (observations.FLAT_SIZE,) == (2378,)
        assert np.array_equal(vector, np.concatenate([seen[key].ravel() for key in observations.SHAPES]))


def test_state_is_the_same_for_both_and_changes_with_the_game(make: Make) -> None:
    env = make()
    env.reset(seed=1)
    before = env.state()
    assert env.unwrapped.state_space.contains(before)
    env.step(legal_action(env, np.random.default_rng(0)))
    assert np.flatnonzero(before != env.state()).size == 3  # a mask bit, a value, the ply


def test_observations_are_fresh_arrays(make: Make) -> None:
    env = make()
    env.reset(seed=1)
    seen = env.observe(env.agent_selection)
    seen["action_mask"][:] = 1
    seen["observation"]["planes"][:] = 0
    assert env.observe(env.agent_selection)["action_mask"].sum() == 60
    assert env.observe(env.agent_selection)["observation"]["planes"][0].any()


def test_copies_play_on_independently_and_share_the_images(make: Make) -> None:
    env = make()
    env.reset(seed=6)
    rng = np.random.default_rng(0)
    env.step(legal_action(env, rng))
    twin = copy.deepcopy(env)
    assert twin.unwrapped._pool is env.unwrapped._pool
    env.step(legal_action(env, rng))
    assert (env.unwrapped.game.counts[0], twin.unwrapped.game.counts[0]) == (2, 1)


def test_raw_env_survives_a_trip_to_another_process(make: Make) -> None:
    env = make("raw_env")
    env.reset(seed=6)
    twin = pickle.loads(pickle.dumps(env))  # what vector environments do to send one to a worker
    rng = np.random.default_rng(0)
    actions = []
    while not any(env.terminations.values()):
        actions.append(legal_action(env, rng))
        env.step(actions[-1])
        twin.step(actions[-1])
    assert twin.infos == env.infos


def test_log_odds_without_a_lie_stays_finite_for_huge_logits() -> None:
    logits = np.array([900.0, -900.0, *[0.0] * 8], dtype=np.float32)
    assert pixels.log_odds(logits, 0, game.NO_LIE) == pytest.approx(900.0 - np.log(8), rel=1e-5)
    assert pixels.log_odds(logits, 1, game.NO_LIE) == pytest.approx(-1800.0)
