-- Which runs are comparable, and in which order did they happen?
--
-- A series is one command of one job on one branch of a repository. Runs with lost events or a
-- truncated trace are left out. stolen_share is the part of the CPU time that the hypervisor took:
-- a task keeps its CPU meanwhile.
SELECT
    concat_ws(' · ', r.repo, r.job, r.branch, r.command) AS series,
    r.repo,
    r.job,
    r.branch,
    r.command,
    r.run,
    r.commit,
    m.host,
    m.kernel,
    r.cpus,
    r.exit_code,
    r.start_unix_ns,
    r.date AS day,
    row_number() OVER (
        PARTITION BY r.repo, r.job, r.branch, r.command, r.command_key
        ORDER BY r.start_unix_ns, r.run
    ) AS seq,
    r.wall_ns,
    r.on_cpu_ns,
    coalesce(r.work_ns, r.on_cpu_ns) AS work_ns,
    r.run_queue_ns,
    coalesce(m.stolen_ns, 0) AS stolen_ns,
    coalesce(m.throttled_ns, 0) AS throttled_ns,
    m.others_ns,
    CASE WHEN m.busy_ns + m.stolen_ns > 0 THEN m.stolen_ns / (m.busy_ns + m.stolen_ns) ELSE 0e0 END
        AS stolen_share,
    r.path_ns,
    r.path_on_cpu_ns,
    r.path_run_queue_ns,
    r.path_disk_ns,
    r.path_network_ns,
    r.path_sleep_ns,
    r.path_other_ns,
    r.path_unknown_ns
FROM runs r
LEFT JOIN machine m ON m.run = r.run
WHERE NOT r.incomplete AND r.path_ns > 0
