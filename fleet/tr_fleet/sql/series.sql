-- Which runs are comparable, and in which order did they happen?
--
-- A series is one command of one job on one branch of a repository. Runs with lost events or a
-- truncated trace are left out. A run that ended badly (well = 0) is no measurement of how long the
-- work takes. A pool is the kind of machine, or the machine where its kind is not known: cpu_model of
-- recordings before 0.2. stolen_share is the part of the CPU time that the hypervisor took:
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
    concat_ws(' ', m.cpu_model, m.cpu_stepping, m.microcode) AS cpu,
    m.frequency_khz,
    m.memory_bytes,
    m.virtualization,
    r.label,
    r.image,
    r.page,
    r.queued_ns,
    dense_rank() OVER (
        ORDER BY CASE
            WHEN m.cpu_model IS NOT NULL THEN concat_ws(' ', m.cpu_model, m.cpu_stepping, r.label, CAST(r.cpus AS string))
            ELSE concat_ws(' ', m.host, CAST(r.cpus AS string))
        END
    ) AS pool,
    CASE WHEN coalesce(r.exit_code, 0) = 0 AND r.exit_signal IS NULL THEN 1 ELSE 0 END AS well,
    r.cpus,
    r.exit_code,
    r.start_unix_ns,
    r.date AS day,
    CAST(floor(r.start_unix_ns / 86400e9) AS bigint) AS day_number,
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
