//! The variables by which CI systems identify a job: one table, for those that are recorded and for
//! those that reports understand.

/// A CI system. Each identifier is a list of templates, of which the first counts that has all its
/// variables; `{NAME}` is a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System {
    /// Its name.
    pub name: &'static str,
    /// Where its variables are documented.
    pub source: &'static str,
    /// The beginning of variables that no other system sets.
    pub prefix: &'static str,
    /// Identifier and templates.
    pub identifiers: &'static [(&'static str, &'static [&'static str])],
}

/// The identifiers, in the order in which reports have them. The first six identify a run; `page` is
/// its link, `job_page` and `job_id` are those of the job, `runner` names the machine or its agent,
/// `label` the kind of runner that was asked for, `image` what was installed there.
pub const IDENTIFIERS: [&str; 12] = [
    "project", "run", "attempt", "job", "commit", "branch", "page", "job_page", "job_id", "runner",
    "label", "image",
];

/// All systems. The last one has no prefix of its own: it is taken if no other is.
pub const SYSTEMS: [System; 8] = [
    System {
        name: "GitHub Actions",
        source: "https://docs.github.com/en/actions/reference/workflows-and-actions/variables",
        prefix: "GITHUB_",
        identifiers: &[
            ("project", &["{GITHUB_REPOSITORY}"]),
            ("run", &["{GITHUB_RUN_ID}"]),
            ("attempt", &["{GITHUB_RUN_ATTEMPT}"]),
            // Legs of a matrix have one name: no variable tells them apart.
            ("job", &["{GITHUB_JOB}"]),
            ("commit", &["{GITHUB_SHA}"]),
            ("branch", &["{GITHUB_REF}"]),
            ("page", &["{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"]),
            // The workflow sets CHECK_RUN_ID.
            ("job_page", &["{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}/job/{CHECK_RUN_ID}"]),
            ("job_id", &["{CHECK_RUN_ID}"]),
            ("runner", &["{RUNNER_NAME}"]),
            ("label", &["{RUNNER_ENVIRONMENT} {RUNNER_OS} {RUNNER_ARCH}"]),
            ("image", &["{ImageOS} {ImageVersion}"]),
        ],
    },
    System {
        name: "Buildkite",
        source: "https://buildkite.com/docs/pipelines/configure/environment-variables",
        prefix: "BUILDKITE_",
        identifiers: &[
            ("project", &["{BUILDKITE_PIPELINE_SLUG}"]),
            ("run", &["{BUILDKITE_BUILD_ID}"]),
            ("attempt", &["{BUILDKITE_RETRY_COUNT}"]),
            ("job", &["{BUILDKITE_STEP_KEY} {BUILDKITE_PARALLEL_JOB}", "{BUILDKITE_STEP_KEY}", "{BUILDKITE_LABEL}"]),
            ("commit", &["{BUILDKITE_COMMIT}"]),
            ("branch", &["{BUILDKITE_BRANCH}"]),
            ("page", &["{BUILDKITE_BUILD_URL}"]),
            ("job_page", &["{BUILDKITE_BUILD_URL}#{BUILDKITE_JOB_ID}"]),
            ("job_id", &["{BUILDKITE_JOB_ID}"]),
            ("runner", &["{BUILDKITE_AGENT_NAME}"]),
            ("label", &["{BUILDKITE_AGENT_META_DATA_QUEUE}"]),
        ],
    },
    System {
        name: "CircleCI",
        source: "https://circleci.com/docs/reference/variables/",
        prefix: "CIRCLE_",
        identifiers: &[
            ("project", &["{CIRCLE_PROJECT_USERNAME}/{CIRCLE_PROJECT_REPONAME}", "{CIRCLE_PROJECT_REPONAME}"]),
            ("run", &["{CIRCLE_WORKFLOW_ID}"]),
            ("job", &["{CIRCLE_JOB}"]),
            ("commit", &["{CIRCLE_SHA1}"]),
            ("branch", &["{CIRCLE_BRANCH}", "{CIRCLE_TAG}"]),
            ("job_page", &["{CIRCLE_BUILD_URL}"]),
            ("job_id", &["{CIRCLE_BUILD_NUM}"]),
        ],
    },
    System {
        name: "TeamCity",
        source: "https://www.jetbrains.com/help/teamcity/predefined-build-parameters.html",
        prefix: "TEAMCITY_",
        identifiers: &[
            ("project", &["{TEAMCITY_PROJECT_NAME}"]),
            ("run", &["{BUILD_NUMBER}"]),
            ("job", &["{TEAMCITY_BUILDCONF_NAME}"]),
            ("commit", &["{BUILD_VCS_NUMBER}"]),
            // A parameter, not a variable: a build has it as `env.TEAMCITY_BUILD_BRANCH`, set to
            // `%teamcity.build.branch%`.
            ("branch", &["{TEAMCITY_BUILD_BRANCH}", "{BUILD_BRANCH}"]),
            ("page", &["{BUILD_URL}"]),
        ],
    },
    System {
        name: "Azure Pipelines",
        source: "https://learn.microsoft.com/en-us/azure/devops/pipelines/build/variables",
        prefix: "SYSTEM_ BUILD_BUILDID BUILD_SOURCE",
        identifiers: &[
            ("project", &["{BUILD_REPOSITORY_NAME}", "{SYSTEM_TEAMPROJECT}"]),
            ("run", &["{BUILD_BUILDID}"]),
            ("attempt", &["{SYSTEM_JOBATTEMPT}"]),
            ("job", &["{SYSTEM_JOBNAME}"]),
            ("commit", &["{BUILD_SOURCEVERSION}"]),
            ("branch", &["{BUILD_SOURCEBRANCH}"]),
            ("page", &["{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}"]),
            ("runner", &["{AGENT_MACHINENAME}", "{AGENT_NAME}"]),
            ("label", &["{AGENT_OS} {AGENT_OSARCHITECTURE}"]),
            ("image", &["{ImageOS} {ImageVersion}"]),
        ],
    },
    System {
        name: "Bitbucket Pipelines",
        source: "https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets/",
        prefix: "BITBUCKET_",
        identifiers: &[
            ("project", &["{BITBUCKET_REPO_FULL_NAME}"]),
            ("run", &["{BITBUCKET_BUILD_NUMBER}"]),
            ("commit", &["{BITBUCKET_COMMIT}"]),
            ("branch", &["{BITBUCKET_BRANCH}", "{BITBUCKET_TAG}"]),
            ("page", &["{BITBUCKET_GIT_HTTP_ORIGIN}/pipelines/results/{BITBUCKET_BUILD_NUMBER}"]),
        ],
    },
    System {
        name: "GitLab CI",
        source: "https://docs.gitlab.com/ci/variables/predefined_variables/",
        prefix: "CI_",
        identifiers: &[
            ("project", &["{CI_PROJECT_PATH}"]),
            ("run", &["{CI_PIPELINE_ID}"]),
            ("job", &["{CI_JOB_NAME}"]),
            ("commit", &["{CI_COMMIT_SHA}"]),
            ("branch", &["{CI_COMMIT_REF_NAME}"]),
            ("page", &["{CI_PIPELINE_URL}"]),
            ("job_page", &["{CI_JOB_URL}"]),
            ("job_id", &["{CI_JOB_ID}"]),
            ("runner", &["{CI_RUNNER_DESCRIPTION}"]),
            ("label", &["{CI_RUNNER_TAGS}"]),
            ("image", &["{CI_JOB_IMAGE}"]),
        ],
    },
    System {
        name: "Jenkins",
        source: "https://www.jenkins.io/doc/book/pipeline/jenkinsfile/#using-environment-variables",
        prefix: "",
        identifiers: &[
            ("project", &["{JOB_NAME}"]),
            ("run", &["{BUILD_ID}", "{BUILD_NUMBER}"]),
            ("job", &["{JOB_NAME}"]),
            ("commit", &["{GIT_COMMIT}"]),
            ("branch", &["{BRANCH_NAME}", "{GIT_BRANCH}"]),
            ("page", &["{BUILD_URL}"]),
            ("runner", &["{NODE_NAME}"]),
            ("label", &["{NODE_LABELS}"]),
        ],
    },
];

