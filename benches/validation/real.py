"""Real builds and test runs for validate.py and predict.py, from packages' sources.

The sources come from the distribution (`apt-get source`, with lists of its own: the machine's stay as they are), from
the Python and the Rust package registries, and are kept in a cache. A build that cannot be prepared is named and left
out. Needs: cmake ninja-build meson golang-go bats default-jdk nodejs npm cargo debhelper texinfo pytest pytest-xdist mold.
"""

import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

CACHE = os.environ.get("TR_BENCH_SOURCES", os.path.join(tempfile.gettempdir(), "tr-bench-sources"))
CARGO = """[package]
name = "app"
version = "0.1.0"
edition = "2021"
[dependencies]
%s
"""
SHELL = """set -e
for file in src/*.c src/*.h; do sha256sum "$file"; done >sums
tar cf - src | xz -3 >src.tar.xz
for file in src/*.c; do tr a-z A-Z <"$file" | sort | uniq -c | sort -rn | head -3; done >words
xz -dc src.tar.xz | tar tf - >list
"""


def deb(package):
    """The unpacked source of a package of the distribution."""
    place = os.path.join(CACHE, "deb", package)
    config = os.path.join(CACHE, "apt.conf")
    if not os.path.exists(config):
        os.makedirs(os.path.join(CACHE, "apt.sources"), exist_ok=True)
        os.makedirs(os.path.join(CACHE, "apt.lists"), exist_ok=True)
        for file in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]:
            if os.path.exists(file) and file.endswith((".list", ".sources")):
                with open(file) as old, open(os.path.join(CACHE, "apt.sources", os.path.basename(file)), "w") as new:
                    lines = (it.replace("Types: deb\n", "Types: deb-src\n") for it in old)
                    new.writelines("deb-src " + it[4:] if it.startswith("deb ") else it for it in lines)
        with open(config, "w") as out:
            out.write(
                f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{CACHE}/apt.sources";\n'
                f'Dir::State::lists "{CACHE}/apt.lists";\n'
            )
        apt(config, "update")
    if not os.path.exists(place):
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            apt(config, "source", "--only-source", package, cwd=work)
            (found,) = (it for it in glob.glob(work + "/*") if os.path.isdir(it))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.rename(found, place)
    return place


def apt(config, *words, cwd=None):
    subprocess.run(["apt-get", "-qq", *words], cwd=cwd, check=True, env={**os.environ, "APT_CONFIG": config}, **QUIET)


def pypi(package):
    """The unpacked source of a package of the Python registry."""
    place = os.path.join(CACHE, "pypi", package)
    if not os.path.exists(place):
        os.makedirs(CACHE, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":all:",
                "-d",
                work,
                package,
            ]
            subprocess.run(pip, check=True, **QUIET)
            subprocess.run("tar xzf *.tar.gz && rm *.tar.gz", shell=True, cwd=work, check=True)
            (found,) = glob.glob(work + "/*")
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.rename(found, place)
    return place


