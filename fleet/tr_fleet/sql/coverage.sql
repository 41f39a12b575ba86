-- What does the dataset hold, and what of it is left out of the answers?
SELECT
    r.repo,
    count(*) AS runs,
    sum(CASE WHEN r.incomplete THEN 1 ELSE 0 END) AS incomplete,
    sum(CASE WHEN NOT r.incomplete AND coalesce(r.path_ns, 0) = 0 THEN 1 ELSE 0 END) AS without_path,
    sum(CASE WHEN r.steps_left_out > 0 THEN 1 ELSE 0 END) AS with_steps_left_out,
    min(r.date) AS first_day,
    max(r.date) AS last_day,
    max(r.start_unix_ns) AS last_unix_ns
FROM runs r
GROUP BY r.repo
ORDER BY r.repo
