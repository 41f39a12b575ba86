"""Test suites and daemons of a systems team, each with one planted fault in how it waits or uses two CPUs, or with none.

Written without knowledge of the rules of the program that they test. With FIX=1 in its environment run.sh runs without the fault.
A plant of kind "none" has no FIX.
"""

from waits import Plant

# What the first screen may honestly say of a run in which nothing is to be changed.
NOTHING = (
    r"(?i)\bnothing\b|\bno (single |clear |obvious )?(change|fault|advice|suggestion|waste|wait)|by design|on purpose|as intended"
    r"|its own (work|time)|leave (it|this)|needs no"
)

LEDGER = r'''
import collections
import os
import threading


class Ledger:
    """Entries that a background thread appends to a file once in a period."""

    PERIOD = 0.8

    def __init__(self, path):
        self.path = path
        self.entries = collections.deque()
        self.closing = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._flush_loop, name="ledger-flush")
        self.thread.start()

    def add(self, account, amount):
        with self.changed:
            self.entries.append((account, amount))

    def flush(self):
        with self.changed:
            batch = list(self.entries)
            self.entries.clear()
        if batch:
            with open(self.path, "a") as f:
                f.writelines(f"{a} {n}\n" for a, n in batch)

    def _flush_loop(self):
        while not self.closing:
            with self.changed:
                if not self.closing:
                    self.changed.wait(self.PERIOD)
            self.flush()

    def close(self):
        with self.changed:
            self.closing = True
            if os.environ.get("FIX"):
                self.changed.notify_all()
        self.thread.join()
        self.flush()
'''
LEDGER_TEST = r"""
import pytest

from ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    book = Ledger(tmp_path / "book")
    yield book
    book.close()


def total(book):
    book.flush()
    return sum(int(line.split()[1]) for line in open(book.path))


def test_one(ledger):
    ledger.add("rent", 5)
    assert total(ledger) == 5


def test_two(ledger):
    ledger.add("rent", 5)
    ledger.add("fuel", 6)
    assert total(ledger) == 11


def test_negative(ledger):
    ledger.add("rent", -5)
    assert total(ledger) == -5


def test_many(ledger):
    for i in range(2000):
        ledger.add("a", i)
    assert total(ledger) == 1999000


def test_twice(ledger):
    ledger.add("a", 1)
    total(ledger)
    ledger.add("a", 1)
    assert total(ledger) == 2


def test_text(ledger):
    ledger.add("fuel", 1)
    total(ledger)
    assert open(ledger.path).read() == "fuel 1\n"
"""

GO_BROKER = r"""package broker

import (
	"io"
	"net/http"
	"sync"
)

// Broker keeps the messages of its topics in memory.
type Broker struct {
	mu     sync.Mutex
	topics map[string][]string
}

func New() *Broker { return &Broker{topics: map[string][]string{}} }

func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topics[r.URL.Path] = append(b.topics[r.URL.Path], string(body))
	w.WriteHeader(204)
}

func (b *Broker) Len(topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.topics[topic])
}
"""
GO_TEST = r"""package broker

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const addr = "127.0.0.1:18581"

// alive dials until something listens.
func alive(t *testing.T) net.Conn {
	for i := 0; i < 500; i++ {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal("no listener")
	return nil
}

func TestDrain(t *testing.T) {
	b := New()
	srv := &http.Server{Addr: addr, Handler: b}
	go srv.ListenAndServe()
	probe := alive(t)
	if os.Getenv("FIX") != "" {
		probe.Close()
	} else {
		defer probe.Close()
	}
	for i := 0; i < 2000; i++ {
		r, err := http.Post("http://"+addr+"/orders", "text/plain", strings.NewReader("order"))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if n := b.Len("/orders"); n != 2000 {
		t.Fatalf("%d orders", n)
	}
}

func TestEmpty(t *testing.T) {
	if New().Len("/none") != 0 {
		t.Fatal("not empty")
	}
}
"""

