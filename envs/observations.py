"""What a debater observes, as gymnasium spaces and arrays.

An observation has these parts, all float32 in [0, 1]:

| part | shape | content |
| --- | --- | --- |
| `planes` | (3, 28, 28) | the whole image; the mask of revealed pixels; their values (the last two are what the judge sees) |
| `claims` | (2, 10) | one-hot: the observer's own claim, then the opponent's; a row of zeros where nothing was claimed |
| `role` | (2,) | one-hot: honest, liar |
| `turn` | (1,) | 1 when the observer is to move |
| `ply` | (1,) | revealed pixels as a fraction of the game's |
| `first` | (1,) | 1 when the observer made or makes the game's first move |
| `precommit` | (1,) | 1 when the liar has claimed a class in advance |

The `flat` form is the same numbers in this order as one vector `(2378,)`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from debate_rl.games.pixels import CLASSES, HONEST, LIAR, NO_LIE, PIXELS_PER_IMAGE, SEATS, SIDE, GameBatch, planes

Form = Literal["dict", "flat"]

SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "planes": (3, SIDE, SIDE),
    "claims": (2, CLASSES),
    "role": (2,),
    "turn": (1,),
    "ply": (1,),
    "first": (1,),
    "precommit": (1,),
}
FLAT_SIZE: Final = sum(int(np.prod(shape)) for shape in SHAPES.values())
STATE_SIZE: Final = 3 * PIXELS_PER_IMAGE + 2 * CLASSES + 3


def _unit_box(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(0.0, 1.0, shape, np.float32)


def observation_space(form: Form) -> spaces.Dict:
    """The space of `Dict(observation=..., action_mask=Box int8 (784,))`, the inner part in the asked form."""
    inner: spaces.Space[Any] = (
        _unit_box((FLAT_SIZE,)) if form == "flat" else spaces.Dict({key: _unit_box(shape) for key, shape in SHAPES.items()})
    )
    return spaces.Dict({"observation": inner, "action_mask": spaces.Box(0, 1, (PIXELS_PER_IMAGE,), np.int8)})


def state_space() -> spaces.Box:
    """The space of `global_state`."""
    return _unit_box((STATE_SIZE,))


def _board(games: GameBatch) -> NDArray[np.float32]:
    image = games.images[games.image_of[0]].astype(np.float32) / np.float32(255.0)
    return np.concatenate([image.reshape(1, SIDE, SIDE), planes(games)[0]])  # (3, 28, 28)


def _claims(games: GameBatch) -> NDArray[np.float32]:
    claims = np.zeros((2, CLASSES), dtype=np.float32)  # honest, liar
    claims[HONEST, games.labels[0]] = 1.0
    if games.lies[0] != NO_LIE:
        claims[LIAR, games.lies[0]] = 1.0
    return claims


def observe(games: GameBatch, seat: int, *, live: bool, form: Form) -> Any:
    """The observation of `seat` in the one debate that `games` holds, without the action mask.

    `live` is False once the episode has ended: nobody's turn any more.
    """
    claims = _claims(games)
    parts: dict[str, NDArray[np.float32]] = {
        "planes": _board(games),
        "claims": claims if seat == HONEST else claims[::-1].copy(),
        "role": np.array([seat == HONEST, seat == LIAR], dtype=np.float32),
        "turn": np.array([live and games.movers()[0] == seat], dtype=np.float32),
        "ply": np.array([games.counts[0] / games.pixels], dtype=np.float32),
        "first": np.array([games.first[0] == seat], dtype=np.float32),
        "precommit": np.array([games.lies[0] != NO_LIE], dtype=np.float32),
    }
    if form == "flat":
        return np.concatenate([parts[key].ravel() for key in SHAPES])  # (2378,)
    return parts


def global_state(games: GameBatch) -> NDArray[np.float32]:
    """Everything about the one debate that `games` holds, `(2375,)` float32 for a centralised critic.

    In order: the three planes of an observation, the honest claim, the liar's claim, then whether honest moved first, whether the liar is
    committed, and the fraction of pixels revealed.
    """
    facts = [games.first[0] == SEATS.index("honest"), games.lies[0] != NO_LIE, games.counts[0] / games.pixels]
    return np.concatenate([_board(games).ravel(), _claims(games).ravel(), np.array(facts, dtype=np.float32)])
