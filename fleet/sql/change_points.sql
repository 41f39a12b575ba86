-- Since when does a command, a step or a test take longer, or less long?
--
-- At each run, up to 15 runs from it on are compared with the 15 before it, by the rank test of
-- Mann and Whitney. A change has z >= 3.8, shifts the median by 5 %, by 10 ms, and by 1.5 standard
-- deviations of the runs around it (estimated from the quartiles). Of neighbouring runs the one
-- with the largest z is the change.
WITH placed AS (
    SELECT
        c.series, c.kind, c.name, c.n, v.wall_ns,
        CASE WHEN v.n >= c.n THEN 1 ELSE 0 END AS after
    FROM subjects c
    JOIN subjects v
        ON v.series = c.series AND v.kind = c.kind AND v.name = c.name
        AND v.n BETWEEN c.n - 15 AND c.n + 14
    WHERE c.n > 15 AND c.n <= c.runs - 7
),
ranked AS (
    -- Equal times have their mean rank.
    SELECT
        series, kind, name, n, after,
        rank() OVER (PARTITION BY series, kind, name, n ORDER BY wall_ns) AS low,
        rank() OVER (PARTITION BY series, kind, name, n ORDER BY wall_ns DESC) AS high
    FROM placed
),
summed AS (
    SELECT
        series, kind, name, n,
        sum(1 - after) AS n_before,
        sum(after) AS n_after,
        sum(CASE WHEN after = 1 THEN low - high ELSE 0 END) AS doubled
    FROM ranked
    GROUP BY series, kind, name, n
),
tested AS (
    -- The doubled rank sum less its mean is low - high: each rank is (low - high + all + 1) / 2.
    SELECT
        series, kind, name, n,
        abs(doubled) / 2e0 / sqrt(n_before * n_after * (n_before + n_after + 1) / 12e0) AS z
    FROM summed
),
far AS (
    SELECT series, kind, name, n, z FROM tested WHERE z >= 3.8e0
),
sides AS (
    SELECT
        f.series, f.kind, f.name, f.n, f.z, p.after,
        percentile_disc(0.25) WITHIN GROUP (ORDER BY p.wall_ns) AS low,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY p.wall_ns) AS middle,
        percentile_disc(0.75) WITHIN GROUP (ORDER BY p.wall_ns) AS high
    FROM far f
    JOIN placed p ON p.series = f.series AND p.kind = f.kind AND p.name = f.name AND p.n = f.n
    GROUP BY f.series, f.kind, f.name, f.n, f.z, p.after
),
sized AS (
    SELECT
        b.series, b.kind, b.name, b.n, b.z,
        b.middle AS before_ns,
        a.middle AS after_ns,
        -- The quartiles of a normal distribution are 1.35 standard deviations apart.
        greatest(b.high - b.low, a.high - a.low) / 1.35e0 AS deviation
    FROM sides b
    JOIN sides a ON a.series = b.series AND a.kind = b.kind AND a.name = b.name AND a.n = b.n
    WHERE b.after = 0 AND a.after = 1
),
large AS (
    SELECT
        series, kind, name, n, z, before_ns, after_ns,
        n - lag(n) OVER (PARTITION BY series, kind, name ORDER BY n) AS distance
    FROM sized
    WHERE abs(after_ns - before_ns) >= 10000000
        AND abs(after_ns - before_ns) >= 5e-2 * before_ns
        AND abs(after_ns - before_ns) >= 1.5e0 * deviation
),
grouped AS (
    SELECT
        series, kind, name, n, z, before_ns, after_ns,
        sum(CASE WHEN distance <= 15 THEN 0 ELSE 1 END)
            OVER (PARTITION BY series, kind, name ORDER BY n) AS part
    FROM large
),
chosen AS (
    SELECT
        series, kind, name, n, z, before_ns, after_ns,
        row_number() OVER (
            PARTITION BY series, kind, name, part
            ORDER BY z DESC, abs(after_ns - before_ns) DESC, n
        ) AS place
    FROM grouped
)
SELECT series, kind, name, n, round(z, 2) AS z, before_ns, after_ns
FROM chosen
WHERE place = 1
