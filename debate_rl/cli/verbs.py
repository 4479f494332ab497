"""The table of verbs. A verb's module is imported only when it runs, so `--help` stays quick.

A verb `NAME` is a line here, a module `debate_rl.cli.NAME` and a primary configuration `conf/NAME.yaml`. The module has

- `Settings`: a frozen dataclass, the typed form of the configuration without the keys of `conf/base.yaml`;
- `run(settings, context)`: does the work and returns None, or an exit code.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from debate_rl.errors import UserError


@dataclass(frozen=True)
class Verb:
    """One verb: what it does in a line, and examples for its help (overrides, what they do)."""

    name: str
    summary: str
    examples: tuple[tuple[str, str], ...]

    def load(self) -> tuple[type[Any], Callable[..., int | None]]:
        """The verb's `Settings` and `run`."""
        module = importlib.import_module(f"debate_rl.cli.{self.name}")
        return module.Settings, module.run


VERBS: Final[dict[str, Verb]] = {
    verb.name: verb
    for verb in (
        Verb(
            "data",
            "fetch, verify or look at the digits",
            (
                ("", "fetch MNIST into the user's cache and check it"),
                ("dataset=fashion_mnist", "the same for Fashion-MNIST"),
                ("action=verify", "compare the cached files with the official hashes"),
                ("action=show split=test index=17", "draw an image in the terminal"),
                ("dataset.source=~/idx", "take the files from a folder"),
            ),
        ),
        Verb(
            "judge",
            "show, train or evaluate a judge",
            (
                ("judge=mlp-6", "show a shipped judge's card"),
                ("action=evaluate judge=mlp-4", "measure it on random pixels of all test images"),
                ("action=train judge=mlp-6 judge.seed=1", "train one; killed, the same command goes on"),
                ("action=train judge=paper-6", "train the paper's convolutional judge (an hour or two)"),
                ("-m action=evaluate judge=mlp-4,mlp-6", "several, one after another"),
            ),
        ),
        Verb(
            "reproduce",
            "the paper's whole experiment, its report, and our table beside the paper's",
            (
                ("", "every part on few images: minutes on two cores"),
                ("experiment=full", "all 10,000 test images; killed, the same command goes on"),
                ("count=1000 budget_count=0 control_count=0 sweep_count=0", "the table alone, on 1,000 images"),
                ("dataset=fashion_mnist", "the same game with pictures of clothes"),
            ),
        ),
        Verb(
            "evaluate",
            "debates between any two agents, and who wins them",
            (
                ("agent@honest=mcts agent@liar=greedy count=200", "tree search against a greedy liar"),
                ("agent@honest=random agent@liar=random pixels=[6]", "random debaters, 6 pixels only"),
                ("-m honest.rollouts=100,1000,10000 pixels=[6] commit=[precommit]", "a sweep over the honest side's search"),
            ),
        ),
        Verb(
            "solve",
            "who wins under perfect play, and how often debaters throw a won game away",
            (
                ("count=200", "every game of 4 pixels about 200 images"),
                ("pixels=[6] count=20 budget=20000000", "games of 6 pixels, as far as 20 million judged sets each prove them"),
                ("against=outputs/reproduce/quick-0123456789ab count=50", "how often the searching debaters of a run played a losing move"),
            ),
        ),
        Verb(
            "play",
            "take a seat in a debate at the terminal: honest, liar or judge",
            (
                ("", "be honest against the paper's tree search"),
                ("role=liar hints=true agent@honest=greedy", "be the liar, with help, against a greedy debater"),
                ("role=judge games=null", "judge debates until you leave"),
            ),
        ),
        Verb(
            "report",
            "draw a run's page and pictures again",
            (
                ("", "of the run that finished last"),
                ("run=outputs/reproduce/quick-0123456789ab", "of another run"),
            ),
        ),
        Verb(
            "bench",
            "how fast the search is, and what bounds it",
            (
                ("", "leaves and rollouts per second, beside a plain matrix product"),
                ("agent.rollouts=1000 judged_by=mlp-4 pixels=4", "other searches and judges"),
            ),
        ),
    )
}


def find(name: str) -> Verb:
    """A verb by name; an unknown one raises UserError that names the nearest."""
    if name in VERBS:
        return VERBS[name]
    near = difflib.get_close_matches(name, VERBS, n=1)
    raise UserError(f"unknown verb {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(VERBS)}"))
