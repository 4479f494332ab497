"""A plain-Python PUCT that draws the same random numbers as the kernel, and a brute-force minimax. Slow and obvious on purpose."""

from __future__ import annotations

import numpy as np

from debate_rl.games.pixels import GameBatch, margins
from debate_rl.judges.kernels import JudgeWeights, set_logits

MASK = (1 << 64) - 1


class Stream:
    """splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def below(self, bound: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        return ((z >> 32) * bound) >> 32


class Node:
    def __init__(self, action: int = -1) -> None:
        self.action = action
        self.visits = 0
        self.mean = np.float32(0.0)
        self.children: list[Node] = []
        self.exact: float | None = None  # for the honest seat


class Twin:
    def __init__(self, weights: JudgeWeights, games: GameBatch, game: int, settings, seed: int, *, fused: bool = True) -> None:
        self.weights = weights
        self.fused = fused  # does the processor add `weight * explore` with one rounding (fused multiply-add) or with two
        self.image = games.images[games.image_of[game]]
        self.pixels = np.flatnonzero(games.legal[games.image_of[game]])
        self.revealed = [int(np.searchsorted(self.pixels, m)) for m in games.moves[game, : games.counts[game]]]
        self.length = games.pixels
        self.label, self.lie = int(games.labels[game]), int(games.lies[game])
        self.first = int(games.first[game])
        self.settings = settings
        self.stream = Stream(seed)
        self.known: dict[tuple[int, ...], float] = {}
        self.judged = 0  # sets that the search shows to the judge, those it has shown before too

    def lead(self, taken: list[int]) -> float:
        self.judged += 1
        key = tuple(sorted(taken))
        if key not in self.known:
            moves = np.array([[self.pixels[i] for i in key]])
            logits = set_logits(self.weights, self.image[None], np.zeros(1, int), moves)
            self.known[key] = float(margins(logits, [self.label], [self.lie])[0])
        return self.known[key]

    def value(self, lead: float) -> float:
        if self.settings.value == "win":
            return 1.0 if lead > 0 else -1.0
        return float(np.float32(np.tanh(0.5 * lead)))

    def honest_to_move(self, ply: int) -> bool:
        return (self.first + ply) % 2 == 0

    def draw(self, taken: list[int], siblings: list[int]) -> int:
        while True:
            pixel = self.stream.below(len(self.pixels))
            if pixel not in taken and pixel not in siblings:
                return pixel

    def select(self, node: Node, unvisited: int) -> Node | None:
        if not node.children:
            return None
        total = sum(child.visits for child in node.children)
        prior = np.float32(1.0) / np.float32(len(self.pixels))
        weight = np.float32(np.float32(self.settings.c_puct) * prior * np.sqrt(np.float32(total)))
        scores = []
        for child in node.children:
            explore = np.float32(1.0) / np.float32(child.visits + 1)
            # A product of two float32 is exact as a float64.
            product = float(weight) * float(explore) if self.fused else float(weight * explore)
            scores.append(float(np.float32(float(child.mean) + product)))
        best = max(scores)
        if unvisited and float(weight) > best:
            return None
        tied = [child for child, score in zip(node.children, scores, strict=True) if score == best]
        extra = unvisited if unvisited and float(weight) == best else 0
        pick = 0
        if len(tied) + extra > 1:
            pick = self.stream.below(len(tied) + extra)
        return tied[pick] if pick < len(tied) else None

    def rollout(self, root: Node) -> None:
        taken = list(self.revealed)
        path: list[Node] = []
        node = root
        while True:
            child = self.select(node, len(self.pixels) - len(taken) - len(node.children))
            if child is not None:
                taken.append(child.action)
                path.append(child)
                node = child
                if child.exact is None:
                    continue
                own = float(child.mean)
                value = own if self.honest_to_move(len(taken) - 1) else -own
                break
            pixel = self.draw(taken, [c.action for c in node.children])
            child = Node(pixel)
            node.children.append(child)
            taken.append(pixel)
            path.append(child)
            if len(taken) == self.length:
                child.exact = 1.0
            elif self.length - len(taken) <= self.settings.exact_plies:
                value = self.value(self.best_lead(taken))
                child.exact = 1.0
                break
            if self.settings.leaf == "playout":
                while len(taken) < self.length:
                    taken.append(self.draw(taken, []))
            value = self.value(self.lead(taken))
            break
        for level, child in enumerate(path):
            own = np.float32(value if self.honest_to_move(len(self.revealed) + level) else -value)
            child.visits += 1
            child.mean = np.float32(child.mean + np.float32(own - child.mean) / np.float32(child.visits))

    def best_lead(self, taken: list[int]) -> float:
        """The honest seat's lead with best play of both."""
        if len(taken) == self.length:
            return self.lead(taken)
        leads = [self.best_lead([*taken, i]) for i in range(len(self.pixels)) if i not in taken]
        return max(leads) if self.honest_to_move(len(taken)) else min(leads)

    def search(self) -> tuple[int, dict[int, int]]:
        root = Node()
        for _ in range(self.settings.rollouts):
            self.rollout(root)
        most = max(child.visits for child in root.children)
        tied = [child for child in root.children if child.visits == most]
        move = int(self.pixels[tied[self.stream.below(len(tied))].action])
        return move, {int(self.pixels[child.action]): child.visits for child in root.children}


def minimax(twin: Twin, taken: list[int] | None = None) -> bool:
    """Whether honest wins with best play of both."""
    taken = list(twin.revealed) if taken is None else taken
    if len(taken) == twin.length:
        return twin.lead(taken) > 0
    honest = twin.honest_to_move(len(taken))
    results = (minimax(twin, [*taken, i]) for i in range(len(twin.pixels)) if i not in taken)
    return any(results) if honest else all(results)
