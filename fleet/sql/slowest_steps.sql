-- Which steps and tests take the most time?
--
-- By the sum over all runs. A step inside another one counts in both.
SELECT
    series, kind, name,
    count(*) AS runs,
    sum(wall_ns) AS total_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS median_ns,
    CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS p90_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY starved_ns) AS bigint) AS starved_ns
FROM subjects
WHERE kind <> 'command'
GROUP BY series, kind, name
ORDER BY total_ns DESC, series, kind, name
LIMIT 50
