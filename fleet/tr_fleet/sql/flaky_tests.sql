-- Which tests fail in some runs and pass in others, without a change that explains it?
--
-- flips counts the changes between passed and failed from one run to the next; a test that broke
-- once, or was repaired once, has one. same_commit counts the commits with both results.
WITH ordered AS (
    SELECT
        s.series, t.name,
        CASE WHEN t.failed > 0 THEN 1 ELSE 0 END AS failed,
        s.commit, s.day,
        lag(CASE WHEN t.failed > 0 THEN 1 ELSE 0 END) OVER (PARTITION BY s.series, t.name ORDER BY s.seq, s.run) AS last
    FROM steps t
    JOIN series s ON s.run = t.run
    WHERE t.kind = 'test'
),
commits AS (
    SELECT series, name, count(*) AS same_commit
    FROM (
        SELECT series, name, commit
        FROM ordered
        WHERE commit IS NOT NULL
        GROUP BY series, name, commit
        HAVING min(failed) <> max(failed)
    ) mixed
    GROUP BY series, name
),
counted AS (
    SELECT
        series, name,
        count(*) AS runs,
        sum(failed) AS failed,
        sum(CASE WHEN failed <> last THEN 1 ELSE 0 END) AS flips,
        max(CASE WHEN failed = 1 THEN day END) AS last_failed
    FROM ordered
    GROUP BY series, name
),
placed AS (
    SELECT
        c.series, c.name, c.runs, c.failed, c.flips, coalesce(m.same_commit, 0) AS same_commit,
        c.last_failed,
        row_number() OVER (PARTITION BY c.series ORDER BY c.failed DESC, c.name) AS place
    FROM counted c
    LEFT JOIN commits m ON m.series = c.series AND m.name = c.name
    WHERE c.flips >= 3 OR m.same_commit > 0
)
SELECT series, name, runs, failed, flips, same_commit, last_failed
FROM placed
WHERE place <= 50
ORDER BY failed DESC, series, name
