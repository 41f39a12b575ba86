-- How do a command's wall time, CPU time, run-queue wait and critical path develop?
--
-- Medians by day.
SELECT
    series, day,
    count(*) AS runs,
    sum(CASE WHEN exit_code = 0 THEN 0 ELSE 1 END) AS failed,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY wall_ns) AS bigint) AS wall_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY work_ns) AS bigint) AS work_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY run_queue_ns) AS bigint) AS run_queue_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY stolen_ns) AS bigint) AS stolen_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY path_on_cpu_ns) AS bigint) AS path_on_cpu_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY path_run_queue_ns) AS bigint) AS path_run_queue_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY path_disk_ns + path_network_ns + path_sleep_ns + path_other_ns) AS bigint)
        AS path_blocked_ns
FROM series
GROUP BY series, day
ORDER BY series, day