PERL_DAEMON = r"""package Daemon;
use strict; use warnings;
use POSIX ":sys_wait_h";
our $PORT = 18583;

sub start {
    pipe(my $r, my $w) or die;
    my $pid = fork;
    if (!$pid) {
        setpgrp(0, 0);
        close $r;
        open(STDOUT, ">&", $w) or die;
        exec "/bin/bash", "launch.sh", $PORT or die;
    }
    close $w;
    my $line = <$r>;
    die "brokerd did not start" unless defined $line && $line =~ /^listening/;
    return bless { pid => $pid, out => $r }, shift;
}

sub ask {
    my ($self, $text) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $PORT) or die "connect: $!";
    print $s "$text\n";
    my $answer = <$s>;
    chomp $answer;
    return $answer;
}

# Asks for an end, and after a grace of 1.5 s makes one.
sub stop {
    my $self = shift;
    kill TERM => $self->{pid};
    for (1 .. 30) {
        return if waitpid($self->{pid}, WNOHANG) > 0;
        select(undef, undef, undef, 0.05);
    }
    kill KILL => -$self->{pid};
    waitpid $self->{pid}, 0;
}
1;
"""
BROKERD = r"""use strict; use warnings;
use IO::Socket::INET;
my %kept;
$SIG{TERM} = sub { exit 0 };
my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 16, ReuseAddr => 1) or die "listen: $!";
$| = 1;
print "listening\n";
while (my $c = $l->accept) {
    my ($verb, $key, $value) = split ' ', scalar <$c>;
    $kept{$key} = $value if $verb eq "put";
    print $c ($kept{$key} // "none"), "\n";
    close $c;
}
"""
PERL_T = r"""use strict; use warnings;
use lib "lib"; use IO::Socket::INET; use Daemon; use Test::More tests => 3;
my $d = Daemon->start;
is $d->ask("get %(n)s"), "none", "empty";
is $d->ask("put %(n)s 7"), "7", "put";
is $d->ask("get %(n)s"), "7", "get";
$d->stop;
"""

RUST = r"""
use std::sync::Mutex;

/// The tests change the process's environment, so that they take turns.
static ENV: Mutex<()> = Mutex::new(());

fn checksum(mut x: u64) -> u64 {
    for i in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x = x.wrapping_add(i);
    }
    x
}
const ROUNDS: u64 = 330_000_000;

fn replay(segment: u64) {
    let turn = ENV.lock().unwrap();
    std::env::set_var("STORE_SEGMENT", segment.to_string());
    let seed: u64 = std::env::var("STORE_SEGMENT").unwrap().parse().unwrap();
    if std::env::var_os("FIX").is_some() {
        drop(turn);
        assert_ne!(std::hint::black_box(checksum(seed)), 0);
    } else {
        assert_ne!(std::hint::black_box(checksum(seed)), 0);
        drop(turn);
    }
}

#[test]
fn replay_accounts() { replay(11) }
#[test]
fn replay_audit() { replay(12) }
#[test]
fn replay_blobs() { replay(13) }
#[test]
fn replay_index() { replay(14) }
#[test]
fn replay_orders() { replay(15) }
#[test]
fn replay_users() { replay(16) }
"""

SIM = r"""#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* A cluster simulator: argv[1] is the scenario, argv[2] its simulated days. */
int main(int argc, char **argv) {
    uint64_t x = 88172645463325252ull, n = strtoull(argv[2], 0, 10) * 3000000ull;
    for (uint64_t i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; x += i; }
    printf("%s %llu\n", argv[1], (unsigned long long)x);
    return x == 0;
}
"""
CTEST = r"""cmake_minimum_required(VERSION 3.10)
project(cluster NONE)
enable_testing()
foreach(scenario clock gossip lease quorum routing snapshot)
  add_test(NAME ${scenario} COMMAND ${CMAKE_SOURCE_DIR}/clustersim ${scenario} 80)
endforeach()
add_test(NAME yearly_replay COMMAND ${CMAKE_SOURCE_DIR}/clustersim yearly_replay 480)
if(DEFINED ENV{FIX})
  set_tests_properties(yearly_replay PROPERTIES COST 100)
endif()
"""

