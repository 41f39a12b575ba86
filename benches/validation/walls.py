#!/usr/bin/env python3
"""Builds that work through containers and servers, recorded: the table of docs/validation.md.

For each: the share of the critical path that is recorded, and named at least; the processes inside beside perf's account
(task:task_newtask of the whole machine); their CPU time beside that of their cgroup. Then faults planted in containers, and
the first line of advice; and two builds at a time by one daemon. As root, with docker.io podman runc sccache gradle
postgresql debootstrap linux-perf. BuildKit is Docker's own (DOCKER_BUILDKIT=1).
Usage: walls.py TR [NAME...]
"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import real

PLACE = os.path.join(real.CACHE, "walls")
PACKAGES = "gcc,make,libc6-dev"
LIMITS = """[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "none"
"""
V1 = "/sys/fs/cgroup/cpuacct"
# The last line of each container: the CPU time of its cgroup until then.
USED = '{ echo used=$(cat /sys/fs/cgroup/cpuacct/cpuacct.usage || sed -n "s/^usage_usec \\(.*\\)/\\1000/p" /sys/fs/cgroup/cpu.stat); }'
ENVIRONMENT = {
    "PATH": "/usr/bin:/usr/sbin:/bin:/sbin",
    "DOCKER_HOST": f"unix://{PLACE}/docker.sock",
    "CONTAINERS_CONF": f"{PLACE}/containers.conf",
    "SCCACHE_DIR": f"{PLACE}/sccache",
    "SCCACHE_SERVER_PORT": "4777",
    "GRADLE_USER_HOME": f"{PLACE}/gradle-home",
}
DOCKERFILE = f"""FROM %s
COPY zlib /src
RUN cd /src && sh ./configure --static && {USED}
RUN cd /src && make -j2 && {USED}
RUN cd /src && make test && {USED}
"""
STAGES = f"""FROM cc AS one
COPY cjson /src
RUN cd /src && make -j2 && {USED}
FROM cc AS two
COPY zlib /src
RUN cd /src && sh ./configure && make -j2 && {USED}
FROM cc
COPY --from=one /src /one
COPY --from=two /src /two
RUN {USED}
"""
# A test suite by psql: each test begins, fills and asks a table of its own.
SUITE = """for n in $(seq 1 20); do psql -qX -U postgres -h /tmp -p 5477 postgres -c "create temp table t as select g, md5(g::text) m
from generate_series(1, 60000) g; select count(distinct m), max(g) from t" >/dev/null || exit 1; done
"""
POSTGRES = "setpriv --reuid=postgres --regid=postgres --clear-groups $(ls -d /usr/lib/postgresql/*/bin)/pg_ctl"
RUN = "docker run --rm --network none"
# Commands, and the containers in each; for servers: what starts one.
CONTAINERS = {
    "docker build": ("docker build --network none --no-cache -t walls -f Dockerfile.docker .", 3),
    "docker run": (f"{RUN} walls sh -c 'cd /src && make -s clean && sh ./configure && make -s -j2 test && {USED}'", 1),
    "podman build": ("podman build --network none --no-cache -t walls -f Dockerfile.podman .", 3),
    "BuildKit, two stages": (
        "env DOCKER_BUILDKIT=1 docker build --network none --no-cache --progress plain -f Stages .",
        3,
    ),
}
SERVERS = {
    "sccache": ("make -s -j2 -C zlib CC='sccache gcc' libz.a", "sccache --start-server"),
    "Gradle": ("gradle --offline -q -p gradle clean build", "gradle --offline -q -p gradle help"),
    "PostgreSQL": (
        "sh suite.sh",
        f"{POSTGRES} -s -w -D {PLACE}/pg -l {PLACE}/pg.log -o '-p 5477 -k /tmp -c listen_addresses=' start",
    ),
}
SERIAL = "gzip -9c $(find /usr/lib /usr/libexec -name cc1) >/dev/null"
# The kind of the first line that each fault has to have.
PLANTS = {
    "a sleep": (f"{RUN} walls sh -c 'cd /src && make -s clean && make -s -j2 && sleep 3'", {"sleep"}),
    "a serial step": (f"{RUN} walls sh -c 'cd /src && make -s clean && make -s -j2 && {SERIAL}'", {"alone"}),
    "a quota": (f"{RUN} --cpus 0.3 walls sh -c 'cd /src && make -s clean && make -s -j2'", {"throttled", "quota"}),
}


TOLD = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
    "text": True,
    "timeout": 120,
}


def run(command, **kind):
    return subprocess.run(command, shell=True, cwd=PLACE, env={**os.environ, **ENVIRONMENT}, check=True, **kind)


def start(command):
    return subprocess.Popen(command, shell=True, cwd=PLACE, env={**os.environ, **ENVIRONMENT}, **real.QUIET)


def prepare():
    """The image of both kinds of daemons, the sources, and the daemon."""
    os.makedirs(PLACE, exist_ok=True)
    shutil.rmtree(f"{PLACE}/sccache", ignore_errors=True)
    for package in ("zlib", "cjson"):
        shutil.rmtree(f"{PLACE}/{package}", ignore_errors=True)
        shutil.copytree(real.deb(package), f"{PLACE}/{package}")
    classes = {
        f"gradle/src/main/java/a/C{n}.java": f"package a; class C{n} {{ int f(int x) {{ return x * {n}; }} }}"
        for n in range(300)
    }
    real.write(
        {
            **classes,
            "gradle/build.gradle": "apply plugin: 'java'\n",
            "suite.sh": SUITE,
            "Stages": STAGES,
            "Dockerfile.docker": DOCKERFILE % "cc",
            "Dockerfile.podman": DOCKERFILE % "localhost/cc",
            ".dockerignore": "*\n!zlib\n!cjson\n",
            "containers.conf": LIMITS,
        },
        PLACE,
    )
    if not os.path.exists(f"{PLACE}/root/usr/bin/make"):
        run(f"debootstrap --variant=minbase --include={PACKAGES} stable root", stdout=subprocess.DEVNULL)
    where = f"--data-root {PLACE}/docker --exec-root {PLACE}/exec -p {PLACE}/docker.pid -H unix://{PLACE}/docker.sock"
    daemon = start(f"exec dockerd --iptables=false --ip6tables=false --bridge=none {where}")
    while start("docker info").wait():
        time.sleep(0.5)
    for tool in ("docker", "podman"):
        run(f"{tool} image inspect cc || tar -C root -c . | {tool} import - cc", **real.QUIET)
    if not os.path.exists(f"{PLACE}/pg"):
        run("install -d -o postgres pg && install -o postgres /dev/null pg.log")
        run(f"{POSTGRES.replace('pg_ctl', 'initdb')} -D {PLACE}/pg -A trust", **real.QUIET)
    run("cd zlib && sh ./configure --static", **real.QUIET)
    return daemon


def newtasks(data):
    """The children of each process by perf's account, threads left out."""
    text = run(f"perf script -i {data} -F pid,tid,event,trace", capture_output=True, text=True).stdout
    children = collections.defaultdict(list)
    for parent, child, flags in re.findall(
        r"^\s*(-?\d+)/\d+\s.*?pid=(\d+) comm=.*? clone_flags=(?:0x)?([0-9a-f]+)", text, re.M
    ):
        if not int(flags, 16) & 0x10000:
            children[int(parent)].append(int(child))
    return children


def below(children, pid):
    return 1 + sum(below(children, child) for child in children[pid])


def trace(name):
    return f"{PLACE}/{name.split(',')[0].replace(' ', '-')}.bin"


def record(tr, name, command):
    """The analysis, the path's shares, what the command said, and perf's account."""
    with subprocess.Popen(
        ["perf", "record", "-q", "-a", "-e", "task:task_newtask", "-o", f"{PLACE}/perf.data"], **real.QUIET
    ) as perf:
        try:
            time.sleep(1.5)
            said = run(f"{tr} record -q -o {trace(name)} -- {command}", **TOLD).stdout
            time.sleep(0.5)
        finally:
            perf.send_signal(signal.SIGINT)

    def document(report):
        return json.loads(run(f"{tr} analyze {trace(name)} {report} --format json", capture_output=True).stdout)

    path = document("--report critical-path")["critical_path"]["path"]
    return document(""), path, said, newtasks(f"{PLACE}/perf.data")


def shares(path):
    """The parts of the path that are recorded, and that are recorded or named."""

    def part(chosen):
        everything = sum(share["time_ns"] for share in path["shares"])
        return sum(share["time_ns"] for share in path["shares"] if chosen(share)) / everything

    recorded = part(lambda it: it["what"] not in ("outside", "unknown"))
    return f"{recorded:.1%} | {recorded + part(lambda it: it['what'] == 'outside' and (it['by'] or it['remote'])):.1%}"


def row(name, path, processes, cpu):
    ours, theirs = cpu
    print(
        f"| {name} | {path['wall_ns'] / 1e9:.2f} s | {shares(path)} | {processes[0]} / {processes[1]} | "
        f"{ours / 1e9:.3f} / {theirs / 1e9:.3f} s | {ours / theirs - 1:+.2%} |",
        flush=True,
    )


def is_init(process):
    """A container's first process; its descendants are the container's."""
    return process["argv"][1:2] == ["init"] and process["comm"].startswith("runc") and process["execs"]


def container(tr, name):
    command, expected = CONTAINERS[name]
    analysis, path, said, children = record(tr, name, command)
    roots = [it for it in analysis["processes"] if is_init(it)]
    if len(roots) != expected:
        print(f"{name}: {len(roots)} containers recorded, of {expected}", file=sys.stderr)
    processes = sum(it["tree"]["processes"] for it in roots), sum(below(children, it["pid"]) for it in roots)
    used = sum(map(int, re.findall(r"used=(\d+)", said)))
    row(name, path, processes, (sum(it["tree"]["on_cpu_ns"] for it in roots), used))


def server(tr, name):
    """A server in a cgroup of its own, to which its client does not belong."""
    command, first = SERVERS[name]
    v1 = os.path.exists(V1)
    cgroup = f"{V1 if v1 else '/sys/fs/cgroup'}/tr-walls"
    os.makedirs(cgroup, exist_ok=True)
    run(f'sh -c \'echo $$ >{cgroup}/cgroup.procs && exec "$0" "$@"\' {first}', **real.QUIET)

    def used():
        said = run(f"cat {cgroup}/{'cpuacct.usage' if v1 else 'cpu.stat'}", capture_output=True, text=True).stdout
        return int(re.search(r"\d+", said)[0]) * (1 if v1 else 1000)

    time.sleep(3)
    before = used()
    analysis, path, _, children = record(tr, name, command)
    spent = used() - before
    there = {int(pid) for pid in run(f"cat {cgroup}/cgroup.procs", capture_output=True, text=True).stdout.split()}
    events = run(f"{tr} dump {trace(name)} --format ndjson", capture_output=True, text=True).stdout.splitlines()
    servers = {event["tgid"] for event in map(json.loads, events) if event["kind"] == "server"}
    roots = [it for it in analysis["processes"] if it["pid"] in servers]
    for pid in there:
        os.kill(pid, signal.SIGTERM)
    # Those that began meanwhile.
    ours = sum(it["tree"]["processes"] - (it["pid"] in there) for it in roots)
    theirs = sum(below(children, pid) - 1 for pid in there)
    row(name, path, (ours, theirs), (sum(it["tree"]["on_cpu_ns"] for it in roots), spent))


def planted(tr, name):
    command, expected = PLANTS[name]
    run(f"{tr} record -q -o {trace(name)} -- {command}", **TOLD)
    advice = json.loads(run(f"{tr} analyze {trace(name)} --report advice --format json", capture_output=True).stdout)[
        "advice"
    ]
    first = advice["advice"][0] if advice["advice"] else {"kind": "none"}
    print(f"| {name} | {first['kind'] in expected} | {first.get('finding')} | {advice['verdict']}", flush=True)


def two(tr, _):
    """Two builds at a time by one daemon: the containers' first programs in each recording."""
    builds = []
    for name, count in (("one", 3), ("two", 4)):
        lines = "".join(f"RUN echo {name}{n} && sleep 1\n" for n in range(count))
        real.write({"Dockerfile": f"FROM cc\n{lines}"}, f"{PLACE}/{name}")
        command = f"{tr} record -q -o {trace(name)} -- docker build --network none --no-cache {name}"
        builds.append((name, count, start(command)))
    for name, count, build in builds:
        build.wait(120)
        text = run(f"{tr} analyze {trace(name)} --report steps --width 200", capture_output=True, text=True).stdout
        print(f"build {name}: RUN lines of its own, of the other one:", end=" ")
        print(
            [len(re.findall(f"RUN echo {it}", text)) for it in (name, {"one": "two", "two": "one"}[name])],
            "of",
            [count, 0],
            flush=True,
        )


def main():
    tr, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    daemon = prepare()
    try:
        kinds = {container: CONTAINERS, server: SERVERS, planted: PLANTS, two: ["two"]}
        for kind, known in kinds.items():
            for name in known:
                if name in (names or known):
                    kind(tr, name)
    finally:
        daemon.terminate()


if __name__ == "__main__":
    main()
