"""Since when does a series of times differ? Steps and slow growth in noise that knows its past.

The model of a series is a level, an effect of each pool of machines, an effect of each day of the
week, and noise of which a part rho stays from one run to the next (AR(1)). A change is a step or a
ramp of the level, found by generalized least squares: what of it the noise would do by itself does
not count. Short series and wrong models are answered by a high threshold, not by a finer model.
"""

import math

import numpy as np

# The runs that a side of a change has at least.
LEAST = 8
# The standard errors that a change has at least; more with few runs, whose noise is known badly.
THRESHOLD = 5.5
# The runs from which on the noise is known well.
ENOUGH = 150
# The same where noise with memory explains as much as it can: the square root of twice the gain in likelihood.
GAIN = 4.9
# And in the series as a whole: beside noise without memory, beside other noise, and of slow growth, which is told
# from a walk with difficulty.
STANDS = {"step": (4.3, 4.9), "ramp": (5.3, 5.3)}
# The greatest of 200 shocks of normal noise, in standard deviations: as far as those of a series exceed it, its
# changes have to.
SHOCK = 3.2
# A change is at least this part of the time, and this many ns.
SHARE = 0.025
SHORTEST = 10_000_000
# A day of the week is told from the others by this many weeks.
WEEKS = 3
# The changes from or to a pool of machines that tell its speed.
SWITCHES = 4
# Two kinds of runs that nothing names are seen in so many parts of a series, by this many standard deviations between
# them, and have this share at least.
PARTS, APART, RARE = 3, 4, 0.1
# The standard deviations, of what two runs in a row differ by, between two levels that are told apart run by run.
DISTINCT = 3
# The longest part of a series that is searched at once: older changes have been told.
WINDOW = 1000


def running_median(values, half):
    """The median of the values at most `half` places away."""
    if len(values) <= 2 * half:
        return np.full(len(values), np.median(values))
    padded = np.concatenate([values[:half][::-1], values, values[-half:][::-1]])
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)


def spread(values):
    """A standard deviation from the quartiles, which outliers do not move."""
    low, high = np.percentile(values, [25, 75])
    return (high - low) / 1.349


