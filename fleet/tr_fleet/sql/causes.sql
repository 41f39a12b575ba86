-- Why did it change: more CPU work, a runner that gives no CPU, waits, or the shape of the path?
--
-- The difference of the medians of up to 15 runs on each side, split. Whether work that takes more CPU
-- time is the code's or a slower machine's is asked last: evidence.sql, and what other series did then. CPU time on the critical path
-- is work as far as the CPU time of all tasks changed, too; beyond that the shape of the path
-- changed: work that ran beside it is on it now. A cause explains at least half of the difference.
--
-- More work waits longer for CPUs beside the same load. The wait for a CPU that grew (or shrank) by the wait per CPU time
-- of before is the work's (wait_ns); starved_ns is the wait beyond that. Where the CPU time of all tasks changed by a
-- twentieth or more, the wait beyond is a cause only if the waits per CPU time of the two sides differ by two standard errors.
WITH near AS (
    SELECT
        c.subject, c.series, c.kind, c.name, c.n, c.shape, c.until_n, c.low_n, c.high_n, c.before_ns, c.after_ns, c.least_ns, c.most_ns,
        c.z, v.run, v.n AS at,
        v.work_ns, v.on_cpu_ns, v.starved_ns, v.stolen_ns, v.disk_ns, v.network_ns, v.sleep_ns, v.others_ns,
        CASE WHEN v.n <= c.before_to THEN 'before' ELSE 'after' END AS side,
        CASE WHEN v.n <= c.before_to THEN c.before_to ELSE c.after_from END AS edge
    FROM change_points c
    JOIN subjects v
        ON v.subject = c.subject
        AND (v.n BETWEEN c.before_from AND c.before_to OR v.n BETWEEN c.after_from AND c.after_to)
),
-- The medians of each side, and the run of each that is next to the change.
medians AS (
    SELECT
        v.subject, v.series, v.kind, v.name, v.n, v.side, v.shape, v.until_n, v.low_n, v.high_n,
        v.before_ns, v.after_ns, v.least_ns, v.most_ns, v.z,
        max(CASE WHEN v.at = v.edge THEN v.run END) AS run,
        max(CASE WHEN v.at = v.edge THEN s.seq END) AS seq,
        max(CASE WHEN v.at = v.edge THEN s.day END) AS day,
        max(CASE WHEN v.at = v.edge THEN s.commit END) AS commit,
        max(CASE WHEN v.at = v.edge THEN s.kernel END) AS kernel,
        max(CASE WHEN v.at = v.edge THEN s.cpus END) AS cpus,
        max(CASE WHEN v.at = v.edge THEN s.page END) AS page,
        max(CASE WHEN v.at = v.edge THEN s.day_number END) AS day_number,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.work_ns) AS bigint) AS work,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.on_cpu_ns) AS bigint) AS on_cpu,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.starved_ns) AS bigint) AS starved,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.stolen_ns) AS bigint) AS stolen,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.disk_ns) AS bigint) AS disk,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.network_ns) AS bigint) AS network,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.sleep_ns) AS bigint) AS sleep,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY v.others_ns) AS bigint) AS others,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY s.path_ns) AS bigint) AS wall,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY s.throttled_ns) AS bigint) AS throttled,
        CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY s.others_ns) AS bigint) AS machine
    FROM near v
    JOIN series s ON s.run = v.run
    GROUP BY
        v.subject, v.series, v.kind, v.name, v.n, v.side, v.shape, v.until_n, v.low_n, v.high_n,
        v.before_ns, v.after_ns, v.least_ns, v.most_ns, v.z
),
-- The standard error of the median from the quartiles: 1.2533 / 1.349 of their distance by the root of the runs.
rates AS (
    SELECT
        subject, n, side,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY rate) AS rate,
        0.93 * (percentile_disc(0.75) WITHIN GROUP (ORDER BY rate) - percentile_disc(0.25) WITHIN GROUP (ORDER BY rate))
            / sqrt(count(*)) AS error
    FROM (SELECT subject, n, side, CAST(starved_ns AS double) / greatest(on_cpu_ns, 1) AS rate FROM near) each_run
    GROUP BY subject, n, side
),
changed AS (
    SELECT
        a.*,
        b.commit AS commit_before, b.kernel AS kernel_before, b.cpus AS cpus_before, b.work AS work_before,
        CASE WHEN a.after_ns < a.before_ns THEN -1 ELSE 1 END AS direction,
        a.after_ns - a.before_ns AS change_ns,
        a.work - b.work AS work_change,
        a.on_cpu - b.on_cpu AS on_cpu_change,
        a.starved - b.starved AS starved_ns,
        b.wall AS wall_before, b.starved AS starved_before, b.on_cpu AS on_cpu_before,
        ra.rate AS rate_after, rb.rate AS rate_before, sqrt(ra.error * ra.error + rb.error * rb.error) AS rate_error,
        -- A longer run has more of other tasks beside it at the same load.
        a.stolen - b.stolen * (CAST(a.after_ns AS double) / greatest(a.before_ns, 1)) AS stolen_more,
        a.throttled - b.throttled * (CAST(a.after_ns AS double) / greatest(a.before_ns, 1)) AS throttled_more,
        a.machine - b.machine * (CAST(a.after_ns AS double) / greatest(a.before_ns, 1)) AS machine_more,
        a.stolen - b.stolen AS stolen_ns,
        a.throttled - b.throttled AS throttled_ns,
        a.machine - b.machine AS machine_ns,
        a.disk - b.disk AS disk_ns,
        a.network - b.network AS network_ns,
        a.sleep - b.sleep AS sleep_ns,
        a.others - b.others AS others_ns
    FROM medians a
    JOIN medians b
        ON b.subject = a.subject AND b.n = a.n AND b.side = 'before'
    JOIN rates ra ON ra.subject = a.subject AND ra.n = a.n AND ra.side = 'after'
    JOIN rates rb ON rb.subject = a.subject AND rb.n = a.n AND rb.side = 'before'
    WHERE a.side = 'after'
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
    SELECT
        split.*,
        on_cpu_change - cpu_ns + others_ns AS shape_ns,
        CASE
            WHEN on_cpu_before <= 0 OR cpu_ns * CAST(starved_ns AS double) <= 0 THEN 0
            WHEN cpu_ns > 0 THEN least(starved_ns, CAST(round(CAST(starved_before AS double) / on_cpu_before * cpu_ns) AS bigint))
            ELSE greatest(starved_ns, CAST(round(CAST(starved_before AS double) / on_cpu_before * cpu_ns) AS bigint))
        END AS wait_ns,
        CASE
            WHEN 20 * abs(work_change) < work_before OR direction * (rate_after - rate_before) > 2 * rate_error THEN 1
            ELSE 0
        END AS sure
    FROM split
),
parted AS (
    SELECT shaped.*, starved_ns - wait_ns AS beyond_ns FROM shaped
),
named AS (
    SELECT
        subject, n, shape, until_n, least_ns, most_ns, page, day_number, series, kind, name, run, seq, day, commit, commit_before,
        CASE WHEN kernel = kernel_before THEN 0 ELSE 1 END AS other_kernel,
        cpus, cpus_before,
        z, before_ns, after_ns, change_ns,
        cpu_ns, wait_ns, beyond_ns AS starved_ns, blocked_ns, shape_ns, rate_before, rate_after, sure,
        wall_before AS wall_before_ns, wall AS wall_after_ns, work_before AS work_before_ns, work AS work_after_ns,
        stolen_ns, throttled_ns, machine_ns, disk_ns, network_ns, sleep_ns,
        CASE
            WHEN 2 * direction * (cpu_ns + wait_ns) >= direction * change_ns THEN 'cpu'
            WHEN 2 * direction * beyond_ns >= direction * change_ns AND sure = 1 THEN 'starved'
            WHEN 2 * direction * blocked_ns >= direction * change_ns THEN 'blocked'
            WHEN 2 * direction * shape_ns >= direction * change_ns THEN 'shape'
            ELSE 'mixed'
        END AS cause,
        CASE
            WHEN 2 * direction * stolen_more >= direction * beyond_ns THEN 'stolen'
            WHEN 2 * direction * throttled_more >= direction * beyond_ns THEN 'throttled'
            WHEN 2 * direction * machine_more >= direction * beyond_ns THEN 'others'
            ELSE 'run-queue'
        END AS starved_by,
        CASE
            WHEN direction * network_ns >= direction * disk_ns
                AND direction * network_ns >= direction * sleep_ns THEN 'network'
            WHEN direction * disk_ns >= direction * sleep_ns THEN 'disk'
            ELSE 'sleep'
        END AS blocked_by
    FROM parted
),
-- A subject has numbers for its runs; days and commits are their names. A change that is found 15 runs away in
-- a later report is the same one, seen better.
edges AS (
    SELECT
        c.subject, c.n,
        max(CASE WHEN v.n = c.low_n THEN s.day END) AS earliest_day,
        max(CASE WHEN v.n = c.low_n THEN s.commit END) AS earliest_commit,
        max(CASE WHEN v.n = c.high_n THEN s.day END) AS latest_day,
        max(CASE WHEN v.n = c.high_n THEN s.commit END) AS latest_commit,
        max(CASE WHEN v.n = c.n THEN s.day END) AS start_day,
        max(CASE WHEN v.n = c.n THEN s.start_unix_ns END) AS start_unix_ns,
        min(CASE WHEN v.n >= c.n - 15 THEN s.start_unix_ns END) AS near_from_ns,
        max(CASE WHEN v.n <= c.n + 15 THEN s.start_unix_ns END) AS near_to_ns,
        max(CASE WHEN v.n = c.until_n THEN s.day END) AS until_day
    FROM change_points c
    JOIN subjects v
        ON v.subject = c.subject
        AND (v.n IN (c.low_n, c.high_n, c.until_n) OR v.n BETWEEN c.n - 15 AND c.n + 15)
    JOIN series s ON s.run = v.run
    GROUP BY c.subject, c.n
)
SELECT
    c.*,
    d.earliest_day, d.earliest_commit, d.latest_day, d.latest_commit, d.start_day, d.until_day,
    d.start_unix_ns, d.near_from_ns, d.near_to_ns,
    e.runs_before, e.runs_after, e.shared_before, e.shared_after, e.shared_before_ns, e.shared_after_ns,
    e.khz_before, e.khz_after, e.shared_khz_before, e.shared_khz_after,
    e.cpu_before_least, e.cpu_before, e.cpu_after_least, e.cpu_after,
    e.label_before, e.label_after, e.image_before, e.image_after, e.memory_before_bytes, e.memory_after_bytes
FROM named c
JOIN edges d ON d.subject = c.subject AND d.n = c.n
JOIN evidence e ON e.subject = c.subject AND e.n = c.n
ORDER BY abs(c.change_ns) DESC, c.series, c.kind, c.name, c.n
