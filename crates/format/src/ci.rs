//! The environment variables by which CI systems identify a job. The recorder uses this table to record the variables,
//! and reports use it to interpret them.

/// A CI system, and the environment variables by which it identifies a job. Each identifier has a list of templates, in
/// which `{NAME}` stands for the value of a variable. The first template whose variables are all set is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System {
    /// The name of the CI system.
    pub name: &'static str,
    /// The address of the page that documents the environment variables of the CI system.
    pub source: &'static str,
    /// The prefixes, with blanks between them, by which a job of this CI system is recognized: the name of at least
    /// one recorded variable begins with one of them. An empty prefix fits every variable.
    pub prefix: &'static str,
    /// The identifiers of a job that the CI system provides: the name and the templates of each.
    pub identifiers: &'static [(&'static str, &'static [&'static str])],
}

/// The names of the identifiers of a CI job, in the order in which reports show them. The first six identify a run.
/// `page` is the link to the run, `job_page` the link to the job, and `job_id` the job's number. `runner` names the
/// machine or its agent, `label` the kind of runner that the job requested, and `image` the software installed on the
/// runner.
pub const IDENTIFIERS: [&str; 12] = [
    "project", "run", "attempt", "job", "commit", "branch", "page", "job_page", "job_id", "runner",
    "label", "image",
];

const AZURE: &str = "Azure Pipelines";
const CIRCLE: &str = "CircleCI";
const JENKINS: &str = "Jenkins";