def weekdays(values, days):
    """The effect of each run's day of the week."""
    out = np.zeros(len(values))
    unique, place, counts = np.unique(days, return_inverse=True, return_counts=True)
    if len(unique) < 2:
        return out
    order = np.lexsort((values, place))
    medians = values[order][np.cumsum(counts) - counts + counts // 2]
    levels = running_median(medians, 3)
    rest = medians - levels
    # 1970-01-01 was a Thursday; 0 is Monday.
    week = (unique + 3) % 7
    if unique[-1] - unique[0] >= 7 * WEEKS:
        effect = np.zeros(7)
        for day in range(7):
            inside = week == day
            if inside.sum() >= WEEKS:
                effect[day] = np.median(rest[inside])
    else:
        # Too short for days; but a weekend is no news before Monday. What it differs by is seen at
        # its ends, where no other change of the level is in the way.
        off = (week >= 5).astype(int)
        ends = np.diff(off)
        sides = [np.median(side * np.diff(medians)[ends == side]) for side in (1, -1) if (ends == side).any()]
        # Beginnings and ends agree, or it is a change that met a weekend.
        if not sides or min(sides) < 0 < max(sides):
            return out
        effect = np.where(np.arange(7) >= 5, min(sides, key=abs), 0.0)
    noise = spread(rest - effect[week]) if len(rest) > 3 else 0.0
    if np.abs(effect).max() < 0.5 * noise:
        return out
    return effect[week][place]


def pools(values, members):
    """The effect of each run's pool of machines: of the differences of neighbours in two pools the
    median, where the level of the series is not in the way. A pool that came once has none."""
    out = np.zeros(len(values))
    places = np.flatnonzero((members[1:] != members[:-1]) & (members[1:] >= 0) & (members[:-1] >= 0))
    if len(places) < SWITCHES:
        return out
    left, right = members[places], members[places + 1]
    jumps = values[places + 1] - values[places]
    names, counts = np.unique(np.concatenate([left, right]), return_counts=True)
    effect = dict.fromkeys(names.tolist(), 0.0)
    known = [name for name, count in zip(names.tolist(), counts) if count >= SWITCHES]
    for _ in range(10):
        for name in known:
            into = [j + effect[o] for j, o in zip(jumps[right == name], left[right == name].tolist())]
            away = [effect[o] - j for j, o in zip(jumps[left == name], right[left == name].tolist())]
            effect[name] = 0.5 * effect[name] + 0.5 * float(np.median(into + away))
    rest = jumps - [effect[b] - effect[a] for a, b in zip(left.tolist(), right.tolist())]
    scale = spread(rest)
    for name, count in zip(names.tolist(), counts):
        # As far as it is more than chance.
        if abs(effect[name]) > 3 * 1.2533 * scale / math.sqrt(count):
            out[members == name] = effect[name]
    return out


def kinds(values):
    """Two kinds of values: the distance between their means, the standard deviation inside, the share of the
    upper kind; the split with the least squares left."""
    order = np.sort(values)
    n = len(order)
    low = np.arange(1, n)
    sums, squares = np.cumsum(order)[:-1], np.cumsum(order * order)
    means = sums / low, (order.sum() - sums) / (n - low)
    left = squares[-1] - low * means[0] ** 2 - (n - low) * means[1] ** 2
    at = int(np.argmin(left))
    return means[1][at] - means[0][at], math.sqrt(max(left[at], 1e-18) / n), 1 - low[at] / n


def hidden(values):
    """The effect of pools that no run names, as far as runs of two kinds alternate: which of both each run is, is
    told from its time and from a level that may change on the way."""
    n = len(values)
    none = np.zeros(n)
    if n < PARTS * 5 * LEAST:
        return none
    # A change of the level blurs the kinds in one part, not in the others.
    found = [
        it for it in map(kinds, np.array_split(values, PARTS)) if it[0] > APART * it[1] and RARE < it[2] < 1 - RARE
    ]
    if len(found) < PARTS - 1:
        return none
    distance, inside, share = (float(np.median(column)) for column in zip(*found))
    # Runs of two exact times would have levels without number.
    inside = max(inside, distance / 50)
    span = values.max() - values.min() + distance
    levels = np.arange(values.min() - distance, values.max(), max(inside / 4, span / 2000))
    off = (values - levels[:, None]) / inside
    lower, upper = (1 - share) * np.exp(-off * off / 2), share * np.exp(-((off - distance / inside) ** 2) / 2)
    fits = np.cumsum(np.log(lower + upper + 1e-6), axis=1)
    fits = np.hstack([np.zeros((len(levels), 1)), fits])
    place = np.zeros(n, dtype=int)
    _levels(fits, 0, n, place)
    chosen = np.arange(n)
    above = upper[place, chosen] > lower[place, chosen]
    # Kinds that come in long stretches are changes themselves.
    if (above[1:] != above[:-1]).mean() < 1.2 * share * (1 - share):
        return none
    return np.where(above, distance, 0.0)


def _levels(fits, a, b, out):
    """The likeliest level of each place from a to b; several if that is much likelier than one."""
    whole = fits[:, b] - fits[:, a]
    out[a:b] = np.argmax(whole)
    if b - a < 4 * LEAST:
        return
    inside = fits[:, a + LEAST : b - LEAST + 1]
    both = (inside - fits[:, a : a + 1]).max(axis=0) + (fits[:, b : b + 1] - inside).max(axis=0)
    at = int(np.argmax(both))
    if both[at] - whole.max() > 12:
        _levels(fits, a, a + LEAST + at, out)
        _levels(fits, a + LEAST + at, b, out)


def clipped(values, half=20):
    """The values with outliers at the border of what the noise does, around a level that follows more than
    `half` runs."""
    level = running_median(values, min(half, len(values) // 5))
    rest = values - level
    scale = spread(rest)
    return level + np.clip(rest, -2.5 * scale, 2.5 * scale) if scale > 0 else values


def memory(rest):
    """How much of the noise stays from one run to the next, from several distances: noise may be the
    sum of some that stays and some that does not. Corrected for what the estimate of a level hides."""
    n = len(rest)
    rest = rest - rest.mean()
    power = float(rest @ rest)
    if power <= 0 or n < 2 * LEAST:
        return 0.0
    rho = 0.0
    for lag in (1, 2, 3, 5):
        if n < 8 * lag:
            break
        auto = float(rest[lag:] @ rest[:-lag]) / power + (1 + 2 * lag) / n
        # Not more than chance.
        if lag > 1 and auto < 2.5 / math.sqrt(n):
            break
        auto = max(0.0, auto)
        rho = max(rho, auto ** (1 / lag))
    return min(rho, 0.97)


class Fit:
    """A step or a ramp in a stretch of a series, in places from the stretch's beginning."""

    def __init__(self, kind, first, last, low, high, size, z, loss):
        self.kind, self.first, self.last = kind, first, last
        # The places between which the change began, by the likelihood.
        self.low, self.high = low, high
        # The change of the level in logarithms, its standard errors from 0, the sum of squares left.
        self.size, self.z, self.loss = size, z, loss
        # In noise with memory: by what it is likelier than none, as `GAIN`, and the greatest other shock, as `SHOCK`.
        self.gain = self.shock = None

    def shape(self, n, begin=0):
        """In n runs, if the stretch begins there."""
        places = np.arange(n) - begin
        if self.kind == "step":
            return self.size * (places >= self.first)
        return self.size * np.clip((places - self.first) / (self.last - self.first), 0, 1)


def whitened(columns, rho):
    """Columns without what of each value stays from the one before."""
    out = columns.astype(float).copy()
    out[..., 1:] -= rho * columns[..., :-1]
    out[..., 0] *= math.sqrt(1 - rho * rho)
    return out


def solve(rest, shapes, rho):
    """Sizes, z and the sums of squares left of each shape beside a level, in noise of this memory."""
    n = len(rest)
    e, one = whitened(rest, rho), whitened(np.ones(n), rho)
    power = one @ one
    e = e - one * (one @ e / power)
    s = whitened(shapes, rho)
    s = s - np.outer(s @ one / power, one)
    inside = np.einsum("ij,ij->i", s, s)
    size = s @ e / inside
    loss = np.maximum(e @ e - size * size * inside, 1e-12)
    return size, size * np.sqrt(inside * (n - 3) / loss), loss


def steps(rest, rho):
    """As `solve`, for a step at every place."""
    n = len(rest)
    e, one = whitened(rest, rho), whitened(np.ones(n), rho)
    power = one @ one
    e = e - one * (one @ e / power)
    # A step at t, whitened: 1 at t, 1 - rho after it.
    stay = 1 - rho
    after = np.concatenate([np.cumsum(e[::-1])[::-1][1:], [0.0]])
    ones_after = stay * (n - 1 - np.arange(n))
    along = e + stay * after
    share = stay + stay * ones_after
    inside = np.maximum(1 + stay * ones_after - share * share / power, 1e-9)
    size = along / inside
    loss = np.maximum(e @ e - along * along / inside, 1e-12)
    return size, size * np.sqrt(inside * (n - 3) / loss), loss


def ramps(n):
    """Slow growth from and to each eighth of a stretch."""
    edges = np.unique(np.linspace(0, n - 1, 9).astype(int))
    return [(a, b) for i, a in enumerate(edges) for b in edges[i + 1 :] if b - a >= max(2 * LEAST, n // 5)]


def best(rest):
    """The step or ramp that explains most of a stretch."""
    n = len(rest)
    inside = slice(LEAST, n - LEAST + 1)

    def step(rho):
        size, z, loss = steps(rest, rho)
        at = int(np.argmin(loss[inside])) + LEAST
        near = np.flatnonzero(loss[inside] <= loss[at] * math.exp(8 / n)) + LEAST
        return Fit("step", at, at, int(near[0]), int(near[-1]), float(size[at]), float(z[at]), float(loss[at]))

    found = step(0.0)
    if abs(math.expm1(found.size)) < SHARE:
        found.rho = found.raw = memory(rest)
        return found
    raw = memory(rest - found.shape(n))
    found = plain(rest, step, raw)
    # What is left beside slow growth tells its memory.
    if (found.rho if found.kind == "ramp" else raw) > 2 / math.sqrt(n):
        return remembering(rest, raw)
    return found


def plain(rest, step, rho):
    """The step or ramp in noise of the first order, of which hardly anything stays."""
    n = len(rest)
    for _ in range(2):
        found = step(rho)
        rho = memory(rest - found.shape(n))
    found = step(rho)
    # A step that the noise has made hides the memory of which it is made.
    found.rho, found.raw = rho, memory(rest)
    if n < 6 * LEAST:
        return found
    spans = ramps(n)
    places = np.arange(n)
    shapes = np.array([np.clip((places - a) / (b - a), 0, 1) for a, b in spans])

    def ramp(rho):
        size, z, loss = solve(rest, shapes, rho)
        at = int(np.argmin(loss))
        (a, b) = spans[at]
        return Fit("ramp", a, b, a, a, float(size[at]), float(z[at]), float(loss[at]))

    slow = ramp(0.0)
    own = memory(rest - slow.shape(n))
    slow = ramp(own)
    slow.rho, slow.raw = own, found.raw
    # Both in the same noise: that of the better one.
    common = min(own, rho)
    if n * math.log(step(common).loss / ramp(common).loss) > 6:
        return slow
    return found


# Noise with memory: of the part that stays, how much does so from one run to the next, and the part that does not
# stay at all. At 0.995 it is a walk.
NOISES = np.array(
    [(0.0, 0.0)] + [(rho, own) for rho in (0.3, 0.5, 0.7, 0.85, 0.92, 0.97, 0.995) for own in (0.0, 0.4, 0.8)]
)


# By how much less likely each is than noise without memory, if nothing else is known: all of them together are as
# likely as that.
RARER = np.where(NOISES[:, 0] == 0, 0.0, 2 * math.log(len(NOISES) - 1))


def filtered(columns, noises):
    """What each noise (a Kalman filter) does not foresee of columns, place by place; and the logarithm of
    the determinant of each noise's covariance."""
    rho, own = noises[:, :1], noises[:, 1:]
    fresh = (1 - own) * (1 - rho * rho)
    foreseen, power, weight = np.zeros((len(noises), 1)), 1 - own, 0.0
    for column in columns:
        total = power + own
        off = column - foreseen
        gain = power / total
        foreseen = rho * (foreseen + gain * off)
        power = rho * rho * (power - gain * power) + fresh
        weight = weight + np.log(total)
        yield off / np.sqrt(total), weight


def remembering(rest, raw):
    """The step or ramp that is likelier than none in the noise of `NOISES` that fits best: each with its own,
    so that noise which explains a change by itself leaves nothing to tell."""
    n = len(rest)
    starts = np.arange(LEAST, n - LEAST + 1)
    spans = ramps(n) if n >= 6 * LEAST else []
    places = np.arange(n)
    shapes = np.array([np.clip((places - a) / (b - a), 0, 1) for a, b in spans]).reshape(len(spans), n)
    columns = np.vstack([rest, np.ones(n), places >= starts[:, None], shapes]).T
    sums = {name: 0.0 for name in ("ee", "e1", "11", "se", "s1", "ss")}
    for off, weight in filtered(columns, NOISES):
        e, one, s = off[:, :1], off[:, 1:2], off[:, 2:]
        for name, product in (
            ("ee", e * e),
            ("e1", e * one),
            ("11", one * one),
            ("se", s * e),
            ("s1", s * one),
            ("ss", s * s),
        ):
            sums[name] = sums[name] + product
    none = sums["ee"] - sums["e1"] ** 2 / sums["11"]
    inside = np.maximum(sums["ss"] - sums["s1"] ** 2 / sums["11"], 1e-9)
    size = (sums["se"] - sums["s1"] * sums["e1"] / sums["11"]) / inside
    loss = np.maximum(none - size * size * inside, 1e-12)
    cost = n * np.log(loss) + weight
    least = float((n * np.log(np.maximum(none, 1e-12)) + weight).min())
    each = cost.min(axis=0)

    def fit(kind, at, first, last, low, high):
        noise = int(cost[:, at].argmin())
        error = math.sqrt(loss[noise, at] / (n - 3) / inside[noise, at])
        found = Fit(
            kind, first, last, low, high, float(size[noise, at]), float(size[noise, at]) / error, float(loss[noise, at])
        )
        found.rho, found.raw = float(NOISES[noise, 0]), raw
        left = rest - found.shape(n)
        shocks = np.array([off[0, 0] for off, _ in filtered((left - left.mean())[:, None], NOISES[noise : noise + 1])])
        found.gain = math.sqrt(max(0.0, least - each[at]))
        found.shock = float(np.abs(shocks).max() / max(spread(shocks), 1e-12))
        return found

    at = int(each[: len(starts)].argmin())
    near = starts[each[: len(starts)] <= each[at] + 8]
    if spans:
        slow = len(starts) + int(each[len(starts) :].argmin())
        if each[slow] < each[at] - 6:
            first, last = spans[slow - len(starts)]
            return fit("ramp", slow, first, last, first, first)
    return fit("step", at, int(starts[at]), int(starts[at]), int(near[0]), int(near[-1]))


def clearness(fit, n, floor):
    """How much clearer a change is than it has to be. The memory of noise is known badly in few runs."""
    # A few runs of the slower kind in a row are no change.
    side = min(fit.first, n - fit.first) if fit.kind == "step" else LEAST * 4
    few = n < ENOUGH
    if fit.gain is not None:
        least = GAIN * max(1.0, fit.shock / SHOCK) * (1 + (fit.kind == "ramp") * 0.2)
        return fit.gain / ((least + 1.5 * few) * (1 + 1 / side))
    rho = max(fit.rho, floor)
    if fit.kind == "ramp":
        return 0.0 if n < 12 * LEAST else abs(fit.z) / (7 + 14 * rho)
    least = (THRESHOLD + 1.5 * max(rho, fit.raw / 2)) * (1 + 4 / side)
    return abs(fit.z) / (least + few * (1.5 + 4 * min(1.0, 2 * rho)))


def stretches(n):
    """Beginnings and ends: the whole, halves, quarters ... with half of an overlap."""
    out = [(0, n)]
    length = n
    while length >= 8 * LEAST:
        length //= 2
        out += [(a, a + length) for a in range(0, n - length + 1, length // 2)]
    return out


def is_quiet(sums, squares, a, b):
    """No step of this stretch has enough standard errors in noise without memory: others make it no clearer.
    From the sums of the values before each place, and of their squares."""
    n = b - a
    left = np.arange(LEAST, n - LEAST + 1)
    total = sums[b] - sums[a]
    gain = (sums[a + LEAST : b - LEAST + 1] - sums[a] - total * left / n) ** 2 * n / (left * (n - left))
    most = float(gain.max())
    return most * (n - 3) < THRESHOLD**2 * (squares[b] - squares[a] - total * total / n - most)


def search(values, offset, floor, out):
    """The changes of a stretch, the clearest first, then those on both sides of it."""
    if len(values) < FEWEST:
        return
    chosen = None
    off = values - values.mean()
    sums, squares = (np.concatenate([[0.0], np.cumsum(it)]) for it in (off, off * off))
    for a, b in stretches(len(values)):
        if b - a < FEWEST:
            continue
        if is_quiet(sums, squares, a, b):
            if b - a == len(values):
                whole = memory(values)
            continue
        fit = best(values[a:b])
        if b - a == len(values):
            whole = fit.rho
        clear = clearness(fit, b - a, max(floor, whole))
        if clear < 1 or abs(math.expm1(fit.size)) < SHARE:
            continue
        if chosen is None or clear > chosen[2]:
            chosen = (a, fit, clear)
    if chosen is None:
        return
    a, fit, _ = chosen
    fit.first, fit.last, fit.low, fit.high = (place + a for place in (fit.first, fit.last, fit.low, fit.high))
    search(values[: fit.first], offset, fit.rho, out)
    out.append((offset, fit))
    end = fit.last if fit.kind == "ramp" else fit.first
    search(values[end:], offset + end, fit.rho, out)


def recurring(members):
    """A column for each pool that comes, goes and comes again, for many runs at a time: only such a one looks
    like a change."""
    starts = np.flatnonzero(np.diff(members, prepend=members[0] - 1))
    names, times = np.unique(members[starts], return_counts=True)
    found = [(members == name) * 1.0 for name, count in zip(names, times) if count > 1]
    found = [it for it, count in zip(found, times[times > 1]) if it.sum() >= LEAST * count]
    return found[:-1] if len(found) == len(names) else found


def standing(values, found, offset, others):
    """The changes that the series as a whole is likelier with than without, each beside the rest: all runs know
    better what noise does than those around a change. Nor is one told that the `others` explain: pools that recur,
    and a weekend in a few weeks, whose effects are known badly."""
    n = len(values)
    if not found:
        return []
    shapes = [fit.shape(n, place - offset) / fit.size for place, fit in found]
    columns = np.vstack([values - values.mean(), np.ones(n), *others, *shapes]).T
    left = []
    for off, weight in filtered(columns, NOISES):
        left.append(off)
    left = np.array(left)
    sums = np.einsum("tij,tik->ijk", left, left)

    def costs(chosen):
        inside, along = sums[:, chosen][:, :, chosen], sums[:, chosen, 0]
        sizes = np.einsum("ijk,ik->ij", np.linalg.pinv(inside, rcond=1e-9, hermitian=True), along)
        loss = np.maximum(sums[:, 0, 0] - np.einsum("ij,ij->i", sizes, along), 1e-12)
        return n * np.log(loss) + weight[:, 0] + RARER, sizes

    first = 2 + len(others)
    kept = list(range(first, first + len(found)))
    while kept:
        base = [*range(1, first), *kept]
        with_all, sizes = costs(base)
        best = int(with_all.argmin())
        shocks = left[:, best, 0] - left[:, best][:, base] @ sizes[best]
        # What stays of a shock looks like a step.
        shock = float(np.abs(shocks).max() / max(spread(shocks), 1e-12)) if best else 0.0
        gains = [float(costs([it for it in base if it != place])[0].min() - with_all[best]) for place in kept]
        least = [STANDS[found[place - first][1].kind][best > 0] * max(1.0, shock / SHOCK) for place in kept]
        clear = [math.sqrt(max(0.0, gain)) / it for gain, it in zip(gains, least)]
        weakest = int(np.argmin(clear))
        if clear[weakest] >= 1:
            break
        del kept[weakest]
    return [found[place - first] for place in kept]


def comes_and_goes(values, found, offset):
    """The changes without steps to a level that was there before, again and again, up to the changes beside: they
    are the noise's own."""
    ends = [place + (fit.last if fit.kind == "ramp" else fit.first) - offset for place, fit in found]
    out = []
    for at, (place, fit) in enumerate(found):
        begin, end = (
            ends[at - 1] if at else 0,
            found[at + 1][0] + found[at + 1][1].first - offset if at + 1 < len(found) else len(values),
        )
        own = values[begin:end]
        middle = place + fit.first - offset - begin
        # What runs differ by is not moved by a few steps.
        inside = spread(np.diff(own)) / math.sqrt(2)
        if fit.kind == "ramp" or not 0 < middle < len(own) or abs(fit.size) < DISTINCT * inside:
            out.append((place, fit))
            continue
        before, after = np.median(own[:middle]), np.median(own[middle:])
        share = (own - before) / (after - before) if after != before else np.zeros(len(own))
        # From one run to the next, with two runs on each side: noise that wanders is on its way for longer.
        sides = np.where(share < 0.25, -1, np.where(share > 0.75, 1, 0))
        a, b, c, d = (sides[k : len(sides) - 3 + k] for k in range(4))
        if np.count_nonzero((a == b) & (c == d) & (b * c < 0)) <= SWITCHES:
            out.append((place, fit))
    return out


def changes(wall, days, members):
    """The changes of a series in ns, with each run's day since 1970 and number of its pool (or -1)."""
    return explained(wall, days, members)[0]


def explained(wall, days, members):
    """The same, and the factors by which pools and weekdays make each run longer."""
    none = np.ones(len(wall))
    values = np.log(np.maximum(np.asarray(wall, dtype=float), 1.0))
    days, members = np.asarray(days), np.asarray(members)
    first = max(0, len(values) - WINDOW)
    values, days, members = values[first:], days[first:], members[first:]
    if len(values) < FEWEST or math.exp(values.max()) - math.exp(values.min()) < SHORTEST:
        return [], none
    told = values
    values = values - pools(values, members)
    for _ in range(2):
        values = values - hidden(values)
    weekly = weekdays(values, days)
    values = values - weekly
    effect = told - values
    none[first:] = np.exp(effect - effect.mean())
    alike = values
    values = clipped(values)
    found = []
    search(values, first, 0.0, found)
    weeks = days[-1] - days[0] >= 7 * WEEKS
    others = recurring(members) + ([weekly] if weekly.any() and not weeks else [])
    # A pool's stay is no outlier.
    found = standing(clipped(alike, LEAST) if others else values, found, first, others)
    found = comes_and_goes(alike, found, first)
    if alternates([fit.size for _, fit in found]):
        return [], none
    return found if weeks else lasting(found, days, first), none


# The steps that are tried for the smallest change that a series could show: each is larger than the one before by the square
# root of two.
TRIED = [SHARE * 2 ** (k / 2) for k in range(12)]
# So clear a step, as a part of what a change needs, is no noise of the series where other steps are tried.
LIKELY = 0.5
# The parts of the series before the steps, and the newest runs in which they are tried.
PLACES, NEWEST = (0.25, 0.5, 0.75), 200


def smallest(wall, days, members):
    """The smallest step, as a part of the time, that would be found in this series wherever it is, beside the noise of its
    newest runs. None: not even the largest of TRIED, or the series is too short."""
    wall, days, members = (np.asarray(column)[-NEWEST:] for column in (wall, days, members))
    if len(wall) < FEWEST:
        return None
    values = without_steps(wall, days, members)

    def is_found(size):
        return all(has_step(values, days, members, int(len(values) * place), size) for place in PLACES)

    least, most = 0, len(TRIED)
    while least < most:
        middle = (least + most) // 2
        if is_found(TRIED[middle]):
            most = middle
        else:
            least = middle + 1
    return TRIED[least] if least < len(TRIED) else None


def without_steps(wall, days, members):
    """The logarithms of the times around their levels: a change that is there is no noise, nor is a step that is likely
    but not clear enough to report."""
    values = np.log(np.maximum(wall.astype(float), 1.0))
    for offset, fit in changes(wall, days, members):
        values = values - fit.shape(len(values), offset)
    fit = best(clipped(values))
    # In noise with memory it may be the noise itself.
    if fit.kind == "step" and fit.gain is None and clearness(fit, len(values), fit.rho) >= LIKELY:
        values = values - fit.shape(len(values))
    return values


def has_step(values, days, members, at, size):
    """Whether a step of this size is found where it is added to the logarithms of the times."""
    at = min(max(at, LEAST), len(values) - LEAST)
    planted = values + math.log1p(size) * (np.arange(len(values)) >= at)
    found = changes(np.exp(planted), days, members)
    near = max(LEAST, len(values) // 20)
    return any(fit.size > 0 and abs(offset + fit.first - at) <= near for offset, fit in found)


def lasting(found, days, first):
    """Without changes that are undone within a week, where too few weeks tell what a Monday is."""
    out = []
    for offset, fit in found:
        if out:
            before = out[-1]
            since = days[offset + fit.first - first] - days[before[0] + before[1].first - first]
            if since < 7 and alternates([before[1].size, fit.size, before[1].size]):
                out.pop()
                continue
        out.append((offset, fit))
    return out


def alternates(sizes):
    """The level goes to and fro: two kinds of runs, not changes."""
    if len(sizes) < 3:
        return False
    signs = [a * b < 0 for a, b in zip(sizes, sizes[1:])]
    return all(signs) and max(map(abs, sizes)) < 2 * min(map(abs, sizes))


# The least runs of a series with a change.
FEWEST = 2 * LEAST + 4
# The runs on each side that are compared, and those whose machines are: all of these are compared if pools or
# weekdays differ.
SIDE, WIDE = 15, 60
# A row of the changes: the runs of a subject have numbers, from 1. `n` is the first run with the change,
# `until_n` the last one of a slow growth, `low_n` and `high_n` those between which it began.
COLUMNS = [
    ("subject", "bigint"),
    ("n", "bigint"),
    ("shape", "string"),
    ("until_n", "bigint"),
    ("low_n", "bigint"),
    ("high_n", "bigint"),
    ("z", "double"),
    ("before_ns", "bigint"),
    ("after_ns", "bigint"),
    ("least_ns", "bigint"),
    ("most_ns", "bigint"),
    ("before_from", "bigint"),
    ("before_to", "bigint"),
    ("after_from", "bigint"),
    ("after_to", "bigint"),
    ("wide_from", "bigint"),
    ("wide_to", "bigint"),
]
NAMED = """
    SELECT c.*, s.series, s.kind, s.name
    FROM changed c
    JOIN (SELECT DISTINCT subject, series, kind, name FROM subjects) s ON s.subject = c.subject
"""


def of_subject(subject, n, wall, days, members):
    """The rows of a subject's changes."""
    wall = np.asarray(wall)
    found, factors = explained(wall, days, members)
    alike = wall / factors
    # Kinds of runs are as frequent on both sides in many runs alone.
    side = WIDE if factors.min() < factors.max() else SIDE
    spans = [(offset + fit.first, offset + (fit.last if fit.kind == "ramp" else fit.first)) for offset, fit in found]
    rows = []
    for place, ((offset, fit), (first, last)) in enumerate(zip(found, spans)):
        begin = spans[place - 1][1] if place else 0
        end = spans[place + 1][0] if place + 1 < len(spans) else len(wall)
        # Slow growth has its sides around its ends, where it is under way already.
        inside = LEAST if fit.kind == "ramp" else 0
        before_to = max(first + inside, begin + inside, 1)
        after_from = min(last - inside, len(wall) - 1)
        # Slow growth may begin or end where a step is: some of its runs are a side of the step.
        begin, end = min(begin, max(0, before_to - LEAST)), max(end, min(len(wall), after_from + LEAST))
        before_from, after_to = max(begin, before_to - side), min(end, after_from + side)
        before, after = np.median(alike[before_from:before_to]), np.median(alike[after_from:after_to])
        if abs(after - before) < SHORTEST:
            continue
        error = abs(fit.size / fit.z)
        # The difference that is told is one of those that may be.
        sizes = [before * math.expm1(fit.size + k * 2 * error) for k in (-1, 1)] + [after - before]
        rows.append(
            (
                int(subject),
                first + 1,
                "gradual" if fit.kind == "ramp" else "sudden",
                last + 1,
                offset + fit.low + 1,
                offset + fit.high + 1,
                round(abs(fit.z), 2),
                int(before),
                int(after),
                int(min(sizes)),
                int(max(sizes)),
                before_from + 1,
                before_to,
                after_from + 1,
                after_to,
                max(begin, before_to - WIDE) + 1,
                min(end, after_from + WIDE),
            )
        )
    return [tuple(int(cell) if isinstance(cell, np.integer) else cell for cell in row) for row in rows]


def of_row(row):
    """Those of a row of Spark, on an executor."""
    columns = zip(*[(run.n, run.wall_ns, run.day_number, run.pool) for run in row.runs])
    return of_subject(row.subject, *columns)


def of_some(parts):
    return [row for part in parts for row in of_subject(*part)]


# From this number of runs on, further processes search, too.
MANY = 200_000


def of_all(subject, n, wall_ns, day_number, pool):
    """The rows of the changes of all subjects; the columns are sorted by subject and number."""
    starts = np.flatnonzero(np.diff(subject, prepend=-1))
    ends = np.append(starts[1:], len(subject))
    parts = [(subject[a], n[a:b], wall_ns[a:b], day_number[a:b], pool[a:b]) for a, b in zip(starts, ends)]
    if len(subject) < MANY:
        return of_some(parts)
    return _spread(parts)


def _spread(parts):
    """Over the CPUs; a fork beside an engine's threads may hang, so each process starts anew."""
    global _workers
    import concurrent.futures
    import multiprocessing
    import os

    if _workers is None:
        context = multiprocessing.get_context("spawn")
        count = len(os.sched_getaffinity(0))
        _workers = concurrent.futures.ProcessPoolExecutor(count, mp_context=context)
    chunks = [parts[at : at + 200] for at in range(0, len(parts), 200)]
    return [row for rows in _workers.map(of_some, chunks) for row in rows]


_workers = None
