"""Help pages, drawn from the configuration files and their comments. No Hydra here: help has to be quick."""

from __future__ import annotations

import importlib.resources
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from debate_rl.cli.verbs import VERBS, Verb

_LINE: Final = re.compile(r"(?P<indent> *)(?P<key>[\w\"'.-]+): *(?P<value>[^#]*?) *(?:# *(?P<comment>.*))?")

_OVERRIDE: Final = "override "

_FLAGS: Final = (
    ("-m, --multirun", "run every combination of key=a,b values, one after another (hydra/launcher=joblib: at the same time)"),
    ("--cfg", "print the composed configuration and stop"),
    ("-h, --help", "this page"),
)


@dataclass(frozen=True)
class Entry:
    """One key of a configuration file: its dotted name, its value as written, and its comment."""

    key: str
    value: str
    comment: str


@dataclass(frozen=True)
class ConfFile:
    """One configuration file: its first comment, its defaults list, its keys, and whether they lie at the top (`@package _global_`)."""

    summary: str
    defaults: tuple[Any, ...]
    entries: tuple[Entry, ...]
    top: bool


def read(name: str) -> ConfFile:
    """Read `conf/NAME.yaml`, comments included."""
    text = importlib.resources.files("debate_rl.conf").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    lines = text.splitlines()
    top = bool(lines) and lines[0].startswith("# @package _global_")
    comments = [line for line in lines[1 if top else 0 :] if line.startswith("#")]
    entries = []
    stack: list[tuple[int, str]] = []
    inside_defaults = False
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        depth, key = len(match["indent"]), match["key"].strip("\"'")
        if depth == 0:
            inside_defaults = key == "defaults"
        if inside_defaults:
            continue
        stack = [(level, parent) for level, parent in stack if level < depth]
        entries.append(Entry(".".join([*(parent for _, parent in stack), key]), match["value"], match["comment"] or ""))
        stack.append((depth, key))
    loaded = yaml.safe_load(text) or {}
    return ConfFile(comments[0].lstrip("# ") if comments else "", tuple(loaded.get("defaults", ())), tuple(entries), top)


