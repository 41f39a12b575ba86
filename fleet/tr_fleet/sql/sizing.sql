-- How large a runner does each job need?
--
-- Over the runs that ended well and whose memory has a bound. The request has a quarter beside the memory that 95 % of the runs
-- stay below, the limit a quarter beside that of the largest run, both in steps of 256 MiB. over_request_*: the runs that wanted
-- more than the request.
WITH known AS (
    SELECT repo, job, cpus, cpus_p90, resident_peak_bytes
    FROM runs
    WHERE resident_peak_bytes IS NOT NULL AND cpus_p90 IS NOT NULL AND coalesce(exit_code, 0) = 0 AND exit_signal IS NULL
),
sizes AS (
    SELECT
        repo, job,
        count(*) AS runs,
        max(cpus) AS cpus,
        CAST(percentile_disc(0.95) WITHIN GROUP (ORDER BY cpus_p90) AS bigint) AS request_cpus,
        max(cpus_p90) AS most_cpus,
        max(resident_peak_bytes) AS most_bytes,
        CAST(ceil(percentile_disc(0.95) WITHIN GROUP (ORDER BY resident_peak_bytes) * 1.25 / 268435456) AS bigint) * 268435456
            AS request_bytes,
        CAST(ceil(max(resident_peak_bytes) * 1.25 / 268435456) AS bigint) * 268435456 AS limit_bytes
    FROM known
    GROUP BY repo, job
)
SELECT
    s.repo, s.job, s.runs, s.cpus, s.request_cpus, s.most_cpus, s.most_bytes, s.request_bytes, s.limit_bytes,
    sum(CASE WHEN k.resident_peak_bytes > s.request_bytes THEN 1 ELSE 0 END) AS over_request_memory,
    sum(CASE WHEN k.cpus_p90 > s.request_cpus THEN 1 ELSE 0 END) AS over_request_cpus
FROM sizes s
JOIN known k ON k.repo = s.repo AND coalesce(k.job, '') = coalesce(s.job, '')
GROUP BY s.repo, s.job, s.runs, s.cpus, s.request_cpus, s.most_cpus, s.most_bytes, s.request_bytes, s.limit_bytes
ORDER BY s.repo, s.job
