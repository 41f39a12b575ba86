-- What do jobs take, on which runners, and how long do they wait for one?
--
-- By the kind of runner as the CI system names it, else by the CPU's model. machine_ns is the time of
-- all CPUs of the machine: what is paid for. Incomplete recordings count, too. queued_week_ns is the median
-- wait of the repository's last seven days.
WITH newest AS (
    SELECT repo, max(start_unix_ns) AS last_unix_ns FROM runs GROUP BY repo
)
SELECT
    r.repo, r.job,
    coalesce(r.label, m.cpu_model, m.arch) AS runner,
    r.cpus,
    count(*) AS runs,
    sum(CASE WHEN coalesce(r.exit_code, 0) = 0 AND r.exit_signal IS NULL THEN 0 ELSE 1 END) AS failed,
    sum(r.wall_ns) AS wall_ns,
    sum(r.wall_ns * r.cpus) AS machine_ns,
    sum(r.on_cpu_ns) AS on_cpu_ns,
    count(r.queued_ns) AS queued_runs,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY r.queued_ns) AS bigint) AS queued_median_ns,
    CAST(percentile_disc(0.9) WITHIN GROUP (ORDER BY r.queued_ns) AS bigint) AS queued_p90_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (
        ORDER BY CASE WHEN r.start_unix_ns > n.last_unix_ns - 604800000000000 THEN r.queued_ns END
    ) AS bigint) AS queued_week_ns
FROM runs r
JOIN newest n ON n.repo = r.repo
LEFT JOIN machine m ON m.run = r.run
GROUP BY r.repo, r.job, coalesce(r.label, m.cpu_model, m.arch), r.cpus
ORDER BY machine_ns DESC, r.repo, r.job, runner, r.cpus
