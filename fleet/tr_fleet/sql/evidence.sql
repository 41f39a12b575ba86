-- Did the machines change with the times?
--
-- For each change, up to 60 runs on each side. shared_before and shared_after are the runs on hosts that
-- ran on both sides, and the medians beside them those runs' work: if it is another one, the host is
-- not the reason. CPUs (model, stepping, microcode), kinds of runners and images are compared as sets.
WITH near AS (
    SELECT
        c.subject, c.n, v.work_ns, v.wall_ns, s.host, s.cpu, s.frequency_khz, s.label, s.image, s.memory_bytes,
        CASE WHEN v.n <= c.before_to THEN 0 ELSE 1 END AS after
    FROM change_points c
    JOIN subjects v
        ON v.subject = c.subject
        AND (v.n BETWEEN c.wide_from AND c.before_to OR v.n BETWEEN c.after_from AND c.wide_to)
    JOIN series s ON s.run = v.run
),
hosts AS (
    SELECT subject, n, host
    FROM near
    WHERE host <> ''
    GROUP BY subject, n, host
    HAVING min(after) = 0 AND max(after) = 1
),
marked AS (
    SELECT near.*, CASE WHEN h.host IS NULL THEN 0 ELSE 1 END AS shared
    FROM near
    LEFT JOIN hosts h ON h.subject = near.subject AND h.n = near.n AND h.host = near.host
)
SELECT
    subject, n,
    sum(1 - after) AS runs_before,
    sum(after) AS runs_after,
    sum(CASE WHEN after = 0 THEN shared ELSE 0 END) AS shared_before,
    sum(CASE WHEN after = 1 THEN shared ELSE 0 END) AS shared_after,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 0 AND shared = 1 THEN wall_ns END) AS bigint) AS shared_before_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 1 AND shared = 1 THEN wall_ns END) AS bigint) AS shared_after_ns,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 0 THEN frequency_khz END) AS bigint) AS khz_before,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 1 THEN frequency_khz END) AS bigint) AS khz_after,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 0 AND shared = 1 THEN frequency_khz END) AS bigint) AS shared_khz_before,
    CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN after = 1 AND shared = 1 THEN frequency_khz END) AS bigint) AS shared_khz_after,
    -- The most frequent would hide a mix: the least and the greatest name of each side tell it.
    min(CASE WHEN after = 0 THEN cpu END) AS cpu_before_least,
    max(CASE WHEN after = 0 THEN cpu END) AS cpu_before,
    min(CASE WHEN after = 1 THEN cpu END) AS cpu_after_least,
    max(CASE WHEN after = 1 THEN cpu END) AS cpu_after,
    max(CASE WHEN after = 0 THEN label END) AS label_before,
    max(CASE WHEN after = 1 THEN label END) AS label_after,
    max(CASE WHEN after = 0 THEN image END) AS image_before,
    max(CASE WHEN after = 1 THEN image END) AS image_after,
    max(CASE WHEN after = 0 THEN memory_bytes END) AS memory_before_bytes,
    max(CASE WHEN after = 1 THEN memory_bytes END) AS memory_after_bytes
FROM marked
GROUP BY subject, n