EXPORTER = r"""
import hashlib, os, sqlite3

FIX = os.environ.get("FIX")
con = sqlite3.connect("jobs.db", timeout=60, isolation_level=None)


def seal(rows):
    text = b"".join(str(r).encode() for r in rows)
    return hashlib.pbkdf2_hmac("sha256", text, b"seal", ROUNDS).hex()


ROUNDS = 10_000_000
ROWS = "select id, body from jobs where id <= 500 order by id"
if FIX:
    value = seal(con.execute(ROWS).fetchall())
    con.execute("begin immediate")
else:
    con.execute("begin immediate")
    value = seal(con.execute(ROWS).fetchall())
con.execute("insert into seals values (?)", (value,))
con.execute("commit")
"""
INGEST = r"""
import hashlib, sqlite3, time

con = sqlite3.connect("jobs.db", timeout=60, isolation_level=None)
bodies = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(400_000)]
con.execute("begin immediate")
con.executemany("insert into jobs(body) values (?)", [(b,) for b in bodies[:2000]])
con.execute("commit")
last = con.execute("select max(id) from jobs").fetchone()[0]
digest = hashlib.pbkdf2_hmac("sha256", str(last).encode(), b"index", 9_000_000)
print("ingested", last, digest.hex()[:8])
"""

NODE = r"""
import net from "node:net";
import crypto from "node:crypto";

// A broker that seals each message, and the cases that talk to it.
const server = net.createServer((c) => {
  c.on("data", (d) => c.end(crypto.pbkdf2Sync(d, "seal", 400000, 32, "sha256").toString("hex")));
});
await new Promise((done) => server.listen(18585, "127.0.0.1", done));

function ask(text) {
  return new Promise((done, fail) => {
    let got = "";
    const c = net.connect(18585, "127.0.0.1", () => c.write(text));
    c.on("data", (d) => (got += d));
    c.on("end", () => done(got));
    c.on("error", fail);
  });
}

async function within(ms, promise) {
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error("late")), ms); });
  try {
    return await Promise.race([promise, late]);
  } finally {
    if (process.env.FIX) clearTimeout(timer);
  }
}

let failed = 0;
for (let i = 1; i <= 12; i++) {
  const answer = await within(4000, ask(`message ${i}`));
  const ok = answer.length === 64;
  if (!ok) failed++;
  console.log(`${ok ? "ok" : "not ok"} ${i} - seal of message ${i}`);
}
console.log(`1..12`);
server.close();
process.exitCode = failed ? 1 : 0;
"""

CODEC_SETUP = r'''/usr/bin/python3 - <<'E'
with open("codec.c", "w") as f:
    f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
    for i in range(80):
        f.write(f"""
static int field{i}(unsigned char *p, int n, int x) {{
    int s = x;
    for (int j = 0; j < n; j++) {{ p[j] ^= (s + {i}) >> (j & 7); s = s * 31 + p[j] * {i + 3}; if (s & {i % 7 + 1}) s ^= p[(j + {i}) % n]; }}
    switch (s & 7) {{ case 0: s += {i}; break; case 1: s -= n; break; case 2: s ^= x; break; case 5: s *= 3; break; default: s = ~s; }}
    for (int j = n; j-- > 0;) {{ s ^= p[j] << (j & 3); p[j] += s; }}
    return s;
}}
""")
    f.write("int main(int c, char **v) { unsigned char b[64]; memset(b, atoi(v[1]), 64); int s = 1;\n")
    f.writelines(f"s = field{i}(b, 64, s);\n" for i in range(80))
    f.write('printf("%s %d\\n", s == s ? "decoded" : "broken", s); return 0; }\n')
E
'''
BATS = r"""# The codec under test is built with the flags of the release.
build() { gcc -O3 -o "$BATS_TEST_DIRNAME/codec" "$BATS_TEST_DIRNAME/codec.c"; }
setup_file() { if [ -n "$FIX" ]; then build; fi; }
setup() { if [ -z "$FIX" ]; then build; fi; }

""" + "".join(
    f'@test "frame of {name}" {{\n  run ./codec {i}\n  [ "$status" -eq 0 ]\n  [[ "$output" == decoded* ]]\n}}\n'
    for i, name in enumerate("zeros ones text binary empty long".split())
)

