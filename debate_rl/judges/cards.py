"""The table of shipped judges in `docs/judges.md`, drawn from their cards."""

from __future__ import annotations

from typing import Final

from debate_rl.judges.pretrained import load_judge, shipped_judges

BEGIN: Final = "<!-- judges:begin -->"
END: Final = "<!-- judges:end -->"


def shipped_table() -> str:
    """A Markdown table, one line per shipped judge: accuracy on the test split, calibration, cross entropy, size, training time, hash."""
    lines = [
        "| judge | data set | pixels | widths | accuracy, % | calibration error, % | cross entropy, nats | training, s | hash |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in shipped_judges():
        judge = load_judge(name)
        test, training = judge.card["test"], judge.card["training"]
        lines.append(
            f"| `{name}` | {judge.dataset} | {judge.pixels} | {' x '.join(map(str, judge.card['widths']))} "
            f"| {100 * test['accuracy']:.2f} ± {100 * test['accuracy_sd']:.2f} | {100 * test['ece']:.2f} | {test['cross_entropy']:.3f} "
            f"| {training['seconds']:.0f} | `{judge.hash}` |"
        )
    return "\n".join(lines)


def draw_table(page: str) -> str:
    """The page's text with the table between its two marks replaced by `shipped_table`. `ValueError` where a mark is missing."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{shipped_table()}\n{END}{after}"
