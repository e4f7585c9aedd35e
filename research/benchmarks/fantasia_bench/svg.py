"""Charts as SVG, by hand: no more than the plots here need."""

from xml.sax.saxutils import escape

# Okabe and Ito's colours, which people with a colour vision deficiency can tell apart, and three more: on white, and on black.
SERIES = (
    ("#d55e00", "#ff8c42"), ("#0072b2", "#56b4e9"), ("#009e73", "#2fd6a5"), ("#a8488a", "#e59bcb"), ("#b07800", "#f0c04a"),
    ("#3b9dd6", "#a5d8f3"), ("#000000", "#ffffff"), ("#8c6d31", "#c9ae78"), ("#6a51a3", "#b3a2e0"), ("#808080", "#9aa0a6"),
)
COLOURS = tuple(f"c{i}" for i in range(len(SERIES)))
_SHADES = {"paper": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#e6edf3"), "grid": ("#dddddd", "#262c36"), **dict(zip(COLOURS, SERIES))}


def _style():
    """A class for each colour's lines (-s) and areas (-f), light, and dark for those who prefer that."""
    def rules(shade):
        return "".join(f".{name}-s{{stroke:{both[shade]}}}.{name}-f{{fill:{both[shade]}}}" for name, both in _SHADES.items())
    return f"<style>{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}</style>"


def ticks(low, high, about=5):
    """Round numbers that cover [low, high]."""
    span = max(high - low, 1e-9)
    step = 10.0 ** len(str(int(span)))
    for divisor in (2, 2.5, 2) * 8:
        if span / step >= about:
            break
        step /= divisor
    first = -(-low // step)
    return [step * (first + i) for i in range(int((high - first * step) / step + 1e-9) + 1)]


class Drawing:
    """A picture of a width and a height in pixels, for light and dark pages. Its colours are "ink", "grid" and those of COLOURS."""

    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = [f"<title>{escape(title)}</title>", _style(), f'<rect width="{width}" height="{height}" class="paper-f"/>']

    def text(self, x, y, words, anchor="start", size=12, colour="ink", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" class="{colour}-f"{weight}>{escape(words)}</text>')

    def line(self, points, colour="ink", width=1.0):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" class="{colour}-s" stroke-width="{width}"/>')

    def area(self, points, colour, opacity):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" class="{colour}-f" fill-opacity="{opacity}"/>')

    def dot(self, x, y, colour, hollow=False, radius=4):
        fill = "paper" if hollow else colour
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{fill}-f {colour}-s" stroke-width="1.5"/>')

    def __str__(self):
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" font-family="sans-serif" role="img">'
        return "\n".join([head, *self.parts, "</svg>"]) + "\n"


class Panel:
    """A part of a drawing with axes: it maps (x, y) of `xs` and `ys`, each (low, high), into a box of pixels, and cuts off the rest."""

    def __init__(self, drawing, box, xs, ys):
        self.drawing, self.box, self.xs, self.ys = drawing, box, xs, ys
        left, top, right, bottom = box
        self.clip = f"clip{len(drawing.parts)}"
        drawing.parts.append(f'<clipPath id="{self.clip}"><rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/></clipPath>')

    def at(self, x, y):
        left, top, right, bottom = self.box
        (x0, x1), (y0, y1) = self.xs, self.ys
        return left + (x - x0) / (x1 - x0) * (right - left), bottom - (y - y0) / (y1 - y0) * (bottom - top)

    def axes(self, title, label, marks):
        """The title, a grid with numbers at round y and at the x in `marks`, and what x is."""
        left, top, right, bottom = self.box
        self.drawing.text((left + right) / 2, top - 10, title, "middle", 13, bold=True)
        self.drawing.text((left + right) / 2, bottom + 34, label, "middle")
        for y in ticks(*self.ys):
            self.drawing.line([self.at(self.xs[0], y), self.at(self.xs[1], y)], "grid")
            self.drawing.text(left - 6, self.at(0, y)[1] + 4, f"{y:g}", "end", 11)
        for x in marks:
            place = self.at(x, self.ys[0])[0]
            self.drawing.line([(place, bottom), (place, bottom + 4)])
            self.drawing.text(place, bottom + 17, f"{x:g}", "middle", 11)
        self.drawing.line([(left, bottom), (right, bottom)])

    def _inside(self, draw, *arguments):
        self.drawing.parts.append(f'<g clip-path="url(#{self.clip})">')
        draw(*arguments)
        self.drawing.parts.append("</g>")

    def series(self, points, colour, width):
        self._inside(self.drawing.line, [self.at(*p) for p in points], colour, width)

    def band(self, points, colour, opacity=0.1):
        """An area between (x, low, high)."""
        self._inside(self.drawing.area, [self.at(x, high) for x, _, high in points] + [self.at(x, low) for x, low, _ in reversed(points)], colour, opacity)
