-- The wall times of the last runs of each series that ended well, the newest last.
WITH numbered AS (
    SELECT repo, series, job, start_unix_ns, wall_ns, row_number() OVER (PARTITION BY series ORDER BY start_unix_ns DESC, run) AS back
    FROM series
    WHERE well = 1
)
SELECT repo, series, job, back, start_unix_ns, wall_ns FROM numbered WHERE back <= 10
