-- Which programs need more or less CPU time since a command or its CPU time changed?
--
-- Means of the runs on each side, without the part that the hypervisor took; a run without the
-- program has 0.
WITH around AS (
    SELECT
        c.subject, c.n, v.run, s.stolen_share,
        CASE WHEN v.n >= c.after_from THEN 1 ELSE 0 END AS after
    FROM change_points c
    JOIN subjects v
        ON v.subject = c.subject
        AND (v.n BETWEEN c.before_from AND c.before_to OR v.n BETWEEN c.after_from AND c.after_to)
    JOIN series s ON s.run = v.run
    WHERE c.kind IN ('command', 'cpu')
),
sizes AS (
    SELECT subject, n, sum(1 - after) AS n_before, sum(after) AS n_after
    FROM around
    GROUP BY subject, n
),
worked AS (
    SELECT
        a.subject, a.n, a.after, p.program,
        CAST(round(p.on_cpu_ns * (1e0 - a.stolen_share)) AS bigint) AS work_ns
    FROM around a
    JOIN programs p ON p.run = a.run
),
sums AS (
    SELECT
        subject, n, program,
        sum(CASE WHEN after = 0 THEN work_ns ELSE 0 END) AS before_sum,
        sum(CASE WHEN after = 1 THEN work_ns ELSE 0 END) AS after_sum
    FROM worked
    GROUP BY subject, n, program
),
means AS (
    SELECT
        s.subject, s.n, s.program,
        CAST(round(s.before_sum / z.n_before) AS bigint) AS before_ns,
        CAST(round(s.after_sum / z.n_after) AS bigint) AS after_ns
    FROM sums s
    JOIN sizes z ON z.subject = s.subject AND z.n = s.n
),
placed AS (
    SELECT
        m.*,
        row_number() OVER (
            PARTITION BY subject, n ORDER BY abs(after_ns - before_ns) DESC, program
        ) AS place
    FROM means m
    WHERE abs(after_ns - before_ns) >= 5e-2 * before_ns AND after_ns <> before_ns
)
SELECT v.series, v.kind, v.run, p.place, p.program, p.before_ns, p.after_ns
FROM placed p
JOIN subjects v ON v.subject = p.subject AND v.n = p.n
WHERE p.place <= 3
ORDER BY v.series, v.kind, v.run, p.place
