-- Which steps and tests vary most, and by what?
--
-- Of steps with at least 10 runs, by the distance between the first and the ninth decile of their
-- wall time. The part that varies most is named with its own distance.
WITH parts AS (
    SELECT
        series, kind, name,
        count(*) AS runs,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS median_ns,
        CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY wall_ns) AS bigint)
            - CAST(percentile_disc(0.1) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS spread_ns,
        CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY on_cpu_ns) AS bigint)
            - CAST(percentile_disc(0.1) WITHIN GROUP (ORDER BY on_cpu_ns) AS bigint) AS cpu_ns,
        CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY starved_ns) AS bigint)
            - CAST(percentile_disc(0.1) WITHIN GROUP (ORDER BY starved_ns) AS bigint) AS starved_ns,
        CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY disk_ns + network_ns + sleep_ns) AS bigint)
            - CAST(percentile_disc(0.1) WITHIN GROUP (ORDER BY disk_ns + network_ns + sleep_ns) AS bigint)
            AS blocked_ns,
        CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY others_ns) AS bigint)
            - CAST(percentile_disc(0.1) WITHIN GROUP (ORDER BY others_ns) AS bigint) AS others_ns
    FROM subjects
    WHERE kind NOT IN ('command', 'cpu')
    GROUP BY series, kind, name
),
placed AS (
    SELECT
        series, kind, name, runs, median_ns, spread_ns, cpu_ns, starved_ns, blocked_ns, others_ns,
        CASE
            WHEN cpu_ns >= greatest(starved_ns, blocked_ns, others_ns) THEN 'cpu'
            WHEN starved_ns >= greatest(blocked_ns, others_ns) THEN 'starved'
            WHEN blocked_ns >= others_ns THEN 'blocked'
            ELSE 'others'
        END AS varies_by,
        row_number() OVER (PARTITION BY series ORDER BY spread_ns DESC, kind, name) AS place
    FROM parts
    WHERE runs >= 10 AND spread_ns > 0
)
SELECT series, kind, name, runs, median_ns, spread_ns, cpu_ns, starved_ns, blocked_ns, others_ns, varies_by
FROM placed
WHERE place <= 50
ORDER BY spread_ns DESC, series, kind, name
