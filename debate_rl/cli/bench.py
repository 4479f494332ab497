"""`debate-rl bench`: how fast the search is, what bounds it, how it compares, and how it scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from debate_rl import machine
from debate_rl.agents import make_agent
from debate_rl.agents.mcts import MctsAgent
from debate_rl.cli.choices import fitting_judge, refuse_silent
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.rows import Source
from debate_rl.evaluation.speed import contenders
from debate_rl.evaluation.speed.games import WHOLE_GAME, SearchRate, games_about, thin_and_fat, thread_counts, time_games, whole_game
from debate_rl.evaluation.speed.leaves import PRODUCT, WHOLE_LEAF, LeafRate, leaf_rates, random_judge_weights
from debate_rl.games.pixels import CLASSES
from debate_rl.judges.pretrained import Judge
from debate_rl.results import ResultRow
from debate_rl.search.exact import LONGEST
from debate_rl.search.puct import Puct, PuctSettings
from debate_rl.search.rollout import GROUP

PARTS: Final = ("leaves", "search", "contenders", "scaling")

ROLLOUTS: Final = "rollouts_per_second_per_core"
LEAVES: Final = "leaves_per_second_per_core"
SHARE: Final = "leaf_rate_share"
SEARCH: Final = contenders.SEARCH
EXACT_ROLLOUTS: Final = 100  # a rollout that ends in a proof costs a thousand times as much
ALL_LIES: Final = CLASSES - 1
SEARCH_SETTINGS: Final = ("rollouts", "exact_plies")


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl bench`."""

    judged_by: str
    agent: Mapping[str, Any]
    name: str = "bench"
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    parts: list[str] = field(default_factory=lambda: list(PARTS))
    pixels: int = 6
    images: int = 8
    seconds: float = 1.0
    repeats: int = 3
    random_judge: list[int] = field(default_factory=lambda: [256, 64])
    contender_rollouts: int = 1000
    scale_rollouts: list[int] = field(default_factory=lambda: [100, 1000, 10_000, 100_000])
    scale_exact_plies: list[int] = field(default_factory=lambda: [0, 1, 2, 3])
    scale_pixels: list[int] = field(default_factory=lambda: [2, 4, 6, 8, 10, 12])

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        refuse_silent(self.agent, "agent", "mcts")
        for part in self.parts:
            if part not in PARTS:
                raise UserError(f"parts lists {part!r}; choose among {', '.join(PARTS)}")
        if not 0 < self.seconds <= 600:
            raise UserError(f"seconds is {self.seconds}; it must be above 0 and at most 600")
        for name, low, high in (("images", 1, 1000), ("repeats", 1, 100), ("contender_rollouts", 1, 1_000_000)):
            if not low <= getattr(self, name) <= high:
                raise UserError(f"{name} is {getattr(self, name)}; it must lie between {low:,} and {high:,}")
        for name, low, high in (("scale_rollouts", 1, 10_000_000), ("scale_exact_plies", 0, LONGEST), ("scale_pixels", 1, 20)):
            for value in getattr(self, name):
                if not low <= value <= high:
                    raise UserError(f"{name} lists {value}; each must lie between {low} and {high:,}")
        if len(self.random_judge) != 2 or any(not 4 <= width <= 4096 or width % 4 for width in self.random_judge):
            raise UserError(f"random_judge is {self.random_judge}; it must be two widths of hidden layers, multiples of 4 up to 4096")


def run(settings: Settings, context: Context) -> None:
    """Measure, print, and write the rows; the same command measures anew and replaces them."""
    threads = context.use_threads()
    judge = fitting_judge(settings.judged_by, settings.dataset.name, settings.pixels, setting="judged_by", note=context.bar.note)
    agent = make_agent(settings.agent, judge)
    if not isinstance(agent, MctsAgent):
        raise UserError(f"agent is {agent.name!r}; bench measures the tree search: choose agent=mcts")
    digits = settings.dataset.load("train")
    with context.open_folder(settings.name) as folder:  # before the work: a folder that cannot be written is found out at once
        source = Source(settings.dataset.name, "train", 0, "", folder.provenance, judge)
        bench = Bench(settings, judge, agent.puct, digits, threads, source, context.say)
        bench.say(machine.summary(machine.describe()))
        for part in settings.parts:
            bench.say("")
            MEASURES[part](bench)
        folder.finish(row.line() for row in bench.rows)
        context.say(f"\nrows    {folder.results}")


