"""Progress bars: drawn on standard error, and only when that is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from debate_rl.cli import interrupt

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """One bar with rate and time left. Call it with what is being done, how much is done and how much there is in all.

    Without a terminal, or switched off, it draws nothing; `note` prints its line either way.
    """

    def __init__(self, enabled: bool = True, unit: str = "") -> None:
        """A bar that appears at the first call; `unit` is what is counted, e.g. `images`."""
        self.enabled = enabled and sys.stderr.isatty()
        self.unit = unit
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._total = -1.0

    def __call__(self, description: str, done: float, total: float) -> None:
        """Show the bar at `done` of `total`; another total starts a new bar. Raises KeyboardInterrupt after a Ctrl-C that was dropped."""
        interrupt.check()
        if not self.enabled:
            return
        if self._progress is None:
            self._progress = _columns(self)
            self._progress.start()
        if self._task is None or total != self._total:
            if self._task is not None:
                self._progress.remove_task(self._task)
            # What was done before this start must not count as speed.
            self._task = self._progress.add_task(description, total=total, completed=int(done) if done == int(done) else 0)
            self._total = total
        self._progress.update(self._task, description=description, completed=done)

    def note(self, line: str) -> None:
        """Print a line on standard error, above the bar."""
        if self._progress is not None:
            self._progress.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr)

    def clear(self) -> None:
        """Take the bar off the screen."""
        if self._progress is not None:
            self._progress.stop()
            self._progress, self._task = None, None

    def __enter__(self) -> Self:
        """The bar itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Take the bar off the screen."""
        self.clear()


def short(number: float) -> str:
    """A number with three digits and a metric prefix: 1234567 -> '1.23 M'."""
    for limit, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= limit:
            return f"{number / limit:.3g}{prefix}"
    return f"{number:.3g}"


def _columns(bar: Bar) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{short(speed)} {bar.unit}".rstrip() + "/s", style="progress.data.speed")

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        Rate(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=120.0,
    )
