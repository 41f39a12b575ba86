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
),
numbered AS (
    -- Numbers are shorter than names where runs are compared with each other.
    SELECT series, kind, name, row_number() OVER (ORDER BY series, kind, name) AS subject
    FROM (SELECT DISTINCT series, kind, name FROM united) names
)
SELECT
    b.subject, u.series, u.kind, u.name, u.run, u.seq,
    row_number() OVER (PARTITION BY b.subject ORDER BY u.seq, u.run) AS n,
    count(*) OVER (PARTITION BY b.subject) AS runs,
    u.wall_ns, u.failed, u.work_ns,
    u.on_cpu_ns - CAST(round(u.on_cpu_ns * u.stolen_share) AS bigint) AS on_cpu_ns,
    u.run_queue_ns + CAST(round(u.on_cpu_ns * u.stolen_share) AS bigint) AS starved_ns,
    CAST(round(u.on_cpu_ns * u.stolen_share) AS bigint) AS stolen_ns,
    u.disk_ns, u.network_ns, u.sleep_ns, u.others_ns, u.unknown_ns
FROM united u
JOIN numbered b ON b.series = u.series AND b.kind = u.kind AND b.name = u.name
