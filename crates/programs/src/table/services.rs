//! The rows of the table of known programs for tools for repositories, containers, machines and CI,
//! which exchange requests with other machines.

use crate::steps::{found, in_directory, FoundStep, Line, Mark, StepKind, StepName};
use crate::tools::{Children, ContainerVerb, Family, KnownProgram, Label, PROGRAM};
use crate::words::has;
use tr_text::escape;

/// The common part of the table rows for tools that run containers, such as docker and podman.
const CONTAINERS: KnownProgram = KnownProgram {
    family: Family::Container,
    children: Children::Status,
    label: Label::Verbs("-H --host --context -c --config -l --log-level"),
    step: Some(docker),
    ..PROGRAM
};

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "helm kubectl systemctl terraform",
        label: Label::Verbs(""),
        ..PROGRAM
    },
    KnownProgram {
        names: "git",
        label: Label::Verbs("-C -c --git-dir --work-tree --namespace"),
        answer_verbs: "config describe merge-base name-rev remote rev-parse show-ref symbolic-ref",
        step: Some(git),
        labels: "git -C /src clone https://x.org/y => git clone | https://x.org/y
                  git --version => git | --version
                  /usr/lib/git-core/git index-pack --stdin => git index-pack | --stdin",
        steps: "git -c x=y clone --depth 1 u => job | git clone
                 git submodule update --init => job | git submodule update
                 git rev-parse HEAD => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "docker docker-compose docker-buildx nerdctl ctr crictl buildctl podman-remote",
        asks_daemon: true,
        labels: "docker --context ci run x => docker run | x",
        steps: "docker build -t x . => job | docker build
                 docker buildx build . => job | docker buildx build
                 docker --host tcp://d build . => job | docker build
                 docker exec x make => -
                 docker ps => -",
        ..CONTAINERS
    },
    KnownProgram {
        names: "podman buildah buildah-oci-runtime",
        steps: "podman pull x => job | podman pull",
        ..CONTAINERS
    },
    KnownProgram {
        names: "ansible-playbook",
        step: Some(playbook),
        steps: "/usr/bin/python3 /usr/bin/ansible-playbook -i hosts site.yml => job | ansible-playbook site.yml
                 ansible-playbook --version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "gitlab-runner-helper gitlab-runner",
        step: Some(gitlab),
        steps: "gitlab-runner-helper artifacts-uploader --url u => job | artifacts-uploader
                 gitlab-runner-helper cache-extractor --file x => job | cache-extractor
                 gitlab-runner run => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "nice ionice chrt cpulimit",
        limits: true,
        ..PROGRAM
    },
    KnownProgram {
        names: "taskset numactl",
        limits: true,
        pins: true,
        ..PROGRAM
    },
    KnownProgram {
        names: "tr tr-trace",
        children: Children::Status,
        step: Some(mark),
        steps: "tr mark build => -
                 tr mark build -- make -j2 => mark | build
                 /usr/local/bin/tr mark unit~tests -- make check => mark | unit tests
                 /usr/bin/tr-trace mark build -- make => mark | build
                 tr mark -- x => -
                 tr a-z A-Z => -",
        ..PROGRAM
    },
];

fn git(line: &Line) -> Option<FoundStep> {
    let mut words = line.words("");
    match words.next()? {
        b"submodule" => {
            let verb = escape::raw(words.next()?);
            found(StepKind::Job, StepName::of_parts("git submodule", &verb))
        }
        verb @ (b"clone" | b"fetch" | b"pull" | b"checkout") => {
            found(StepKind::Job, StepName::of_parts("git", &escape::raw(verb)))
        }
        _ => None,
    }
}

fn docker(line: &Line) -> Option<FoundStep> {
    // docker starts a plugin such as `docker-compose` with docker's own arguments. The process of docker already counts
    // as the build step, so the plugin does not.
    if line.name.starts_with("docker-") {
        return None;
    }
    let mut words = line.words("").map(escape::raw);
    let verb = words.next()?;
    let name = match (verb.as_str(), ContainerVerb::of(&verb)?) {
        ("buildx", _) => StepName::of_parts(&format!("{} buildx", line.name), &words.next()?),
        (_, ContainerVerb::Part) => return None,
        _ => StepName::of_parts(line.name, &verb),
    };
    found(StepKind::Job, name)
}

fn playbook(line: &Line) -> Option<FoundStep> {
    let is = |word: &&[u8]| word.ends_with(b".yml") || word.ends_with(b".yaml");
    let plays: Vec<&[u8]> = line.words("-i -e -l -t -u").filter(is).collect();
    let any = !plays.is_empty();
    any.then(|| {
        let name = in_directory("ansible-playbook", None, plays.into_iter());
        found(StepKind::Job, name)
    })?
}

fn gitlab(line: &Line) -> Option<FoundStep> {
    const KNOWN: &str =
        "artifacts-uploader artifacts-downloader cache-archiver cache-extractor read-logs";
    let verb = line.words("").next().filter(|verb| has(KNOWN, verb))?;
    found(StepKind::Job, escape::raw(verb))
}

/// The build step of `tr mark NAME -- COMMAND`. Other forms of `tr mark` run no command and are no
/// step.
fn mark(line: &Line) -> Option<FoundStep> {
    match Mark::of(line.all)? {
        Mark::Command(name) => found(StepKind::Mark, StepName::of_text(escape::raw(name))),
        Mark::Moment(_) | Mark::Begin(_) | Mark::End(_) => None,
    }
}
