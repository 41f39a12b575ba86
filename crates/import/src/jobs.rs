//! Reads the jobs of a CI run from the JSON that the interfaces of GitHub and GitLab return: `GET
//! /repos/OWNER/REPO/actions/runs/ID/jobs`, `GET /projects/ID/pipelines/ID/jobs`.

use std::collections::BTreeMap;

use serde_json::Value;
use tr_insight::recordings::ci_jobs::{CiJob, MOST_JOBS};

use crate::date;

/// The jobs of a CI run that ran and have ended, from the JSON of GitHub or GitLab.
///
/// # Errors
/// A text that says what is wrong with the JSON.
pub fn read(text: &str) -> Result<Vec<CiJob>, String> {
    let mut all = started(text)?;
    all.retain(|job| job.ended < STILL_RUNNING);
    if all.is_empty() {
        Err("none of its jobs has both `started_at` and its end".into())
    } else {
        Ok(all)
    }
}

/// The value that stands for the end of a CI job that is still running. This value is a flag and no time.
const STILL_RUNNING: u64 = u64::MAX;

/// The jobs of a CI run that have started, from the JSON of GitHub or GitLab. Some may still be
/// running, such as the job that reads this list.
///
/// # Errors
/// A text that says what is wrong with the JSON.
pub fn started(text: &str) -> Result<Vec<CiJob>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    // `gh api --paginate --slurp` prints an array of pages.
    let pages = match value.as_array() {
        Some(pages) if pages.iter().all(|page| page.get("jobs").is_some()) => pages.as_slice(),
        _ => std::slice::from_ref(&value),
    };
    let mut jobs: Vec<&Value> = Vec::new();
    for page in pages {
        let array = page.get("jobs").unwrap_or(page);
        // GitLab's answer about the job that requests it is a single job and no list.
        if array.get("started_at").is_some() {
            jobs.push(array);
            continue;
        }
        jobs.extend(
            array
                .as_array()
                .ok_or("neither an array of jobs nor an object with one")?,
        );
    }
    if jobs.len() > MOST_JOBS {
        return Err(format!("more than {MOST_JOBS} jobs"));
    }
    let mut all: Vec<(CiJob, Option<&str>)> = Vec::new();
    for job in jobs {
        let read = ci_job(job)?;
        all.extend(read.map(|read| (read, text_of(job, "stage"))));
    }
    by_stage(&mut all);
    Ok(all.into_iter().map(|(job, _)| job).collect())
}

fn text_of<'a>(job: &'a Value, key: &str) -> Option<&'a str> {
    job.get(key).and_then(Value::as_str)
}

/// The time in a field of a CI job's JSON, in ns since 1970.
fn time(job: &Value, key: &str) -> Option<u64> {
    let date = date::read(text_of(job, key)?)?;
    u64::try_from(date.local.checked_sub(date.ahead?)?).ok()
}

/// Reads one CI job from its JSON; `None` if the job has not started.
fn ci_job(job: &Value) -> Result<Option<CiJob>, String> {
    let name = text_of(job, "name").ok_or("a job without `name`")?;
    let ended = time(job, "completed_at").or_else(|| time(job, "finished_at"));
    let Some(started) = time(job, "started_at") else {
        return Ok(None);
    };
    let runner = job
        .get("runner")
        .and_then(|runner| text_of(runner, "description"));
    // GitHub creates a job when all jobs that it needs have ended, so its wait for a runner began when it was created.
    // GitLab creates all jobs of a pipeline at once, and reports the wait itself.
    let waited = job.get("queued_duration").and_then(Value::as_f64);
    let queued = match (waited, text_of(job, "stage")) {
        (Some(seconds), _) => (seconds.clamp(0.0, 1e9) * 1e9) as u64,
        (None, None) => time(job, "created_at").map_or(0, |made| started.saturating_sub(made)),
        (None, Some(_)) => 0,
    };
    let end = text_of(job, "conclusion").or_else(|| text_of(job, "status"));
    Ok(Some(CiJob {
        name: name.to_owned(),
        needs: needs(job),
        started,
        ended: ended.unwrap_or(STILL_RUNNING).max(started),
        queued,
        runner: runner.or(text_of(job, "runner_name")).map(str::to_owned),
        failed: matches!(end, Some("failure" | "failed" | "timed_out")),
    }))
}

/// The names of the CI jobs that must end before this job begins: the JSON field `needs` is a list of names, of
/// objects with a name, or of GitLab's GraphQL nodes. `None` if the field is missing.
fn needs(job: &Value) -> Option<Vec<String>> {
    let needs = job.get("needs")?;
    let needs = needs.get("nodes").unwrap_or(needs).as_array()?;
    let name = |need: &Value| {
        let name = need.as_str().or_else(|| text_of(need, "name"));
        name.or_else(|| text_of(need, "job")).map(str::to_owned)
    };
    Some(needs.iter().filter_map(name).collect())
}

