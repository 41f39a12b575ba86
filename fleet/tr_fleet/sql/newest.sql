-- What noise have the commands? The newest runs of those with the most runs.
SELECT c.series, c.runs, s.n, s.wall_ns, s.work_ns, s.day_number, s.pool
FROM subjects s
JOIN (
    SELECT subject, series, count(*) AS runs, max(n) AS last
    FROM subjects
    WHERE kind = 'command'
    GROUP BY subject, series
    ORDER BY runs DESC, series
    LIMIT 20
) c ON c.subject = s.subject
WHERE s.n > c.last - 200
ORDER BY c.series, s.n
