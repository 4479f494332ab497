from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from debate_rl.cli.typed import build, plain, unknown_setting
from debate_rl.errors import UserError


@dataclass(frozen=True)
class Inner:
    """A group of settings."""

    rate: float = 1.0
    on: bool = False

    def __post_init__(self) -> None:
        """Refuse a negative rate."""
        if self.rate < 0:
            raise UserError(f"rate is {self.rate}; it must not be negative")


@dataclass(frozen=True)
class Outer:
    """All kinds of settings."""

    count: int
    name: str = "x"
    inner: Inner = field(default_factory=Inner)
    maybe: int | None = None
    mode: Literal["fast", "slow"] = "fast"
    pair: tuple[int, int] = (1, 2)
    many: tuple[str, ...] = ()
    items: list[float] = field(default_factory=list)
    by_number: Mapping[int, str] = field(default_factory=dict)
    free: Mapping[str, Any] = field(default_factory=dict)
    where: Path = Path(".")
    either: int | str = 0


def test_every_declared_type_is_taken_over() -> None:
    config = {
        "count": 3,
        "name": "run",
        "inner": {"rate": 2, "on": True},
        "maybe": 4,
        "mode": "slow",
        "pair": [5, 6],
        "many": ["a", "b"],
        "items": [1, 2.5],
        "by_number": {"4": "four"},
        "free": {"anything": [1, None]},
        "where": "some/folder",
        "either": "text",
    }
    settings = build(Outer, config)
    assert settings == Outer(
        3,
        "run",
        Inner(2.0, True),
        4,
        "slow",
        (5, 6),
        ("a", "b"),
        [1.0, 2.5],
        {4: "four"},
        {"anything": [1, None]},
        Path("some/folder"),
        "text",
    )
    assert isinstance(settings.inner.rate, float)
    assert plain(settings) == {**config, "inner": {"rate": 2.0, "on": True}, "items": [1.0, 2.5]}
    assert build(Outer, plain(settings)) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": "3"}, "count is '3'; it must be a whole number"),
        ({"count": 3.0}, "count is 3.0; it must be a whole number, e.g. 3"),
        ({"count": True}, "count is True; it must be a whole number"),
        ({"count": None}, "count is null; it must be a whole number"),
        ({"name": 3}, "name is 3; it must be text"),
        ({"name": None}, "name is null; it must be text"),
        ({"inner": 3}, "inner is 3; it must be a group of settings"),
        ({"inner": {"rate": "fast"}}, "inner.rate is 'fast'; it must be a number"),
        ({"inner": {"rate": True}}, "inner.rate is True; it must be a number"),
        ({"inner": {"rate": -1}}, "inner: rate is -1.0; it must not be negative"),
        ({"inner": {"on": 1}}, "inner.on is 1; it must be true or false"),
        ({"inner": {"one": True}}, "unknown setting 'inner.one'; did you mean 'inner.on'?"),
        ({"maybe": "x"}, "maybe is 'x'; it must be a whole number"),
        ({"mode": "fastt"}, r"mode is 'fastt'; it must be fast or slow \(did you mean fast\?\)"),
        ({"pair": [1]}, "pair is .1.; it must be a list of 2 items"),
        ({"pair": [1, "b"]}, r"pair\[1\] is 'b'; it must be a whole number"),
        ({"many": "a"}, r"many is 'a'; it must be a list, e.g. many=\[a\]"),
        ({"items": [None]}, r"items\[0\] is null; it must be a number"),
        ({"by_number": {"four": "4"}}, "by_number has the key 'four'; its keys must be whole numbers"),
        ({"by_number": {"4": 4}}, "by_number.4 is 4; it must be text"),
        ({"by_number": [4]}, "by_number is .4.; it must be a mapping"),
        ({"where": 3}, "where is 3; it must be the path of a folder"),
        ({"coutn": 3}, "unknown setting 'coutn'; did you mean 'count'?"),
    ],
)
def test_a_value_of_another_type_is_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}") as caught:
        build(Outer, {"count": 1, **change})
    assert "\n" not in str(caught.value)


def test_a_setting_without_default_must_be_there() -> None:
    with pytest.raises(UserError, match="the setting count is missing; give it as count="):
        build(Outer, {})


def test_the_nearest_key_is_named_under_another_group_too() -> None:
    known = ["count", "honest.rollouts", "judge.seed"]
    assert "did you mean 'honest.rollouts'" in unknown_setting("honest.rolouts", known)
    assert "did you mean 'honest.rollouts'" in unknown_setting("rollouts", known)
    assert "did you mean 'judge.seed'" in unknown_setting("seed", known)
    assert "there are: count, honest.rollouts, judge.seed" in unknown_setting("zzz", known)