SOAK = r"""#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
/* Counts the ticks of a 20 ms timer for argv[1] seconds, and fails if its clock drifts from the system's. */
static double now(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
    int seconds = atoi(argv[1]), fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec every = {{0, 20000000}, {0, 20000000}};
    double mono = now(CLOCK_MONOTONIC), raw = now(CLOCK_MONOTONIC_RAW);
    uint64_t ticks = 0, n;
    timerfd_settime(fd, 0, &every, 0);
    while (ticks < (uint64_t)seconds * 50) {
        if (read(fd, &n, sizeof n) != sizeof n) return 2;
        ticks += n;
        if (ticks % 50 == 0) { printf("tick %llu\n", (unsigned long long)ticks); fflush(stdout); }
    }
    mono = now(CLOCK_MONOTONIC) - mono; raw = now(CLOCK_MONOTONIC_RAW) - raw;
    double drift = mono > raw ? mono - raw : raw - mono;
    printf("drift %.6f over %.3f\n", drift, mono);
    return drift > 0.05 || mono < seconds - 0.01;
}
"""
SOAK_TEST = r"""
import subprocess
import unittest


class TimerSoak(unittest.TestCase):
    def test_drift(self):
        with subprocess.Popen(["./ticksoak", "4"], stdout=subprocess.PIPE, text=True) as p:
            lines = [line.strip() for line in p.stdout]
        self.assertEqual(p.returncode, 0)
        self.assertRegex(lines[-1], r"^drift 0\.0")
"""

JAVA = r"""
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

/** Replays the logs of the shards on as many threads as there are CPUs, beside a reporter and a watchdog. */
public class ShardReplay {
    static final AtomicLong done = new AtomicLong();

    static long replay(long seed, long n) {
        long x = seed;
        for (long i = 0; i < n; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; x += i; }
        done.incrementAndGet();
        return x;
    }

    public static void main(String[] a) throws Exception {
        Thread watchdog = new Thread(() -> {
            try { Thread.sleep(120000); System.err.println("stuck"); Runtime.getRuntime().halt(3); } catch (InterruptedException e) { }
        }, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
        ScheduledExecutorService report = Executors.newSingleThreadScheduledExecutor();
        report.scheduleAtFixedRate(() -> System.out.println("replayed " + done.get()), 250, 250, TimeUnit.MILLISECONDS);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<Long>> all = new ArrayList<>();
        for (int shard = 1; shard <= 8; shard++) { final int s = shard; all.add(pool.submit(() -> replay(s, 330_000_000L))); }
        pool.shutdown();
        if (!pool.awaitTermination(100, TimeUnit.SECONDS)) System.exit(2);
        report.shutdownNow();
        long sum = 0;
        for (Future<Long> f : all) sum ^= f.get();
        System.out.println("state " + Long.toHexString(sum));
    }
}
"""

