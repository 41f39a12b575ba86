//! The rows of the table of known programs for tools that download and unpack packages.

use crate::steps::{found, in_directory, FoundStep, Line, StepKind, StepName};
use crate::tools::{Children, KnownProgram, Label, Role, PROGRAM};
use crate::words::has;
use tr_text::escape;

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "npm npm-cli pnpm yarn bun",
        verbs: &[(Role::Packages, "ci install")],
        children: Children::FailUnlessOptional,
        label: Label::Verbs("--prefix -C --dir --cwd -w --workspace"),
        step: Some(npm),
        labels: "node /usr/bin/npm ci => npm ci |
                  node /usr/lib/node_modules/npm/bin/npm-cli.js run build => npm run | build",
        steps: "npm ci => job | npm ci
                 node /usr/bin/npm run build => job | npm run build
                 node /usr/lib/node_modules/npm/bin/npm-cli.js test => job | npm test
                 npm config get x => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "npx corepack",
        bypass: Some("call the tools in node_modules/.bin, or several in one npm script"),
        children: Children::FailUnlessOptional,
        label: Label::Verbs("--prefix -C --dir --cwd -w --workspace"),
        ..PROGRAM
    },
    KnownProgram {
        names: "pyenv rbenv nodenv goenv jenv plenv asdf",
        bypass: Some("put the directory of the real program first on PATH"),
        label: Label::Verbs(""),
        ..PROGRAM
    },
    KnownProgram {
        names: "pip uv poetry conda gem bundle composer brew snap rustup",
        verbs: &[(Role::Packages, "install download sync pip")],
        label: Label::Verbs(""),
        step: Some(install),
        labels: "/usr/bin/python3 /usr/bin/pip install x => pip install | x",
        steps: "/usr/bin/python3 /usr/bin/pip install -r x => job | pip install
                 python3 -m pip install x => job | pip install
                 uv sync => job | uv sync
                 pip --version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "apt apt-get aptitude dnf yum zypper apk",
        verbs: &[(Role::Packages, "install update add")],
        label: Label::Verbs("-o -c -t -a --root"),
        step: Some(install),
        labels: "apt-get -o Dpkg=1 -y install gcc => apt-get install | gcc",
        steps: "apt-get -y install gcc => job | apt-get install
                 apk add gcc => job | apk add",
        ..PROGRAM
    },
    KnownProgram {
        names: "dpkg ensurepip venv virtualenv",
        role: Some(Role::Packages),
        ..PROGRAM
    },
];

fn npm(line: &Line) -> Option<FoundStep> {
    let name = line.name.split('.').next()?.trim_end_matches("-cli");
    let mut words = line.words("").map(escape::raw);
    match words.next()?.as_str() {
        "run" | "run-script" => {
            let name = StepName::of_parts(&format!("{name} run"), &words.next()?);
            found(StepKind::Job, name)
        }
        verb @ ("ci" | "install" | "i" | "add" | "test" | "t" | "build" | "start") => {
            found(StepKind::Job, StepName::of_parts(name, verb))
        }
        _ => None,
    }
}

fn install(line: &Line) -> Option<FoundStep> {
    const KNOWN: &str = "install add update upgrade sync download wheel build create build-dep \
                         dist-upgrade lock";
    let verb = line.words("").next().filter(|verb| has(KNOWN, verb))?;
    let name = in_directory(line.name, None, std::iter::once(verb));
    found(StepKind::Job, name)
}