/// All CI systems that `tr` recognizes; the first one that matches is used. The last system in the list has no prefix
/// of its own for variables, so it is used only if no other system matches.
pub const SYSTEMS: [System; 14] = [
    System {
        name: "Forgejo Actions",
        source: "https://forgejo.org/docs/latest/user/actions/reference/",
        // Forgejo sets this variable in addition to all variables of GitHub Actions, so Forgejo has to come before
        // GitHub in this list.
        prefix: FORGEJO,
        identifiers: &[
            ("project", &["{GITHUB_REPOSITORY}"]),
            ("run", &["{GITHUB_RUN_ID}"]),
            ("attempt", &["{GITHUB_RUN_ATTEMPT}"]),
            ("job", &["{GITHUB_JOB}"]),
            ("commit", &["{GITHUB_SHA}"]),
            ("branch", &["{GITHUB_REF}"]),
            // Forgejo puts the run's number in the repository into the address of the run's page. GitHub puts the run's
            // id there.
            ("page", &["{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_NUMBER}"]),
            ("runner", &["{RUNNER_NAME}"]),
            ("label", &["{RUNNER_OS} {RUNNER_ARCH}"]),
        ],
    },
    System {
        name: "GitHub Actions",
        source: "https://docs.github.com/en/actions/reference/workflows-and-actions/variables",
        prefix: "GITHUB_",
        identifiers: &[
            ("project", &["{GITHUB_REPOSITORY}"]),
            ("run", &["{GITHUB_RUN_ID}"]),
            ("attempt", &["{GITHUB_RUN_ATTEMPT}"]),
            // All jobs of a matrix have this same name, because GitHub sets no variable that distinguishes them.
            ("job", &["{GITHUB_JOB}"]),
            ("commit", &["{GITHUB_SHA}"]),
            ("branch", &["{GITHUB_REF}"]),
            ("page", &["{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"]),
            // GitHub does not set CHECK_RUN_ID; the user's workflow can set it.
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
            (
                "job",
                &[
                    "{BUILDKITE_STEP_KEY} {BUILDKITE_PARALLEL_JOB}",
                    "{BUILDKITE_STEP_KEY}",
                    "{BUILDKITE_LABEL} {BUILDKITE_PARALLEL_JOB}",
                    "{BUILDKITE_LABEL}",
                ],
            ),
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
        name: CIRCLE,
        source: "https://circleci.com/docs/reference/variables/",
        prefix: "CIRCLE_",
        identifiers: &[
            ("project", &["{CIRCLE_PROJECT_USERNAME}/{CIRCLE_PROJECT_REPONAME}", "{CIRCLE_PROJECT_REPONAME}"]),
            ("run", &["{CIRCLE_WORKFLOW_ID}"]),
            // Several containers can share the tests of one job, so the number of the container is part of the name.
            ("job", &["{CIRCLE_JOB} {CIRCLE_NODE_INDEX}", "{CIRCLE_JOB}"]),
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
            // TeamCity has the branch as a parameter, not as a variable. A build's settings can pass it on, by
            // `env.TEAMCITY_BUILD_BRANCH` = `%teamcity.build.branch%`.
            ("branch", &["{TEAMCITY_BUILD_BRANCH}", "{BUILD_BRANCH}"]),
            ("page", &["{BUILD_URL}"]),
        ],
    },
    System {
        name: AZURE,
        source: "https://learn.microsoft.com/en-us/azure/devops/pipelines/build/variables",
        prefix: "SYSTEM_ BUILD_BUILDID BUILD_SOURCE",
        identifiers: &[
            ("project", &["{BUILD_REPOSITORY_NAME}", "{SYSTEM_TEAMPROJECT}"]),
            ("run", &["{BUILD_BUILDID}"]),
            ("attempt", &["{SYSTEM_JOBATTEMPT}"]),
            // For a matrix, SYSTEM_JOBNAME is the name of one combination, and SYSTEM_PHASENAME is the name of the job.
            ("job", &["{SYSTEM_PHASENAME} {SYSTEM_JOBNAME}", "{SYSTEM_JOBNAME}"]),
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
            ("attempt", &["{BITBUCKET_STEP_RUN_NUMBER}"]),
            // The identifier `job` is missing here, because Bitbucket has no variable with the name of the step.
            ("commit", &["{BITBUCKET_COMMIT}"]),
            ("branch", &["{BITBUCKET_BRANCH}", "{BITBUCKET_TAG}"]),
            ("page", &["{BITBUCKET_GIT_HTTP_ORIGIN}/pipelines/results/{BITBUCKET_BUILD_NUMBER}"]),
        ],
    },
    System {
        name: "Drone",
        source: "https://docs.drone.io/pipeline/environment/reference/",
        prefix: "DRONE_",
        identifiers: &[
            ("project", &["{DRONE_REPO}"]),
            ("run", &["{DRONE_BUILD_NUMBER}"]),
            ("job", &["{DRONE_STAGE_NAME} {DRONE_STEP_NAME}", "{DRONE_STAGE_NAME}"]),
            ("commit", &["{DRONE_COMMIT_SHA}"]),
            // In a pull request, DRONE_BRANCH is the target branch, so the source branch is tried first.
            ("branch", &["{DRONE_SOURCE_BRANCH}", "{DRONE_BRANCH}"]),
            ("page", &["{DRONE_BUILD_LINK}"]),
            ("runner", &["{DRONE_STAGE_MACHINE}"]),
            ("label", &["{DRONE_STAGE_OS} {DRONE_STAGE_ARCH}"]),
        ],
    },
    System {
        name: "Woodpecker",
        source: "https://woodpecker-ci.org/docs/usage/environment",
        // Other variables of Woodpecker have the same names as GitLab's; only Woodpecker sets these two.
        prefix: "CI_WORKFLOW_NAME CI_PIPELINE_NUMBER",
        identifiers: &[
            ("project", &["{CI_REPO}"]),
            ("run", &["{CI_PIPELINE_NUMBER}"]),
            ("job", &["{CI_WORKFLOW_NAME} {CI_STEP_NAME}", "{CI_WORKFLOW_NAME}"]),
            ("commit", &["{CI_COMMIT_SHA}"]),
            ("branch", &["{CI_COMMIT_SOURCE_BRANCH}", "{CI_COMMIT_BRANCH}"]),
            ("page", &["{CI_PIPELINE_URL}"]),
            ("job_page", &["{CI_STEP_URL}"]),
            ("runner", &["{CI_MACHINE}"]),
            ("label", &["{CI_SYSTEM_PLATFORM}"]),
        ],
    },
    System {
        name: "Semaphore",
        source: "https://docs.semaphore.io/CE/reference/env-vars",
        prefix: "SEMAPHORE_",
        identifiers: &[
            ("project", &["{SEMAPHORE_GIT_REPO_SLUG}", "{SEMAPHORE_PROJECT_NAME}"]),
            ("run", &["{SEMAPHORE_WORKFLOW_ID}"]),
            ("job", &["{SEMAPHORE_JOB_NAME}"]),
            ("commit", &["{SEMAPHORE_GIT_SHA}"]),
            ("branch", &["{SEMAPHORE_GIT_PR_BRANCH}", "{SEMAPHORE_GIT_BRANCH}"]),
            ("page", &["{SEMAPHORE_ORGANIZATION_URL}/workflows/{SEMAPHORE_WORKFLOW_ID}"]),
            ("job_page", &["{SEMAPHORE_ORGANIZATION_URL}/jobs/{SEMAPHORE_JOB_ID}"]),
            ("job_id", &["{SEMAPHORE_JOB_ID}"]),
            ("label", &["{SEMAPHORE_AGENT_MACHINE_TYPE}"]),
            ("image", &["{SEMAPHORE_AGENT_MACHINE_OS_IMAGE}"]),
        ],
    },
    System {
        name: "AppVeyor",
        source: "https://www.appveyor.com/docs/environment-variables/",
        prefix: "APPVEYOR_",
        identifiers: &[
            ("project", &["{APPVEYOR_REPO_NAME}"]),
            ("run", &["{APPVEYOR_BUILD_ID}"]),
            ("job", &["{APPVEYOR_JOB_NAME}"]),
            ("commit", &["{APPVEYOR_REPO_COMMIT}"]),
            ("branch", &["{APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH}", "{APPVEYOR_REPO_BRANCH}"]),
            ("page", &["{APPVEYOR_URL}/project/{APPVEYOR_ACCOUNT_NAME}/{APPVEYOR_PROJECT_SLUG}/builds/{APPVEYOR_BUILD_ID}"]),
            ("job_id", &["{APPVEYOR_JOB_ID}"]),
            ("image", &["{APPVEYOR_BUILD_WORKER_IMAGE}"]),
        ],
    },
    System {
        name: "Travis CI",
        source: "https://docs.travis-ci.com/user/environment-variables/#default-environment-variables",
        prefix: "TRAVIS_",
        identifiers: &[
            ("project", &["{TRAVIS_REPO_SLUG}"]),
            ("run", &["{TRAVIS_BUILD_ID}"]),
            ("job", &["{TRAVIS_JOB_NAME}"]),
            ("commit", &["{TRAVIS_COMMIT}"]),
            ("branch", &["{TRAVIS_PULL_REQUEST_BRANCH}", "{TRAVIS_BRANCH}"]),
            ("page", &["{TRAVIS_BUILD_WEB_URL}"]),
            ("job_page", &["{TRAVIS_JOB_WEB_URL}"]),
            ("job_id", &["{TRAVIS_JOB_ID}"]),
            ("label", &["{TRAVIS_OS_NAME} {TRAVIS_CPU_ARCH}", "{TRAVIS_OS_NAME}"]),
            ("image", &["{TRAVIS_DIST}"]),
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
        name: JENKINS,
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

/// The recorded environment variables that are in none of the templates in `SYSTEMS`: the context of the span around a
/// recording, the time at which the job began to wait for a runner, the time at which GitLab began the job, the
/// variable by which Forgejo is recognized, and the number of CircleCI's containers that share a job.
pub const OTHER_VARIABLES: [&str; 5] =
    [TRACEPARENT, QUEUED_AT, JOB_STARTED_AT, FORGEJO, CONTAINERS];

/// The environment variable with the context of the span in which a recording runs (W3C Trace Context).
pub const TRACEPARENT: &str = "TRACEPARENT";

const FORGEJO: &str = "FORGEJO_ACTIONS";

const CONTAINERS: &str = "CIRCLE_NODE_TOTAL";

/// The variable with the id of a recording's own span, in hexadecimal digits. The recorder adds it to the variables of
/// a CI job that has a trace context.
pub const SPAN_ID: &str = "TR_SPAN_ID";

/// The environment variable with the time at which GitLab began the job, such as `2025-04-01T18:31:49Z`. The ids of the
/// job's spans are derived from it.
pub const JOB_STARTED_AT: &str = "CI_JOB_STARTED_AT";

/// The environment variable with the time at which a CI job began to wait for a runner, in seconds since 1970. The
/// job's script sets it.
pub const QUEUED_AT: &str = "TR_QUEUED_AT";

/// The names of the environment variables that a template such as `{NAME}/{OTHER}` refers to.
fn names(template: &str) -> impl Iterator<Item = &str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'))
        .map(|(name, _)| name)
}

/// The names of all environment variables that a recording stores, without duplicates.
pub fn variables() -> Vec<&'static str> {
    let mut all: Vec<&str> = SYSTEMS
        .iter()
        .flat_map(|system| system.identifiers)
        .flat_map(|(_, templates)| *templates)
        .flat_map(|template| names(template))
        .chain(OTHER_VARIABLES)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The identifiers of a CI job that follow from these environment variables: the name and the value of each, for
/// example `branch` and `main`.
pub fn identifiers(variables: &[(String, String)]) -> Vec<(&'static str, String)> {
    let get = |name: &str| {
        variables
            .iter()
            .find(|(variable, _)| variable == name)
            .map(|(_, value)| value.as_str())
    };
    let is = |system: &System| {
        let mut prefixes = system.prefix.split(' ');
        prefixes.any(|prefix| variables.iter().any(|(name, _)| name.starts_with(prefix)))
    };
    let Some(system) = SYSTEMS.iter().find(|system| is(system)) else {
        return Vec::new();
    };
    let identifier = |name: &&'static str| {
        let (_, templates) = system
            .identifiers
            .iter()
            .find(|(identifier, _)| identifier == name)?;
        let value = templates.iter().find_map(|template| fill(template, get))?;
        Some((*name, plain(system, name, value, get)))
    };
    IDENTIFIERS.iter().filter_map(identifier).collect()
}

/// Replaces each `{NAME}` in the template of a CI job's identifier by the value of that environment variable. Returns
/// `None` if a variable is not set.
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

/// The value of a CI job's identifier without parts that its CI system adds, such as `refs/heads/` before a branch.
fn plain<'a>(
    system: &System,
    name: &str,
    value: String,
    get: impl Fn(&str) -> Option<&'a str>,
) -> String {
    let short = match (system.name, name) {
        // For a job without a matrix, the second name (SYSTEM_JOBNAME) says nothing, because Azure repeats the name of
        // the job there or sets `__default`. So the second name is removed.
        (AZURE, "job") => value
            .split_once(' ')
            .filter(|(job, leg)| job == leg || *leg == "__default")
            .map(|(job, _)| job.to_owned()),
        // A job that runs in only one container needs no number of the container in its name.
        (CIRCLE, "job") if get(CONTAINERS).is_none_or(|count| count == "1") => {
            value.strip_suffix(" 0").map(str::to_owned)
        }
        // A multibranch project has a job for each branch, with the branch at the end of its name. The branch is
        // removed, so that the jobs of all branches have one name.
        (JENKINS, "project" | "job") => value
            .rsplit_once('/')
            .filter(|(_, job)| {
                get("BRANCH_NAME").is_some_and(|branch| decoded(job) == branch.as_bytes())
            })
            .map(|(project, _)| project.to_owned()),
        (_, "branch") => ["refs/heads/", "origin/"]
            .iter()
            .find_map(|start| value.strip_prefix(start))
            .map(str::to_owned),
        _ => None,
    };
    short.unwrap_or(value)
}

/// Decodes a text in which bytes may be encoded as in a URL (`%2F` for `/`), and returns its bytes.
pub fn decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                out.extend(part.bytes().skip(2));
            }
            None => {
                out.push(b'%');
                out.extend(part.bytes());
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "tests/ci.rs"]
mod tests;
