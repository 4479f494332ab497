"""`debate-rl data`: fetch, verify or look at the digits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from debate_rl import data
from debate_rl.cli.context import Context
from debate_rl.data.cache import raw_folder
from debate_rl.data.idx import read_file, verify
from debate_rl.errors import UserError

_SHADES = " .:-=+*#%@"


@dataclass(frozen=True)
class DatasetSettings:
    """The group `dataset`: which data set, and where its files are if not in the user's cache."""

    name: str = "mnist"
    source: str | None = None
    cache: str | None = None

    def load(self, split: str) -> data.Digits:
        """A whole split, verified."""
        return data.load(self.name, split, source=self.source, cache=self.cache)


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl data`."""

    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    action: Literal["fetch", "verify", "show"] = "fetch"
    refresh: bool = False
    split: Literal["train", "test"] = "test"
    index: int = 0


def run(settings: Settings, context: Context) -> None:
    """Do what `settings.action` says."""
    if settings.action == "fetch":
        _fetch(settings, context)
    elif settings.action == "verify":
        _verify(settings, context)
    else:
        _show(settings, context)


def _fetch(settings: Settings, context: Context) -> None:
    chosen = settings.dataset
    fetched = data.fetch(chosen.name, source=chosen.source, cache=chosen.cache, refresh=settings.refresh, notify=context.bar.note)
    came = "was there already" if fetched.source == "cache" else f"came from {fetched.source}"
    context.say(f"{fetched.name} {came}; in {fetched.folder}:")
    for name, md5 in fetched.md5.items():
        context.say(f"  {name:<26} md5 {md5}")


def _verify(settings: Settings, context: Context) -> None:
    chosen = settings.dataset
    entry = data.dataset(chosen.name)
    home = data.cache_folder() if chosen.cache is None else Path(chosen.cache).expanduser().absolute()
    folder = raw_folder(home, entry)
    for file in entry.files:
        path = folder / file.name
        if not path.exists():
            raise UserError(f"{path} is not there: fetch it with debate-rl data dataset={chosen.name}")
        verify(read_file(path, file), file, str(path))
        context.say(f"  {file.name:<26} md5 {file.md5}  as it should be")
    context.say(f"{chosen.name} is whole: {folder}")


def _show(settings: Settings, context: Context) -> None:
    digits = settings.dataset.load(settings.split)
    if not 0 <= settings.index < len(digits):
        raise UserError(f"index is {settings.index}; {digits.name} {digits.split} has images 0 to {len(digits) - 1}")
    image = digits.images[settings.index]
    label = int(digits.labels[settings.index])
    name = data.dataset(digits.name).classes[label]
    context.say(f"{digits.name} {digits.split} {settings.index}: label {label}" + (f" ({name})" if name != str(label) else ""))
    context.say(f"{int((image > 0).sum())} pixels may be revealed (value above 0)")
    for line in picture(image):
        context.say(line)


def picture(image: NDArray[np.uint8]) -> list[str]:
    """An image `(28, 28)` uint8 as 28 lines of 56 characters, darker to brighter."""
    top = len(_SHADES) - 1
    return ["".join(2 * _SHADES[(int(value) * top + 254) // 255] for value in row).rstrip() for row in image]
