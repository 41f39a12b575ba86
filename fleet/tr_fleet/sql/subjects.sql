-- Where did the time of every command, step and test go, run by run?
--
-- One row a subject and run. Runs that ended badly are no measurements, nor are failed steps and tests:
-- they stop early. The parts of a command are those of the run's critical path, the parts of a step or
-- test those of its own; they add up to wall_ns. starved_ns is time without a CPU: in run queues, or on
-- a CPU that the hypervisor did not run. The CPU time of a command is a subject of its own, of the kind cpu:
-- beside a load it has far less noise than the wall time.
WITH named AS (
    -- Numbers are shorter than names where runs are compared with each other.
    SELECT series, kind, name, row_number() OVER (ORDER BY series, kind, name) AS subject
    FROM (
        SELECT DISTINCT s.series, t.kind, t.name
        FROM steps t
        JOIN series s ON s.run = t.run
        WHERE s.well = 1 AND t.failed = 0
        UNION ALL
        SELECT DISTINCT series, 'command' AS kind, '' AS name FROM series WHERE well = 1
        UNION ALL
        SELECT DISTINCT series, 'cpu' AS kind, '' AS name FROM series WHERE well = 1 AND work_ns > 0
    ) names
),
united AS (
    SELECT
        b.subject, s.run, s.seq, s.day_number, s.pool, s.stolen_share,
        s.path_ns AS wall_ns,
        s.work_ns,
        s.path_on_cpu_ns AS on_cpu_ns,
        s.path_run_queue_ns AS run_queue_ns,
        s.path_disk_ns AS disk_ns,
        s.path_network_ns AS network_ns,
        s.path_sleep_ns + s.path_other_ns AS sleep_ns,
        0 AS others_ns,
        s.path_unknown_ns AS unknown_ns
    FROM series s
    JOIN named b ON b.series = s.series AND b.kind = 'command'
    WHERE s.well = 1
    UNION ALL
    SELECT
        b.subject, s.run, s.seq, s.day_number, s.pool, 0e0 AS stolen_share, s.work_ns AS wall_ns, s.work_ns, s.work_ns AS on_cpu_ns,
        0 AS run_queue_ns, 0 AS disk_ns, 0 AS network_ns, 0 AS sleep_ns, 0 AS others_ns, 0 AS unknown_ns
    FROM series s
    JOIN named b ON b.series = s.series AND b.kind = 'cpu'
    WHERE s.well = 1 AND s.work_ns > 0
    UNION ALL
    SELECT
        b.subject, s.run, s.seq, s.day_number, s.pool, s.stolen_share,
        t.wall_ns,
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
    JOIN named b ON b.series = s.series AND b.kind = t.kind AND b.name = t.name
    WHERE s.well = 1 AND t.failed = 0
)
SELECT
    u.subject, b.series, b.kind, b.name, u.run, u.seq, u.day_number, u.pool,
    row_number() OVER (PARTITION BY u.subject ORDER BY u.seq, u.run) AS n,
    u.wall_ns, u.work_ns,
    u.on_cpu_ns - CAST(round(u.on_cpu_ns * u.stolen_share) AS bigint) AS on_cpu_ns,
    u.run_queue_ns + CAST(round(u.on_cpu_ns * u.stolen_share) AS bigint) AS starved_ns,
    CAST(round(u.on_cpu_ns * u.stolen_share) AS bigint) AS stolen_ns,
    u.disk_ns, u.network_ns, u.sleep_ns, u.others_ns, u.unknown_ns
FROM united u
JOIN named b ON b.subject = u.subject