def write(files, place):
    """Writes a source of our own: the names and texts of files."""
    for name, text in files.items():
        os.makedirs(os.path.join(place, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(place, name), "w") as out:
            out.write(text)


QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
CMAKE = "cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -S . -B b "
VENDOR = "mkdir -p .cargo && cargo vendor -q --locked >.cargo/config.toml"
# The source, what prepares it, and the command.
BUILDS = {
    "lua-j1": ("deb:lua5.4", "", "make -s -C src generic"),
    "lua-j8": ("deb:lua5.4", "", "make -s -j8 -C src generic"),
    "zlib-j2": ("deb:zlib", "sh ./configure --static", "make -s -j2"),
    "bzip2": ("deb:bzip2", "", "make -s"),
    "less": ("deb:less", "sh ./configure -q", "make -s"),
    "hello-configure": ("deb:hello", "", "sh ./configure -q"),
    "hello-check": ("deb:hello", "sh ./configure -q && make -s", "make -s check"),
    "xz-j2": ("deb:xz-utils", "sh ./configure -q --disable-doc", "make -s -j2"),
    "nano-j4": ("deb:nano", "sh ./configure -q", "make -s -j4"),
    "tcc": ("deb:tcc", "./configure", "make -s"),
    "lz4-j4": ("deb:lz4", "", "make -s -j4 -C lib"),
    "zstd-j2": ("deb:libzstd", "", "make -s -j2 -C lib libzstd.a"),
    "fmt-ninja": ("deb:fmtlib", CMAKE + "-DFMT_TEST=OFF", "ninja -C b -j1"),
    "yaml-ninja-j8": ("deb:yaml-cpp", CMAKE + "-DYAML_CPP_BUILD_TESTS=OFF", "ninja -C b -j8"),
    "googletest-make": ("deb:googletest", "cmake -S . -B b", "cmake --build b"),
    "json-c-cmake": ("deb:json-c", "", "cmake -S . -B b"),
    "json-c-ctest": ("deb:json-c", CMAKE + "&& ninja -C b", "ctest --test-dir b"),
    "cjson-ctest-j2": ("deb:cjson", CMAKE + "&& ninja -C b", "ctest --test-dir b -j2"),
    "jansson-ctest": ("deb:jansson", CMAKE + "&& ninja -C b", "ctest --test-dir b"),
    "uv-ninja-j2": ("deb:libuv1", CMAKE, "ninja -C b -j2"),
    "pkgconf-setup": ("deb:pkgconf", "", "meson setup b -Dtests=false"),
    "pkgconf-ninja": ("deb:pkgconf", "meson setup b -Dtests=false", "ninja -C b"),
    "cargo-build": (
        {"Cargo.toml": CARGO % 'regex = "1"\nserde_json = "1"', "src/main.rs": "fn main() {}"},
        "cargo generate-lockfile && " + VENDOR,
        "cargo build --offline -q",
    ),
    "cargo-check-j1": (
        {"Cargo.toml": CARGO % 'clap = { version = "4", features = ["derive"] }', "src/main.rs": "fn main() {}"},
        "cargo generate-lockfile && " + VENDOR,
        "cargo check --offline -q -j1",
    ),
    "cargo-test": (
        {
            "Cargo.toml": CARGO % 'semver = "1"',
            "src/lib.rs": "#[test]\nfn it() { std::thread::sleep(std::time::Duration::from_millis(700)); }",
        },
        "cargo generate-lockfile && " + VENDOR + " && cargo build --offline -q",
        "cargo test --offline -q",
    ),
    "go-build": (
        {"a.go": 'package main\nimport (\n"fmt"\n"net/http"\n)\nfunc main() { fmt.Println(http.StatusText(1)) }\n'},
        "",
        "go build -o a a.go",
    ),
    "go-test": ({"go.mod": "module a\n"}, "", "go test sort strings"),
    "javac": (
        "deb:libcommons-lang3-java",
        "find src/main -name '*.java' >files",
        "javac -nowarn -encoding UTF-8 -d out @files",
    ),
    "npm-ci": (
        {"package.json": '{"name": "a", "version": "1.0.0", "dependencies": {"express": "4", "mocha": "10"}}'},
        "npm install --cache cache --no-audit --no-fund && rm -rf node_modules",
        "npm ci --cache cache --prefer-offline --no-audit --no-fund",
    ),
    "tsc": (
        {
            "package.json": '{"name": "a", "version": "1.0.0", "dependencies": {"typescript": "5", "@types/node": "20"}}',
            "a.ts": 'import * as fs from "fs";\nconsole.log(fs.readFileSync("a.ts").length);\n',
        },
        "npm install --no-audit --no-fund",
        "node node_modules/typescript/bin/tsc --noEmit --types node a.ts",
    ),
    "pytest-packaging": (
        "pypi:packaging",
        "pip install -q pretend",
        "pytest -q -p no:cacheprovider tests/test_version.py",
    ),
    "pytest-click": ("pypi:click", "", "pytest -q -p no:cacheprovider tests"),
    "unittest-itertools": ("pypi:more-itertools", "", "python3 -m unittest -q tests.test_recipes"),
    "prove-mojo": ("deb:libmojolicious-perl", "", "prove -l t/mojo t/mojolicious"),
    "shell-archive": ("deb:lua5.4", "printf '%s' " + shlex.quote(SHELL) + " >run.sh", "sh run.sh"),
    "deb-package": ("deb:hello", "", "dpkg-buildpackage -b -uc -us -d"),
}
# Each in its own directory: nothing is left over from another run.
ENVIRONMENT = {
    "GOCACHE": "%s/.cache/go",
    "GOFLAGS": "-mod=mod",
    "GO111MODULE": "auto",
    "CCACHE_DISABLE": "1",
    "CARGO_TARGET_DIR": "%s/target",
    "CARGO_INCREMENTAL": "0",
    "PYTHONPATH": "%s/src",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NO_UPDATE_NOTIFIER": "1",
}


def environment(place):
    return {**os.environ, **{name: value.replace("%s", place) for name, value in ENVIRONMENT.items()}}


def command(name):
    return shlex.split(BUILDS[name][2])


def prepare(name, place):
    """Fills a new directory, but for what the command makes. False where that cannot be done."""
    source, steps, _ = BUILDS[name]
    kept = os.path.join(CACHE, "prepared", name)
    try:
        if not os.path.exists(kept):
            shutil.rmtree(kept + ".new", ignore_errors=True)
            if isinstance(source, dict):
                os.makedirs(kept + ".new")
                write(source, kept + ".new")
            else:
                registry, package = source.split(":")
                shutil.copytree({"deb": deb, "pypi": pypi}[registry](package), kept + ".new", symlinks=True)
            # Where paths end up in files (cmake, meson): the same place for all runs.
            at = run_in(kept + ".new")
            subprocess.run(steps or "true", shell=True, cwd=at, env=environment(at), check=True, **QUIET)
            shutil.copytree(at, kept, symlinks=True)
            shutil.rmtree(kept + ".new")
        shutil.copytree(kept, place, symlinks=True)
        return True
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        print(f"real: {name}: left out: {error}", file=sys.stderr)
        return False


# The directory in which a build runs.
PLACE = "/dev/shm/tr-real-build"


def run_in(source):
    """Puts a copy of a directory to where builds run."""
    shutil.rmtree(PLACE, ignore_errors=True)
    shutil.copytree(source, PLACE, symlinks=True)
    return PLACE


def main():
    """Prepares all builds and runs each once: seconds and exit status."""
    for name in sys.argv[1:] or BUILDS:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            if not prepare(name, os.path.join(work, name)):
                continue
            at = run_in(os.path.join(work, name))
            start = time.monotonic()
            done = subprocess.run(command(name), cwd=at, env=environment(at), **QUIET)
            print(f"{name}: {time.monotonic() - start:.2f} s, exit {done.returncode}", flush=True)
    shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    main()