def options(group: str) -> list[str]:
    """The options of a configuration group, in alphabetical order."""
    folder = importlib.resources.files("debate_rl.conf").joinpath(group)
    return sorted(path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml"))


def groups(verb: str) -> list[tuple[str, str, str | None]]:
    """The groups that a verb's configuration chooses from: (group, package in the configuration, option chosen by default)."""
    return [found for found in _walk(verb) if found[0]]


def entries(verb: str, chosen_options: Mapping[str, str] | None = None) -> list[Entry]:
    """Every setting of a verb: its own, then the groups', then those that all verbs share.

    `chosen_options` maps a package to the option chosen for it instead of the default. Values are those that the composition comes to;
    a key's comment is its first in this order.
    """
    own = read(verb).entries
    choices = {**_overridden(verb, chosen_options or {}), **(chosen_options or {})}
    chosen: dict[str, Entry] = {}
    shared: dict[str, Entry] = {}
    values: dict[str, str] = {}  # as in Hydra, what comes later in the defaults list wins
    for group, package, option in _walk(verb):
        if not group and package == "_self_":
            values |= {entry.key: entry.value for entry in own}
        elif not group:
            shared |= {entry.key: entry for entry in read(package).entries}
            values |= {entry.key: entry.value for entry in read(package).entries}
        elif option is not None:
            option = choices.get(package, option)
            prefix = "" if read(f"{group}/{option}").top else f"{package}."
            for entry in option_entries(group, option):
                found = Entry(prefix + entry.key, entry.value, entry.comment)
                chosen.setdefault(found.key, found)
                values[found.key] = found.value
    every = {entry.key: entry for entry in (*own, *chosen.values(), *shared.values())[::-1]}
    order = dict.fromkeys(entry.key for entry in (*own, *chosen.values(), *shared.values()))
    return [Entry(key, values[key], every[key].comment) for key in order]


def option_entries(group: str, option: str) -> list[Entry]:
    """The keys of a group's option, those of the options that it builds on included."""
    file = read(f"{group}/{option}")
    found: dict[str, Entry] = {}
    for parent in file.defaults:
        if isinstance(parent, str) and parent != "_self_":
            found |= {entry.key: entry for entry in option_entries(group, parent)}
    return list((found | {entry.key: entry for entry in file.entries}).values())


def overview() -> str:
    """The help of `debate-rl` alone."""
    width = max(map(len, VERBS))
    lines = [
        "debate-rl: two debaters argue before a weaker judge; measure when truth wins.",
        "",
        "usage: debate-rl VERB [key=value ...]",
        "",
        "verbs:",
        *(f"  {verb.name:<{width}}  {verb.summary}" for verb in VERBS.values()),
        "",
        "examples:",
    ]
    lines += [f"  debate-rl {verb.name} {verb.examples[0][0]}".rstrip() for verb in VERBS.values()]
    lines += ["", "debate-rl VERB --help explains a verb and every setting; debate-rl --version says which code this is."]
    return "\n".join(lines)


def page(verb: Verb) -> str:
    """The help of one verb: what it does, examples, groups with their options, every setting with its comment."""
    columns = min(140, max(60, shutil.get_terminal_size((100, 24)).columns))
    lines = [f"debate-rl {verb.name}: {verb.summary}", "", f"usage: debate-rl {verb.name} [key=value ...]", "", "examples:"]
    calls = [(f"debate-rl {verb.name} {overrides}".rstrip(), what) for overrides, what in verb.examples]
    lines += _table(calls, columns)
    found = groups(verb.name)
    if found:
        lines += ["", "groups (choose with group=option):"]
        for group, package, option in found:
            name = group if package == group else f"{group}@{package}"
            rows = [(f"{name}={choice}", read(f"{group}/{choice}").summary) for choice in options(group)]
            lines += _table([(key + (" *" if key == f"{name}={option}" else ""), text) for key, text in rows], columns)
        lines.append("  (* chosen by default)")
    lines += ["", "settings (set with key=value):"]
    rows = [(f"{entry.key}={entry.value}" if entry.value else f"{entry.key}:", entry.comment) for entry in entries(verb.name)]
    lines += _table(rows, columns)
    lines += ["", "flags:", *_table(list(_FLAGS), columns)]
    return "\n".join(lines)


def _walk(name: str) -> Iterator[tuple[str, str, str | None]]:
    """A primary configuration's defaults in order: groups, and with an empty group the plain files, `_self_` among them."""
    for item in read(name).defaults:
        if isinstance(item, str):
            yield "", item, None
            continue
        ((key, option),) = item.items()
        key = key.removeprefix("optional ").removeprefix("/")
        group, _, package = key.partition("@")
        yield group, package or group, option
        # a group's own file may bring groups of its own
        if option is not None:
            for inner in read(f"{group}/{option}").defaults:
                if isinstance(inner, dict) and not next(iter(inner)).startswith(_OVERRIDE):
                    ((inner_key, inner_option),) = inner.items()
                    inner_group, _, inner_package = inner_key.removeprefix("/").partition("@")
                    yield inner_group, inner_package or inner_group, inner_option


def _overridden(verb: str, chosen_options: Mapping[str, str]) -> dict[str, str]:
    """The options, by package, that the chosen options' own files put in the place of others (`override /agent: mcts-20`)."""
    found = {}
    for group, package, option in _walk(verb):
        option = chosen_options.get(package, option) if group else None
        for inner in read(f"{group}/{option}").defaults if option is not None else ():
            if isinstance(inner, dict):
                ((key, value),) = inner.items()
                if key.startswith(_OVERRIDE):
                    inner_group, _, inner_package = key.removeprefix(_OVERRIDE).removeprefix("/").partition("@")
                    found[inner_package or inner_group] = value
    return found


def _table(rows: list[tuple[str, str]], columns: int) -> list[str]:
    width = min(max((len(left) for left, _ in rows), default=0), columns // 2)
    lines = []
    for left, right in rows:
        wrapped = textwrap.wrap(right, max(20, columns - width - 4)) or [""]
        if len(left) > width:
            lines.append(f"  {left}")
            lines += [f"  {'':<{width}}  {part}".rstrip() for part in wrapped]
        else:
            lines.append(f"  {left:<{width}}  {wrapped[0]}".rstrip())
            lines += [f"  {'':<{width}}  {part}".rstrip() for part in wrapped[1:]]
    return lines


def markdown() -> str:
    """`docs/cli.md`: the same help as one page. Print it with `python -m debate_rl.cli.help`."""
    lines = [
        "# Command line",
        "",
        "<!-- written by `python -m debate_rl.cli.help > docs/cli.md`; a test compares it with the configuration -->",
        "",
        "`debate-rl VERB [key=value ...]`, also as `python -m debate_rl`. How overrides, groups, sweeps and run folders work is in",
        "[configuration.md](configuration.md); what the figures mean in [results.md](results.md).",
        "",
        "Bad input gets one line that says what would be right, and exit code 2. Ctrl-C gives exit code 130; the same command goes on",
        "where it stopped. A traceback is a bug: please report it.",
        "",
        "| verb | what it does |",
        "| --- | --- |",
        *(f"| [`{verb.name}`](#{verb.name}) | {verb.summary} |" for verb in VERBS.values()),
        "",
        "Every verb understands:",
        "",
        *_markdown_table(("flag", "what it does"), _FLAGS),
        "",
        *_markdown_table(("setting", "what it is"), [(f"{entry.key}={entry.value}", entry.comment) for entry in read("base").entries]),
    ]
    shared = {entry.key for entry in read("base").entries}
    for verb in VERBS.values():
        lines += ["", f"## {verb.name}", "", f"{verb.summary[0].upper()}{verb.summary[1:]}.", "", "```bash"]
        calls = [(f"debate-rl {verb.name} {overrides}".rstrip(), what) for overrides, what in verb.examples]
        width = max(len(call) for call, _ in calls)
        lines += [f"{call:<{width}}  # {what}" for call, what in calls]
        lines.append("```")
        found = groups(verb.name)
        if found:
            rows = []
            for group, package, option in found:
                name = group if package == group else f"{group}@{package}"
                rows += [
                    (f"{name}={choice}", read(f"{group}/{choice}").summary + (" (the default)" if choice == option else ""))
                    for choice in options(group)
                ]
            lines += ["", *_markdown_table(("group", "option"), rows)]
        settings = [
            (f"{entry.key}={entry.value}", entry.comment) for entry in entries(verb.name) if entry.value and entry.key not in shared
        ]
        lines += ["", *_markdown_table(("setting", "what it is"), settings)]
    return "\n".join(lines) + "\n"


def _markdown_table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| {head[0]} | {head[1]} |", "| --- | --- |", *(f"| `{left}` | {right} |" for left, right in rows)]


if __name__ == "__main__":
    print(markdown(), end="")