class Bench:
    """One run: what is measured, and the rows so far."""

    def __init__(
        self,
        settings: Settings,
        judge: Judge,
        puct: PuctSettings,
        digits: Digits,
        threads: int,
        source: Source,
        say: Callable[[str], object],
    ) -> None:
        """Set up; nothing is measured yet. `say` prints a line of the result."""
        self.settings = settings
        self.judge = judge
        self.puct = puct
        self.digits = digits
        self.threads = threads
        self.source = source
        self.say = say
        self.rows: list[ResultRow] = []
        name = f"random-{'-'.join(map(str, settings.random_judge))}"
        weights = random_judge_weights(*settings.random_judge)
        self.judges = [judge, Judge(name, "", settings.pixels, settings.dataset.name, weights, {})]
        self._leaves: dict[str, dict[str, LeafRate]] = {}

    def leaves(self, judge: Judge) -> dict[str, LeafRate]:
        """The judge's leaf rates by what they are of, measured once."""
        if judge.name not in self._leaves:
            image = self.digits.images[0]
            rates = leaf_rates(judge.weights, image, self.settings.pixels, self.settings.seconds)
            self._leaves[judge.name] = {rate.of: rate for rate in rates}
        return self._leaves[judge.name]

    def time(self, judge: Judge, indices: Sequence[int], **more: Any) -> list[SearchRate]:
        """A search of whole games about some images; `more`: `pixels`, `rollouts`, `exact_plies`, `lies`, `threads`."""
        games, seeds = games_about(self.digits, indices, more.get("pixels", self.settings.pixels), more.get("lies", ALL_LIES))
        puct = replace(self.puct, **{name: more[name] for name in SEARCH_SETTINGS if name in more})
        return time_games(judge.weights, puct, games, seeds, threads=more.get("threads", 1), repeats=self.settings.repeats)

    def add(
        self, metric: str, value: float, protocol: Mapping[str, Any], indices: Sequence[int], seconds: float, judge: Judge | None = None
    ) -> None:
        """Keep a row about no agents."""
        source = replace(self.source, indices=indices, seconds=seconds, judge=judge or self.judge)
        self.rows.append(source.row(metric, value, protocol, {}))

    def add_search(
        self,
        metric: str,
        value: float,
        rate: SearchRate,
        protocol: Mapping[str, Any],
        indices: Sequence[int],
        judge: Judge | None = None,
        exact_plies: int | None = None,
    ) -> None:
        """Keep a row about a search of `rate.rollouts` rollouts in all."""
        plies = protocol.get("pixels", self.settings.pixels) if rate.ply == WHOLE_GAME else 1
        puct = replace(self.puct, exact_plies=self.puct.exact_plies if exact_plies is None else exact_plies)
        agent = {"name": MctsAgent.name, **replace(puct, rollouts=rate.rollouts // plies).describe()}
        where = {} if rate.ply == WHOLE_GAME else {"ply": rate.ply}
        told = {"pixels": self.settings.pixels, "of": SEARCH, "threads": rate.threads, "games": rate.games, **where, **protocol}
        source = replace(self.source, indices=indices, seconds=rate.seconds, judge=judge or self.judge)
        self.rows.append(source.row(metric, value, told, {"honest": agent, "liar": agent}))


def measure_leaves(bench: Bench) -> None:
    """Leaves per second beside a matrix product of the same layer."""
    for judge in bench.judges:
        rates = bench.leaves(judge)
        product = rates[PRODUCT]
        bench.say(f"leaves  {judge.name}, layer {product.layer[0]} x {product.layer[1]}, one core")
        for rate in rates.values():
            share = rate.per_second / product.per_second
            protocol = {"part": "leaves", "pixels": bench.settings.pixels, "of": rate.of, "layer": list(rate.layer), "threads": 1}
            protocol["rows"] = rate.rows
            bench.add(LEAVES, rate.per_second, protocol, [0], bench.settings.seconds, judge)
            if rate.of != PRODUCT:
                bench.add(SHARE, share, {**protocol, "against": PRODUCT}, [0], bench.settings.seconds, judge)
            bench.say(f"  {rate.of:14} {rate.per_second / 1e6:7.2f} M/s  {rate.gflops:6.1f} GFLOP/s  {share:5.0%} of the matrix product")


def measure_search(bench: Bench) -> None:
    """Rollouts and leaves per second of whole games and ply by ply, on one core and on all, and with the last ply played exactly."""
    indices = range(bench.settings.images)
    for judge in bench.judges:
        leaves = bench.leaves(judge)
        ways: list[dict[str, int]] = [{"threads": threads} for threads in sorted({1, bench.threads if judge is bench.judge else 1})]
        ways.append({"threads": 1, "exact_plies": 1, "rollouts": min(bench.settings.contender_rollouts, bench.puct.rollouts)})
        for way in ways:
            plies = bench.time(judge, indices, **way)
            whole = whole_game(plies)
            threads, exact_plies = whole.threads, way.get("exact_plies")
            words = f"{_threads(threads)}{', last ply exact' if exact_plies else ''}"
            bench.say(f"search  {judge.name}, {words}: {_rate(whole)}, in all {whole.per_core * threads / 1e6:.3f} M")
            for rate in (whole, *plies):
                protocol = {"part": "search"}
                bench.add_search(ROLLOUTS, rate.per_core, rate, protocol, indices, judge, exact_plies)
                bench.add_search(LEAVES, rate.leaves_per_core, rate, protocol, indices, judge, exact_plies)
                shares = {against: rate.leaves_per_core / leaves[against].per_second for against in (WHOLE_LEAF, PRODUCT)}
                if threads > 1:
                    continue
                for against, share in shares.items():
                    bench.add_search(SHARE, share, rate, {**protocol, "against": against}, indices, judge, exact_plies)
                name = "whole game" if rate.ply == WHOLE_GAME else f"ply {rate.ply}"
                judged = rate.judged / (rate.games * rate.rollouts)
                bench.say(
                    f"  {name:10} {_rate(rate)}, {judged:4.2f} leaves each: {shares[WHOLE_LEAF]:4.0%} of the time in leaves,"
                    f" {shares[PRODUCT]:4.0%} of the matrix product's rate"
                )


def measure_contenders(bench: Bench) -> None:
    """Ours beside the same search in PyTorch and in OpenSpiel, at the first move."""
    settings = bench.settings
    games, seeds = games_about(bench.digits, range(settings.images), settings.pixels)
    rollouts, c_puct = settings.contender_rollouts, bench.puct.c_puct
    bench.say(f"side by side, {rollouts:,} rollouts for the first move, one core")
    ours = 0.0
    for name, rate in contenders.contend(bench.judge.weights, games, seeds, rollouts, c_puct, settings.repeats):
        ours = ours or rate.per_core
        indices = range(-(-rate.games // ALL_LIES))
        bench.add_search(ROLLOUTS, rate.per_core, rate, {"part": "contenders", "of": name}, indices)
        bench.say(f"  {name:10} {rate.per_core:11,.0f} rollouts/s  {rate.games:3} games  ours is {ours / rate.per_core:6.1f} times as fast")
    if not contenders.has_open_spiel():
        bench.say(f"  {contenders.INSTALL_OPEN_SPIEL}")


def measure_scaling(bench: Bench) -> None:
    """Whole games with more threads, more legal pixels, more rollouts and more pixels; eight of them for each thread."""
    bench.say("scaling, whole games")
    for threads in thread_counts(bench.threads):
        _scale(bench, "threads", threads, range(threads), lies=GROUP, threads=threads)
    for index, legal in thin_and_fat(bench.digits):
        _scale(bench, "legal pixels", legal, [index], lies=GROUP)
    for rollouts in bench.settings.scale_rollouts:
        whole = _scale(bench, "rollouts", rollouts, range(GROUP), lies=1, rollouts=rollouts)
        size = Puct(bench.judge.weights, replace(bench.puct, rollouts=rollouts)).bytes_per_tree()
        bench.add_search("bytes_per_tree", size, whole, {"part": "rollouts"}, range(GROUP))
        bench.say(f"    {size / 2**20:.2f} MiB per tree, {size / rollouts:.0f} bytes per rollout")
    for exact_plies in bench.settings.scale_exact_plies:
        if exact_plies >= bench.settings.pixels or (exact_plies > 1 and bench.puct.value != "win"):
            continue  # nothing would be searched, or there is no such search
        few = min(EXACT_ROLLOUTS, bench.puct.rollouts)
        _scale(bench, "exact plies", exact_plies, range(GROUP), lies=1, rollouts=few, exact_plies=exact_plies)
    for pixels in bench.settings.scale_pixels:
        _scale(bench, "pixels", pixels, range(GROUP), lies=1, pixels=pixels)


def _scale(bench: Bench, part: str, value: int, indices: Sequence[int], **more: Any) -> SearchRate:
    whole = whole_game(bench.time(bench.judge, indices, **more))
    protocol = {"part": part, **({"legal_pixels": value} if part == "legal pixels" else {}), **_only(more, "pixels")}
    bench.add_search(ROLLOUTS, whole.per_core, whole, protocol, indices, exact_plies=more.get("exact_plies"))
    a_game = whole.seconds * whole.threads / whole.games
    bench.say(f"  {value:7,} {part:12} {_rate(whole)} per core, {1000 * a_game:8.1f} ms of a core per game")
    return whole


def _only(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: values[name]} if name in values else {}


def _rate(rate: SearchRate) -> str:
    return f"{rate.per_core / 1e6:.3f} M rollouts/s"


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


MEASURES: Final[Mapping[str, Callable[[Bench], None]]] = dict(
    zip(PARTS, (measure_leaves, measure_search, measure_contenders, measure_scaling), strict=True)
)
