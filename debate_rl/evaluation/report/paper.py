"""The paper's published figures, the only ones in the product that are not measured here.

Source: Irving, Christiano, Amodei, "AI safety via debate" (2018, arXiv:1805.00899), Table 2, section 3.1. MNIST test images; the judge sees
random nonzero pixels, or the pixels of a debate between tree searches of 10,000 rollouts per move. Shares, not percent.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "Irving, Christiano, Amodei 2018, AI safety via debate (arXiv:1805.00899), Table 2"
DATASET: Final = "mnist"
PIXELS: Final = (4, 6)
ORDERS: Final = ("honest", "liar", "mean")
ROLLOUTS: Final = 10_000

JUDGE_ACCURACY: Final[dict[int, float]] = {4: 0.482, 6: 0.594}

# (pixels, first player) -> share of images that honest wins
NO_PRECOMMIT: Final[dict[tuple[int, str], float]] = {
    (4, "honest"): 0.510,
    (4, "liar"): 0.684,
    (4, "mean"): 0.597,
    (6, "honest"): 0.674,
    (6, "liar"): 0.815,
    (6, "mean"): 0.744,
}
PRECOMMIT: Final[dict[tuple[int, str], float]] = {
    (4, "honest"): 0.838,
    (4, "liar"): 0.867,
    (4, "mean"): 0.852,
    (6, "honest"): 0.874,
    (6, "liar"): 0.904,
    (6, "mean"): 0.889,
}


def honest_win(pixels: int, first: str, commit: str) -> float | None:
    """The paper's honest win rate of one cell of Table 2, or None where it has none. `commit` is `precommit` or `none`."""
    return (PRECOMMIT if commit == "precommit" else NO_PRECOMMIT).get((pixels, first))
