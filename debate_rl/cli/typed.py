"""From a composed configuration to typed settings: every key known, every value of the declared type, or one clear line.

YAML's own types are taken as they are: `1e4` is a float and no whole number, `"6"` is text, `yes` is text (YAML 1.2). A whole number is
accepted where a float is declared, and lists where tuples are.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from debate_rl.errors import UserError

T = TypeVar("T")

_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "the path of a folder"}


def build(cls: type[T], config: Mapping[Any, Any], where: str = "") -> T:
    """Make a dataclass of a configuration node, nested dataclasses included.

    Args:
        cls: a dataclass; its annotations say what the values must be.
        config: the node, as plain dicts, lists and scalars.
        where: the node's own dotted key, for messages.

    Raises:
        UserError: an unknown, missing or ill-typed key, or what the dataclass itself refuses.
    """
    assert is_dataclass(cls)
    hints = get_type_hints(cls)
    known = {field.name: field for field in fields(cls) if field.init}
    values = {}
    for key, value in config.items():
        if key not in known:
            raise UserError(unknown_setting(_join(where, key), [_join(where, name) for name in known]))
        values[str(key)] = convert(value, hints[str(key)], _join(where, key))
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise UserError(f"the setting {_join(where, name)} is missing; give it as {_join(where, name)}=...")
    try:
        return cls(**values)
    except UserError as error:
        raise UserError(f"{where}: {error}" if where else str(error)) from error


def convert(value: Any, kind: Any, where: str) -> Any:
    """One value as the declared type `kind`; raises UserError if it is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _union(value, inner, where)
    if origin is Literal:
        if not any(type(value) is type(choice) and value == choice for choice in inner):
            raise UserError(f"{where} is {value!r}; it must be {_one_of(inner)}" + _near(value, inner))
        return value
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise UserError(f"{where} is {value!r}; it must be a group of settings")
        return build(kind, value, where)
    if origin in (tuple, list, Sequence):
        return _sequence(value, origin, inner, where)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise UserError(f"{where} is {value!r}; it must be a mapping")
        return {_key(key, inner[0], where): convert(item, inner[1], _join(where, key)) for key, item in value.items()}
    return _scalar(value, kind, where)


def unknown_setting(key: str, known: Iterable[str]) -> str:
    """The message for a key that does not exist: it names the nearest one that does."""
    names = list(known)
    near = difflib.get_close_matches(key, names, n=1)
    if not near:  # a key given without its group, or under the wrong one
        last = key.rpartition(".")[2]
        near = [name for name in names if name.rpartition(".")[2] == last] or difflib.get_close_matches(
            last, [name.rpartition(".")[2] for name in names], n=1, cutoff=0.7
        )
    return f"unknown setting {key!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}")


def plain(value: Any) -> Any:
    """Settings as JSON-ready dicts, lists and scalars: what is hashed and kept as config.yaml."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _union(value: Any, kinds: Sequence[Any], where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    kinds = [kind for kind in kinds if kind is not type(None)]
    for kind in kinds[:-1]:
        try:
            return convert(value, kind, where)
        except UserError:
            continue
    return convert(value, kinds[-1], where)


def _sequence(value: Any, origin: Any, inner: Sequence[Any], where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise UserError(f"{where} is {value!r}; it must be a list, e.g. {where}=[{value}]")
    if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
        if len(value) != len(inner):
            raise UserError(f"{where} is {list(value)!r}; it must be a list of {len(inner)} items")
        return tuple(convert(item, kind, f"{where}[{place}]") for place, (item, kind) in enumerate(zip(value, inner, strict=True)))
    items = [convert(item, inner[0], f"{where}[{place}]") for place, item in enumerate(value)]
    return items if origin is list else tuple(items)


def _scalar(value: Any, kind: Any, where: str) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in (int, float, str, bool) and type(value) is kind:
        return value
    if kind is str and value is not None and not isinstance(value, Mapping | list | tuple):
        hint = f"; write it in quotes: {where}=\"'{value}'\""
    elif kind is int and isinstance(value, float) and value.is_integer():
        hint = f", e.g. {int(value)}"
    else:
        hint = ""
    raise UserError(f"{where} is {'null' if value is None else repr(value)}; it must be {_TYPE_NAMES.get(kind, kind)}{hint}")


def _key(key: Any, kind: Any, where: str) -> Any:
    # YAML keys of numbers have to be text, or Hydra could not override them from the command line.
    if kind is int and isinstance(key, str):
        try:
            return int(key)
        except ValueError:
            raise UserError(f"{where} has the key {key!r}; its keys must be whole numbers") from None
    return convert(key, kind, where)


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)


def _one_of(choices: Sequence[Any]) -> str:
    *others, last = [str(choice) for choice in choices]
    return f"{', '.join(others)} or {last}" if others else last


def _near(value: Any, choices: Sequence[Any]) -> str:
    near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
    return f" (did you mean {near[0]}?)" if near else ""
