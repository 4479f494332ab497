"""From a command line to an exit code."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from debate_rl.cli import interrupt
from debate_rl.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from debate_rl.cli.verbs import Verb

PROGRAM: Final = "debate-rl"

BAD_INPUT: Final = 2  # exit codes
BROKEN_PIPE: Final = 141  # 128 + SIGPIPE, what a shell reports for a program that the signal ended
INTERRUPTED: Final = 130  # 128 + SIGINT

_FLAGS: Final = "-h/--help, -m/--multirun, --cfg and --version"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. Only our own bugs get out as exceptions."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    interrupt.listen()
    try:
        with _warnings_on_stderr():
            code = _dispatch(words)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"{PROGRAM}: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted; run the same command to resume", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone: keep the interpreter from trying to flush once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _dispatch(words: list[str]) -> int:
    from debate_rl.cli import verbs

    flags = [word for word in words if word.startswith("-")]
    rest = [word for word in words if not word.startswith("-")]
    unknown = [flag for flag in flags if flag not in ("-h", "--help", "-m", "--multirun", "--cfg", "--version")]
    if unknown:
        raise UserError(f"unknown option {unknown[0]!r}; there are {_FLAGS}")
    if "--version" in flags:
        from debate_rl.results import code_version

        version = code_version()
        print(f"{PROGRAM} {version['version']}" + (f" ({version['commit']})" if version["commit"] else ""))
        return 0
    if not rest or (rest[0] == "help" and len(rest) == 1):
        from debate_rl.cli.help import overview

        print(overview())
        return 0
    if rest[0] == "help":
        rest, flags = rest[1:], [*flags, "--help"]
    verb = verbs.find(rest[0])
    if "-h" in flags or "--help" in flags:
        from debate_rl.cli.help import page

        print(page(verb))
        return 0
    rest = _action(verb, rest)
    if "--cfg" in flags:
        return _show_config(verb, rest[1:])
    if "-m" in flags or "--multirun" in flags:
        return _sweep(verb, rest[1:])
    from debate_rl.cli.compose import compose

    return run_verb(verb.name, compose(verb.name, rest[1:]), shlex.join([PROGRAM, *rest]))


def _action(verb: Verb, words: list[str]) -> list[str]:
    """`debate-rl judge train ...` is short for `debate-rl judge action=train ...` where a verb has actions."""
    from debate_rl.cli.help import read

    if not any(entry.key == "action" for entry in read(verb.name).entries):
        return words
    return [words[0], *(f"action={word}" if word.isidentifier() else word for word in words[1:])]


def run_verb(name: str, config: dict[str, Any], command: str) -> int:
    """Run one verb with a composed configuration."""
    from dataclasses import fields

    from debate_rl.cli import verbs
    from debate_rl.cli.context import Common, Context
    from debate_rl.cli.progress import Bar
    from debate_rl.cli.typed import build, plain

    settings_class, function = verbs.find(name).load()
    base = {field.name for field in fields(Common)}
    common = build(Common, {key: value for key, value in config.items() if key in base})
    settings = build(settings_class, {key: value for key, value in config.items() if key not in base})
    with Bar(common.progress) as bar:
        context = Context(verb=name, command=command, common=common, config=plain(settings), bar=bar)
        return function(settings, context) or 0


def _show_config(verb: Verb, overrides: list[str]) -> int:
    import yaml  # type: ignore[import-untyped]

    from debate_rl.cli.compose import compose

    print(yaml.safe_dump(compose(verb.name, overrides), sort_keys=False, allow_unicode=True), end="")
    return 0


def _sweep(verb: Verb, overrides: list[str]) -> int:
    import functools

    from debate_rl.cli.compose import sweep

    outcomes = sweep(verb.name, overrides, functools.partial(_job, verb.name))
    return max((int(code) for code in outcomes), default=0)


def _job(verb: str, config: DictConfig) -> int:
    """One run of a sweep, maybe in a process of its own. Its bad input must not end the other runs."""
    from hydra.core.hydra_config import HydraConfig

    from debate_rl.cli.compose import resolve

    hydra = HydraConfig.get()
    command = shlex.join([PROGRAM, verb, *hydra.overrides.task])
    print(f"[{hydra.job.num}] {command}", file=sys.stderr, flush=True)
    try:
        code = run_verb(verb, resolve(config), command)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"{PROGRAM}: [{hydra.job.num}] {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        return BAD_INPUT


@contextlib.contextmanager
def _warnings_on_stderr() -> Any:
    logger = logging.getLogger("debate_rl")
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
