"""The same search as a batch of trees in PyTorch tensors, the usual way to write one for an accelerator: something to compare with.

All games advance by one rollout together, and the judge is called once for all their leaves. Nodes are numbered by the rollout that made
them; `visits`, `means` and `children` hold a row of legal pixels for each. Rules, PUCT rule, random ties, playouts and values are those of
`debate_rl.search.puct` with the paper's settings; the judge's first layer is a sum of columns here too.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from debate_rl.games.pixels import HONEST, NO_LIE, PIXELS_PER_IMAGE, GameBatch
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.search.puct import make_positions


class TorchSearch:
    """The search of `B` games at the same ply, over up to `A` legal pixels each."""

    def __init__(self, weights: JudgeWeights, games: GameBatch, seed: int = 0) -> None:
        """Lay the games out as tensors."""
        positions = make_positions(weights, games)
        self.b1, self.w2, self.b2, self.w3, self.b3 = (torch.from_numpy(array) for array in weights[2:])
        self.size, self.length = games.size, games.pixels
        self.left = self.length - int(games.counts[0])  # plies
        self.mover = torch.from_numpy(games.movers()).long()  # (B,)
        image = torch.from_numpy(positions.image_of).long()
        columns = torch.from_numpy(positions.columns)  # (I, A, H1)
        self.legal_count = columns.shape[1]
        self.columns = columns.reshape(-1, columns.shape[2])  # (I * A, H1)
        self.offset = (image * self.legal_count)[:, None]  # (B, 1) of a game's image in `columns`
        self.pixels = torch.from_numpy(positions.pixels).long()[image]  # (B, A)
        self.prior = 1.0 / torch.from_numpy(positions.n_pixels)[image].float()[:, None]  # (B, 1)
        taken = torch.from_numpy(positions.revealed).long()[:, : self.length - self.left]  # (B, ply)
        self.free = (self.pixels >= 0).scatter(1, taken, False)  # (B, A)
        self.base = self.b1 + columns[image[:, None], taken].sum(1)  # (B, H1)
        self.labels = torch.from_numpy(games.labels).long()[:, None]
        self.lies = torch.from_numpy(games.lies).long()[:, None]
        self.random = torch.Generator().manual_seed(seed)

    @torch.inference_mode()
    def search(self, rollouts: int, c_puct: float = 1.0) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """Run all rollouts: the most visited pixels `(B,)`, and the root's visits `(B, 784)`."""
        nodes = rollouts + 1  # node 0 is the root; node `i` of a game is row `game * nodes + i`
        self.visits = torch.zeros(self.size * nodes, self.legal_count)
        self.means = torch.zeros(self.size * nodes, self.legal_count)  # for the seat that chooses there
        self.children = torch.zeros(self.size * nodes, self.legal_count, dtype=torch.int64)  # 0: none
        self.roots = torch.arange(self.size) * nodes
        for new in range(1, nodes):
            path, sets = self._descend(new, c_puct)
            self._back_up(path, self.judge(sets))
        found = self.visits[self.roots]
        best = found == found.amax(1, keepdim=True)
        chosen = self._random().where(best, -1.0).argmax(1, keepdim=True)
        moves: NDArray[np.int16] = self.pixels.gather(1, chosen)[:, 0].numpy().astype(np.int16)
        visits = torch.zeros(self.size, PIXELS_PER_IMAGE, dtype=torch.int32)
        visits.scatter_add_(1, self.pixels.clamp(min=0), found.int())
        return moves, visits.numpy()

    def judge(self, sets: Tensor) -> Tensor:
        """Who wins with these last pixels `(B, left)`: +1 for the honest seat, -1 for the liar, who wins ties; `(B,)`."""
        first = (self.base + embedding_bag(sets + self.offset, self.columns, mode="sum")).relu()
        logits = (first @ self.w2 + self.b2).relu() @ self.w3 + self.b3
        own = logits.gather(1, self.labels)
        best_other = logits.scatter(1, self.labels, -torch.inf).amax(1, keepdim=True)
        rival = torch.where(self.lies == NO_LIE, best_other, logits.gather(1, self.lies.clamp(min=0)))
        return torch.where(own > rival, 1.0, -1.0)[:, 0]

    def _descend(self, new: int, c_puct: float) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Go down all trees to a child never visited, which becomes node `new`, and finish the games at random.

        Returns the path, per level the games that got there and the edges `row * A + pixel` that they took, and the sets `(B, left)`.
        """
        free = self.free.clone()
        chosen = torch.zeros(self.size, self.left, dtype=torch.int64)
        depth = torch.zeros(self.size, 1, dtype=torch.int64)
        going = torch.arange(self.size)
        rows = self.roots
        path = []
        children = self.children.view(-1)
        for level in range(self.left):
            visits = self.visits[rows]
            scores = self.means[rows] + c_puct * self.prior[going] * visits.sum(1, keepdim=True).sqrt() / (1.0 + visits)
            scores = scores.where(free[going], -torch.inf)
            ties = scores == scores.amax(1, keepdim=True)
            action = self._random(len(going)).where(ties, -1.0).argmax(1)
            chosen[going, level] = action
            free[going, action] = False
            depth[going] += 1
            edges = rows * self.legal_count + action
            path.append((going, edges))
            if level + 1 == self.left:
                break
            child = children[edges]
            inside = child > 0
            children[edges[~inside]] = new
            going, child = going[inside], child[inside]
            if len(going) == 0:
                break
            rows = self.roots[going] + child
        order = self._random().where(free, -1.0).topk(self.left).indices
        places = torch.arange(self.left)
        return path, torch.where(places < depth, chosen, order.gather(1, (places - depth).clamp(min=0)))

    def _back_up(self, path: list[tuple[Tensor, Tensor]], values: Tensor) -> None:
        visits, means = self.visits.view(-1), self.means.view(-1)
        for level, (games, edges) in enumerate(path):
            honest = (self.mover[games] + level) % 2 == HONEST
            own = torch.where(honest, values[games], -values[games])
            count = visits[edges] + 1.0
            visits[edges] = count
            means[edges] += (own - means[edges]) / count

    def _random(self, games: int | None = None) -> Tensor:
        """Uniform numbers `(games, A)`, of all games by default."""
        return torch.rand(self.size if games is None else games, self.legal_count, generator=self.random)
