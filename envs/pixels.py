"""
# Pixel debate

| Creation           | `make("aec", "debate/pixels-v0")` after `import debate_rl.envs` |
|--------------------|------------------------------------------------------------------|
| Actions            | Discrete                                                         |
| Parallel API       | Yes (turn by turn, see below)                                    |
| Manual Control     | No (`debate-rl play` seats a person)                             |
| Agents             | `agents = ["honest", "liar"]`                                    |
| Agents             | 2                                                                |
| Action Shape       | (1,)                                                             |
| Action Values      | [0, 783]                                                         |
| Observation Shape  | a Dict, or (2378,) with `observation="flat"`                     |
| Observation Values | [0, 1]                                                           |

Two debaters see a digit, the judge does not. The honest one claims its true class, the liar another; in turn they reveal one nonzero
pixel each. After `pixels` of them the judge, a classifier of sparse masks, decides which claim has the higher logit. The judge never
learns who revealed a pixel or when: to it a position is a set. The rules are `debate_rl.games.pixels`; Irving, Christiano, Amodei 2018,
"AI safety via debate", section 3.1.

### Arguments

| argument | default | meaning |
| --- | --- | --- |
| `pixels` | 6 | pixels revealed in all (the paper: 4 and 6) |
| `commit` | `"precommit"` | `"precommit"`: the lie is claimed in advance; `"none"`: any wrong answer of the judge is the liar's |
| `first` | `"random"` | who moves first: `"honest"`, `"liar"`, or drawn for each episode |
| `judge` | `None` | a shipped judge's name, a weights file, a `Judge` or `JudgeWeights`; `None`: the shipped one for these pixels |
| `dataset`, `split` | `"mnist"`, `"train"` | where images come from |
| `images`, `labels` | `None` | your own instead: `(N, 28, 28)` uint8 and `(N,)` integers |
| `threshold`, `black` | 0.0, `False` | which pixels may be revealed, see `debate_rl.games.pixels.Rules` |
| `reward` | `"win"` | `"win"` or `"log_odds"`, see Rewards |
| `observation` | `"dict"` | `"dict"` or `"flat"`, see Observation Space |
| `render_mode` | `None` | `"human"`, `"rgb_array"` or `"ansi"` |

`reset(options=...)` takes `index` (which image), `label` (draw an image of this class), `lie` (the liar's claim) and `first`; what is not
given is drawn with the seed. Giving one option leaves the other draws as they were.

### Observation Space

A dictionary with `observation` and `action_mask`. In the `dict` form `observation` is a flat dictionary of float32 boxes: `planes`
(3, 28, 28) (image, mask, revealed values), `claims` (2, 10) (own, opponent's), `role` (2,), and `turn`, `ply`, `first`, `precommit`
(1,) each; Stable-Baselines3's `MultiInputPolicy` takes it as it is. The `flat` form is the same numbers as one box, for `MlpPolicy` and
for tools that expect an array. See `debate_rl.envs.observations`. Both claims are visible from the start; without precommitment the
liar's row is zero. `state()` is a vector (2375,) that does not depend on the observer.

#### Legal Actions Mask

`action_mask` is int8 (784,): 1 where a pixel may be revealed now. It is all zeros for the agent whose turn it is not and after the end.

### Action Space

The flat index `28 * row + column` of the pixel to reveal.

### Rewards

Zero until the last pixel is out, then zero-sum:

| `reward` | winner | loser |
| :------: | :----: | :---: |
| `win`    | +1     | -1    |

| `reward`   | honest | liar |
| :--------: | :----: | :--: |
| `log_odds` | x      | -x   |

where x is the judge's log-odds of the truth: `logits[label] - logits[lie]`, and without precommitment `logits[label]` less the
log-sum-exp of the other nine (its sign is then not the winner: the largest of ten classes can have less than half the probability).
A tie goes to the liar. An episode always terminates and never truncates.

An illegal move (black, already revealed) in `env()` ends the game as PettingZoo has it: -1 for the mover, 0 for the other, both agents
terminated and truncated. In `raw_env()` it raises `UserError` and changes nothing.

### Infos

`infos[agent]` holds `index`, `label`, `lie` (None without precommitment) and `first`; at the end also `winner` and the judge's ten
`logits`.

### Version History

* v0: Initial version (0.1.0)

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

import gymnasium
import numpy as np
from debate_rl.envs import observations, rendering, text
from debate_rl.envs.pool import ImagePool, named_pool
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import ArrayLike, NDArray
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from debate_rl.errors import UserError
from debate_rl.games.pixels import (
    CLASSES,
    NO_LIE,
    PIXELS_PER_IMAGE,
    SEATS,
    VERSION,
    Commit,
    GameBatch,
    Rules,
    Seat,
    honest_wins,
    legal_moves,
    margins,
    new_games,
)
from debate_rl.games.pixels import step as reveal
from debate_rl.judges.kernels import JudgeWeights, set_logits

if TYPE_CHECKING:
    from debate_rl.judges.pretrained import Judge

Reward = Literal["win", "log_odds"]
RENDER_MODES: Final = ("human", "rgb_array", "ansi")


def env(**kwargs: Any) -> Any:
    """The environment with PettingZoo's usual wrappers: illegal moves end the game, actions and call order are checked."""
    wrapped = wrappers.TerminateIllegalWrapper(raw_env(**kwargs), illegal_reward=-1)
    wrapped = wrappers.AssertOutOfBoundsWrapper(wrapped)
    return wrappers.OrderEnforcingWrapper(wrapped)


