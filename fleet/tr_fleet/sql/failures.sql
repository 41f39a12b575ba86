-- Which commands fail, how often, and since when?
--
-- failing_since is the first of the runs without a success up to now; null if the last run ended well.
WITH marked AS (
    SELECT
        series, seq, run, day, start_unix_ns, commit, page, well, wall_ns,
        max(CASE WHEN well = 1 THEN seq ELSE 0 END) OVER (PARTITION BY series) AS last_well,
        max(seq) OVER (PARTITION BY series) AS last_seq
    FROM series
)
SELECT
    series,
    count(*) AS runs,
    sum(1 - well) AS failed,
    sum(CASE WHEN seq > last_seq - 20 THEN 1 - well ELSE 0 END) AS failed_of_last_20,
    max(last_seq) - max(last_well) AS failing_runs,
    max(start_unix_ns) AS last_unix_ns,
    max(CASE WHEN seq = last_well + 1 THEN day END) AS failing_since,
    max(CASE WHEN seq = last_well + 1 THEN commit END) AS failing_commit,
    max(CASE WHEN seq = last_well + 1 THEN page END) AS failing_page,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 0 THEN wall_ns END) AS bigint) AS failed_wall_ns,
    sum(CASE WHEN well = 0 THEN wall_ns ELSE 0 END) AS failed_total_ns
FROM marked
GROUP BY series
HAVING sum(1 - well) > 0
ORDER BY failing_runs DESC, failed DESC, series