REPLAY_TCL = r"""
# Writes the records of a log, as fast as its reader takes them.
fconfigure stdout -translation lf -buffersize 65536
for {set i 0} {$i < [lindex $argv 0]} {incr i} {
    puts [format "%08d account=%06d amount=%05d state=settled" $i [expr {$i * 7919 % 999983}] [expr {$i % 99991}]]
}
flush stdout
puts stderr "replayed [lindex $argv 0] records"
"""
CHAIN = r"""#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* Each record's seal depends on the seal of the record before, so that the log can be verified in one order only. */
int main(void) {
    char line[256];
    uint64_t seal = 1469598103934665603ull; long n = 0;
    while (fgets(line, sizeof line, stdin)) {
        for (int round = 0; round < 300; round++)
            for (char *p = line; *p; p++) { seal ^= (unsigned char)*p; seal *= 1099511628211ull; }
        n++;
    }
    printf("verified %ld records: %016llx\n", n, (unsigned long long)seal);
    return n == 0;
}
"""

SETTLE = r"""#include <math.h>
#include <stdio.h>
#include <stdlib.h>
/* One pass over the pressures of a pipeline network, from the state that the last pass left in argv[1]. Says whether they are stable. */
enum { N = 600000, SWEEPS = 320 };
static double v[N], w[N];
int main(int argc, char **argv) {
    FILE *f = fopen(argv[1], "rb");
    if (f) { if (fread(v, sizeof *v, N, f) != N) return 2; fclose(f); }
    double moved = 0;
    for (int i = 0; i < N; i++) w[i] = v[i];
    for (int s = 0; s < SWEEPS; s++)
        for (int i = 1; i < N - 1; i++) v[i] = 0.4985 * (v[i - 1] + v[i + 1]) + 0.01 * (i % 17);
    for (int i = 0; i < N; i++) if (fabs(v[i] - w[i]) > moved) moved = fabs(v[i] - w[i]);
    f = fopen(argv[1], "wb");
    if (fwrite(v, sizeof *v, N, f) != N || fclose(f)) return 2;
    printf("%s (moved %.2e)\n", moved < 1e-3 ? "stable" : "run again", moved);
    return 0;
}
"""