def parallel_env(**kwargs: Any) -> Any:
    """The same game through PettingZoo's parallel API, one reveal per step, for tools that know nothing else.

    Debaters never act at the same time, so this is `turn_based_aec_to_parallel`: the action of the agent whose turn it is not (its mask is
    all zeros) is ignored. `aec_to_parallel`, which needs simultaneous moves, does not apply.
    """
    return turn_based_aec_to_parallel(env(**kwargs))


class raw_env(AECEnv):  # type: ignore[misc]  # noqa: N801 (PettingZoo's name for it)
    """The bare environment; the module's docstring says what it does."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": f"pixels_v{VERSION}",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 4,
    }

    def __init__(
        self,
        *,
        pixels: int = 6,
        commit: Commit = "precommit",
        first: Seat | Literal["random"] = "random",
        judge: str | Judge | JudgeWeights | None = None,
        dataset: str = "mnist",
        split: str = "train",
        images: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        threshold: float = 0.0,
        black: bool = False,
        reward: Reward = "win",
        observation: observations.Form = "dict",
        render_mode: str | None = None,
    ) -> None:
        """Load the judge and the images.

        Raises:
            UserError: an argument outside its range, a judge or data set that does not exist.
        """
        super().__init__()
        if first not in (*SEATS, "random"):
            raise UserError(f"first is {first!r}; it must be 'honest', 'liar' or 'random'")
        self.rules = Rules(pixels, "honest" if first == "random" else first, commit, threshold, black)
        for name, value, choices in (
            ("reward", reward, get_args(Reward)),
            ("observation", observation, get_args(observations.Form)),
            ("render_mode", render_mode, (None, *RENDER_MODES)),
        ):
            if value not in choices:
                raise UserError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
        if (images is None) != (labels is None):
            raise UserError("images and labels go together: give both or neither")
        if images is None or labels is None:
            self._pool = named_pool(dataset, split, threshold, black)
        else:
            self._pool = ImagePool(images, labels, threshold=threshold, black=black)
        self._weights = _judge_weights(judge, dataset, pixels)
        self._first = first
        self._reward = reward
        self._form: observations.Form = observation
        self.render_mode = render_mode
        self._canvas: rendering.Canvas | None = None
        self.possible_agents = list(SEATS)
        self.agents: list[str] = []
        self._observation_spaces = {agent: observations.observation_space(observation) for agent in SEATS}
        self._action_spaces = {agent: spaces.Discrete(PIXELS_PER_IMAGE) for agent in SEATS}
        self.state_space = observations.state_space()
        self._rng: np.random.Generator | None = None
        self._game: GameBatch | None = None  # one debate
        self._winner: str | None = None

    @property
    def game(self) -> GameBatch:
        """The debate being played, a batch of one.

        Raises:
            UserError: before the first `reset`.
        """
        if self._game is None:
            raise UserError("the environment has no debate yet: call reset() first")
        return self._game

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of `Dict(observation, action_mask)`."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """All 784 pixels."""
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a debate; see the module for the options.

        Raises:
            UserError: an option outside its range, or no image that fits.
        """
        if seed is not None or self._rng is None:
            self._rng, _ = seeding.np_random(seed)
        asked = dict(options or {})
        # Every draw is made whatever is asked for, so that fixing one leaves the others as they were.
        where, shift, coin = self._rng.random(), int(self._rng.integers(1, CLASSES)), int(self._rng.integers(2))
        label = _option(asked, "label", CLASSES)
        index = _option(asked, "index", len(self._pool.labels))
        if index is None:
            index = self._pool.draw(where, pixels=self.rules.pixels, label=label)
        truth = int(self._pool.labels[index])
        if label not in (None, truth):
            raise UserError(f"image {index} is a {truth}, not a {label}: give index or label, not both")
        if self._pool.counts[index] < self.rules.pixels:
            raise UserError(f"image {index} has {self._pool.counts[index]} pixels to reveal, the game needs {self.rules.pixels}")
        lie = _option(asked, "lie", CLASSES)
        if self.rules.commit == "none":
            if lie is not None:
                raise UserError("option lie is set, but with commit 'none' the liar claims nothing in advance")
            lie = NO_LIE
        elif lie is None:
            lie = (truth + shift) % CLASSES
        first = asked.pop("first", None) or (SEATS[coin] if self._first == "random" else self._first)
        if first not in SEATS:
            raise UserError(f"option first is {first!r}; it must be 'honest' or 'liar'")
        if asked:
            # PettingZoo's own tests pass options that no environment knows, so this cannot be an error.
            gymnasium.logger.warn(f"reset ignores unknown options: {', '.join(map(str, asked))}; known are index, label, lie and first")
        self._game = new_games(
            self._pool.images[index : index + 1],
            [truth],
            lie,
            pixels=self.rules.pixels,
            first=SEATS.index(first),
            threshold=self.rules.threshold,
            black=self.rules.black,
        )
        self._winner = None
        self.agents = self.possible_agents[:]
        self.agent_selection = first
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        info = {"index": index, "label": truth, "lie": None if lie == NO_LIE else lie, "first": first}
        self.infos = {agent: dict(info) for agent in self.agents}
        self._skip_agent_selection = None  # PettingZoo's note of who follows the dead; stale after an episode cut short
        if self.render_mode == "human":
            self.render()

    def step(self, action: Any) -> None:
        """Reveal one pixel for the agent whose turn it is, or remove it with None once the episode is over.

        Raises:
            UserError: an illegal pixel; nothing changes.
        """
        game, agent = self.game, self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, (int, np.integer)) or not reveal(game, [int(action)])[0]:
            raise UserError(f"{agent} cannot reveal {action!r}: an action is a pixel 0-783 that action_mask marks with 1")
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if game.over()[0]:
            self._decide()
        self._accumulate_rewards()
        self.agent_selection = SEATS[1 - SEATS.index(agent)]
        if self.render_mode == "human":
            self.render()

    def _decide(self) -> None:
        game, logits = self.game, self.logits()
        honest = bool(honest_wins(logits[None], game.labels, game.lies)[0])
        self._winner = SEATS[0] if honest else SEATS[1]
        gain = (1.0 if honest else -1.0) if self._reward == "win" else log_odds(logits, int(game.labels[0]), int(game.lies[0]))
        self.rewards = {"honest": gain, "liar": -gain}
        self.terminations = dict.fromkeys(self.agents, True)
        for info in self.infos.values():
            info["winner"] = self._winner
            info["logits"] = [float(logit) for logit in logits]

    def logits(self) -> NDArray[np.float32]:
        """The judge's logits `(10,)` on the pixels revealed so far."""
        game = self.game
        row: NDArray[np.float32] = set_logits(self._weights, game.images, game.image_of, game.moves)[0]
        return row

    def observe(self, agent: str) -> dict[str, Any]:
        """What an agent sees, as a fresh dictionary of arrays."""
        game = self.game
        live = not any(self.terminations.values())
        mask = np.zeros(PIXELS_PER_IMAGE, dtype=np.int8)
        if live and agent == self.agent_selection:
            mask[:] = legal_moves(game)[0]
        seen = observations.observe(game, SEATS.index(agent), live=live, form=self._form)
        return {"observation": seen, "action_mask": mask}

    def state(self) -> NDArray[np.float32]:
        """The position as one vector `(2375,)`, the same for both agents."""
        return observations.global_state(self.game)

    def render(self) -> NDArray[np.uint8] | str | None:
        """Draw the debate: an `(H, W, 3)` uint8 image, a string, or a window."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without a render_mode: make the environment with 'human', 'rgb_array' or 'ansi'")
            return None
        cut = any(self.terminations.values()) and self._winner is None  # the wrapper ended the game over an illegal move
        scene = rendering.Scene(self.game, self.logits(), self._winner, "ended by an illegal move" if cut else None)
        if self.render_mode == "ansi":
            return text.draw(scene)
        if self._canvas is None:
            self._canvas = rendering.Canvas(window=self.render_mode == "human", fps=self.metadata["render_fps"])
        return self._canvas.show(scene)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._canvas is not None:
            self._canvas.close()
            self._canvas = None


def log_odds(logits: NDArray[np.float32], label: int, lie: int) -> float:
    """The judge's log-odds of the truth: against the lie, or against the other nine classes where `lie` is NO_LIE."""
    if lie != NO_LIE:
        return float(margins(logits[None], [label], [lie])[0])
    others = np.delete(logits.astype(np.float64), label)
    top = others.max()
    return float(logits[label] - (top + np.log(np.exp(others - top).sum())))


def _option(options: dict[str, Any], name: str, limit: int) -> int | None:
    value = options.pop(name, None)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < limit:
        raise UserError(f"option {name} is {value!r}; it must be an integer from 0 to {limit - 1}")
    return int(value)


def _judge_weights(judge: str | Judge | JudgeWeights | None, dataset: str, pixels: int) -> JudgeWeights:
    if isinstance(judge, JudgeWeights):
        return judge
    # Here and not above: an environment with its own weights needs no safetensors.
    from debate_rl.judges.pretrained import load_judge

    if judge is None:
        judge = f"{dataset}-mlp-{pixels}"
    return (load_judge(judge) if isinstance(judge, str) else judge).weights