/// Variables beside the identifiers: the span around a recording, and the moment in which the job
/// began to wait for a runner (seconds since 1970), which a job's script sets.
pub const OTHERS: [&str; 2] = ["TRACEPARENT", QUEUED_AT];

/// The span of a recording, in hexadecimal digits: the recorder adds it to the variables of a job that has a trace
/// context.
pub const SPAN_ID: &str = "TR_SPAN_ID";

/// The moment in which a job began to wait for a runner, in seconds since 1970.
pub const QUEUED_AT: &str = "TR_QUEUED_AT";

/// The variables of a template.
fn names(template: &str) -> impl Iterator<Item = &str> {
    let parts = template.split('{').skip(1);
    parts.filter_map(|part| part.split_once('}')).map(|it| it.0)
}

/// Every variable that is recorded, each once.
pub fn variables() -> Vec<&'static str> {
    let templates = SYSTEMS
        .iter()
        .flat_map(|it| it.identifiers)
        .flat_map(|it| it.1);
    let mut all: Vec<&str> = templates.flat_map(|it| names(it)).chain(OTHERS).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The identifiers that these variables tell: name, value.
pub fn identifiers(variables: &[(String, String)]) -> Vec<(&'static str, String)> {
    let get = |name: &str| {
        variables
            .iter()
            .find(|it| it.0 == name)
            .map(|it| it.1.as_str())
    };
    let is = |system: &System| {
        let mut prefixes = system.prefix.split(' ');
        prefixes.any(|prefix| variables.iter().any(|(name, _)| name.starts_with(prefix)))
    };
    let Some(system) = SYSTEMS.iter().find(|system| is(system)) else {
        return Vec::new();
    };
    let of = |name: &str| system.identifiers.iter().find(|it| it.0 == name);
    let known = IDENTIFIERS.iter().filter_map(|name| {
        let mut templates = of(name)?.1.iter();
        let value = templates.find_map(|template| fill(template, get))?;
        Some((*name, plain(name, value)))
    });
    known.collect()
}

/// A template with its variables' values; `None` if it lacks one.
fn fill<'a>(template: &str, get: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let mut out = String::new();
    for (place, part) in template.split('{').enumerate() {
        match part.split_once('}') {
            Some((name, after)) if place > 0 => {
                out += get(name)?;
                out += after;
            }
            _ => out += part,
        }
    }
    Some(out)
}

/// A branch without the way in which its system writes it.
fn plain(name: &str, value: String) -> String {
    let prefixes: &[&str] = if name == "branch" {
        &["refs/heads/", "origin/"]
    } else {
        &[]
    };
    let short = prefixes.iter().find_map(|it| value.strip_prefix(it));
    short.map_or_else(|| value.clone(), str::to_owned)
}

#[cfg(test)]
#[path = "tests/ci.rs"]
mod tests;
