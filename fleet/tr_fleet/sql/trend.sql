-- How do a command's wall time, CPU time, run-queue wait and critical path develop?
--
-- Medians by day, of runs that ended well.
SELECT
    series, day,
    count(*) AS runs,
    sum(1 - well) AS failed,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN wall_ns END) AS bigint) AS wall_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN work_ns END) AS bigint) AS work_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN run_queue_ns END) AS bigint) AS run_queue_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN stolen_ns END) AS bigint) AS stolen_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN path_on_cpu_ns END) AS bigint) AS path_on_cpu_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN path_run_queue_ns END) AS bigint) AS path_run_queue_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN well = 1 THEN path_disk_ns + path_network_ns + path_sleep_ns + path_other_ns END) AS bigint)
        AS path_blocked_ns
FROM series
GROUP BY series, day
ORDER BY series, day
