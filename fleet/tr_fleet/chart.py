"""A figure by day as a small chart in SVG."""

import html as markup

WIDE, HIGH = 640, 110
# Room for the title and the names of the axes.
LEFT, RIGHT, TOP, BOTTOM = 92, 8, 20, 18
# Up to this number of days each has a dot.
DOTS = 60


def _day(text):
    """A place in time: exact enough for a line, and any directory's name has one."""
    year, month, day = map(int, text.split("-"))
    return (year * 12 + month) * 31 + day


def _runs(points):
    """The points without a gap between them: a day without a figure has none."""
    out = [[]]
    for point in points:
        if point[1] is None:
            out.append([])
        else:
            out[-1].append(point)
    return [run for run in out if run]


def chart(days, values, show, marks, title, label):
    """Values by day, which `show` names, with marks: first and last day, class and text of each."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    most, least = max(known), min(known)
    # From 0, or a small change is a flat line.
    base = 0 if 2 * least < most or least == most else max(0, least - (most - least) / 4)
    top = most + (most - base) / 20 or 1
    if show(base) == show(top):
        # Noise below the digits of the labels is no difference to be seen.
        base, top = 0, most * 1.05
    begin, end = _day(days[0]), _day(days[-1])

    def x(day):
        return LEFT + (WIDE - LEFT - RIGHT) * ((_day(day) - begin) / (end - begin) if end > begin else 0.5)

    def y(value):
        return TOP + (HIGH - TOP - BOTTOM) * (1 - (value - base) / (top - base))

    e = markup.escape
    out = [f'<svg viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" role="img" aria-label="{e(label)}">']
    out.append(f'<path class=axis d="M{LEFT} {TOP}V{HIGH - BOTTOM}H{WIDE - RIGHT}"/>')
    for first, last, tint, text in marks:
        wide = max(2, x(max(last, days[0])) - x(max(first, days[0])))
        at = x(max(first, days[0])) - (1 if wide == 2 else 0)
        out.append(
            f'<rect class="{tint}" x="{at:.1f}" y="{TOP}" width="{wide:.1f}" height="{HIGH - TOP - BOTTOM}"><title>{e(text)}</title></rect>'
        )
    for run in _runs(list(zip(days, values))):
        points = [(x(day), y(value)) for day, value in run]
        if len(points) > 1:
            out.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
        if len(points) == 1 or len(days) <= DOTS:
            out.extend(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2"/>' for a, b in points)
    out.append(f'<text x="{LEFT}" y="12">{e(title)}</text>')
    out.append(f'<text x="{LEFT - 6}" y="{TOP + 9}" class=end>{e(show(top))}</text>')
    out.append(f'<text x="{LEFT - 6}" y="{HIGH - BOTTOM}" class=end>{e(show(base))}</text>')
    out.append(f'<text x="{LEFT}" y="{HIGH - 4}">{e(days[0])}</text>')
    if end > begin:
        out.append(f'<text x="{WIDE - RIGHT}" y="{HIGH - 4}" class=end>{e(days[-1])}</text>')
    return "".join(out) + "</svg>"
