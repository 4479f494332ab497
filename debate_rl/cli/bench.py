"""`debate-rl bench`: how fast the search is, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from debate_rl import machine
from debate_rl.agents import make_agent
from debate_rl.agents.mcts import MctsAgent
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.errors import UserError
from debate_rl.evaluation import speed
from debate_rl.judges.pretrained import load_judge
from debate_rl.results import ResultRow, append
from debate_rl.search.puct import Puct


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl bench`."""

    judged_by: str
    agent: Mapping[str, Any]
    name: str = "bench"
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    pixels: int = 6
    images: int = 4
    seconds: float = 1.0

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if not 1 <= self.images <= 1000:
            raise UserError(f"images is {self.images}; it must lie between 1 and 1000")
        if not 0 < self.seconds <= 600:
            raise UserError(f"seconds is {self.seconds}; it must be above 0 and at most 600")


def run(settings: Settings, context: Context) -> None:
    """Measure, print, and append rows to the run folder's results."""
    threads = context.use_threads()
    judge = load_judge(settings.judged_by)
    agent = make_agent(settings.agent, judge)
    if not isinstance(agent, MctsAgent):
        raise UserError(f"agent is {agent.name!r}; bench measures the tree search: choose agent=mcts")
    digits = settings.dataset.load("train")
    product = speed.matrix_product_rate(judge.weights, seconds=settings.seconds)
    kernel = speed.kernel_rate(judge.weights, seconds=settings.seconds)
    context.say(machine.summary(machine.describe()))
    context.say(f"judge {judge.name}, layer {product.details['layer'][0]} x {product.details['layer'][1]}, one core:")
    context.say(f"  matrix product   {product.per_second / 1e6:7.2f} M leaves/s  {product.details['gflops']:6.1f} GFLOP/s")
    context.say(f"  search's kernel  {kernel.per_second / 1e6:7.2f} M leaves/s  {kernel.per_second / product.per_second:6.0%} of it")
    shared: dict[str, Any] = {
        "judge": {"name": judge.name, "hash": judge.hash},
        "agents": {"honest": agent.settings(), "liar": agent.settings()},
    }
    game = {"game": "pixels", "dataset": settings.dataset.name, "split": "train", "pixels": settings.pixels}
    rows = []
    for count in sorted({1, threads}):
        rates = speed.search_rates(judge, digits, agent.puct, images=settings.images, pixels=settings.pixels, threads=count)
        rate = speed.mean_rate(rates)
        context.say(f"search, {count} thread{'s' if count > 1 else ''}: {rate / 1e6:.3f} M rollouts/s, {rate / count / 1e6:.3f} M per core")
        if count == 1:
            for ply in rates:
                share = ply.per_second / kernel.per_second
                context.say(f"  {ply.name}  {ply.per_second / 1e6:6.3f} M rollouts/s  {share:5.0%} of the kernel's leaf rate")
        seconds = sum(ply.details["seconds"] for ply in rates)
        rows.append(("rollouts_per_second_per_core", rate / count, {**game, "threads": count}, seconds))
        if count == 1:
            # The first ply judges every rollout's leaf; later plies meet finished games again, which cost no judge.
            bound = min(1.0, rates[0].per_second / product.per_second)
            rows.append(("leaf_rate_share", bound, {**game, "threads": 1, "ply": 1, "of": "matrix product"}, rates[0].details["seconds"]))
    context.say(f"memory: {Puct(judge.weights, agent.puct).bytes_per_tree() / 2**20:.2f} MiB per tree, whatever the image")
    with context.open_folder(settings.name) as folder:
        provenance = folder.provenance
        append(
            folder.results,
            [
                ResultRow(metric=metric, value=value, n=1, protocol=protocol, seconds=spent, **shared, **provenance)
                for metric, value, protocol, spent in rows
            ],
        )
        context.say(f"rows    {folder.results}")
