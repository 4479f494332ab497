"""A small drawing board for inline SVG: text stays text, colours come from the page's style sheet, every string is escaped.

The same drawing inlines into the report, where CSS variables give it the page's colours in light and dark, and stands alone in the docs,
where `standalone` adds those variables. Output is the same to the byte wherever it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Point = tuple[float, float]

# Light and dark values of the variables that charts use; static/report.css repeats them for the page and a test compares the two.
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2430",
    "soft": "#566173",
    "rule": "#d8dee8",
    "honest": "#1f5fc4",
    "liar": "#c0322a",
    "accent": "#1f5fc4",
    "second": "#8a5a00",
    "quote": "#6a4bb0",
}
DARK = {
    "paper": "#12161d",
    "ink": "#e8ecf3",
    "soft": "#a3aec0",
    "rule": "#333c4a",
    "honest": "#8ab4ff",
    "liar": "#ff9289",
    "accent": "#8ab4ff",
    "second": "#f0b95a",
    "quote": "#c3aaf5",
}

_STYLE = (
    "text{{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;font-variant-numeric:tabular-nums}}"
    "svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
)


def number(value: float) -> str:
    """A coordinate to two decimals without needless zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class Board:
    """One drawing of fixed size in user units, with a title and a description for those who cannot see it."""

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        """Start an empty drawing."""
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self._parts: list[str] = []

    def add(self, tag: str, content: str = "", **attributes: object) -> None:
        """Add an element; `_` in attribute names becomes `-`, a leading `class_` becomes `class`. `content` must be safe already."""
        words = [f'{key.rstrip("_").replace("_", "-")}="{escape(_text(value), quote=True)}"' for key, value in attributes.items()]
        opening = " ".join([tag, *words])
        self._parts.append(f"<{opening}>{content}</{tag}>" if content else f"<{opening}/>")

    def line(self, start: Point, end: Point, stroke: str = "var(--rule)", width: float = 1, dash: str | None = None) -> None:
        """A straight line."""
        extra = {"stroke_dasharray": dash} if dash else {}
        self.add("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], stroke=stroke, stroke_width=width, **extra)

    def path(
        self,
        points: Sequence[Point],
        stroke: str = "none",
        fill: str = "none",
        width: float = 2,
        opacity: float = 1,
        dash: str | None = None,
    ) -> None:
        """A line through points, or a filled shape."""
        data = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + ("Z" if fill != "none" else "")
        extra = {"stroke_dasharray": dash} if dash else {}
        self.add("path", d=data, stroke=stroke, fill=fill, stroke_width=width, opacity=opacity, stroke_linejoin="round", **extra)

    def rect(self, corner: Point, width: float, height: float, fill: str, opacity: float = 1, radius: float = 0, tip: str = "") -> None:
        """A filled rectangle, with a tool tip if one is given."""
        content = f"<title>{escape(tip)}</title>" if tip else ""
        self.add("rect", content, x=corner[0], y=corner[1], width=width, height=height, fill=fill, fill_opacity=opacity, rx=radius)

    def dot(self, centre: Point, radius: float, fill: str, stroke: str = "var(--paper)", tip: str = "") -> None:
        """A filled circle, with a tool tip if one is given."""
        content = f"<title>{escape(tip)}</title>" if tip else ""
        self.add("circle", content, cx=centre[0], cy=centre[1], r=radius, fill=fill, stroke=stroke, stroke_width=1.5)

    def diamond(self, centre: Point, radius: float, stroke: str, tip: str = "") -> None:
        """A hollow diamond: the mark of a published figure."""
        x, y = centre
        corners = [(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)]
        data = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in corners) + "Z"
        content = f"<title>{escape(tip)}</title>" if tip else ""
        self.add("path", content, d=data, fill="var(--paper)", stroke=stroke, stroke_width=1.8)

    def whisker(self, centre: Point, low: float, high: float, stroke: str, *, upright: bool = True) -> None:
        """An interval with end caps; `low` and `high` are coordinates along it."""
        x, y = centre
        cap = 4
        if upright:
            self.line((x, low), (x, high), stroke, 1.5)
            for end in (low, high):
                self.line((x - cap, end), (x + cap, end), stroke, 1.5)
        else:
            self.line((low, y), (high, y), stroke, 1.5)
            for end in (low, high):
                self.line((end, y - cap), (end, y + cap), stroke, 1.5)

    def text(
        self, at: Point, words: str, anchor: str = "start", fill: str = "var(--ink)", size: float = 13, bold: bool = False, turn: float = 0
    ) -> None:
        """One line of text."""
        extra: dict[str, object] = {"transform": f"rotate({number(turn)} {number(at[0])} {number(at[1])})"} if turn else {}
        if bold:
            extra["font_weight"] = 600
        # A style, not an attribute: the stylesheet's font shorthand would win over an attribute.
        self.add("text", escape(words), x=at[0], y=at[1], text_anchor=anchor, fill=fill, style=f"font-size:{number(size)}px", **extra)

    def inline(self, name: str) -> str:
        """The drawing for a page; `name` makes its ids unique there."""
        return self._wrap(name, "")

    def standalone(self, name: str) -> str:
        """The drawing as a file of its own, with the colours it needs."""
        light, dark = (";".join(f"--{key}:{value}" for key, value in colours.items()) for colours in (LIGHT, DARK))
        style = _STYLE.format(light=light, dark=dark)
        background = f'<rect width="{number(self.width)}" height="{number(self.height)}" fill="var(--paper)"/>'
        return self._wrap(name, f"<style>{style}</style>{background}") + "\n"

    def _wrap(self, name: str, head: str) -> str:
        size = f'viewBox="0 0 {number(self.width)} {number(self.height)}" width="{number(self.width)}" height="{number(self.height)}"'
        labels = f'role="img" aria-labelledby="{name}-t {name}-d"'
        title = f'<title id="{name}-t">{escape(self.title)}</title><desc id="{name}-d">{escape(self.description)}</desc>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {labels}>{head}{title}{"".join(self._parts)}</svg>'


def nest(boards: Sequence[Board], gap: float, title: str, description: str) -> Board:
    """Several drawings side by side as one."""
    whole = Board(sum(board.width for board in boards) + gap * (len(boards) - 1), max(board.height for board in boards), title, description)
    left = 0.0
    for board in boards:
        whole.add("g", "".join(board._parts), transform=f"translate({number(left)} 0)")
        left += board.width + gap
    return whole


def _text(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
