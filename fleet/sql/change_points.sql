-- Since when does a command, a step or a test take longer, or less long?
--
-- At each run, 8 to 15 runs from it on are compared with the 15 before it, by the rank test of Mann
-- and Whitney. A change has z >= 3.8, and shifts the median by 5 %, by 10 ms, and by 1.5 standard
-- deviations of the runs around it (estimated from their quartiles). Of neighbouring runs the one
-- with the largest z is the change.
WITH offsets AS (
    SELECT k FROM (VALUES
        (-15), (-14), (-13), (-12), (-11), (-10), (-9), (-8), (-7), (-6), (-5), (-4), (-3), (-2),
        (-1), (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14)
    ) AS v(k)
),
placed AS (
    -- Each run with every run n around which it is looked at.
    SELECT
        v.subject, v.n - o.k AS n, v.wall_ns,
        CASE WHEN o.k >= 0 THEN 1 ELSE 0 END AS after
    FROM subjects v
    CROSS JOIN offsets o
    WHERE v.n - o.k > 15 AND v.n - o.k <= v.runs - 7
),
ranked AS (
    SELECT
        subject, n, after, wall_ns,
        rank() OVER (PARTITION BY subject, n ORDER BY wall_ns) AS low,
        rank() OVER (PARTITION BY subject, n ORDER BY wall_ns DESC) AS high
    FROM placed
),
tested AS (
    -- Equal times have their mean rank, (low - high + all + 1) / 2.
    SELECT
        subject, n,
        sum(1 - after) AS n_before,
        sum(after) AS n_after,
        sum(CASE WHEN after = 1 THEN low - high ELSE 0 END) / 2e0 AS excess,
        CAST(percentile_disc(0.25) WITHIN GROUP (ORDER BY CASE WHEN after = 0 THEN wall_ns END) AS bigint) AS low_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 0 THEN wall_ns END) AS bigint) AS before_ns,
        CAST(percentile_disc(0.75) WITHIN GROUP (ORDER BY CASE WHEN after = 0 THEN wall_ns END) AS bigint) AS high_before,
        CAST(percentile_disc(0.25) WITHIN GROUP (ORDER BY CASE WHEN after = 1 THEN wall_ns END) AS bigint) AS low_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 1 THEN wall_ns END) AS bigint) AS after_ns,
        CAST(percentile_disc(0.75) WITHIN GROUP (ORDER BY CASE WHEN after = 1 THEN wall_ns END) AS bigint) AS high_after
    FROM ranked
    GROUP BY subject, n
),
sized AS (
    SELECT
        subject, n, before_ns, after_ns,
        abs(excess) / sqrt(n_before * n_after * (n_before + n_after + 1) / 12e0) AS z,
        -- The quartiles of a normal distribution are 1.35 standard deviations apart.
        greatest(high_before - low_before, high_after - low_after) / 1.35e0 AS deviation
    FROM tested
),
large AS (
    SELECT
        subject, n, z, before_ns, after_ns,
        n - lag(n) OVER (PARTITION BY subject ORDER BY n) AS distance
    FROM sized
    WHERE z >= 3.8e0
        AND abs(after_ns - before_ns) >= 10000000
        AND abs(after_ns - before_ns) >= 5e-2 * before_ns
        AND abs(after_ns - before_ns) >= 1.5e0 * deviation
),
parted AS (
    SELECT
        subject, n, z, before_ns, after_ns,
        sum(CASE WHEN distance <= 15 THEN 0 ELSE 1 END)
            OVER (PARTITION BY subject ORDER BY n) AS part
    FROM large
),
chosen AS (
    SELECT
        subject, n, z, before_ns, after_ns,
        row_number() OVER (
            PARTITION BY subject, part
            ORDER BY z DESC, abs(after_ns - before_ns) DESC, n
        ) AS place
    FROM parted
)
SELECT c.subject, s.series, s.kind, s.name, c.n, round(c.z, 2) AS z, c.before_ns, c.after_ns
FROM chosen c
JOIN subjects s ON s.subject = c.subject AND s.n = c.n
WHERE c.place = 1
