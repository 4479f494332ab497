"""What a verb is handed besides its settings: where runs go, how many cores to use, how to talk to the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debate_rl import machine, results
from debate_rl.cli.progress import Bar
from debate_rl.cli.typed import plain
from debate_rl.runs import RunFolder


@dataclass(frozen=True)
class Common:
    """The keys of `conf/base.yaml`."""

    output: Path = Path("outputs")
    threads: int | None = None
    progress: bool = True


@dataclass
class Context:
    """One run of a verb.

    Attributes:
        verb: its name.
        command: the command line that runs it again.
        common: output root, threads, progress.
        config: the verb's settings as plain values.
        bar: the progress bar, a callable `(description, done, total)`; also `bar.note(line)`.
    """

    verb: str
    command: str
    common: Common
    config: dict[str, Any]
    bar: Bar

    def use_threads(self) -> int:
        """Set the number of threads of every library as the user wants it, and return it. Call it before work and after imports."""
        return machine.set_threads(self.common.threads)

    def open_folder(self, name: str, config: Mapping[str, Any] | None = None) -> RunFolder:
        """The run's folder `<output>/<verb>/<name>-<hash>`, locked; `config` replaces the whole settings where only a part decides."""
        settings = {**(self.config if config is None else config), **plain(self.common)}
        return RunFolder.open(self.common.output, self.verb, name, settings, provenance=self.provenance())

    def finished_before(self, folder: RunFolder) -> bool:
        """Whether a run has its rows already; tells the user so, or else where the run goes."""
        self.bar.note(f"finished before: {folder.path}" if folder.finished else f"run folder: {folder.path}")
        return folder.finished

    def provenance(self) -> dict[str, Any]:
        """`code`, `command` and `machine`: keyword arguments for `ResultRow`."""
        return {"code": results.code_version(), "command": self.command, "machine": machine.describe()}

    def say(self, text: str = "") -> None:
        """Print a line of the result."""
        print(text)
