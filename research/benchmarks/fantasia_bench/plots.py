"""Plots of scores and of their differences."""

from . import report, score
from .svg import COLOURS, Drawing, Panel

_DRAWS = 500  # of a bootstrap; there are many


def _ranged(comparison, tuner, n, kind):
    grouped = score.by_task(comparison.scores(tuner, n, kind))
    return score.mean(grouped), *score.interval(grouped, _DRAWS)


def _colours(tuners, main):
    """The main tuner first, in the colour that stands out."""
    order = [t for t in tuners if t == main] + sorted(t for t in tuners if t != main)
    return {t: COLOURS[i % len(COLOURS)] for i, t in enumerate(order)}


def _bottom(curves):
    """Where the axis of scores begins: the first steps may fall below it."""
    shown = [value for points in curves.values() for n, value, *_ in points if n >= 24 or n == points[-1][0]]
    return max(0, 5 * int((min(shown) - 5) / 5))


def scores(comparison, main, trials, title):
    """Scores against evaluations of every tuner with 95% intervals: seen after each 8, fresh where it was looked at."""
    tuners = comparison.order(trials)
    colours = _colours(tuners, main)
    looks = sorted({int(n) for runs in comparison.runs.values() for r in runs.values() for n in r.get("fresh", {}) if int(n) in (24, 48, trials)})
    steps = {"fresh": looks, "seen": range(8, trials + 1, 8) if trials >= 8 else [trials]}
    drawing = Drawing(980, 420, title)
    drawing.text(16, 22, title, size=14, bold=True)
    for left, kind, words in ((50, "fresh", "fresh: the incumbent, evaluated again"), (440, "seen", "seen: the best loss so far")):
        curves = {t: [(n, *_ranged(comparison, t, n, kind)) for n in steps[kind]] for t in tuners}
        top = max(high for points in curves.values() for *_, high in points)
        panel = Panel(drawing, (left, 70, left + 330, 360), (0, 1.04 * trials), (_bottom(curves), max(100.0, top)))
        panel.axes(words, "evaluations", [0, *looks] if kind == "fresh" else range(0, trials + 1, max(1, trials // 4)))
        for i, tuner in enumerate(sorted(curves, key=lambda t: t == main)):  # the main one above the others
            points = curves[tuner]
            if kind == "seen":
                panel.band([(n, low, high) for n, _, low, high in points], colours[tuner])
            else:
                for n, _, low, high in points:  # side by side, so that bars do not hide each other
                    shift = (i - len(curves) / 2) * trials / 150
                    panel.series([(n + shift, low), (n + shift, high)], colours[tuner], 1)
            panel.series([(n, value) for n, value, *_ in points], colours[tuner], 3 if tuner == main else 1.5)
    drawing.text(826, 62, f"fresh, {trials}", size=11)
    for i, tuner in enumerate(tuners):
        y = 82 + 22 * i
        drawing.line([(800, y - 4), (820, y - 4)], colours[tuner], 3 if tuner == main else 2)
        drawing.text(826, y, f"{comparison.mean(tuner, trials, 'fresh'):.1f}  {tuner}", bold=tuner == main)
    return str(drawing)


def differences(comparison, main, n, title, names=None, others=None):
    """The main tuner less each other after n evaluations, with 95% intervals: fresh filled, seen hollow."""
    others = [o for o in others or comparison.order(n) if o != main and o in comparison.runs and comparison.gaps(main, o, n, "fresh")]
    gaps = {o: [comparison.gaps(main, o, n, kind) for kind in score.KINDS] for o in others}
    reach = max([5.0] + [abs(v) for pair in gaps.values() for gap in pair for v in gap[1:3]])
    height = 110 + 34 * len(others)
    drawing = Drawing(760, height, title)
    drawing.text(16, 22, title, size=14, bold=True)
    panel = Panel(drawing, (230, 50, 730, height - 50), (-reach, reach), (0, 1))
    for x in _symmetric(reach):
        drawing.line([panel.at(x, 0), panel.at(x, 1)], "ink" if x == 0 else "grid")
        drawing.text(panel.at(x, 0)[0], height - 34, f"{x:+g}" if x else "0", "middle", 11)
    drawing.text(480, height - 12, "points of score, positive is better; filled: fresh, hollow: seen", "middle")
    for i, (other, pair) in enumerate(gaps.items()):
        for j, (value, low, high, _) in enumerate(pair):
            y = 66 + 34 * i + 10 * j
            drawing.line([(panel.at(low, 0)[0], y), (panel.at(high, 0)[0], y)], COLOURS[1], 1.5)
            drawing.dot(panel.at(value, 0)[0], y, COLOURS[1], hollow=j == 1)
        drawing.text(222, 75 + 34 * i, report.named(other, names).strip("`"), "end")
    return str(drawing)


def _symmetric(reach):
    step = next(s for s in (1, 2, 5, 10, 20, 50) if reach / s <= 5 or s == 50)
    count = int(reach / step)
    return [step * i for i in range(-count, count + 1)]
