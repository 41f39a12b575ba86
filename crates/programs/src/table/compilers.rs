//! The rows of the table of known programs for compilers, assemblers, linkers and archivers.

use crate::steps::{file, found, in_directory, test_runner, FoundStep, Line, StepKind, StepName};
use crate::tools::{
    version, Change, Children, Family, KnownProgram, Label, Role, Version, PROGRAM,
};
use crate::words;
use tr_text::escape;

/// Where the version of GCC is found: in a path, after a directory with the name `gcc`.
const GCC: Version = version("gcc", "gcc");

/// The common part of the table rows for compiler drivers such as gcc and clang, which start the
/// passes of a compiler or do them in their own process.
const DRIVER: KnownProgram = KnownProgram {
    children: Children::FailLate,
    label: Label::Compiler,
    step: Some(compiler),
    lints: &["-W"],
    drives: true,
    ..PROGRAM
};

/// The common part of the table rows for linkers that use only a few CPUs, such as GNU ld.
const LINKER: KnownProgram = KnownProgram {
    change: Some(Change::Words("use a faster linker (mold, lld)")),
    children: Children::FailLate,
    label: Label::Named("-o"),
    step: Some(output),
    ..PROGRAM
};

/// The common part of the table rows for linkers that use all CPUs, such as mold.
const FAST_LINKER: KnownProgram = KnownProgram {
    role: Some(Role::Linker),
    change: Some(Change::Words(
        "link less: shared libraries, fewer debug symbols",
    )),
    label: Label::Named("-o"),
    step: Some(output),
    ..PROGRAM
};

