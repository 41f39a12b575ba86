"""Test suites, package builds and CI jobs of many ecosystems with one planted fault in how they wait or use two CPUs, or with none."""

from waits import Plant

# Every run.sh starts with this: its own directory, and its products if they are missing.
TOP = 'cd "$(dirname "$0")" || exit 1\n[ -e .ready ] || sh setup.sh >setup.log 2>&1 || { cat setup.log; exit 1; }\n'
# Every setup.sh ends with READY, so that run.sh does not prepare again.
READY = ": >.ready\n"
NOSETUP = "# no products\n" + READY
NOTHING = r"(?i)\bnothing\b|\bno (change|advice|fault|wait)|as it should"

# A generator of C files: name, number of functions.
GEN = r"""import sys
name, n = sys.argv[1], int(sys.argv[2])
out = open(name, "w")
stem = name.rsplit("/", 1)[-1].split(".")[0].replace("-", "_")
out.write("#include <stdint.h>\n")
for i in range(n):
    out.write(f"static uint32_t {stem}_{i}(uint32_t *a, int n) {{ uint32_t s = {i}u;\n")
    out.write(f"  for (int j = 0; j < n; j++) {{ switch ((a[j] ^ s) & 15) {{\n")
    for c in range(16):
        out.write(f"    case {c}: s = s * {2 * c + 3}u + (a[j] >> {c}) ^ {i * 7 + c}u; if (s & {1 << c}u) a[j] += s; else a[j] ^= {c + i}u; break;\n")
    out.write("  } } return s; }\n")
out.write(f"uint32_t {stem}(uint32_t *a, int n) {{ uint32_t s = 0;\n")
for i in range(n):
    out.write(f"  s += {stem}_{i}(a, n);\n")
out.write("  return s; }\n")
"""

# Postgres refuses to run as root: the whole job runs as user 1000 of its own user namespace.
PGTOP = TOP + "exec unshare -U --map-user=1000 sh job.sh\n"
PGSETUP = (
    """set -e
rm -rf data
unshare -U --map-user=1000 initdb -D data -U ci -A trust --no-sync >initdb.log
cat >>data/postgresql.conf <<E
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
E
"""
    + READY
)