/// Sets the dependencies of each GitLab job that has no `needs`: such a job waits for all jobs of the earlier stages.
/// A stage is earlier if its first job started before the first job of the other stage.
fn by_stage(jobs: &mut [(CiJob, Option<&str>)]) {
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    for (job, stage) in jobs.iter() {
        let Some(stage) = stage else { continue };
        let begin = first.entry((*stage).to_owned()).or_insert(job.started);
        *begin = job.started.min(*begin);
    }
    let rows: Vec<(u64, String)> = jobs
        .iter()
        .filter_map(|(job, stage)| Some((*first.get((*stage)?)?, job.name.clone())))
        .collect();
    for (job, stage) in jobs {
        let begin = stage.and_then(|stage| first.get(stage));
        let (Some(begin), None) = (begin, &job.needs) else {
            continue;
        };
        let before = rows.iter().filter(|(other, _)| other < begin);
        job.needs = Some(before.map(|(_, name)| name.clone()).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example of GitHub's JSON for the jobs of a CI run, without the fields that are not read.
    const GITHUB: &str = r#"{"total_count": 3, "jobs": [
        {"id": 1, "name": "build (ubuntu-24.04)", "status": "completed", "conclusion": "success",
         "created_at": "2026-11-23T05:54:00Z", "started_at": "2026-11-23T05:54:06Z",
         "completed_at": "2026-11-23T05:55:06Z", "steps": []},
        {"id": 2, "name": "test", "status": "completed", "conclusion": "failure",
         "created_at": "2026-11-23T05:55:07Z", "started_at": "2026-11-23T05:55:37Z",
         "completed_at": "2026-11-23T05:57:00Z"},
        {"id": 4, "name": "lint", "status": "in_progress", "created_at": "2026-11-23T05:55:07Z",
         "started_at": "2026-11-23T05:55:09Z", "completed_at": null, "runner_name": "GitHub Actions 14"},
        {"id": 3, "name": "skipped", "conclusion": "skipped", "started_at": null, "completed_at": null}]}"#;

    /// An example of GitLab's JSON for the jobs of a CI run, without the fields that are not read.
    /// The latest job comes first.
    const GITLAB: &str = r#"[
        {"id": 9, "name": "deploy", "stage": "deploy", "status": "success",
         "created_at": "2026-11-23T05:54:00.000Z", "started_at": "2026-11-23T06:01:00.500Z",
         "finished_at": "2026-11-23T06:02:00.000Z", "queued_duration": 2.5},
        {"id": 8, "name": "lint", "stage": "test", "status": "failed", "needs": [],
         "started_at": "2026-11-23T05:54:01.000Z", "finished_at": "2026-11-23T05:54:31.000Z"},
        {"id": 7, "name": "unit", "stage": "test", "status": "success", "needs": [{"name": "build"}],
         "started_at": "2026-11-23T05:58:00.000Z", "finished_at": "2026-11-23T06:00:00.000Z"},
        {"id": 6, "name": "build", "stage": "build", "status": "success",
         "started_at": "2026-11-23T05:54:00.000Z", "finished_at": "2026-11-23T05:57:00.000Z"}]"#;

    #[test]
    fn github_tells_times_and_the_wait_for_a_runner() {
        let jobs = read(GITHUB).unwrap();
        let [build, test] = jobs.as_slice() else {
            panic!("{jobs:?}")
        };
        assert_eq!(build.started, 1_795_413_246_000_000_000);
        assert_eq!(build.ended - build.started, 60_000_000_000);
        assert_eq!((build.queued, test.queued), (6_000_000_000, 30_000_000_000));
        assert_eq!((build.failed, test.failed), (false, true));
        assert_eq!(build.needs, None);
        let running = started(GITHUB).unwrap().pop().unwrap();
        assert_eq!(running.queued, 2_000_000_000);
        assert_eq!(running.runner.as_deref(), Some("GitHub Actions 14"));
        let paged = read(&format!("[{GITHUB}, {GITHUB}]")).unwrap();
        assert_eq!(paged.len(), 4);
    }

    #[test]
    fn gitlab_tells_needs_or_stages() {
        let jobs = read(GITLAB).unwrap();
        let of = |name: &str| jobs.iter().find(|job| job.name == name).unwrap();
        let needs = |name: &str| of(name).needs.clone().unwrap();
        assert_eq!(needs("unit"), ["build"]);
        assert!(needs("lint").is_empty() && needs("build").is_empty());
        let mut deploy = needs("deploy");
        deploy.sort();
        assert_eq!(deploy, ["build", "lint", "unit"]);
        assert_eq!(of("deploy").queued, 2_500_000_000);
        assert!(of("lint").failed && !of("unit").failed);
    }

    #[test]
    fn gitlab_tells_a_job_about_itself() {
        let own = r#"{"id": 9, "name": "deploy", "stage": "deploy", "status": "running", "finished_at": null,
            "started_at": "2026-11-23T06:01:00.500Z", "queued_duration": 2.5, "runner": {"description": "linux-7"}}"#;
        let jobs = started(own).unwrap();
        assert_eq!((jobs.len(), jobs[0].queued), (1, 2_500_000_000));
        assert_eq!(jobs[0].runner.as_deref(), Some("linux-7"));
        assert!(read(own).is_err());
    }

    #[test]
    fn what_is_no_list_of_jobs_is_refused() {
        for bad in ["", "{}", "3", r#"{"jobs": 1}"#, r#"[{}]"#, "[]"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
