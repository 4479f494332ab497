"""Compose a verb's configuration with Hydra, and turn Hydra's complaints into one line that names what would be right."""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import hydra
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from debate_rl.cli import help
from debate_rl.cli.typed import unknown_setting
from debate_rl.errors import UserError

MODULE: Final = "debate_rl.conf"

_QUIET: Final = (
    "hydra.job.chdir=false",
    "hydra.output_subdir=null",
    "hydra/job_logging=none",
    "hydra/hydra_logging=none",
)


def compose(verb: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The resolved configuration of one run, as plain dicts, lists and scalars. Raises UserError for a bad override."""
    with _hydra() as loader:
        overrides = [_normal(text, loader) for text in overrides]
        for override in _check(verb, overrides, loader):
            if override.is_sweep_override():
                raise UserError(
                    f"{override.input_line!r} gives several values; add -m to run them one after another, or write a list as [1,2]"
                )
        with _one_line(verb):
            return resolve(hydra.compose(verb, list(overrides)))


def sweep(verb: str, overrides: Sequence[str], job: Callable[[DictConfig], Any]) -> list[Any]:
    """Run `job` for every combination of values with Hydra's sweeper and launcher; what the jobs return, in order.

    Hydra writes its own notes into a folder that is removed afterwards. Raises UserError for a bad override.
    """
    with _hydra() as loader, tempfile.TemporaryDirectory(prefix="debate-rl-sweep-") as notes:
        overrides = [_normal(text, loader) for text in overrides]
        _check(verb, overrides, loader)
        quiet = [*_QUIET, f"hydra.sweep.dir={notes}", "hydra.sweep.subdir=job"]
        machinery = GlobalHydra.instance().hydra
        assert machinery is not None
        with _one_line(verb):
            batches = machinery.multirun(verb, task_function=job, overrides=[*quiet, *overrides], with_log_configuration=False)
        return [done.return_value for batch in batches for done in batch]


def resolve(config: DictConfig) -> dict[str, Any]:
    """A composed configuration as plain values, interpolations resolved. Raises UserError for a value that is still to be given."""
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        raise UserError(f"the setting {missing[0]} has no value yet; give it as {missing[0]}=...")
    try:
        plain = OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(f"cannot resolve the configuration: {first_line(error)}") from error
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def dotted(config: Mapping[str, Any], where: str = "") -> list[str]:
    """All keys of a configuration, groups too, as dotted names."""
    keys = []
    for key, value in config.items():
        name = f"{where}.{key}" if where else str(key)
        keys.append(name)
        if isinstance(value, Mapping):
            keys += dotted(value, name)
    return keys


def first_line(error: BaseException) -> str:
    """An exception's first line."""
    return str(error).strip().split("\n")[0]


@contextlib.contextmanager
def _hydra() -> Iterator[ConfigLoader]:
    with hydra.initialize_config_module(MODULE, version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


@contextlib.contextmanager
def _one_line(verb: str) -> Iterator[None]:
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        if "hydra/launcher/" in str(error):
            raise UserError(f"{first_line(error)}; a launcher comes with its package, e.g. pip install hydra-joblib-launcher") from error
        raise UserError(f"{first_line(error)} (see debate-rl {verb} --help)") from error


def _check(verb: str, overrides: Sequence[str], loader: ConfigLoader) -> list[Override]:
    """Find the common mistakes before Hydra does: it does not say what would be right."""
    parsed = []
    for text in overrides:
        try:
            parsed += OverridesParser.create().parse_overrides([text])
        except HydraException as error:
            raise UserError(f"cannot read {text!r}; an override is key=value, with odd characters in quotes: key=\"'a value'\"") from error
        if parsed[-1].is_delete():
            raise UserError(f"{text!r} takes a setting away; give it another value instead")
    groups = [override for override in parsed if _is_group(override, loader)]
    known_groups = [group if group == package else f"{group}@{package}" for group, package, _ in help.groups(verb)]
    for override in groups:
        name = override.key_or_group if override.package is None else f"{override.key_or_group}@{override.package}"
        if name not in known_groups:
            raise UserError(f"debate-rl {verb}: {unknown_setting(name, known_groups)}")
        _check_option(override, loader)
    chosen = {override.package or override.key_or_group: str(override.value()) for override in groups if not _is_several(override)}
    known = _with_parents(entry.key for entry in help.entries(verb, chosen))
    # a sweep over options, or a list of them, may bring keys that the default option lacks: leave those to Hydra
    lenient = any(_is_several(override) for override in groups)
    for override in parsed:
        key = override.key_or_group
        if override in groups or key.startswith("hydra.") or key.startswith("hydra/") or override.is_add() or lenient:
            continue
        for group, package, _ in help.groups(verb):
            if key == package != group:
                raise UserError(f"{key} is chosen with {group}@{key}=..., one of {', '.join(help.options(group))}")
        if key not in known:
            options = [*known, *known_groups]
            raise UserError(f"{unknown_setting(key, options)} (debate-rl {verb} --help lists all)")
    return parsed


def _normal(text: str, loader: ConfigLoader) -> str:
    """Two kindnesses: `+experiment=full` is `experiment=full`, since every group has an option already; `key=~/x` is in the home folder."""
    key, equals, value = text.partition("=")
    if key.startswith("+") and loader.get_group_options(key[1:].partition("@")[0], ObjectType.CONFIG):
        key = key[1:]
    if value.startswith("~/"):
        value = os.path.expanduser(value)
    return f"{key}{equals}{value}"


def _with_parents(keys: Iterable[str]) -> list[str]:
    """Dotted keys and the groups they lie in."""
    found: dict[str, None] = {}
    for key in keys:
        parts = key.split(".")
        found.update(dict.fromkeys(".".join(parts[:depth]) for depth in range(1, len(parts) + 1)))
    return list(found)


def _is_several(override: Override) -> bool:
    return override.is_sweep_override() or isinstance(override.value(), list)


def _is_group(override: Override, loader: ConfigLoader) -> bool:
    key = override.key_or_group
    return not key.startswith("hydra/") and loader.get_group_options(key, ObjectType.CONFIG) != []


def _check_option(override: Override, loader: ConfigLoader) -> None:
    group = override.key_or_group
    options = loader.get_group_options(group, ObjectType.CONFIG)
    if override.is_sweep_override():
        wanted = [str(option) for option in override.sweep_string_iterator()] if override.is_discrete_sweep() else []
    else:
        value = override.value()
        wanted = [str(option) for option in value] if isinstance(value, list) else ["null" if value is None else str(value)]
    for option in wanted:
        if option not in options:
            near = difflib.get_close_matches(option, options, n=1)
            hint = f"did you mean {group}={near[0]}?" if near else f"choose one of {', '.join(options)}"
            raise UserError(f"unknown option {group}={option}; {hint}")
