//! Jobs of CI, what they install and fetch, and marks.

use crate::tools::ContainerVerb;

use super::{found, in_directory, Found, Line, Mark};
use crate::command_line::has;
use crate::steps::StepKind;
use tr_text::escape;

pub(super) fn npm(line: &Line) -> Option<Found> {
    let name = line.name.split('.').next()?.trim_end_matches("-cli");
    let mut words = line.words("").map(escape::text);
    match words.next()?.as_str() {
        "run" | "run-script" => found(StepKind::Job, format!("{name} run {}", words.next()?)),
        verb @ ("ci" | "install" | "i" | "add" | "test" | "t" | "build" | "start") => {
            found(StepKind::Job, format!("{name} {verb}"))
        }
        _ => None,
    }
}

pub(super) fn install(line: &Line) -> Option<Found> {
    const KNOWN: &str = "install add update upgrade sync download wheel build create build-dep \
                         dist-upgrade lock";
    let verb = line.words("").next().filter(|verb| has(KNOWN, verb))?;
    let name = in_directory(line.name, None, std::iter::once(verb));
    found(StepKind::Job, name)
}

pub(super) fn git(line: &Line) -> Option<Found> {
    let mut words = line.words("");
    match words.next()? {
        b"submodule" => {
            let verb = escape::text(words.next()?);
            found(StepKind::Job, format!("git submodule {verb}"))
        }
        verb @ (b"clone" | b"fetch" | b"pull" | b"checkout") => {
            found(StepKind::Job, format!("git {}", escape::text(verb)))
        }
        _ => None,
    }
}

pub(super) fn docker(line: &Line) -> Option<Found> {
    // docker has said the same to a plugin.
    if line.name.starts_with("docker-") {
        return None;
    }
    let mut words = line.words("").map(escape::text);
    let verb = words.next()?;
    let name = match (verb.as_str(), ContainerVerb::of(&verb)?) {
        ("buildx", _) => format!("{} buildx {}", line.name, words.next()?),
        (_, ContainerVerb::Part) => return None,
        _ => format!("{} {verb}", line.name),
    };
    found(StepKind::Job, name)
}

pub(super) fn playbook(line: &Line) -> Option<Found> {
    let is = |word: &&[u8]| word.ends_with(b".yml") || word.ends_with(b".yaml");
    let plays: Vec<&[u8]> = line.words("-i -e -l -t -u").filter(is).collect();
    let any = !plays.is_empty();
    any.then(|| {
        let name = in_directory("ansible-playbook", None, plays.into_iter());
        found(StepKind::Job, name)
    })?
}

pub(super) fn gitlab(line: &Line) -> Option<Found> {
    const KNOWN: &str =
        "artifacts-uploader artifacts-downloader cache-archiver cache-extractor read-logs";
    let verb = line.words("").next().filter(|verb| has(KNOWN, verb))?;
    found(StepKind::Job, escape::text(verb))
}

/// A script that GitLab's custom executor writes and runs, with the name of its stage.
pub(super) fn gitlab_script(line: &Line) -> Option<Found> {
    let stage = line.args.first()?;
    let is = line.path.contains("/custom-executor") && line.path.ends_with("/script.");
    is.then(|| found(StepKind::Job, escape::text(stage)))?
}

/// `tr mark NAME -- COMMAND`; the other forms are no steps of their own.
pub(super) fn mark(line: &Line) -> Option<Found> {
    match Mark::of(line.all)? {
        Mark::Command(name) => found(StepKind::Mark, escape::text(name)),
        Mark::Moment(_) | Mark::Begin(_) | Mark::End(_) => None,
    }
}

/// A script of a step, which GitHub's and Azure's runners write; or an action in JavaScript.
pub(super) fn github(line: &Line) -> Option<Found> {
    if let Some((_, action)) = line.path.split_once("/_actions/") {
        let mut parts = action.split('/');
        let (owner, name, version) = (parts.next()?, parts.next()?, parts.next()?);
        let name = format!("{owner}/{name}@{version}");
        return found(StepKind::Job, escape::text(name.as_bytes()));
    }
    let (_, script) = line.path.split_once("/_temp/")?;
    let id = script.split_once('.').map_or(script, |(id, _)| id);
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is = id.len() == 36 && id.split('-').count() == 5 && id.split('-').all(hex);
    let name = is.then(|| id.get(..8))??;
    Some(Found {
        script: true,
        ..Found::new(StepKind::Job, format!("run {name}"))
    })
}

pub(super) fn ansible_module(line: &Line) -> Option<Found> {
    let module = line.name.strip_prefix("AnsiballZ_")?;
    let module = module.strip_suffix(".py").unwrap_or(module);
    found(
        StepKind::Job,
        format!("ansible {}", escape::text(module.as_bytes())),
    )
}

pub(super) fn jenkins(line: &Line) -> Option<Found> {
    let mut parts = line.path.rsplit('/');
    let script = parts.next()?.starts_with("script.sh");
    let place = parts.next().filter(|place| place.starts_with("durable-"))?;
    script.then(|| found(StepKind::Job, escape::text(place.as_bytes())))?
}
