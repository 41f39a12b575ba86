-- Which steps and tests take the most time?
--
-- By the sum over all runs that ended well, at most 50 of a series. A step inside another one counts in both.
WITH sums AS (
    SELECT
        series, kind, name,
        count(*) AS runs,
        sum(wall_ns) AS total_ns,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS median_ns,
        CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS p90_ns,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY starved_ns) AS bigint) AS starved_ns
    FROM subjects
    WHERE kind NOT IN ('command', 'cpu')
    GROUP BY series, kind, name
),
placed AS (
    SELECT sums.*, row_number() OVER (PARTITION BY series ORDER BY total_ns DESC, kind, name) AS place
    FROM sums
)
SELECT series, kind, name, runs, total_ns, median_ns, p90_ns, starved_ns
FROM placed
WHERE place <= 50
ORDER BY total_ns DESC, series, kind, name
