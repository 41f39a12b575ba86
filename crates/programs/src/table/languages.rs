//! The rows of the table of known programs for shells and other interpreters, and for small
//! programs that scripts call.

use crate::job_tools::{JobTool, JOBS};
use crate::tools::{version, Change, Children, KnownProgram, Label, Role, Script, PROGRAM, SCRIPT};

/// The options with which Python gets a program, and those that have a value in the next argument.
const PYTHON: Label = Label::Interpreter(Script {
    text: "-c",
    named: "-m",
    valued: "-W -X -Q --check-hash-based-pycs",
    ..SCRIPT
});

/// The options with which Ruby gets a program, and those that have a value in the next argument.
const RUBY: Label = Label::Interpreter(Script {
    text: "-e",
    valued: "-I -r -C -E",
    mode: "-c",
    ..SCRIPT
});

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "sh bash dash zsh ksh mksh ash",
        role: Some(Role::Shell),
        children: Children::Script,
        label: Label::Interpreter(Script {
            text: "-c",
            valued: "-o +o -O +O --rcfile --init-file",
            mode: "-n",
            clustered: true,
            text_anywhere: true,
            ..SCRIPT
        }),
        labels: "sh -c gcc~-c~~~x.c => sh | -c 'gcc -c x.c'
                  sh -ce make => sh | -ce 'make'
                  /bin/bash -o pipefail -euxc make => bash | -euxc 'make'
                  -bash => bash |
                  /bin/sh ./configure --prefix=/usr => configure | --prefix=/usr
                  bash -x tools/t.sh a => t.sh | a
                  bash -n tools/t.sh => bash -n | tools/t.sh
                  sh - => sh | -",
        ..PROGRAM
    },
    KnownProgram {
        names: "busybox",
        role: Some(Role::Shell),
        ..PROGRAM
    },
    KnownProgram {
        names: "python",
        version: Some(version("python", "python Python versions")),
        label: PYTHON,
        labels: "python3 foo.py => foo.py |
                  python3 -u -X dev tools/foo.py --x => foo.py | --x
                  python3 -c import~this => python3 | -c 'import this'
                  python3 -m pytest -q tests => pytest | -q tests
                  python3 -m pip install x => pip install | x
                  python3 -u -c import~sys;exec(eval(sys.stdin.readline())) => pytest worker |
                  /usr/bin/python3.11 -W ignore /usr/bin/pytest -x => pytest | -x",
        ..PROGRAM
    },
    KnownProgram {
        names: "pypy",
        label: PYTHON,
        ..PROGRAM
    },
    // `make test` of a Perl module runs the tests by a call whose label is `perl Test::Harness`. Such a call has the
    // role of running tests.
    KnownProgram {
        names: "perl",
        verbs: &[(Role::Tests, "Test::Harness")],
        jobs: Some(JobTool {
            options: "-j",
            ..JOBS
        }),
        change: Some(Change::Numbered("set HARNESS_OPTIONS=j")),
        version: Some(version("perl", "perl")),
        label: Label::Interpreter(Script {
            text: "-e -E",
            valued: "-I",
            mode: "-c",
            clustered: true,
            harness: true,
            ..SCRIPT
        }),
        labels: "perl -w -I lib t/x.t => x.t |
                  perl -MTest::Harness -e test_harness(0,~'lib') t/a.t t/b.t => perl Test::Harness | t/a.t t/b.t
                  perl -MExtUtils::Command::MM -e test_harness(0) t/a.t => perl Test::Harness | t/a.t
                  perl -e use~Test::Harness;test_harness(0) a.t => perl Test::Harness | a.t
                  perl -e test_harness(0) a.t => perl | -e 'test_harness(0)'
                  perl -c a.pl => perl -c | a.pl
                  perl -ne print x => perl | -ne 'print'",
        ..PROGRAM
    },
    KnownProgram {
        names: "ruby",
        version: Some(version("ruby", "ruby Ruby versions")),
        label: RUBY,
        labels: "ruby -Ilib -r set a.rb b => a.rb | b
                  ruby -c a.rb => ruby -c | a.rb",
        ..PROGRAM
    },
    KnownProgram {
        names: "jruby",
        label: RUBY,
        ..PROGRAM
    },
    KnownProgram {
        names: "node nodejs",
        verbs: &[(Role::Tests, "--test")],
        jobs: Some(JobTool {
            options: "--test-concurrency",
            ..JOBS
        }),
        change: Some(Change::Words(
            "let it run more files at once (--test-concurrency)",
        )),
        version: Some(version("node", "node")),
        label: Label::Interpreter(Script {
            text: "-e --eval -p --print",
            valued: "-r --require --import --loader --experimental-loader -C --conditions \
             --test-name-pattern --test-reporter --test-concurrency",
            mode: "--test --check -c",
            ..SCRIPT
        }),
        labels: "node --require ./hook.js server.js 80 => server.js | 80
                  node /a/node_modules/jest/bin/jest.js --ci => jest | --ci
                  node --test test/a.test.js => node --test | test/a.test.js
                  node --test => node --test |
                  node --check a.js => node --check | a.js
                  node /a/node_modules/typescript/lib/tsc.js -p . => tsc | -p .",
        ..PROGRAM
    },
    KnownProgram {
        names: "elixir",
        label: Label::Interpreter(Script {
            text: "-e --eval",
            valued: "-r -S -pa -pz --sname --name --cookie",
            ..SCRIPT
        }),
        labels: "/bin/sh /usr/bin/elixir /usr/bin/mix test => mix test |",
        ..PROGRAM
    },
    KnownProgram {
        names: "java",
        version: Some(version("java", "java jdk")),
        label: Label::Interpreter(Script {
            named: "-jar -m --module",
            valued: "-cp -classpath --class-path -p --module-path --add-opens --add-exports \
             --add-modules --add-reads",
            class: true,
            ..SCRIPT
        }),
        labels: "java -Xmx1g -cp a.jar:b.jar org.x.Main in => Main | in
                  java -jar /opt/x.jar -v => x.jar | -v",
        ..PROGRAM
    },
    KnownProgram {
        names: "php",
        // The value of `-S` is the address of PHP's own server.
        label: Label::Interpreter(Script {
            text: "-r",
            valued: "-B -E -R -S -c -d -t -z",
            mode: "-l",
            ..SCRIPT
        }),
        labels: "php -d a=1 x.php 1 => x.php | 1
                  php -l x.php => php -l | x.php",
        ..PROGRAM
    },
    KnownProgram {
        names: "Rscript gjs guile lua tclsh",
        label: Label::Interpreter(Script {
            text: "-e -r",
            valued: "-l",
            ..SCRIPT
        }),
        labels: "lua -l set x.lua 1 => x.lua | 1",
        ..PROGRAM
    },
    // Programs that print facts about the machine.
    KnownProgram {
        names: "dpkg-architecture dpkg-query pkg-config pkgconf uname which readlink getconf",
        answers: true,
        ..PROGRAM
    },
];
