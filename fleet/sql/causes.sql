-- Why did it change: more CPU work, a runner that gives no CPU, waits, or the shape of the path?
--
-- The difference of the medians of up to 15 runs on each side, split. CPU time on the critical path
-- is work as far as the CPU time of all tasks changed, too; beyond that the shape of the path
-- changed: work that ran beside it is on it now. A cause explains at least half of the difference.
WITH sides AS (
    SELECT
        c.series, c.kind, c.name, c.n, c.before_ns, c.after_ns, c.z,
        max(CASE WHEN v.n = c.n THEN v.run END) AS run,
        max(CASE WHEN v.n = c.n THEN s.seq END) AS seq,
        max(CASE WHEN v.n = c.n THEN s.day END) AS day,
        max(CASE WHEN v.n = c.n THEN s.commit END) AS commit,
        max(CASE WHEN v.n = c.n - 1 THEN s.commit END) AS commit_before,
        max(CASE WHEN v.n = c.n THEN s.kernel END) AS kernel,
        max(CASE WHEN v.n = c.n - 1 THEN s.kernel END) AS kernel_before,
        max(CASE WHEN v.n = c.n THEN s.cpus END) AS cpus,
        max(CASE WHEN v.n = c.n - 1 THEN s.cpus END) AS cpus_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.work_ns END) AS bigint)
            AS work_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.work_ns END) AS bigint)
            AS work_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.on_cpu_ns END) AS bigint)
            AS on_cpu_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.on_cpu_ns END) AS bigint)
            AS on_cpu_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.starved_ns END) AS bigint)
            AS starved_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.starved_ns END) AS bigint)
            AS starved_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.stolen_ns END) AS bigint)
            AS stolen_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.stolen_ns END) AS bigint)
            AS stolen_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.disk_ns END) AS bigint)
            AS disk_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.disk_ns END) AS bigint)
            AS disk_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.network_ns END) AS bigint)
            AS network_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.network_ns END) AS bigint)
            AS network_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.sleep_ns END) AS bigint)
            AS sleep_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.sleep_ns END) AS bigint)
            AS sleep_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN v.others_ns END) AS bigint)
            AS others_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN v.others_ns END) AS bigint)
            AS others_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN s.throttled_ns END) AS bigint)
            AS throttled_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN s.throttled_ns END) AS bigint)
            AS throttled_after,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n < c.n THEN s.others_ns END) AS bigint)
            AS machine_before,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN v.n >= c.n THEN s.others_ns END) AS bigint)
            AS machine_after
    FROM change_points c
    JOIN subjects v
        ON v.subject = c.subject
        AND v.n BETWEEN c.n - 15 AND c.n + 14
    JOIN series s ON s.run = v.run
    GROUP BY c.series, c.kind, c.name, c.n, c.before_ns, c.after_ns, c.z
),
changed AS (
    SELECT
        sides.*,
        CASE WHEN after_ns < before_ns THEN -1 ELSE 1 END AS direction,
        after_ns - before_ns AS change_ns,
        work_after - work_before AS work_change,
        on_cpu_after - on_cpu_before AS on_cpu_change,
        starved_after - starved_before AS starved_ns,
        stolen_after - stolen_before AS stolen_ns,
        throttled_after - throttled_before AS throttled_ns,
        machine_after - machine_before AS machine_ns,
        disk_after - disk_before AS disk_ns,
        network_after - network_before AS network_ns,
        sleep_after - sleep_before AS sleep_ns,
        others_after - others_before AS others_ns
    FROM sides
),
split AS (
    SELECT
        changed.*,
        CASE
            WHEN on_cpu_change >= 0 THEN greatest(0, least(on_cpu_change, work_change))
            ELSE least(0, greatest(on_cpu_change, work_change))
        END AS cpu_ns,
        disk_ns + network_ns + sleep_ns AS blocked_ns
    FROM changed
),
shaped AS (
    SELECT split.*, on_cpu_change - cpu_ns + others_ns AS shape_ns FROM split
)
SELECT
    series, kind, name, run, seq, day, commit, commit_before,
    CASE WHEN kernel = kernel_before THEN 0 ELSE 1 END AS other_kernel,
    cpus, cpus_before,
    z, before_ns, after_ns, change_ns,
    cpu_ns, starved_ns, blocked_ns, shape_ns,
    work_before AS work_before_ns, work_after AS work_after_ns,
    stolen_ns, throttled_ns, machine_ns, disk_ns, network_ns, sleep_ns,
    CASE
        WHEN 2 * direction * cpu_ns >= direction * change_ns THEN 'cpu'
        WHEN 2 * direction * starved_ns >= direction * change_ns THEN 'starved'
        WHEN 2 * direction * blocked_ns >= direction * change_ns THEN 'blocked'
        WHEN 2 * direction * shape_ns >= direction * change_ns THEN 'shape'
        ELSE 'mixed'
    END AS cause,
    CASE
        WHEN 2 * direction * stolen_ns >= direction * starved_ns THEN 'stolen'
        WHEN 2 * direction * throttled_ns >= direction * starved_ns THEN 'throttled'
        WHEN 2 * direction * machine_ns >= direction * starved_ns THEN 'others'
        ELSE 'run-queue'
    END AS starved_by,
    CASE
        WHEN direction * network_ns >= direction * disk_ns
            AND direction * network_ns >= direction * sleep_ns THEN 'network'
        WHEN direction * disk_ns >= direction * sleep_ns THEN 'disk'
        ELSE 'sleep'
    END AS blocked_by
FROM shaped
ORDER BY abs(change_ns) DESC, series, kind, name, n
