-- Why did it change: more CPU work, a runner that gives no CPU, waits, or the shape of the path?
--
-- The difference of the medians of up to 15 runs on each side, split. CPU time on the critical path
-- is work as far as the CPU time of all tasks changed, too; beyond that the shape of the path
-- changed: work that ran beside it is on it now. A cause explains at least half of the difference.
WITH around AS (
    SELECT
        c.series, c.kind, c.name, c.n, c.before_ns, c.after_ns, c.z,
        CASE WHEN v.n >= c.n THEN 1 ELSE 0 END AS after,
        v.work_ns, v.on_cpu_ns, v.starved_ns, v.stolen_ns, v.disk_ns, v.network_ns, v.sleep_ns,
        v.others_ns, s.throttled_ns, s.others_ns AS machine_ns
    FROM change_points c
    JOIN subjects v
        ON v.series = c.series AND v.kind = c.kind AND v.name = c.name
        AND v.n BETWEEN c.n - 15 AND c.n + 14
    JOIN series s ON s.run = v.run
),
sides AS (
    SELECT
        series, kind, name, n, before_ns, after_ns, z, after,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY work_ns) AS work_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY on_cpu_ns) AS on_cpu_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY starved_ns) AS starved_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY stolen_ns) AS stolen_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY throttled_ns) AS throttled_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY machine_ns) AS machine_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY disk_ns) AS disk_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY network_ns) AS network_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY sleep_ns) AS sleep_ns,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY others_ns) AS others_ns
    FROM around
    GROUP BY series, kind, name, n, before_ns, after_ns, z, after
),
changed AS (
    SELECT
        b.series, b.kind, b.name, b.n, b.z, b.before_ns, b.after_ns,
        a.after_ns - b.before_ns AS wall_change,
        b.work_ns AS work_before, a.work_ns AS work_after,
        a.work_ns - b.work_ns AS work_change,
        a.on_cpu_ns - b.on_cpu_ns AS on_cpu_change,
        a.starved_ns - b.starved_ns AS starved_change,
        a.stolen_ns - b.stolen_ns AS stolen_change,
        a.throttled_ns - b.throttled_ns AS throttled_change,
        a.machine_ns - b.machine_ns AS machine_change,
        a.disk_ns - b.disk_ns AS disk_change,
        a.network_ns - b.network_ns AS network_change,
        a.sleep_ns - b.sleep_ns AS sleep_change,
        a.others_ns - b.others_ns AS others_change
    FROM sides b
    JOIN sides a ON a.series = b.series AND a.kind = b.kind AND a.name = b.name AND a.n = b.n
    WHERE b.after = 0 AND a.after = 1
),
split AS (
    SELECT
        *,
        CASE
            WHEN on_cpu_change >= 0 THEN greatest(0, least(on_cpu_change, work_change))
            ELSE least(0, greatest(on_cpu_change, work_change))
        END AS cpu_ns,
        disk_change + network_change + sleep_change AS blocked_ns
    FROM changed
),
named AS (
    SELECT
        *,
        on_cpu_change - cpu_ns + others_change AS shape_ns,
        CASE WHEN wall_change < 0 THEN -1 ELSE 1 END AS direction
    FROM split
)
SELECT
    p.series, p.kind, p.name,
    v.run, s.seq, s.day, s.commit, o.commit AS commit_before,
    CASE WHEN s.kernel = o.kernel THEN 0 ELSE 1 END AS other_kernel,
    s.cpus, o.cpus AS cpus_before,
    p.z, p.before_ns, p.after_ns, p.wall_change AS change_ns,
    p.cpu_ns, p.starved_change AS starved_ns, p.blocked_ns, p.shape_ns,
    p.work_before AS work_before_ns, p.work_after AS work_after_ns,
    p.stolen_change AS stolen_ns, p.throttled_change AS throttled_ns,
    p.machine_change AS machine_ns,
    p.disk_change AS disk_ns, p.network_change AS network_ns, p.sleep_change AS sleep_ns,
    CASE
        WHEN 2 * p.direction * p.cpu_ns >= p.direction * p.wall_change THEN 'cpu'
        WHEN 2 * p.direction * p.starved_change >= p.direction * p.wall_change THEN 'starved'
        WHEN 2 * p.direction * p.blocked_ns >= p.direction * p.wall_change THEN 'blocked'
        WHEN 2 * p.direction * p.shape_ns >= p.direction * p.wall_change THEN 'shape'
        ELSE 'mixed'
    END AS cause,
    CASE
        WHEN 2 * p.direction * p.stolen_change >= p.direction * p.starved_change THEN 'stolen'
        WHEN 2 * p.direction * p.throttled_change >= p.direction * p.starved_change THEN 'throttled'
        WHEN 2 * p.direction * p.machine_change >= p.direction * p.starved_change THEN 'others'
        ELSE 'run-queue'
    END AS starved_by,
    CASE
        WHEN p.direction * p.network_change >= p.direction * p.disk_change
            AND p.direction * p.network_change >= p.direction * p.sleep_change THEN 'network'
        WHEN p.direction * p.disk_change >= p.direction * p.sleep_change THEN 'disk'
        ELSE 'sleep'
    END AS blocked_by
FROM named p
JOIN subjects v ON v.series = p.series AND v.kind = p.kind AND v.name = p.name AND v.n = p.n
JOIN subjects w ON w.series = p.series AND w.kind = p.kind AND w.name = p.name AND w.n = p.n - 1
JOIN series s ON s.run = v.run
JOIN series o ON o.run = w.run
ORDER BY abs(p.wall_change) DESC, p.series, p.kind, p.name, p.n
