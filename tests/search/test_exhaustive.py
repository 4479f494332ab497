"""Judging every set against the proof search, on the CPU (and on a GPU where there is one)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, HONEST, NO_LIE, new_games, step
from debate_rl.judges.networks import PaperConvNet
from debate_rl.judges.pretrained import load_judge
from debate_rl.search.exact import PROVED_HONEST, solve
from debate_rl.search.exhaustive import judge_with_network, judge_with_weights, solve_exhaustively

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def thinned(image: np.ndarray, count: int, seed: int) -> np.ndarray:
    """An image with all but `count` of its nonzero pixels blackened."""
    flat = image.reshape(-1).copy()
    lit = np.flatnonzero(flat)
    flat[np.random.default_rng(seed).permutation(lit)[count:]] = 0
    return flat


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("index", "count"), [(6, 24), (8, 17), (3, 4)])
def test_all_values_are_those_of_the_proof_search(mnist_test, device: str, first: int, index: int, count: int) -> None:
    judge = load_judge("mlp-4")
    image, label = thinned(mnist_test.images[index], count, index), int(mnist_test.labels[index])
    pixels = np.flatnonzero(image)
    last_is_honest = (first + 3) % 2 == HONEST
    where = torch.device(device)
    found = solve_exhaustively(judge_with_weights(judge.weights, image, pixels, where), count, label, last_is_honest, where, chunk=100)
    lies = [NO_LIE if claim == label else claim for claim in range(CLASSES)]

    def last_wins(moves: list[int]) -> list[bool]:
        games = new_games(image[None], [label] * CLASSES, lies, pixels=4, first=first, image_of=[0] * CLASSES)
        for move in moves:
            step(games, [move] * CLASSES)
        return ((solve(judge.weights, games).outcomes == PROVED_HONEST) == last_is_honest).tolist()

    assert found.start.tolist() == last_wins([])
    for one in range(0, count, 3):
        assert found.after_one[:, one].tolist() == last_wins([pixels[one]])
        for two in range(0, count, 5):
            if one != two:
                assert found.after_two[:, one, two].tolist() == last_wins([pixels[one], pixels[two]])


@pytest.mark.parametrize("device", DEVICES)
def test_any_network_can_judge(mnist_test, device: str) -> None:
    """A network on planes gives what the same weights give as a table of all sets."""
    where = torch.device(device)
    network = PaperConvNet(np.random.default_rng(1)).eval().to(where)
    image, label = thinned(mnist_test.images[6], 9, 0), 4
    pixels = np.flatnonzero(image)
    judging = judge_with_network(network, image, pixels, where)
    found = solve_exhaustively(judging, 9, label, True, where, chunk=50)
    table: dict[frozenset[int], list[bool]] = {}
    for sets in torch.combinations(torch.arange(9), 4).split(50):
        planes = torch.zeros(len(sets), 2, 784)
        for row, chosen in enumerate(sets.tolist()):
            for place in chosen:
                planes[row, 0, pixels[place]] = 1.0
                planes[row, 1, pixels[place]] = float(image[pixels[place]]) / 255.0
        with torch.inference_mode():
            logits = network(planes.view(-1, 2, 28, 28).to(where)).cpu()
        for chosen, row in zip(sets.tolist(), logits, strict=True):
            beats = [bool(row[label] > row[claim]) for claim in range(CLASSES)]
            beats[label] = all(beats[claim] for claim in range(CLASSES) if claim != label)
            table[frozenset(chosen)] = beats
    for claim in range(CLASSES):

        def last_wins(taken: frozenset[int], claim: int = claim) -> bool:
            if len(taken) == 4:
                return table[taken][claim]
            children = (last_wins(taken | {place}) for place in range(9) if place not in taken)
            return any(children) if len(taken) % 2 == 1 else all(children)

        assert found.start[claim].item() == last_wins(frozenset())


def test_too_thin_an_image_is_refused() -> None:
    with pytest.raises(UserError, match="3 pixels to reveal is too thin"):
        solve_exhaustively(lambda sets: torch.zeros(len(sets), CLASSES), 3, 0, True, torch.device("cpu"))
