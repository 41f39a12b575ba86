-- Where did the time of every command, step and test go, run by run?
--
-- One row a subject and run. The parts of a command are those of the run's critical path, the
-- parts of a step or test those of its own; they add up to wall_ns. starved_ns is time without a
-- CPU: in run queues, or on a CPU that the hypervisor did not run.
WITH united AS (
    SELECT
        series, 'command' AS kind, '' AS name, run, seq, stolen_share,
        path_ns AS wall_ns,
        CASE WHEN exit_code = 0 THEN 0 ELSE 1 END AS failed,
        work_ns,
        path_on_cpu_ns AS on_cpu_ns,
        path_run_queue_ns AS run_queue_ns,
        path_disk_ns AS disk_ns,
        path_network_ns AS network_ns,
        path_sleep_ns + path_other_ns AS sleep_ns,
        0 AS others_ns,
        path_unknown_ns AS unknown_ns
    FROM series
    UNION ALL
    SELECT
        s.series, t.kind, t.name, s.run, s.seq, s.stolen_share,
        t.wall_ns,
        CASE WHEN t.failed > 0 THEN 1 ELSE 0 END AS failed,
        CAST(round(t.on_cpu_ns * (1e0 - s.stolen_share)) AS bigint) AS work_ns,
        t.spent_on_cpu_ns,
        t.spent_run_queue_ns,
        t.spent_disk_ns,
        t.spent_network_ns,
        t.spent_sleep_ns,
        t.spent_other_ns,
        t.spent_unknown_ns
    FROM steps t
    JOIN series s ON s.run = t.run
)
SELECT
    series, kind, name, run, seq,
    row_number() OVER (PARTITION BY series, kind, name ORDER BY seq, run) AS n,
    count(*) OVER (PARTITION BY series, kind, name) AS runs,
    wall_ns, failed, work_ns,
    on_cpu_ns - CAST(round(on_cpu_ns * stolen_share) AS bigint) AS on_cpu_ns,
    run_queue_ns + CAST(round(on_cpu_ns * stolen_share) AS bigint) AS starved_ns,
    CAST(round(on_cpu_ns * stolen_share) AS bigint) AS stolen_ns,
    disk_ns, network_ns, sleep_ns, others_ns, unknown_ns
FROM united
