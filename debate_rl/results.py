"""Result rows: one measured figure, one JSON line, with everything needed to know how it came about.

The metrics are listed here and explained in `docs/results.md`; a new one is added to both.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import json
import logging
import math
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import debate_rl
from debate_rl.errors import UserError

SHARE: Final = "share"  # the unit of a value in [0, 1]

METRICS: Final[dict[str, str]] = {
    "judge_accuracy": SHARE,
    "judge_ece": SHARE,
    "judge_cross_entropy": "nats",
    "honest_win_rate": SHARE,
    "successful_lie_rate": SHARE,
    "exploitability": SHARE,
    "proved_share": SHARE,
    "losing_move_rate": SHARE,
    "leaf_rate_share": "ratio",
    "leaves_per_second_per_core": "1/s",
    "rollouts_per_second_per_core": "1/s",
    "bytes_per_tree": "B",
    "env_steps_per_second": "1/s",
    "banish_rate": SHARE,
    "witness_vote_accuracy": SHARE,
    "lie_rate": SHARE,
    "verbatim_rate": SHARE,
    "uncited_claim_rate": SHARE,
    "citation_recall": SHARE,
    "citation_precision": SHARE,
    "judge_belief_gain": "probability",
}
"""Every metric in use and its unit."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ResultRow:
    """One figure. Every field but `metric` and `value` may be left empty where it has no meaning.

    Attributes:
        metric: one of `METRICS`.
        value: a finite number in the metric's unit; a share lies in [0, 1].
        ci95: the 95 % interval `(low, high)`, or None where there is none.
        ci_method: how the interval was computed and what it is clustered by, e.g. "wilson, clustered by image".
        n: how many independent observations (images, games) stand behind the value.
        seeds: the run seeds, or mask seeds, it was averaged over.
        protocol: what was played or shown, e.g. `{"game": "pixels", "dataset": "mnist", "split": "test", "pixels": 6, …}`.
        agents: who played, e.g. `{"honest": {"name": "mcts", "rollouts": 10000}, "liar": {…}}`.
        judge: `{"name", "hash"}`.
        config_hash: of the run's resolved configuration, see `debate_rl.runs.config_hash`.
        code: `{"version", "commit"}`, see `code_version`.
        command: the command line.
        machine: see `debate_rl.machine.describe`.
        seconds: wall time spent on this figure.
    """

    metric: str
    value: float
    ci95: tuple[float, float] | None = None
    ci_method: str = ""
    n: int = 0
    seeds: Sequence[int] = ()
    protocol: Mapping[str, Any] = field(default_factory=dict)
    agents: Mapping[str, Any] = field(default_factory=dict)
    judge: Mapping[str, str] = field(default_factory=dict)
    config_hash: str = ""
    code: Mapping[str, str | None] = field(default_factory=dict)
    command: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Refuse rows that say something impossible; raises UserError."""
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            near = difflib.get_close_matches(str(self.metric), METRICS, n=1)
            raise UserError(
                f"unknown metric {self.metric!r}; " + (f"did you mean {near[0]!r}?" if near else f"known: {', '.join(METRICS)}")
            )
        for name in ("value", "seconds"):
            object.__setattr__(self, name, _number(getattr(self, name), name))
        for name in ("ci_method", "config_hash", "command"):
            if not isinstance(getattr(self, name), str):
                raise UserError(f"{name} is {getattr(self, name)!r}; it must be text")
        for name in ("protocol", "agents", "judge", "code", "machine"):
            if not isinstance(getattr(self, name), Mapping):
                raise UserError(f"{name} is {getattr(self, name)!r}; it must be a mapping")
        if self.ci95 is not None:
            ends = self.ci95 if isinstance(self.ci95, list | tuple) else ()
            if len(ends) != 2:
                raise UserError(f"ci95 is {self.ci95!r}; it must be two numbers [low, high], or null")
            low, high = (_number(end, "ci95") for end in ends)
            if low > high:
                raise UserError(f"ci95 is [{low}, {high}]; the lower end must come first")
            if not self.ci_method:
                raise UserError("ci_method is empty; a row with an interval must say how it was computed")
            object.__setattr__(self, "ci95", (low, high))
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 0:
            raise UserError(f"n is {self.n!r}; it must be a whole number, zero or more")
        if not isinstance(self.seeds, list | tuple) or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in self.seeds):
            raise UserError(f"seeds is {self.seeds!r}; it must be a list of whole numbers")
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if METRICS[self.metric] == SHARE:
            for figure in (self.value, *(self.ci95 or ())):
                if not 0.0 <= figure <= 1.0:
                    raise UserError(f"{self.metric} is {figure}; a share must lie between 0 and 1")

    def to_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        row = asdict(self)
        row["ci95"] = None if self.ci95 is None else list(self.ci95)
        row["seeds"] = list(self.seeds)
        return row

    def line(self) -> str:
        """The row as one JSON line, without the line break."""
        try:
            return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise UserError(f"the row {self.metric} cannot be written as JSON ({error})") from error

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> ResultRow:
        """Check and take over a parsed row; raises UserError for unknown or missing fields and for impossible values."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(row) - known)
        if unknown:
            raise UserError(f"unknown field {unknown[0]!r}")
        for name in ("metric", "value"):
            if name not in row:
                raise UserError(f"the field {name!r} is missing")
        return cls(**row)


