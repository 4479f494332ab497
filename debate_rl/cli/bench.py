"""`debate-rl bench`: how fast the search is, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from debate_rl import machine
from debate_rl.agents import make_agent
from debate_rl.agents.mcts import MctsAgent
from debate_rl.cli.choices import fitting_judge, refuse_silent
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation import speed
from debate_rl.judges.pretrained import Judge
from debate_rl.results import ResultRow
from debate_rl.search.puct import Puct

# With fewer moves left a search soon knows every final position: most of its rollouts meet one again and need no judge.
JUDGED_MOVES: Final = 3


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
        refuse_silent(self.agent, "agent", "mcts")
        if not 1 <= self.images <= 1000:
            raise UserError(f"images is {self.images}; it must lie between 1 and 1000")
        if not 0 < self.seconds <= 600:
            raise UserError(f"seconds is {self.seconds}; it must be above 0 and at most 600")


def run(settings: Settings, context: Context) -> None:
    """Measure, print, and write the rows; the same command measures anew and replaces them."""
    threads = context.use_threads()
    judge = fitting_judge(settings.judged_by, settings.dataset.name, settings.pixels, setting="judged_by", note=context.bar.note)
    agent = make_agent(settings.agent, judge)
    if not isinstance(agent, MctsAgent):
        raise UserError(f"agent is {agent.name!r}; bench measures the tree search: choose agent=mcts")
    digits = settings.dataset.load("train")
    with context.open_folder(settings.name) as folder:  # before the work: a folder that cannot be written is found out at once
        rows = measure(settings, judge, agent, digits, threads, context.say, folder.provenance)
        folder.finish(row.line() for row in rows)
        context.say(f"rows    {folder.results}")


def measure(
    settings: Settings,
    judge: Judge,
    agent: MctsAgent,
    digits: Digits,
    threads: int,
    say: Callable[[str], object],
    provenance: Mapping[str, Any],
) -> list[ResultRow]:
    """Measure and print; returns the rows."""
    rows: list[ResultRow] = []

    def add(metric: str, value: float, protocol: Mapping[str, Any], seconds: float, agents: Mapping[str, Any]) -> None:
        named = {"name": judge.name, "hash": judge.hash}
        rows.append(
            ResultRow(metric, value, n=1, protocol=protocol, agents=agents, judge=named, seconds=seconds, **provenance),
        )

    product = speed.matrix_product_rate(judge.weights, seconds=settings.seconds)
    kernel = speed.kernel_rate(judge.weights, seconds=settings.seconds)
    say(machine.summary(machine.describe()))
    say(f"judge {judge.name}, layer {product.details['layer'][0]} x {product.details['layer'][1]}, one core:")
    say(f"  matrix product   {product.per_second / 1e6:7.2f} M leaves/s  {product.details['gflops']:6.1f} GFLOP/s")
    say(f"  search's kernel  {kernel.per_second / 1e6:7.2f} M leaves/s  {kernel.per_second / product.per_second:6.0%} of it")
    for rate in (product, kernel):
        of = {"of": rate.name, "layer": rate.details["layer"], "rows": rate.details["rows"], "threads": rate.threads}
        add("leaves_per_second_per_core", rate.per_second / rate.threads, of, settings.seconds, {})
    agents = {"honest": agent.settings(), "liar": agent.settings()}
    game = {"game": "pixels", "dataset": settings.dataset.name, "split": "train", "pixels": settings.pixels}
    for count in sorted({1, threads}):
        rates = speed.search_rates(judge, digits, agent.puct, images=settings.images, pixels=settings.pixels, threads=count)
        rate_of_all = speed.mean_rate(rates)
        words = f"search, {count} thread{'s' if count > 1 else ''}"
        say(f"{words}: {rate_of_all / 1e6:.3f} M rollouts/s, {rate_of_all / count / 1e6:.3f} M per core")
        setting = {**game, "threads": count}
        add("rollouts_per_second_per_core", rate_of_all / count, setting, sum(rate.details["seconds"] for rate in rates), agents)
        for ply, rate in enumerate(rates, 1):
            add("rollouts_per_second_per_core", rate.per_second / count, {**setting, "ply": ply}, rate.details["seconds"], agents)
            if count > 1:
                continue
            line = f"  {rate.name}  {rate.per_second / 1e6:6.3f} M rollouts/s"
            if settings.pixels - ply + 1 >= JUDGED_MOVES:
                share = rate.per_second / kernel.per_second
                line += f"  {share:5.0%} of the kernel's leaf rate"
                if ply == 1:
                    add("leaf_rate_share", share, {**setting, "ply": 1, "of": "kernel"}, rate.details["seconds"], agents)
            say(line)
    say(f"memory: {Puct(judge.weights, agent.puct).bytes_per_tree() / 2**20:.2f} MiB per tree, whatever the image")
    return rows