PLANTS = [
    Plant(
        "w18-pytest-ledger-join",
        "wait",
        "pytest fixture, futex with a period, thread join",
        "The teardown of each test joins the ledger's flush thread, which close() does not wake, so that it waits out its period of "
        "0.8 s, six times. Notify the condition in close().",
        r"(?i)ledger|flush|join|pytest|teardown|close\(\)",
        {
            "ledger.py": LEDGER,
            "test_ledger.py": LEDGER_TEST,
            "run.sh": "exec timeout 60 /usr/bin/python3 -m pytest -q -p no:cacheprovider test_ledger.py\n",
        },
    ),
    Plant(
        "w18-go-shutdown-new-conn",
        "wait",
        "go test, http server's shutdown, runtime timers",
        "A liveness probe's connection that never sent a byte stays open, so that http.Server.Shutdown waits 5 s to 6 s until it counts "
        "as idle. Close the probe before.",
        r"(?i)broker\.test|shutdown|probe|18581|idle conn|TestDrain|graceful",
        {
            "go.mod": "module broker\n\ngo 1.18\n",
            "broker.go": GO_BROKER,
            "broker_test.go": GO_TEST,
            "setup.sh": "GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local go test -c -o broker.test .\n",
            "run.sh": "[ -x broker.test ] || sh setup.sh\nexec timeout 60 ./broker.test -test.v\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w18-prove-launcher-term",
        "wait",
        "prove, bash trap, waitpid poll, grace before SIGKILL",
        "launch.sh traps SIGTERM, but bash runs a trap only after its foreground child brokerd.pl, so that each stop waits the whole "
        "grace of 1.5 s and then kills. Let launch.sh exec the daemon (or pass the signal on).",
        r"(?i)launch\.sh|brokerd|SIGTERM|\bTERM\b|SIGKILL|grace|\bbash\b|Daemon(\.pm|::)|\d\d-\w+\.t\b|stop\b",
        {
            "lib/Daemon.pm": PERL_DAEMON,
            "brokerd.pl": BROKERD,
            "launch.sh": 'ulimit -n 256\nexport LC_ALL=C\nif [ -n "$FIX" ]; then exec perl brokerd.pl "$1"; fi\n'
            "trap 'exit 0' TERM\nperl brokerd.pl \"$1\"\n",
            "t/10-publish.t": PERL_T % {"n": "orders"},
            "t/20-consume.t": PERL_T % {"n": "users"},
            "t/30-expire.t": PERL_T % {"n": "leases"},
            "run.sh": "exec timeout 60 prove t\n",
        },
    ),
    Plant(
        "w18-rust-test-turns",
        "cpu",
        "rust test threads, mutex held over computing",
        "Both test threads are there, but each test holds the mutex ENV while it computes its checksum, so that one CPU works at a time. "
        "Release it after the environment is read.",
        r"(?i)store_tests|\bENV\b|mutex|lock|replay_\w+|one CPU|one (thread )?at a time|take turns|serial",
        {
            "store.rs": RUST,
            "setup.sh": "rustc --edition 2021 -O --test store.rs -o store_tests\n",
            "run.sh": '[ -n "$FIX" ] || unset FIX\n[ -x store_tests ] || sh setup.sh\nexec timeout 60 ./store_tests --test-threads=2\n',
        },
        prepare="sh setup.sh",
        quiet=(4.2, 2.15),
    ),
    Plant(
        "w18-ctest-longest-last",
        "cpu",
        "ctest -j2, longest test last",
        "yearly_replay is half of the work and starts last of seven, so that the second CPU idles beside it. Start it first (COST), or "
        "split it.",
        r"(?i)yearly_replay|longest|starts? last|last to start|start (it )?(first|earlier)|imbalance|COST\b",
        {
            "clustersim.c": SIM,
            "CMakeLists.txt": CTEST,
            "setup.sh": "gcc -O2 -o clustersim clustersim.c\n",
            "run.sh": '[ -x clustersim ] || sh setup.sh\n[ -n "$FIX" ] || unset FIX\nrm -rf build\ncmake -S . -B build >/dev/null || exit 1\n'
            "cd build && exec timeout 60 ctest -j2\n",
        },
        prepare="sh setup.sh",
        quiet=(4.25, 2.95),
    ),
    Plant(
        "w18-sqlite-seal-in-transaction",
        "cpu",
        "two python processes, sqlite busy handler, lock held while computing",
        "exporter.py opens its write transaction before it computes the seal, so that ingest.py sleeps in sqlite's busy handler until "
        "the commit, and the two compute one after the other. Compute the seal before begin immediate.",
        r"(?i)ingest|exporter|jobs\.db|sqlite|database|transaction|\block(ed|s)?\b|busy handler",
        {
            "exporter.py": EXPORTER,
            "ingest.py": INGEST,
            "setup.sh": 'rm -f seed.db\n/usr/bin/python3 -c \'\nimport sqlite3\nc = sqlite3.connect("seed.db")\n'
            'c.execute("create table jobs(id integer primary key, body text)")\nc.execute("create table seals(value text)")\n'
            'c.executemany("insert into jobs(body) values (?)", [("job %d" % i,) for i in range(500)])\nc.commit()\n\'\n',
            "run.sh": "[ -e seed.db ] || sh setup.sh\nrm -f jobs.db*\ncp seed.db jobs.db\n"
            "timeout 60 /usr/bin/python3 exporter.py & E=$!\ntimeout 60 /usr/bin/python3 ingest.py || R=1\n"
            "wait $E || R=1\nexit ${R:-0}\n",
        },
        prepare="sh setup.sh",
        quiet=(4.45, 2.45),
    ),
    Plant(
        "w18-node-timer-left",
        "wait",
        "node event loop kept alive by a timer",
        "Each case races against a 4 s setTimeout that nobody clears, so that node idles about 4 s after its last case until the "
        "timers have fired. clearTimeout (or unref) when the race is decided.",
        r"(?i)node\b|suite\.mjs|setTimeout|timer|event loop|after (its|the) last|unref",
        {"suite.mjs": NODE, "run.sh": "exec timeout 60 node suite.mjs\n"},
        quiet=(5.1, 1.1),
    ),
    Plant(
        "w18-bats-build-each",
        "cpu",
        "bats, the same compilation for each test",
        "setup() compiles the same codec.c for each of six tests. Build it once, in setup_file() or before bats.",
        r"(?i)\bgcc\b|\bcc1\b|codec\.c|compil|setup\(",
        {
            "codec.bats": BATS,
            "setup.sh": CODEC_SETUP,
            "run.sh": "[ -e codec.c ] || sh setup.sh\nrm -f codec\nexec timeout 60 bats codec.bats\n",
        },
        prepare="sh setup.sh",
        quiet=(4.7, 1.05),
    ),
    Plant(
        "w18-none-timer-soak",
        "none",
        "unittest, pipe from a child that reads a timerfd",
        "A soak of 4 s that measures whether a timer drifts: its duration is what was asked for. Nothing to change.",
        NOTHING + r"|measures time|timer|soak",
        {
            "ticksoak.c": SOAK,
            "test_soak.py": SOAK_TEST,
            "setup.sh": "gcc -O2 -o ticksoak ticksoak.c\n",
            "run.sh": "[ -x ticksoak ] || sh setup.sh\nexec timeout 60 /usr/bin/python3 -B -m unittest -v test_soak\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w18-none-java-shards",
        "none",
        "java pool of two that is full, reporter's tick, watchdog, main in awaitTermination",
        "Both CPUs compute all the time; the reporter's tick, the watchdog's sleep and main's wait cost nothing. Nothing to change in how "
        "it waits; only the computing itself.",
        NOTHING + r"|both CPUs|2 CPUs|CPUs? (is|are|was|were) busy|comput|CPU-bound",
        {
            "ShardReplay.java": JAVA,
            "setup.sh": "javac ShardReplay.java\n",
            "run.sh": "[ -e ShardReplay.class ] || sh setup.sh\nexec timeout 60 java -cp . ShardReplay\n",
        },
        prepare="sh setup.sh",
        quiet=(2.95, 2.95),
    ),
    Plant(
        "w18-none-chain-pipe",
        "none",
        "tcl writer blocked on a full pipe, C reader that can work in one order only",
        "tclsh waits because the pipe is full: chainverify computes all the time and each record depends on the one before. Nothing to "
        "change in how it waits; only chainverify's own computing counts.",
        NOTHING + r"|chainverify.*(comput|busy|CPU)|(comput|busy|CPU).*chainverify|CPU-bound",
        {
            "replay.tcl": REPLAY_TCL,
            "chainverify.c": CHAIN,
            "setup.sh": "gcc -O2 -o chainverify chainverify.c\n",
            "run.sh": "[ -x chainverify ] || sh setup.sh\ntimeout 60 tclsh replay.tcl 180000 | timeout 60 ./chainverify\n",
        },
        prepare="sh setup.sh",
        quiet=(3.35, 3.35),
    ),
    Plant(
        "w18-none-settle-passes",
        "none",
        "the same command again until its state is stable",
        "The passes look the same but each starts from the state that the last one wrote, until it says stable. They can neither be left "
        "out nor run at once. Nothing to change.",
        NOTHING + r"|settle.*(comput|busy|CPU)|(comput|busy|CPU).*settle|CPU-bound",
        {
            "settle.c": SETTLE,
            "setup.sh": "gcc -O2 -o settle settle.c -lm\n",
            "run.sh": "[ -x settle ] || sh setup.sh\nrm -f network.state\nn=0\nwhile [ $n -lt 12 ]; do\n  n=$((n + 1))\n"
            "  timeout 60 ./settle network.state >pass.log || exit 1\n  cat pass.log\n  if grep -q ^stable pass.log; then exit 0; fi\ndone\n"
            "echo 'no convergence'\nexit 1\n",
        },
        prepare="sh setup.sh",
        quiet=(3.5, 3.5),
    ),
]