def append(path: str | Path, rows: Iterable[ResultRow]) -> None:
    """Add rows to a file, each synced to the disk before the next. A last line that a killed writer left unfinished is cut off first.

    Raises UserError when the file cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as stream:
            _cut_broken_end(stream.fileno(), path)
            for row in rows:
                stream.write(row.line().encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        raise UserError(f"the results file {path} cannot be written ({error.strerror or error})") from error


def read(path: str | Path) -> list[ResultRow]:
    """All rows of a file, in order. A broken last line (a killed writer's) is left out and reported to the log.

    Raises UserError when the file cannot be read or another line is malformed, with the line's number.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"the results file {path} cannot be read ({error.strerror or error})") from error
    lines = data.split(b"\n")
    broken_end = lines.pop()  # what follows the last line break: empty in a whole file
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            rows.append(_parse(line, f"{path}, line {number}"))
    if broken_end.strip():
        _log.warning("%s: the last line is unfinished and was left out", path)
    return rows


@functools.cache
def code_version() -> dict[str, str | None]:
    """`{"version", "commit"}`: the package's version and, in a git checkout of its own, the commit, with "+dirty" if the code differs."""
    return {"version": debate_rl.__version__, "commit": _commit(Path(debate_rl.__file__).resolve().parent.parent)}


def _commit(root: Path) -> str | None:
    def git(*arguments: str) -> str:
        done = subprocess.run(("git", "-C", str(root), *arguments), capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    try:
        # A wheel may lie in some other project's checkout: only a repository whose root holds our package counts.
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return None
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--", "debate_rl", "envs", "conf")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+dirty" if changed else "")


def _number(value: Any, name: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            if math.isfinite(value):
                return float(value)
    raise UserError(f"{name} is {str(value)[:40]}; it must be a finite number")


def _parse(line: bytes, where: str) -> ResultRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({error})") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: a row must be a JSON object")
    try:
        return ResultRow.from_dict(row)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _cut_broken_end(descriptor: int, path: Path) -> None:
    size = os.fstat(descriptor).st_size
    keep = size
    while keep and os.pread(descriptor, 1, keep - 1) != b"\n":
        block = os.pread(descriptor, min(keep, 4096), max(0, keep - 4096))
        keep = max(0, keep - 4096) + block.rfind(b"\n") + 1
    if keep < size:
        os.ftruncate(descriptor, keep)
        _log.warning("%s: the last line was unfinished and was cut off", path)