/// The table row for the Rust compiler, which also runs under the name of the clippy driver.
const RUSTC: KnownProgram = KnownProgram {
    family: Family::Rustc,
    role: Some(Role::Compiler),
    client: true,
    children: Children::Fail,
    label: Label::Named("--crate-name"),
    step: Some(rustc),
    lints: &[
        "-A",
        "-D",
        "-F",
        "-W",
        "--allow",
        "--deny",
        "--forbid",
        "--warn",
        "--cap-lints",
    ],
    ..PROGRAM
};

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "gcc g++ gfortran",
        version: Some(GCC),
        labels: "/usr/lib/gcc/x/12/cc1 -quiet -I. src/lparser.c -o /tmp/ccAbCdEf.s => cc1 | lparser.c
                  gcc -c -o a.o x.c => gcc | x.c
                  x86_64-linux-gnu-gcc-12 -c x.cpp => x86_64-linux-gnu-gcc-12 | x.cpp
                  clang-15 -o lua a.o b.o => clang-15 | lua
                  gcc --version => gcc | --version
                  cc -I. -MM -o x.d src/x.c => cc | -MM x.c
                  gcc -E -dM - => gcc | -E -dM -
                  gcc -E conftest.c => gcc | -E conftest.c
                  gcc -o conftest -g conftest.c => gcc | conftest.c",
        steps: "gcc -O2 -c -o src/lapi.o src/lapi.c => target | src/lapi.o
                 x86_64-linux-gnu-gcc-12 -c x.c => target | x.o
                 cc -o lua lua.o liblua.a => target | lua
                 clang++-15 main.cpp => target | a.out
                 clang -c a.cpp b.cpp => target | a.o b.o
                 gcc -o/w/x/lua lua.o => target | lua
                 gcc -MM -o x.d x.c => -
                 gcc -E x.c -o x.i => -
                 gcc -c -o /dev/null x.c => -
                 gcc -o conftest conftest.c => -
                 gcc --version => -",
        ..DRIVER
    },
    KnownProgram {
        names: "cc c++ c99 c89 icc icpc ifort mpicc mpicxx mpic++ mpifort musl-gcc emcc em++ hipcc",
        ..DRIVER
    },
    KnownProgram {
        names: "clang clang++",
        role: Some(Role::Compiler),
        version: Some(version("clang", "llvm clang")),
        ..DRIVER
    },
    KnownProgram {
        names: "icx icpx ifx flang nvcc tcc",
        role: Some(Role::Compiler),
        ..DRIVER
    },
    KnownProgram {
        names: "cpp",
        label: Label::Compiler,
        ..PROGRAM
    },
    KnownProgram {
        names: "cc1 cc1plus cc1obj f951 gnat1 lto1",
        role: Some(Role::Compiler),
        version: Some(GCC),
        label: Label::Compiler,
        lints: &["-W"],
        ..PROGRAM
    },
    KnownProgram {
        names: "lto-wrapper",
        client: true,
        ..PROGRAM
    },
    KnownProgram {
        names: "cicc",
        role: Some(Role::Compiler),
        ..PROGRAM
    },
    KnownProgram {
        names: "kotlinc scalac tsc",
        role: Some(Role::Compiler),
        warms_up: true,
        ..PROGRAM
    },
    KnownProgram {
        names: "ghc",
        step: Some(haskell),
        steps: "/usr/bin/ghc -O2 -o app Main.hs => target | app
                 /bin/sh /usr/bin/ghc -c src/Lib.hs => target | Lib.o
                 /usr/lib/ghc/bin/ghc-9.0.2 -B/usr/lib/ghc --make Main.hs => target | Main
                 ghc --version => -",
        role: Some(Role::Compiler),
        drives: false,
        ..DRIVER
    },
    KnownProgram {
        names: "swiftc",
        role: Some(Role::Compiler),
        drives: false,
        steps: "swiftc main.swift -o hello => target | hello
                 swiftc -c a.swift b.swift => target | a.o b.o",
        ..DRIVER
    },
    KnownProgram {
        names: "protoc",
        children: Children::Fail,
        step: Some(protoc),
        steps: "protoc -I. --cpp_out=gen api/a.proto => target | protoc api/a.proto
                 /usr/bin/protoc --proto_path=/w/x --python_out /w/out /w/x/a.proto /w/x/b.proto => target | protoc a.proto b.proto
                 protoc --version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "javac",
        role: Some(Role::Compiler),
        warms_up: true,
        version: Some(version("java", "java jdk")),
        ..PROGRAM
    },
    KnownProgram {
        names: "as gas",
        role: Some(Role::Compiler),
        label: Label::Assembler,
        step: Some(output),
        labels: "as -o build/lvm.o /tmp/ccAbCdEf.s => as | lvm.o
                  as -o /tmp/ccAbCdEf.o /tmp/ccXbCdEf.s => as | ccXbCdEf.s",
        steps: "as --64 -o lapi.o /tmp/ccAbCdEf.s => target | lapi.o
                 as --64 -o /tmp/ccAbCdEf.o /tmp/ccAbCdEf.s => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "ld ld.bfd ld.gold gold ld64",
        role: Some(Role::Linker),
        labels: "/usr/bin/ld -plugin p.so -o lua a.o => ld | lua",
        steps: "/usr/bin/ld -o ./lua crt1.o lua.o => target | lua
                 ld.mold -o lua crt1.o lua.o => target | lua
                 ld --version => -",
        ..LINKER
    },
    KnownProgram {
        names: "collect2",
        version: Some(GCC),
        ..LINKER
    },
    KnownProgram {
        names: "mold ld.mold wild",
        labels: "wild -o lua a.o => wild | lua",
        steps: "ld.mold -o lua crt1.o lua.o => target | lua",
        ..FAST_LINKER
    },
    KnownProgram {
        names: "lld ld.lld rust-lld",
        version: Some(version("lld", "llvm")),
        ..FAST_LINKER
    },
    KnownProgram {
        names: "ar gcc-ar llvm-ar",
        family: Family::Archiver,
        step: Some(archive),
        steps: "ar rcs liblua.a lapi.o lcode.o => target | liblua.a
                 x86_64-linux-gnu-ar cr ./liblua.a lapi.o => target | liblua.a
                 ar t liblua.a => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "ccache sccache distcc icecc",
        children: Children::FailLate,
        label: Label::Wrapper,
        labels: "ccache gcc -c x.c => ccache | gcc x.c",
        steps: "ccache gcc -c -o x.o x.c => target | x.o
                 sccache rustc --crate-name serde --edition=2021 => unit | serde
                 ccache --show-stats => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "rustc",
        version: Some(version("rustc", "toolchains")),
        labels: "rustc --crate-name serde --edition=2021 => rustc | serde
                  rustc --crate-name memchr src/lib.rs --test => rustc | memchr --test",
        steps: "rustc --crate-name serde --edition=2021 src/lib.rs --crate-type lib => unit | serde
                 rustc --crate-name tr src/main.rs --crate-type bin => unit | tr (bin)
                 rustc --crate-name laws tests/laws.rs --test => unit | laws (test)
                 clippy-driver rustc --crate-name x src/lib.rs => unit | x
                 rustc --crate-name build_script_build /r/src/libc-0.2.1/build.rs => unit | libc-0.2.1 (build script)
                 rustc --crate-name ___ --print=file-names - => -
                 rustc -vV => -",
        ..RUSTC
    },
    KnownProgram {
        names: "clippy-driver",
        ..RUSTC
    },
    KnownProgram {
        names: "rustdoc",
        family: Family::Rustdoc,
        client: true,
        children: Children::Fail,
        version: Some(version("rustc", "toolchains")),
        label: Label::Named("--crate-name"),
        step: Some(rustdoc),
        steps: "rustdoc --edition=2021 --crate-name x src/lib.rs => unit | x (doc)
                 rustdoc --crate-name x src/lib.rs --test => test | x (doctests)",
        ..PROGRAM
    },
    KnownProgram {
        names: "build-script-build build-script-main",
        family: Family::BuildScript,
        label: Label::Crate,
        step: Some(build_script),
        labels: "/w/target/debug/build/serde-0123456789abcdef/build-script-build => build-script-build | serde",
        steps: "/w/target/debug/build/serde-0123456789abcdef/build-script-build => unit | serde (run build script)",
        ..PROGRAM
    },
];

