//! Tests that secrets are masked in the trace.

use libtest_mimic::Failed;

use crate::support::{dump, ensure, info, record, scratch, text, tr, Test};

pub const TESTS: &[Test] = &[
    ("secrets_do_not_reach_the_file", secrets),
    ("redaction_can_be_changed", options),
    (
        "identifiers_of_the_ci_run_are_kept_and_no_other_variable",
        ci,
    ),
];

/// All that the commands print about a trace, as text.
fn all(trace: &std::path::Path) -> Result<String, Failed> {
    let parts = [
        tr(&["dump", "--format", "ndjson"], trace)?,
        tr(&["dump"], trace)?,
        tr(&["info", "--format", "json"], trace)?,
        tr(&["analyze", "--format", "json"], trace)?,
        std::fs::read(trace)?,
    ];
    Ok(text(&parts.concat()))
}

const SCRIPT: &str = "env DEPLOY_TOKEN=hunter2a true --password hunter2b \
    'Authorization: Bearer hunter2c'; sh -c '/bin/true --api-key=hunter2d; :'; \
    true https://me:hunter2e@host/x; /bin/true https://me:hunter2f@host/x";

fn secrets() -> Result<(), Failed> {
    let trace = scratch("secrets.bin");
    let out = record(&trace, &[], &["sh", "-c", SCRIPT, "x", "--token=hunter2g"])?;
    ensure(text(&out.stderr).contains("secrets masked"), || {
        text(&out.stderr)
    })?;
    let said = all(&trace)?;
    ensure(!said.contains("hunter2"), || {
        let at = said.find("hunter2").unwrap_or(0);
        said[at.saturating_sub(200)..at + 9].to_owned()
    })?;
    // The rest of each argument is kept.
    for kept in [
        "DEPLOY_TOKEN=***",
        "https://me:***@host/x",
        "--api-key=***",
        "--token=***",
    ] {
        ensure(said.contains(kept), || format!("{kept} is missing"))?;
    }
    ensure(
        dump(&trace)?
            .iter()
            .all(|event| event["argv_truncated"] != true),
        || "a masked argv counts as cut".into(),
    )
}

fn options() -> Result<(), Failed> {
    let trace = scratch("options.bin");
    let command = ["sh", "-c", "/bin/true --token=hunter2 id-77 name=bob; :"];
    record(&trace, &["--no-redact"], &command)?;
    ensure(all(&trace)?.contains("--token=hunter2"), || "masked".into())?;
    record(
        &trace,
        &["--redact", "id-[0-9]+", "--redact", "name=([a-z]+)"],
        &command,
    )?;
    let said = all(&trace)?;
    for gone in ["hunter2", "id-77", "bob"] {
        ensure(!said.contains(gone), || format!("{gone} is there"))?;
    }
    ensure(said.contains("name=***"), || {
        "the group alone is masked".into()
    })?;
    let out = record(&trace, &["--redact", "("], &command)?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))?;
    // Secrets are masked in error messages, too.
    let out = record(&trace, &["--cpu", "900"], &command)?;
    ensure(out.status.code() == Some(125), || format!("{out:?}"))?;
    ensure(!text(&out.stderr).contains("hunter2"), || text(&out.stderr))
}

fn ci() -> Result<(), Failed> {
    let trace = scratch("ci.bin");
    let mut tr = crate::support::recording(&trace, &[], &["true"]);
    tr.env("GITHUB_RUN_ID", "77001")
        .env("CI_JOB_ID", "")
        .env(
            "CI_JOB_URL",
            "https://gitlab-ci-token:hunter2@host/g/-/jobs/1",
        )
        .env("DEPLOY_TOKEN", "hunter2");
    tr.output()?;
    let info = info(&trace)?.to_string();
    ensure(
        info.contains("77001") && !info.contains("CI_JOB_ID") && info.contains("token:***@host"),
        || info.clone(),
    )?;
    ensure(!all(&trace)?.contains("hunter2"), || {
        "the environment leaks".into()
    })
}
