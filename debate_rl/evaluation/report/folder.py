"""Write a run's report, and read what it needs back from a run folder.

Beside `results.jsonl` and `records/` a run folder may hold `tables.json` (the tables of `reproduce.collect`, keyed by number of pixels)
and `gallery.jsonl` (the records of the games to show, one per line). What is missing is left out of the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from debate_rl import results
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.report.content import gather
from debate_rl.evaluation.report.gallery import pick_games
from debate_rl.evaluation.report.page import page_html
from debate_rl.runs import unpack, write_whole

TABLES = "tables.json"
GALLERY = "gallery.jsonl"

# A run of the paper's size has a shard per image; its first images hold the games that a gallery shows.
SHARDS_READ = 400


def write_report(
    run_folder: Path,
    rows: Iterable[Mapping[str, Any]],
    records: Iterable[Mapping[str, Any]],
    images: Digits,
    tables: Mapping[str, Any] | None = None,
) -> Path:
    """Write `report/index.html` and PNGs beside it.

    Args:
        run_folder: where `report/` goes; `tables.json` is read from here if `tables` is None.
        rows: result rows.
        records: game records; the gallery shows some of them.
        images: the split that the records' indices are about.
        tables: confusion matrices and reliability tables, as `reproduce.collect` makes them.

    Returns:
        The path of the page.

    Raises:
        UserError: a file cannot be written, or `tables.json` is broken.
    """
    from debate_rl.evaluation.report.pictures import write_pictures  # brings matplotlib, which tables do without

    folder = Path(run_folder)
    content = gather(rows, tables if tables is not None else _tables(folder))
    pixels, gallery = pick_games(records, images)
    report = folder / "report"
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {report} ({error.strerror}): choose a folder that can be written") from error
    write_pictures(report, content, pixels, gallery)
    page = report / "index.html"
    write_whole(page, page_html(content, pixels, gallery).encode("utf-8"))
    return page


def read_run(run_folder: Path) -> tuple[list[dict[str, Any]], Iterator[dict[str, Any]]]:
    """Rows and records of a run folder, for `write_report`.

    Records are those of `gallery.jsonl` where there is one, else of the first shards, read as they are asked for.

    Raises:
        UserError: the folder is missing, or holds neither rows nor records.
    """
    folder = Path(run_folder)
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give a run folder, such as outputs/reproduce/…")
    rows_file, records = folder / "results.jsonl", folder / "records"
    if not rows_file.is_file() and not records.is_dir():
        raise UserError(f"{folder} is not a run folder: it has neither results.jsonl nor records/")
    rows = [row.to_dict() for row in results.read(rows_file)] if rows_file.is_file() else []
    return rows, _records(folder)


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    chosen = folder / GALLERY
    if chosen.is_file():
        try:
            yield from (json.loads(line) for line in chosen.read_text(encoding="utf-8").splitlines() if line.strip())
        except (ValueError, OSError, RecursionError) as error:
            raise UserError(f"{chosen} is broken ({error}): delete it and report again") from error
        return
    # One study, so that the games of a panel are of one kind: the table's of most pixels, else the last.
    studies = sorted((path for path in (folder / "records").glob("*") if path.is_dir()), key=_study_rank)
    for study in studies[-1:]:
        # Shards are named by image: without leading zeros their order is the numbers', not the names'.
        for shard in sorted(study.glob("*.jsonl.gz"), key=lambda path: (len(path.name), path.name))[:SHARDS_READ]:
            try:
                yield from unpack(shard.read_bytes())
            except (ValueError, OSError) as error:
                raise UserError(f"the shard {shard} is broken ({error}): run the command that made it again") from error


def _study_rank(path: Path) -> tuple[bool, int, str]:
    stem, _, pixels = path.name.rpartition("-")
    return stem == "table", int(pixels) if pixels.isdigit() else 0, path.name


def _tables(folder: Path) -> dict[str, Any]:
    path = folder / TABLES
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} is broken ({error}): delete it, or run the command that made it again") from error
    return found if isinstance(found, dict) else {}