fn compiler(line: &Line) -> Option<FoundStep> {
    if line.has(&["-E", "-M", "-MM", "-fsyntax-only", "-###"]) {
        return None;
    }
    if let Some(output) = line.value("-o") {
        return file(output);
    }
    let objects = words::sources(line.args).filter_map(|source| {
        let (stem, _) = source.rsplit_once('.')?;
        Some(format!("{stem}.o"))
    });
    let objects: Vec<String> = objects.collect();
    if objects.is_empty() {
        return None;
    }
    if line.has(&["-c"]) {
        return file(objects.join(" ").as_bytes());
    }
    file(b"a.out")
}

/// The build step of the Haskell compiler ghc, which names a program after its first source file
/// unless `-o` names it.
fn haskell(line: &Line) -> Option<FoundStep> {
    if line.has(&["-c"]) || line.value("-o").is_some() {
        return compiler(line);
    }
    let source = words::source(line.args)?;
    file(source.strip_suffix(".hs")?.as_bytes())
}

fn output(line: &Line) -> Option<FoundStep> {
    file(line.value("-o")?)
}

/// The build step of the Protocol Buffers compiler protoc, named after the `.proto` files that it
/// reads, because its plugins decide the names of the output files.
fn protoc(line: &Line) -> Option<FoundStep> {
    let files = line.words("").filter(|word| word.ends_with(b".proto"));
    let names: Vec<&[u8]> = files.map(words::relative).collect();
    let name = in_directory("protoc", None, names.iter().copied());
    (!names.is_empty()).then(|| found(StepKind::Target, name))?
}

fn archive(line: &Line) -> Option<FoundStep> {
    let (operation, rest) = line.args.split_first()?;
    let makes = operation.iter().any(|letter| b"rq".contains(letter)) || operation.contains(&b'c');
    let made = makes && !operation.starts_with(b"--");
    file(rest.first().filter(|_| made)?)
}

fn rustc(line: &Line) -> Option<FoundStep> {
    let name = escape::raw(line.value("--crate-name")?);
    if name == "___" {
        return None; // cargo asks for the target's properties
    }
    if name == "build_script_build" || name == "build_script_main" {
        let source = line.args.iter().find(|arg| arg.ends_with(b".rs"))?;
        let source = escape::raw(source);
        let package = source.rsplit('/').nth(1).unwrap_or("build.rs");
        return found(
            StepKind::Unit,
            StepName::whole(format!("{package} (build script)")),
        );
    }
    let kind = match line.value("--crate-type") {
        _ if line.has(&["--test"]) => " (test)",
        Some(b"bin") => " (bin)",
        _ => return found(StepKind::Unit, name),
    };
    found(StepKind::Unit, StepName::whole(name + kind))
}

fn rustdoc(line: &Line) -> Option<FoundStep> {
    let name = escape::raw(line.value("--crate-name")?);
    if line.has(&["--test"]) {
        return test_runner(StepName::whole(name + " (doctests)"));
    }
    found(StepKind::Unit, StepName::whole(name + " (doc)"))
}

fn build_script(line: &Line) -> Option<FoundStep> {
    let package = words::unhashed(line.path.rsplit('/').nth(1)?);
    found(
        StepKind::Unit,
        StepName::whole(format!("{package} (run build script)")),
    )
}