PLANTS = [
    Plant(
        "tmux-tui-fixed-pauses",
        "sleep",
        "shell, tmux, terminal test, server that detaches",
        "drive.sh sleeps 1 s after each of 4 keys before it captures the pane; the screen is ready after some milliseconds: "
        "look at the pane every 50 ms until the expected text is there.",
        r"(?i)drive\.sh|\bsleep\b",
        {
            "setup.sh": NOSETUP,
            "run.sh": TOP
            + """T="tmux -S t.sock -f /dev/null"
export TERM=xterm
$T kill-server 2>/dev/null; rm -f t.sock
$T new-session -d -s ui -x 80 -y 24 'sh menu.sh' || exit 1
sh drive.sh; R=$?
$T kill-server
rm -f t.sock
exit $R
""",
            "menu.sh": """echo 'menu>'
while read -r c; do
  s=$(seq 1 20000 | sha256sum | cut -c1-8)
  echo "ok: $c $s"
done
""",
            "drive.sh": """T="tmux -S t.sock -f /dev/null"
shows() { $T capture-pane -p -t ui | grep -q "$1"; }
for c in open filter sort export; do
  $T send-keys -t ui "$c" Enter
  if [ -n "$FIX" ]; then
    i=0
    until shows "ok: $c"; do i=$((i + 1)); [ $i -lt 100 ] || break; sleep 0.05; done
  else
    sleep 1   # let the screen settle
  fi
  shows "ok: $c" || { echo "not ok: $c"; exit 1; }
  echo "ok $c"
done
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "tcltest-spool-poll",
        "poll",
        "tcl, tcltest, background worker, poll",
        "spool.test looks for the worker's result every 1.5 s though a job takes 0.2 s: look every 20 ms (or read the worker's pipe "
        "with fileevent).",
        r"(?i)tclsh|spool\.test|\.done",
        {
            "setup.sh": NOSETUP,
            "run.sh": TOP + "rm -rf out; mkdir out\ntclsh spool.test\n",
            "worker.pl": """use strict; use Digest::SHA qw(sha256_hex);
my $n = shift; my $h = $n;
while ((times)[0] < 0.2) { $h = sha256_hex($h) for 1 .. 500 }
open my $f, '>', "out/$n.tmp" or die; print $f $h; close $f;
rename "out/$n.tmp", "out/$n.done";
""",
            "spool.test": """package require tcltest
namespace import tcltest::test
set period [expr {[info exists env(FIX)] && $env(FIX) ne "" ? 20 : 1500}]
proc spooled {n} {
    exec perl worker.pl $n &
    for {set i 0} {$i < 500} {incr i} {
        if {[file exists out/$n.done]} {
            set f [open out/$n.done]; set h [read $f]; close $f
            return [string length $h]
        }
        after $::period
    }
    return timeout
}
test spool-1 {a small job} {spooled 11} 64
test spool-2 {a job with attachments} {spooled 12} 64
test spool-3 {a job that is requeued} {spooled 13} 64
set failed $tcltest::numTests(Failed)
tcltest::cleanupTests
exit $failed
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "prove-dead-nameserver",
        "timeout",
        "perl, prove, UDP, resolver, time-out",
        "Each of 3 test files asks the silent name server on port 18420 first and waits 1.2 s for it before it asks 18421, which answers "
        "at once: put the live server first (or take the silent one out of etc/resolv.conf).",
        r"(?i)t/0\d-\w+\.t|18420|Resolv|nameserver|resolv\.conf",
        {
            "setup.sh": NOSETUP,
            "run.sh": TOP
            + """rm -f ready-*
perl nsd.pl 18420 silent & A=$!
perl nsd.pl 18421 answer & B=$!
while [ ! -e ready-18420 ] || [ ! -e ready-18421 ]; do sleep 0.02; done
RESOLV_CONF=etc/resolv.conf; [ -z "$FIX" ] || RESOLV_CONF=etc/resolv.fixed.conf
export RESOLV_CONF
prove -Ilib t; R=$?
kill $A $B; wait $A $B 2>/dev/null
exit $R
""",
            "nsd.pl": """use strict; use IO::Socket::INET;
my ($port, $how) = @ARGV;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'udp') or die $!;
open my $f, '>', "ready-$port"; close $f;
while (defined $s->recv(my $q, 512)) { $s->send("A $1 127.0.0.7") if $how eq 'answer' && $q =~ /^Q (\\S+)/ }
""",
            "lib/Resolv.pm": """package Resolv;
use strict; use IO::Socket::INET; use IO::Select;
sub lookup {
    my $name = shift;
    open my $f, '<', $ENV{RESOLV_CONF} or die $!;
    my (@ns, $timeout);
    while (<$f>) { push @ns, $1 if /^nameserver\\s+(\\S+)/; $timeout = $1 if /^timeout\\s+(\\S+)/ }
    for my $ns (@ns) {
        my $s = IO::Socket::INET->new(PeerAddr => $ns, Proto => 'udp') or next;
        $s->send("Q $name");
        next unless IO::Select->new($s)->can_read($timeout);
        $s->recv(my $a, 512);
        return $1 if $a =~ /^A \\S+ (\\S+)/;
    }
    return;
}
1;
""",
            "etc/resolv.conf": "nameserver 127.0.0.1:18420\nnameserver 127.0.0.1:18421\ntimeout 1.2\n",
            "etc/resolv.fixed.conf": "nameserver 127.0.0.1:18421\nnameserver 127.0.0.1:18420\ntimeout 1.2\n",
            "t/01-mx.t": "use strict; use Test::More tests => 1; use Resolv;\nis(Resolv::lookup('mx.example.org'), '127.0.0.7', 'the mail host');\n",
            "t/02-spf.t": "use strict; use Test::More tests => 1; use Resolv;\nis(Resolv::lookup('spf.example.org'), '127.0.0.7', 'the SPF host');\n",
            "t/03-dnsbl.t": "use strict; use Test::More tests => 1; use Resolv;\nis(Resolv::lookup('7.0.0.127.bl.example.org'), '127.0.0.7', 'a listed address');\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "node-uncleared-race-timer",
        "timeout",
        "node, event loop, timer, exit",
        "withTimeout races each test against a 4 s timer and never clears it: node stays 4 s in its empty event loop after the last test. "
        "clearTimeout when the test is done (or unref the timer).",
        r"(?i)\bnode\b|run\.js|timer",
        {
            "setup.sh": NOSETUP,
            "run.sh": TOP + "node test/run.js\n",
            "test/run.js": """const { createHash } = require('crypto');
const { readFile, writeFile, unlink } = require('fs/promises');
function withTimeout(promise, ms, name) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(name + ' timed out')), ms);
  });
  const race = Promise.race([promise, late]);
  return process.env.FIX ? race.finally(() => clearTimeout(timer)) : race;
}
async function roundtrip(i) {
  let data = Buffer.alloc(1 << 20, i);
  for (let k = 0; k < 40; k++) data[k] = createHash('sha256').update(data).digest()[0];
  const file = `tmp-${i}.bin`;
  await writeFile(file, data);
  const back = await readFile(file);
  await unlink(file);
  if (!back.equals(data)) throw new Error('differs');
}
(async () => {
  let passing = 0;
  for (let i = 0; i < 10; i++) {
    await withTimeout(roundtrip(i), 4000, 'roundtrip ' + i);
    passing++;
    console.log('  ok roundtrip ' + i);
  }
  console.log(passing + ' passing');
})().catch((e) => { console.error(e); process.exitCode = 1; });
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "jvm-longest-test-last",
        "pool",
        "java, thread pool, order of the jobs",
        "Suite gives 7 test classes to a pool of 2 threads in alphabetical order; ZipfIT, as long as the six others together, starts last "
        "and runs alone: start the longest first.",
        r"(?i)ZipfIT|\bjava\b|Suite|longest",
        {
            "setup.sh": "set -e\nmkdir -p classes\njavac -d classes Suite.java\n" + READY,
            "run.sh": TOP + "java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp classes Suite\n",
            "Suite.java": """import java.lang.management.*;
import java.util.*;
import java.util.concurrent.*;

public class Suite {
    record Case(String name, double seconds) {}
    static volatile long sink;

    static void run(Case c) {
        Thread.currentThread().setName(c.name());
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        long until = cpu.getCurrentThreadCpuTime() + (long) (c.seconds() * 1e9);
        long h = 1125899906842597L;
        while (cpu.getCurrentThreadCpuTime() < until)
            for (int i = 0; i < 100000; i++) h = 31 * h + i;
        sink = h;
        System.out.println("PASSED " + c.name());
    }

    public static void main(String[] args) throws Exception {
        List<Case> cases = new ArrayList<>(List.of(
            new Case("AlterIT", 0.5), new Case("CursorIT", 0.5), new Case("IndexIT", 0.5), new Case("JoinIT", 0.5),
            new Case("MergeIT", 0.5), new Case("SortIT", 0.5), new Case("ZipfIT", 3.0)));
        String fix = System.getenv("FIX");
        if (fix != null && !fix.isEmpty())
            cases.sort(Comparator.comparingDouble(Case::seconds).reversed());
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<?>> all = new ArrayList<>();
        for (Case c : cases) all.add(pool.submit(() -> run(c)));
        for (Future<?> f : all) f.get();
        pool.shutdown();
    }
}
""",
        },
        prepare="sh setup.sh",
        quiet=(4.65, 3.15),
    ),
    Plant(
        "deb-rules-ignore-parallel",
        "serial",
        "C, dpkg-buildpackage, make, missing -j",
        "debian/rules calls make without the parallel=N of DEB_BUILD_OPTIONS: 6 compilations of equal size run one after another on one CPU. "
        "Pass -j2 to the $(MAKE) in debian/rules.",
        r"(?i)\bmake\b|debian/rules|\bcc1\b|\bgcc\b|dpkg-buildpackage|-j ?2",
        {
            "gen.py": GEN,
            "setup.sh": """set -e
mkdir -p pkg/src
for n in parse plan exec cache wire store; do /usr/bin/python3 gen.py pkg/src/$n.c 27; done
chmod +x pkg/debian/rules
"""
            + READY,
            "run.sh": TOP
            + "rm -f *.deb *.changes *.buildinfo\ncd pkg && dpkg-buildpackage -b -us -uc -d >../build.log 2>&1 || { tail ../build.log; exit 1; }\nls ../*.deb\n",
            "pkg/Makefile": """OBJS = parse.o plan.o exec.o cache.o wire.o store.o
libquery.so: $(OBJS)
\t$(CC) -shared -o $@ $(OBJS)
%.o: src/%.c
\t$(CC) -O2 -fPIC -c -o $@ $<
clean:
\trm -f *.o *.so
""",
            "pkg/debian/rules": """#!/usr/bin/make -f
JOBS = $(patsubst parallel=%,-j%,$(filter parallel=%,$(DEB_BUILD_OPTIONS)))
build build-arch:
\t$(MAKE) $(if $(FIX),$(or $(JOBS),-j2)) libquery.so
build-indep:
clean:
\t$(MAKE) clean
\trm -rf debian/libquery debian/files debian/substvars
binary binary-arch: build
\tmkdir -p debian/libquery/DEBIAN debian/libquery/usr/lib
\tcp libquery.so debian/libquery/usr/lib
\tdpkg-gencontrol -plibquery -Pdebian/libquery
\tdpkg-deb -Zgzip --root-owner-group --build debian/libquery ..
binary-indep:
.PHONY: build build-arch build-indep clean binary binary-arch binary-indep
""",
            "pkg/debian/control": """Source: query
Section: libs
Priority: optional
Maintainer: CI <ci@example.org>
Standards-Version: 4.6.2

Package: libquery
Architecture: any
Description: library of a query engine
 It parses, plans and executes.
""",
            "pkg/debian/changelog": """query (1.0) unstable; urgency=low

  * First release.

 -- CI <ci@example.org>  Mon, 02 Jan 2023 10:00:00 +0000
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "dist-xz-one-thread",
        "serial",
        "tar, xz, release tarball, one thread",
        "make dist compresses 7 MB with xz -6 on one thread while the second CPU idles: xz -T2 with blocks of 1 MiB.",
        r"(?i)\bxz\b|-T ?[02]",
        {
            "mkdata.pl": """use strict; srand 7;
my @w = map { join '', map { chr(97 + int rand 26) } 1 .. 3 + int rand 7 } 1 .. 6000;
mkdir 'tree';
for my $i (1 .. 7) {
    open my $f, '>', "tree/part$i.txt" or die;
    my $n = 0;
    while ($n < 1_000_000) { my $l = join(' ', map { $w[int(rand(1) * rand(1) * @w)] } 1 .. 12) . "\\n"; print $f $l; $n += length $l }
}
""",
            "setup.sh": "set -e\nperl mkdata.pl\n" + READY,
            "Makefile": """XZ = xz -6 -T1
ifneq ($(FIX),)
XZ = xz -6 -T2 --block-size=1MiB
endif
dist:
\ttar -cf - tree | $(XZ) >query-1.0.tar.xz
\txz -t query-1.0.tar.xz
""",
            "run.sh": TOP + "make -s dist\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "cargo-one-test-thread",
        "serial",
        "rust, cargo test, test threads, waits",
        "RUST_TEST_THREADS=1 makes 8 independent tests, each of which waits 0.4 s for its own simulated device, run one after another: let them "
        "run at once (remove it, or a number above the CPUs, as they only wait).",
        r"(?i)RUST_TEST_THREADS|test-threads|\bdevice\b|device-[0-9a-f]+|cargo test",
        {
            "Cargo.toml": '[package]\nname = "probe"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": """use std::io::{Read, Write};
pub fn ask(addr: std::net::SocketAddr, q: &str) -> std::io::Result<String> {
    let mut s = std::net::TcpStream::connect(addr)?;
    s.write_all(q.as_bytes())?;
    s.shutdown(std::net::Shutdown::Write)?;
    let mut a = String::new();
    s.read_to_string(&mut a)?;
    Ok(a)
}
""",
            "tests/device.rs": """use std::io::{Read, Write};
use std::{net::TcpListener, thread, time::Duration};

/// A device that needs 0.4 s to answer, as the real one does.
fn device() -> std::net::SocketAddr {
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    let a = l.local_addr().unwrap();
    thread::spawn(move || {
        let (mut s, _) = l.accept().unwrap();
        let mut q = String::new();
        s.read_to_string(&mut q).unwrap();
        thread::sleep(Duration::from_millis(400));
        s.write_all(q.to_uppercase().as_bytes()).unwrap();
    });
    a
}
macro_rules! tests { ($($n:ident)*) => { $(
    #[test] fn $n() { assert_eq!(probe::ask(device(), stringify!($n)).unwrap(), stringify!($n).to_uppercase()); }
)* } }
tests!(identify status reset selftest voltage current temperature firmware);
""",
            "setup.sh": 'set -e\nexport CARGO_TARGET_DIR="$PWD/target"\ncargo test --offline --test device --no-run\n'
            + READY,
            "run.sh": TOP
            + """export CARGO_TARGET_DIR="$PWD/target" RUST_TEST_THREADS=1
[ -z "$FIX" ] || export RUST_TEST_THREADS=8
cargo test --offline --quiet --test device
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "git-push-dead-webhook",
        "timeout",
        "git, hook, curl, time-out",
        "The post-receive hook of the test's bare repository posts to a webhook on port 18423 that accepts and never answers: each of 3 pushes waits "
        "curl's --max-time of 1.3 s. Switch the notification off in the test repository (or let the stub answer, or post in the background).",
        r"(?i)\bcurl\b|post-receive|18423|\bhook|git.push|webhook",
        {
            "setup.sh": NOSETUP,
            "stub.pl": """use strict; use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 18423, Listen => 9, ReuseAddr => 1) or die $!;
open my $f, '>', 'ready'; close $f;
my @open;
while (my $c = $s->accept) { push @open, $c }
""",
            "post-receive": """#!/bin/sh
[ "$(git config --bool notify.enabled)" = false ] && exit 0
while read -r old new ref; do
  curl -s --max-time 1.3 -d "ref=$ref&new=$new" http://127.0.0.1:18423/hooks/push || echo "webhook not notified"
done
exit 0
""",
            "run.sh": TOP
            + """rm -rf remote.git work ready
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=ci GIT_AUTHOR_EMAIL=ci@example.org
export GIT_COMMITTER_NAME=ci GIT_COMMITTER_EMAIL=ci@example.org
perl stub.pl & S=$!
while [ ! -e ready ]; do sleep 0.02; done
sh t5400-push.sh; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
            "t5400-push.sh": """set -e
git init -q --bare -b main remote.git
cp post-receive remote.git/hooks/post-receive; chmod +x remote.git/hooks/post-receive
[ -z "$FIX" ] || git -C remote.git config notify.enabled false
git clone -q remote.git work 2>/dev/null
cd work
for i in 1 2 3; do
  seq $i 20000 >f$i; git add f$i; git commit -q -m "commit $i"
  git push -q origin HEAD:main 2>&1
  [ "$(git rev-parse HEAD)" = "$(git -C ../remote.git rev-parse main)" ] && echo "ok $i - push"
done
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "kvd-answers-at-its-tick",
        "server",
        "C, key-value server, event loop, tick",
        "kvd looks at its sockets only once per 40 ms tick (usleep between non-blocking reads), so each of 90 requests waits a tick: block in poll() "
        "until a socket is readable.",
        r"(?i)\bkvd\b|tick|usleep|18424",
        {
            "kvd.c": r"""#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static char val[1024][32];
int main(int argc, char **argv) {
  int tick = argc > 2 ? atoi(argv[2]) : 0, l = socket(AF_INET, SOCK_STREAM, 0), one = 1, c = -1;
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(l, (void *)&a, sizeof a) || listen(l, 5)) return 1;
  fcntl(l, F_SETFL, O_NONBLOCK);
  fclose(fopen("ready", "w"));
  for (;;) {
    if (tick) usleep(tick * 1000);
    else { struct pollfd p = { c < 0 ? l : c, POLLIN, 0 }; poll(&p, 1, -1); }
    if (c < 0) { c = accept(l, 0, 0); if (c >= 0) fcntl(c, F_SETFL, O_NONBLOCK); continue; }
    char b[128], k[16], v[32]; int n = read(c, b, sizeof b - 1);
    if (n == 0) return 0;
    if (n < 0) continue;
    b[n] = 0;
    unsigned h = 0;
    if (sscanf(b, "SET %15s %31s", k, v) == 2) { for (char *p = k; *p; p++) h = h * 31 + *p; strcpy(val[h % 1024], v); n = sprintf(b, "+OK\n"); }
    else if (sscanf(b, "GET %15s", k) == 1) { for (char *p = k; *p; p++) h = h * 31 + *p; n = sprintf(b, "$%s\n", val[h % 1024]); }
    else n = sprintf(b, "-ERR\n");
    if (write(c, b, n) != n) return 1;
  }
}
""",
            "kvtest.pl": """use strict; use IO::Socket::INET; use Test::More;
my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1:18424') or die $!;
sub ask { $s->syswrite("$_[0]\\n"); my $a; $s->sysread($a, 128); chomp $a; $a }
for my $i (1 .. 45) { is(ask("SET key$i v$i"), '+OK', "set $i"); is(ask("GET key$i"), "\\$v$i", "get $i") }
done_testing;
""",
            "setup.sh": "set -e\ngcc -O2 -o kvd kvd.c\n" + READY,
            "run.sh": TOP
            + """rm -f ready
TICK=40; [ -z "$FIX" ] || TICK=0
./kvd 18424 $TICK & S=$!
while [ ! -e ready ]; do sleep 0.02; done
perl kvtest.pl >test.log; R=$?
wait $S || R=1
tail -1 test.log
exit $R
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "fixture-first-mirror-503",
        "retry",
        "wget, retry with back-off, mirror",
        "fetch.sh asks the retired mirror first: wget gets 503 four times and waits 1, 2 and 2 s between the tries before the second mirror delivers at once. "
        "Put the live mirror first (or do not retry before the other mirror was asked).",
        r"(?i)\bwget\b|fetch\.sh|mirror|\b503\b|waitretry",
        {
            "mirror.pl": """use strict; use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 18425, Listen => 9, ReuseAddr => 1) or die $!;
open my $f, '>', 'ready'; close $f;
my $body = join '', map { "row $_\\n" } 1 .. 20000;
while (my $c = $s->accept) {
    my $q = <$c>;
    while (<$c>) { last if /^\\r?$/ }
    if ($q =~ m{/retired/}) { print $c "HTTP/1.0 503 Service Unavailable\\r\\nContent-Length: 0\\r\\n\\r\\n" }
    else { print $c "HTTP/1.0 200 OK\\r\\nContent-Length: " . length($body) . "\\r\\n\\r\\n$body" }
    close $c;
}
""",
            "fetch.sh": """MIRRORS="retired current"
[ -z "$FIX" ] || MIRRORS="current retired"
for m in $MIRRORS; do
  wget -q --no-proxy --tries=4 --waitretry=2 --retry-on-http-error=503 -O fixture.txt "http://127.0.0.1:18425/$m/fixture.txt" && exit 0
done
exit 1
""",
            "setup.sh": NOSETUP,
            "run.sh": TOP
            + """rm -f ready fixture.txt
perl mirror.pl & S=$!
while [ ! -e ready ]; do sleep 0.02; done
sh fetch.sh && [ "$(wc -l <fixture.txt)" = 20000 ] && sort -k2,2n fixture.txt | sha256sum; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "log-annotator-slow-reader",
        "pipe",
        "awk, perl, pipe, slow reader",
        "The suite's output goes through annotate.pl, which sleeps 4 ms per line so that the web console keeps up; the pipe is full and the suite waits in write. "
        "Take the pause out (or write the log to a file and annotate it later).",
        r"(?i)annotate|\bperl\b|reader|pipe",
        {
            "setup.sh": NOSETUP,
            "suite.awk": """BEGIN {
  for (i = 1; i <= 1000; i++) {
    s = i; for (k = 0; k < 300; k++) s = (s * 69069 + 1) % 4294967296
    printf "ok %d - regress/case_%04d seed=%.0f %s\\n", i, i, s, pad()
  }
}
function pad(  t, k) { for (k = 0; k < 16; k++) t = t "0123456789abcdef "; return t }
""",
            "annotate.pl": """use strict; $| = 1;
my $n = 0;
while (<STDIN>) {
    $n++ if /^ok/;
    print "##[line $.] $_";
    select undef, undef, undef, 0.004 unless $ENV{FIX};   # the web console drops bursts
}
exit($n == 1000 ? 0 : 1);
""",
            "run.sh": TOP + "mawk -f suite.awk | perl annotate.pl >console.log\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "tail-pid-follows-late",
        "helper",
        "shell, gcc, tail --pid, background child",
        "The log follower tail -f -s 4 --pid looks only every 4 s whether the build has ended, and the job waits for it after the build: -s 0.1 "
        "(or kill the follower when the build is done).",
        r"(?i)\btail\b|follow",
        {
            "gen.py": GEN,
            "setup.sh": "set -e\n/usr/bin/python3 gen.py a.c 40\n/usr/bin/python3 gen.py b.c 40\n" + READY,
            "build.sh": """for f in a b; do echo "CC $f.o"; gcc -O1 -c -o $f.o $f.c & done
wait
echo "AR libab.a"; rm -f libab.a; ar rc libab.a a.o b.o && echo "build done"
""",
            "run.sh": TOP
            + """: >build.log
sh build.sh >>build.log 2>&1 & B=$!
EVERY=4; [ -z "$FIX" ] || EVERY=0.1
tail -n +1 -f -s $EVERY --pid=$B build.log & T=$!
wait $B; R=$?
wait $T
exit $R
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "ports-lock-around-download",
        "lock",
        "make -j, flock, download, package database",
        "make -j4 builds 4 ports, but each holds ports.lock from its download (0.9 s of the server's latency) to its installation, so they queue: "
        "take the lock only for the installation into the database.",
        r"(?i)flock|ports\.lock|\block\b",
        {
            "setup.sh": NOSETUP,
            "dist.py": """import http.server, sys, time
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.9)  # the latency of the upstream
        body = self.path.encode() * 2000
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 18426), H)
open("ready", "w").close()
s.serve_forever()
""",
            "Makefile": """PORTS = zlib expat pcre libffi
all: $(PORTS)
ifeq ($(FIX),)
$(PORTS):
\tflock ports.lock sh -c 'sh port.sh fetch $@ && sh port.sh install $@'
else
$(PORTS):
\tsh port.sh fetch $@ && flock ports.lock sh port.sh install $@
endif
.PHONY: all $(PORTS)
""",
            "port.sh": """case $1 in
fetch) curl -s --noproxy '*' -o dist/$2.tar http://127.0.0.1:18426/$2.tar ;;
install) sha256sum dist/$2.tar >>db.txt ;;
esac
""",
            "run.sh": TOP
            + """rm -rf dist db.txt ready; mkdir dist
/usr/bin/python3 dist.py & S=$!
while [ ! -e ready ]; do sleep 0.02; done
make -s -j4; R=$?
kill $S; wait $S 2>/dev/null
[ "$(wc -l <db.txt)" = 4 ] || R=1
exit $R
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "sqlite-fixtures-autocommit",
        "fsync",
        "sqlite, fsync, disk wait",
        "load.sh feeds the fixtures to sqlite3 with each INSERT in its own transaction, so each waits for the disk's fsync: one BEGIN and COMMIT around "
        "the file (or PRAGMA synchronous=OFF for a test database).",
        r"(?i)sqlite|fsync|fdatasync|disk|load\.sh",
        {
            "mksql.pl": 'print "INSERT INTO account(name, balance) VALUES(\'user$_\', ", $_ * 17 % 1000, ");\\n" for 1 .. 1500;\n',
            "setup.sh": "set -e\nperl mksql.pl >fixtures.sql\n" + READY,
            "load.sh": """if [ -n "$FIX" ]; then (echo 'BEGIN;'; cat fixtures.sql; echo 'COMMIT;') | sqlite3 test.db
else sqlite3 test.db <fixtures.sql; fi
""",
            "run.sh": TOP
            + """rm -f test.db test.db-journal
sqlite3 test.db 'CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT UNIQUE, balance INTEGER);'
sh load.sh
[ "$(sqlite3 test.db 'SELECT count(*) FROM account')" = 1500 ] && sqlite3 test.db 'SELECT sum(balance) FROM account'
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "pg-smart-stop-idle-pool",
        "timeout",
        "postgres, pg_ctl, shutdown mode, idle client",
        "pg_ctl stop -m smart waits its whole time-out of 4 s for an idle pooled session that never leaves, then -m fast stops at once: stop with -m fast "
        "(or close the pool first).",
        r"(?i)pg_ctl|smart|pool",
        {
            "setup.sh": PGSETUP,
            "run.sh": PGTOP,
            "job.sh": """rm -f pool.fifo; mkfifo pool.fifo
pg_ctl -D data -o '-p 18427' -l pg.log -w start >/dev/null || exit 1
exec 9<>pool.fifo
psql -h 127.0.0.1 -p 18427 -U ci -q postgres <pool.fifo & POOL=$!
R=0
for f in test_*.sql; do psql -h 127.0.0.1 -p 18427 -U ci -q -v ON_ERROR_STOP=1 -f $f postgres || R=1; done
if [ -n "$FIX" ]; then pg_ctl -D data -m fast stop
else pg_ctl -D data -m smart -t 4 stop || pg_ctl -D data -m fast stop
fi
exec 9>&-
kill $POOL 2>/dev/null; wait $POOL 2>/dev/null
rm -f pool.fifo
exit $R
""",
            "test_join.sql": "SELECT count(*) FROM generate_series(1, 200000) a JOIN generate_series(1, 200000) b USING (a);\n".replace(
                "USING (a)", "ON a = b"
            ),
            "test_agg.sql": "SELECT max(length(md5(i::text))) FROM generate_series(1, 300000) i;\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "pg-initdb-per-test",
        "twice",
        "postgres, initdb, work done again",
        "Each of 4 test files makes its own cluster with initdb, start and stop: make one cluster and a database per test file.",
        r"(?i)initdb|cluster|pg_ctl|postgres --(boot|single)",
        {
            "setup.sh": NOSETUP,
            "run.sh": PGTOP,
            "job.sh": """rm -rf cluster
new() { initdb -D cluster -U ci -A trust --no-sync >initdb.log && pg_ctl -D cluster -o "-p 18428 -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off" -l pg.log -w start >/dev/null; }
end() { pg_ctl -D cluster -m fast -w stop >/dev/null; rm -rf cluster; }
P="psql -h 127.0.0.1 -p 18428 -U ci -q -v ON_ERROR_STOP=1"
R=0
[ -z "$FIX" ] || new || exit 1
for t in ddl json window trigger; do
  [ -n "$FIX" ] || new || exit 1
  $P -c "CREATE DATABASE test_$t STRATEGY wal_log" postgres && $P -f $t.sql test_$t >$t.out && echo "ok $t" || R=1
  [ -n "$FIX" ] || end
done
[ -z "$FIX" ] || end
exit $R
""",
            "ddl.sql": "CREATE TABLE a(i int primary key); INSERT INTO a SELECT generate_series(1, 20000); SELECT count(*) FROM a;\n",
            "json.sql": "SELECT sum((jsonb_build_object('i', i)->>'i')::int) FROM generate_series(1, 40000) i;\n",
            "window.sql": "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY -i) r FROM generate_series(1, 40000) i) x;\n",
            "trigger.sql": "CREATE TABLE b(i int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.i := NEW.i + 1; RETURN NEW; END';\n"
            "CREATE TRIGGER t BEFORE INSERT ON b FOR EACH ROW EXECUTE FUNCTION f(); INSERT INTO b SELECT generate_series(1, 10000); SELECT sum(i) FROM b;\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "npm-run-per-check",
        "wrapper",
        "node, npm, wrapper, start-up again and again",
        "ci.sh starts npm run for each of 14 checks that take some hundredths of a second; npm's own start-up is most of it: call node directly, "
        "or all the checks from one npm script.",
        r"(?i)\bnpm\b|npm run|start-?up",
        {
            "package.json": """{ "name": "widgets", "version": "1.0.0", "private": true, "scripts": {
  "check:a": "node check.js a", "check:b": "node check.js b", "check:c": "node check.js c",
  "check:d": "node check.js d", "check:e": "node check.js e", "check:f": "node check.js f",
  "check:g": "node check.js g", "check:h": "node check.js h", "check:i": "node check.js i",
  "check:j": "node check.js j", "check:k": "node check.js k", "check:l": "node check.js l",
  "check:m": "node check.js m", "check:n": "node check.js n" } }
""",
            "check.js": "const h = require('crypto').createHash('sha1');\nfor (let i = 0; i < 2000; i++) h.update(process.argv[2] + i);\nconsole.log('ok ' + process.argv[2] + ' ' + h.digest('hex').slice(0, 8));\n",
            "setup.sh": NOSETUP,
            "ci.sh": """for c in a b c d e f g h i j k l m n; do
  if [ -n "$FIX" ]; then node check.js $c; else npm run --silent check:$c; fi || exit 1
done
""",
            "run.sh": TOP
            + 'export npm_config_update_notifier=false npm_config_offline=true npm_config_cache="$PWD/.npm" npm_config_logs_max=0\nsh ci.sh\n',
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "unittest-real-backoff",
        "retry",
        "python, unittest, one slow test of many, back-off",
        "One of 61 tests, test_gives_up, waits the client's real back-off of 0.5, 1 and 2 s against a closed port: give the client a back-off of 0 in the test "
        "(or patch its sleep).",
        r"(?i)unittest|back-?off|test_gives_up|test_client|python",
        {
            "setup.sh": NOSETUP,
            "client.py": """import socket, time
BACKOFF = [0.5, 1, 2]
def connect(port, backoff=None):
    for pause in [0] + (BACKOFF if backoff is None else backoff):
        time.sleep(pause)
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1)
        except OSError:
            pass
    raise ConnectionError("gave up")
""",
            "tests/__init__.py": "",
            "tests/test_client.py": """import os, unittest
import client
class Client(unittest.TestCase):
    def test_gives_up(self):
        backoff = [0, 0, 0] if os.environ.get("FIX") else None
        with self.assertRaises(ConnectionError):
            client.connect(18429, backoff)
""",
            "tests/test_codec.py": """import base64, hashlib, unittest
class Codec(unittest.TestCase):
    pass
def case(i):
    def test(self):
        b = hashlib.sha256(str(i).encode()).digest() * 4000
        for _ in range(12): self.assertEqual(base64.b64decode(base64.b64encode(b)), b)
    return test
for i in range(60): setattr(Codec, f"test_roundtrip_{i:02}", case(i))
""",
            "run.sh": TOP + "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest discover -s tests -t .\n",
        },
        prepare="sh setup.sh",
    ),
    # From here on nothing is to be changed.
    Plant(
        "groff-until-stable",
        "none",
        "groff, convergence, the same command again",
        "The manual is typeset until its page references stop moving: 3 passes, each of which needs the references of the pass before.",
        NOTHING,
        {
            "mkdoc.pl": """use strict; srand 3;
my @w = map { join '', map { chr(97 + int rand 26) } 1 .. 2 + int rand 8 } 1 .. 900;
print ".pl 60v\\n.ll 66n\\n.de HD\\n.sp 2\\n.tm \\\\\\\\$1 \\\\\\\\n%\\n.ft B\\n\\\\\\\\$2\\n.ft R\\n.br\\n..\\n.nf\\n.so toc.tr\\n.fi\\n.sp 2\\n";
for my $i (1 .. 400) {
    print ".HD s$i \\"Section $i\\"\\n";
    print join(' ', map { $w[rand @w] } 1 .. 14), "\\n" for 1 .. 110;
}
""",
            "setup.sh": "set -e\nperl mkdoc.pl >doc.tr\n" + READY,
            "run.sh": TOP
            + """: >refs; : >toc.tr; pass=1
while :; do
  groff -U -Tascii doc.tr >doc.txt 2>refs.new || exit 1
  cmp -s refs refs.new && break
  mv refs.new refs
  awk '{ print "Section " substr($1, 2) " .... page " $2 }' refs >toc.tr
  pass=$((pass + 1)); [ $pass -le 5 ] || exit 1
done
echo "stable after $pass passes"
""",
        },
        prepare="sh setup.sh",
        spare=0.5,
    ),
    Plant(
        "throttle-test-measures-time",
        "none",
        "perl, prove, rate limit, test that measures time",
        "The test asserts that the token bucket lets 10 calls a second through, so 30 calls must take 3 s: the pauses are what is tested.",
        NOTHING,
        {
            "setup.sh": NOSETUP,
            "lib/Throttle.pm": """package Throttle;
use strict; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
sub new { my ($c, $rate) = @_; bless { gap => 1 / $rate, next => clock_gettime(CLOCK_MONOTONIC) + 1 / $rate }, $c }
sub call {
    my ($s, $f) = @_;
    my $wait = $s->{next} - clock_gettime(CLOCK_MONOTONIC);
    sleep $wait if $wait > 0;
    $s->{next} += $s->{gap};
    $f->();
}
1;
""",
            "t/rate.t": """use strict; use Test::More tests => 3; use Throttle; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my $t = Throttle->new(10); my $n = 0; my $start = clock_gettime(CLOCK_MONOTONIC);
$t->call(sub { $n++ }) for 1 .. 30;
my $took = clock_gettime(CLOCK_MONOTONIC) - $start;
is($n, 30, 'all calls were made');
cmp_ok($took, '>=', 2.95, 'not faster than 10 a second');
cmp_ok($took, '<', 3.6, 'not much slower either');
""",
            "run.sh": TOP + "prove -Ilib t/rate.t\n",
        },
        prepare="sh setup.sh",
        spare=0.5,
    ),
    Plant(
        "pg-idle-processes-beside-query",
        "none",
        "postgres, idle server processes, dependent computation",
        "One query follows a hash chain, each step of which needs the one before; checkpointer, writers and launcher of the server and psql only wait beside it.",
        NOTHING,
        {
            "setup.sh": PGSETUP,
            "run.sh": PGTOP,
            "job.sh": """pg_ctl -D data -o '-p 18430' -l pg.log -w start >/dev/null || exit 1
psql -h 127.0.0.1 -p 18430 -U ci -q -v ON_ERROR_STOP=1 -f chain.sql postgres; R=$?
pg_ctl -D data -m fast -w stop >/dev/null || R=1
exit $R
""",
            "chain.sql": """DO $$
DECLARE h text := 'genesis';
BEGIN
  FOR i IN 1..5500000 LOOP h := md5(h); END LOOP;
  RAISE NOTICE 'head %', h;
END $$;
""",
        },
        prepare="sh setup.sh",
        spare=0.6,
    ),
    Plant(
        "node-progress-beside-worker",
        "none",
        "node, event loop, interval, worker thread",
        "The main thread's event loop only prints progress every 250 ms and waits for the worker, whose chain of hashes cannot be split; node ends with it.",
        NOTHING,
        {
            "setup.sh": NOSETUP,
            "run.sh": TOP + "node seal.js\n",
            "seal.js": """const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createHash } = require('crypto');
if (isMainThread) {
  const steps = new Int32Array(new SharedArrayBuffer(4));
  const tick = setInterval(() => console.log('sealed ' + Atomics.load(steps, 0) + ' blocks'), 250);
  const w = new Worker(__filename, { workerData: steps });
  w.on('message', (h) => { clearInterval(tick); console.log('seal ' + h); });
  w.on('error', (e) => { clearInterval(tick); console.error(e); process.exitCode = 1; });
} else {
  let h = Buffer.from('genesis');
  for (let i = 0; i < 1600000; i++) {
    h = createHash('sha256').update(h).digest();
    if (i % 1000 === 0) Atomics.store(workerData, 0, i);
  }
  parentPort.postMessage(h.toString('hex').slice(0, 16));
}
""",
        },
        prepare="sh setup.sh",
        spare=0.5,
    ),
    Plant(
        "make-j2-already-full",
        "none",
        "C, make -j2, both CPUs busy",
        "make -j2 compiles 10 files of equal size and keeps both CPUs busy; make and the drivers only wait for their children.",
        NOTHING,
        {
            "gen.py": GEN,
            "setup.sh": "set -e\nmkdir -p src\nfor i in 0 1 2 3 4 5 6 7 8 9; do /usr/bin/python3 gen.py src/m$i.c 27; done\n"
            + READY,
            "Makefile": """OBJS = $(patsubst src/%.c,%.o,$(wildcard src/*.c))
libm10.so: $(OBJS)
\t$(CC) -shared -o $@ $(OBJS)
%.o: src/%.c
\t$(CC) -O2 -fPIC -c -o $@ $<
""",
            "run.sh": TOP + "rm -f *.o *.so\nmake -s -j2\n",
        },
        prepare="sh setup.sh",
        spare=0.6,
    ),
    Plant(
        "session-replay-in-real-time",
        "none",
        "tcl, event loop, replay, test of jitter",
        "The test replays a recorded terminal session at its original speed to a server on loopback and asserts that no event comes more than 0.15 s off its time: "
        "the pauses are the recording.",
        NOTHING,
        {
            "setup.sh": NOSETUP,
            "run.sh": TOP + "tclsh replay.tcl\n",
            "session.txt": "".join(
                f"{t} key-{i}\n"
                for i, t in enumerate(
                    [120, 260, 410, 530, 900, 1050, 1180, 1660, 1800, 2010, 2150, 2600, 2720, 2950, 3100, 3480]
                )
            ),
            "replay.tcl": """proc accept {s addr port} { fconfigure $s -buffering line; fileevent $s readable [list take $s] }
proc take {s} {
    if {[gets $s line] < 0} { if {[eof $s]} { close $s; set ::done 1 }; return }
    lassign $line due key
    set off [expr {abs([clock milliseconds] - $::start - $due)}]
    if {$off > $::worst} { set ::worst $off }
    incr ::seen
}
set worst 0; set seen 0
set srv [socket -server accept -myaddr 127.0.0.1 18431]
set c [socket 127.0.0.1 18431]; fconfigure $c -buffering line
set f [open session.txt]; set events [split [string trim [read $f]] "\\n"]; close $f
set start [clock milliseconds]
foreach e $events { after [lindex $e 0] [list puts $c $e]; set last [lindex $e 0] }
after [expr {$last + 10}] [list close $c]
vwait done
close $srv
puts "$seen events, worst offset $worst ms"
exit [expr {$seen == [llength $events] && $worst < 150 ? 0 : 1}]
""",
        },
        prepare="sh setup.sh",
        spare=0.5,
    ),
    Plant(
        "watchdog-and-dots-beside-work",
        "none",
        "C, perl, watchdog, heartbeat of the CI",
        "A watchdog of 300 s, a printer of dots every second and timeout only wait beside ./chain, a dependent computation on one thread; they are killed when it ends.",
        NOTHING,
        {
            "chain.c": """#include <stdint.h>
#include <stdio.h>
int main(void) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (long i = 0; i < 2000000000L; i++) { h ^= h >> 29; h *= 0xbf58476d1ce4e5b9u; }
  printf("%016llx\\n", (unsigned long long)h);
}
""",
            "setup.sh": "set -e\ngcc -O2 -o chain chain.c\n" + READY,
            "watchdog.pl": "sleep 300; kill TERM => $ARGV[0];\n",
            "dots.pl": "$| = 1; while (1) { sleep 1; print '.' }\n",
            "run.sh": TOP
            + """perl watchdog.pl $$ & W=$!
perl dots.pl & D=$!
timeout 120 ./chain; R=$?
kill $W $D; wait $W $D 2>/dev/null
exit $R
""",
        },
        prepare="sh setup.sh",
        spare=0.5,
    ),
]
