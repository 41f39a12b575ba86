"""The twentieth set: harnesses, helpers and servers of test suites, by an author that did not know the rules.

Each run.sh calls setup.sh, which makes what is missing; ports 18641 to 18647, all on loopback.
"""

from waits import Plant

PLANTS = [
    Plant(
        "w20-cred-helper-pipe",
        "wait",
        "perl and sh; background child; read on a pipe in $(...); daemon in select; unix socket",
        "cred.pl get forks the cache daemon, which keeps the pipe of the caller's $(...) open as its stdout: each t-push.sh reads on until the daemon leaves after its 2 s of idleness, twice; the daemon must reopen stdout and stderr to /dev/null",
        r"(?i)cred-cache|\bcred\.pl\b|cred\.sock|t-push\.sh|\bcred\b",
        {
            "setup.sh": r"""set -e
[ -s history.txt ] && exit 0
perl -e 'for $i (1..60000) { printf "%08x commit %d by dev%d: touch src/mod%d.c\n", $i*2654435761%4294967296, $i, $i%37, $i%411 }' >history.tmp
mv history.tmp history.txt
""",
            "cred.pl": r"""#!/usr/bin/perl
# cred.pl get HOST | exit: asks the cache daemon for a token; starts the daemon if there is none.
use strict; use warnings; use IO::Socket::UNIX; use IO::Select; use POSIX ();
my $path = "cred.sock"; my $idle = 2;
my ($verb, $host) = @ARGV;
sub dial { IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) }
my $s = dial();
exit 0 if $verb eq "exit" && !$s;
if (!$s) {
    unlink $path;
    my $l = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => $path, Listen => 8) or die "listen: $!";
    defined(my $pid = fork) or die;
    if (!$pid) { POSIX::setsid(); daemon($l) }
    close $l;
    $s = dial() or die "dial: $!";
}
print $s "$verb ", $host // "", "\n";
print scalar <$s>;

sub daemon {
    my $l = shift;
    $0 = "cred-cache-daemon";
    open STDIN, "<", "/dev/null";
    if ($ENV{FIX}) { open STDOUT, ">", "/dev/null"; open STDERR, ">", "/dev/null" }
    my $sel = IO::Select->new($l);
    while ($sel->can_read($idle)) {
        my $c = $l->accept or next;
        my $q = <$c> // "";
        if ($q =~ /^exit/) { unlink $path; print $c "bye\n"; POSIX::_exit(0) }
        my ($h) = $q =~ /^get (\S+)/;
        printf $c "token-%08x\n", unpack("%32C*", $h // "") * 7919;
        close $c;
    }
    unlink $path; POSIX::_exit(0);
}
""",
            "t-push.sh": r"""# one test script: asks for the token, then verifies the history with it
token=$(perl cred.pl get "$1.example.org") || exit 1
case $token in token-*) ;; *) echo "not ok - no token for $1"; exit 1;; esac
perl -ne 'BEGIN { $t = shift @ARGV } for my $r (1..8) { $h = ($h * 33 + unpack("%32C*", $_ . $t . $r)) % 4294967291 } END { printf "ok - %s %08x\n", $t, $h }' "$token" history.txt
""",
            "run.sh": r"""set -e
sh setup.sh
for remote in origin mirror; do sh t-push.sh $remote; done
perl cred.pl exit
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-java-chunk-lock",
        "cpu",
        "java; threads; lock contention on a monitor (futex); CPU-bound",
        "ChunkStore.put computes each digest inside the synchronized method, so the two ingest threads run in turn on one CPU; compute the digest outside, lock only the map",
        r"(?i)ChunkStore|\bingest-\d|\bjava\b",
        {
            "setup.sh": r"""set -e
[ -e classes/ChunkStore.class ] && exit 0
mkdir -p classes && javac -d classes ChunkStore.java
""",
            "ChunkStore.java": r"""import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;

public class ChunkStore {
    private final Map<String, Integer> seen = new HashMap<>();
    private final boolean narrow = System.getenv("FIX") != null;

    static String digest(byte[] chunk) throws Exception {
        MessageDigest md = MessageDigest.getInstance("MD5");
        byte[] d = chunk;
        for (int i = 0; i < 60; i++) { md.update(chunk); d = md.digest(d); }
        return HexFormat.of().formatHex(d);
    }
    private synchronized void note(String key) { seen.merge(key, 1, Integer::sum); }
    private synchronized void putLocked(byte[] chunk) throws Exception { note(digest(chunk)); }
    void put(byte[] chunk) throws Exception {
        if (narrow) note(digest(chunk)); else putLocked(chunk);
    }
    public static void main(String[] a) throws Exception {
        int threads = 2, each = 300;
        ChunkStore store = new ChunkStore();
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            final int seed = t;
            Thread th = new Thread(() -> {
                Random r = new Random(seed);
                byte[] chunk = new byte[64 << 10];
                try { for (int i = 0; i < each; i++) { r.nextBytes(chunk); store.put(chunk); } }
                catch (Exception e) { throw new RuntimeException(e); }
            }, "ingest-" + t);
            th.start(); all.add(th);
        }
        for (Thread th : all) th.join();
        if (store.seen.size() != threads * each) { System.out.println("FAIL " + store.seen.size()); System.exit(1); }
        System.out.println("OK chunks=" + store.seen.size());
    }
}
""",
            "run.sh": r"""set -e
sh setup.sh
java -XX:+UseSerialGC -cp classes ChunkStore
""",
        },
        prepare="sh setup.sh",
        quiet=(3.7, 2.0),
    ),
    Plant(
        "w20-registry-per-output",
        "cpu",
        "make and ruby; work done again; CPU-bound; both CPUs busy",
        "make starts genreg.rb once for each of six outputs, and each start parses and sorts the whole registry.xml; one start that writes all outputs (grouped targets) does it once",
        r"(?i)genreg(?:\.rb)?|\bruby\b|registry\.xml",
        {
            "setup.sh": r"""set -e
[ -s registry.xml ] && exit 0
perl -e 'for $i (1..75000) { printf qq(<command name="vxCmd%05d" ext="VX_ext_%03d"><proto type="int"/><param type="uint32_t" name="a%d"/><param type="void*" name="p%d"/></command>\n), $i, $i % 300, $i % 7, $i % 11 }' >registry.tmp
mv registry.tmp registry.xml
""",
            "genreg.rb": r"""# genreg.rb OUTPUT...: reads registry.xml and writes each named output
require "digest"
Cmd = Struct.new(:name, :ext, :params)
def parse(path)
  File.foreach(path).map do |l|
    params = l.scan(/<param type="([^"]+)" name="([^"]+)"/)
    Cmd.new(l[/command name="([^"]+)"/, 1], l[/ext="([^"]+)"/, 1], params)
  end
end
def resolve(cmds)
  by = cmds.group_by(&:ext)
  by.each_value { |v| v.sort_by! { |c| Digest::MD5.hexdigest(c.name + c.params.flatten.join(",")) } }
  by
end
by = resolve(parse("registry.xml"))
ARGV.each do |out|
  File.open(out, "w") do |f|
    by.each { |ext, v| f.puts "/* #{out} #{ext} #{v.size} #{v.first.name} */" }
  end
end
""",
            "Makefile": r"""OUT = gen/api.h gen/dispatch.c gen/enums.h gen/strings.c gen/loader.c gen/validate.c
all: $(OUT)
	cat $(OUT) | cksum
ifdef FIX
$(OUT) &: registry.xml genreg.rb
	ruby genreg.rb $(OUT)
else
gen/%: registry.xml genreg.rb
	ruby genreg.rb $@
endif
""",
            "run.sh": r"""set -e
sh setup.sh
rm -rf gen; mkdir gen
make -j2 all
""",
        },
        prepare="sh setup.sh",
        quiet=(2.6, 0.85),
    ),
    Plant(
        "w20-sqlite-open-txn",
        "wait",
        "python and sqlite3; two processes; file lock of a database; busy handler that polls with sleeps; half CPU-bound",
        "load_fixtures.py begins its write transaction before it computes the rows, so sqlite3's insert of one row sleeps in the busy handler for about 2 s; compute the rows first, then begin",
        r"(?i)load_fixtures|\bsqlite3?\b|\bci\.db\b|report\.sql|busy",
        {
            "setup.sh": r"""set -e
[ -s base.db ] && exit 0
sqlite3 base.tmp 'create table fixture(id integer primary key, k text, v text); create table runs(id integer primary key, at text);'
mv base.tmp base.db
""",
            "load_fixtures.py": r"""# Makes the fixture rows and stores them in one transaction.
import hashlib, os, sqlite3

def rows():
    out = []
    for i in range(4000):
        h = hashlib.md5(str(i).encode()).hexdigest()
        for _ in range(1200):
            h = hashlib.md5(h.encode()).hexdigest()
        out.append((i, h[:8], h))
    return out

db = sqlite3.connect("ci.db", isolation_level=None, timeout=30)
if os.environ.get("FIX"):
    data = rows()
    db.execute("begin immediate")
else:
    db.execute("begin immediate")
    data = rows()
db.executemany("insert into fixture values(?,?,?)", data)
db.execute("commit")
print("fixtures", len(data))
""",
            "report.sql": r""".timeout 30000
create temp table warm as with recursive n(i) as (select 1 union all select i+1 from n where i<900000) select i%97 as k, count(*) c from n group by 1;
begin immediate;
insert into runs(at) values('nightly');
commit;
with recursive n(i) as (select 1 union all select i+1 from n where i<6500000) select 'report', sum(i*7%1013) from n;
""",
            "run.sh": r"""set -e
sh setup.sh
rm -f ci.db ci.db-journal; cp base.db ci.db
python3 load_fixtures.py & A=$!
sqlite3 ci.db <report.sql
wait $A
[ "$(sqlite3 ci.db 'select count(*) from fixture')" = 4000 ]
[ "$(sqlite3 ci.db 'select count(*) from runs')" = 1 ]
""",
        },
        prepare="sh setup.sh",
        quiet=(3.9, 2.4),
    ),
    Plant(
        "w20-php-one-worker",
        "wait",
        "php and curl; server with one worker; xargs -P; clients in poll",
        "php -S serves one request at a time, and each sleeps 0.35 s (usleep in router.php): the four curls of xargs -P4 stand in its queue; PHP_CLI_SERVER_WORKERS=4",
        r"(?i)\bphp\b|router\.php|usleep|18641|PHP_CLI_SERVER_WORKERS",
        {
            "setup.sh": r"""exit 0
""",
            "router.php": r"""<?php
// Stand-in for the payment sandbox: it answers as slowly as the real one does.
if ($_SERVER["REQUEST_URI"] === "/up") { echo "up"; return; }
usleep(350000);
header("Content-Type: application/json");
echo json_encode(["id" => (int)($_GET["id"] ?? 0), "state" => "captured"]);
""",
            "one.sh": r"""body=$(curl -sS --max-time 20 "http://127.0.0.1:18641/charge?id=$1") || exit 1
case $body in *'"state":"captured"'*) echo "ok charge $1";; *) echo "not ok charge $1: $body"; exit 1;; esac
""",
            "run.sh": r"""set -e
sh setup.sh
[ -z "$FIX" ] || export PHP_CLI_SERVER_WORKERS=4
php -q -S 127.0.0.1:18641 router.php >php.log 2>&1 & S=$!
until curl -s -o up.txt http://127.0.0.1:18641/up; do sleep 0.05; done
rc=0
seq 1 12 | xargs -P4 -n1 sh one.sh || rc=$?
K=$(ps -o pid= --ppid $S) || :
kill $S $K; wait $S 2>/dev/null || :
exit $rc
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-rpc-small-writes",
        "wait",
        "perl and python; TCP on loopback; many short waits of 40 ms (Nagle against delayed ACK); read",
        "conformance.pl writes length and body in two writes without TCP_NODELAY: each of 90 calls waits 40 ms or more for the delayed ACK of kvd.py's side; join the writes or set TCP_NODELAY",
        r"(?i)conformance(?:\.pl)?|\bkvd(?:\.py)?\b|18643|NODELAY|Nagle|delayed.ack",
        {
            "setup.sh": r"""exit 0
""",
            "kvd.py": r"""# kvd.py PORT: the store under test. A request is a 4-byte length and a body; so is the answer.
import socket, sys
l = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open("kvd.ready", "w").close()
c, _ = l.accept()
f = c.makefile("rb")
store = {}
while True:
    h = f.read(4)
    if len(h) < 4: break
    verb, k, v = (f.read(int.from_bytes(h, "big")).decode().split(" ", 2) + [""])[:3]
    if verb == "set": store[k] = v; out = b"+"
    else: out = store.get(k, "").encode()
    c.sendall(len(out).to_bytes(4, "big") + out)
""",
            "conformance.pl": r"""# conformance.pl PORT: sets and gets each key
use strict; use warnings; use IO::Socket::INET; use Socket qw(IPPROTO_TCP TCP_NODELAY);
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => shift) or die "connect: $!";
setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1) if $ENV{FIX};
sub take { my ($n, $b) = (shift, ""); while (length $b < $n) { sysread($s, $b, $n - length $b, length $b) or die "eof" } $b }
sub call {
    my $q = shift;
    syswrite $s, pack("N", length $q);
    syswrite $s, $q;
    return take(unpack "N", take(4));
}
my $bad = 0;
for my $i (1 .. 45) {
    call("set key$i value$i") eq "+" or $bad++;
    call("get key$i") eq "value$i" or $bad++;
}
print $bad ? "not ok $bad\n" : "ok 90 calls\n";
exit($bad ? 1 : 0);
""",
            "codec.pl": r"""# codec round trips, no socket
my $h = 1;
for my $i (1 .. 1200000) { my $p = pack("N n a8", $i, $i % 65536, "k$i"); my @u = unpack("N n a8", $p); $h = ($h * 31 + $u[0]) % 4294967291 }
print "ok codec $h\n";
""",
            "run.sh": r"""set -e
sh setup.sh
perl codec.pl
rm -f kvd.ready
python3 kvd.py 18643 & S=$!
while [ ! -e kvd.ready ]; do sleep 0.02; done
rc=0
perl conformance.pl 18643 || rc=$?
wait $S
exit $rc
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-expect-prompt",
        "wait",
        "expect and python; pty; time-out that is waited for; select",
        "the prompt pattern of session.exp never matches, since an escape sequence stands before the prompt: each of four prompts is waited for until the time-out of 1 s; repair the pattern",
        r"(?i)\bexpect\b|session\.exp|\bmdb(?:\.py)?\b|prompt",
        {
            "setup.sh": r"""exit 0
""",
            "mdb.py": r"""# mdb: a small debugger's command loop, as it behaves on a terminal
import sys
def work(n):
    x = 1
    for i in range(n * 600): x = (x * 48271 + i) % 2147483647
    return x
print("mdb 2.1")
while True:
    sys.stdout.write("\x1b[?2004h(mdb) "); sys.stdout.flush()
    line = sys.stdin.readline()
    sys.stdout.write("\x1b[?2004l")
    if not line or line.strip() == "quit": break
    print("value", line.split()[1], work(int(line.split()[1])))
""",
            "session.exp": r"""set timeout 10
log_user 0
# the prompt stands at the start of a line
set prompt {[\r\n]\(mdb\) $}
if {[info exists env(FIX)]} {
    set prompt {\(mdb\) $}
}
spawn python3 mdb.py
proc prompt {} {
    expect {
        -timeout 1 -re $::prompt {}
        timeout {}
        eof { puts "not ok - mdb died"; exit 1 }
    }
}
prompt
foreach n {900 1100 700} {
    send "step $n\r"
    expect {
        -re "value $n (\\d+)" { puts "ok - step $n = $expect_out(1,string)" }
        timeout { puts "not ok - step $n"; exit 1 }
    }
    prompt
}
send "quit\r"
expect eof
wait
""",
            "run.sh": r"""set -e
sh setup.sh
expect session.exp
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-none-curl-low-speed",
        "none",
        "curl and node; time-out that is the subject of the test; event loop with an idle tick",
        "nothing: the test is that curl gives up a stalled transfer after --speed-time 3 and not before; node is idle by design",
        r"(?i)\bnothing\b|\bno (?:change|advice|gain|waste)|leave|by design|speed-time|low.speed",
        {
            "setup.sh": r"""exit 0
""",
            "stall.js": r"""// stall.js PORT: /stall sends a start and then nothing; /ok sends everything
const http = require("http"), fs = require("fs");
const srv = http.createServer((q, a) => {
  a.writeHead(200, { "Content-Length": 4096, "Connection": "close" });
  if (q.url === "/stall") a.write(Buffer.alloc(64, 120));
  else a.end(Buffer.alloc(4096, 120));
});
srv.listen(+process.argv[2], "127.0.0.1", () => fs.writeFileSync("stall.ready", ""));
process.on("SIGTERM", () => process.exit(0));
setInterval(() => {}, 250); // gauge tick
""",
            "test-low-speed.sh": r"""# A transfer below --speed-limit for --speed-time must be given up, with exit code 28; not before.
curl -sS --max-time 20 -o got.bin http://127.0.0.1:18647/ok || { echo "not ok - plain transfer"; exit 1; }
rc=0
t=$(curl -s --speed-limit 1000 --speed-time 3 --max-time 20 -o got.bin -w '%{time_total}' http://127.0.0.1:18647/stall) || rc=$?
awk -v rc=$rc -v t="$t" 'BEGIN { ok = rc == 28 && t >= 2.5 && t < 8; print (ok ? "ok" : "not ok") " - low speed gave " rc " after " t; exit !ok }'
""",
            "run.sh": r"""set -e
sh setup.sh
rm -f stall.ready
node stall.js 18647 & S=$!
while [ ! -e stall.ready ]; do sleep 0.02; done
rc=0
sh test-low-speed.sh || rc=$?
kill $S; wait $S || :
exit $rc
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-none-go-pacer",
        "none",
        "go; futex and timers; a test that measures time",
        "nothing: a rate of 20 per second is held over 60 turns, which takes 3 s by the definition of the package under test",
        r"(?i)\bnothing\b|\bno (?:change|advice|gain|waste)|leave|by design|pacer",
        {
            "setup.sh": r"""set -e
[ -x pacer.test ] && exit 0
GOCACHE=$PWD/.gocache GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 go test -c -o pacer.test .
rm -rf .gocache
""",
            "go.mod": r"""module example.org/pacer

go 1.19
""",
            "pacer.go": r"""// Package pacer hands out turns at a fixed rate.
package pacer

import "time"

type Pacer struct {
	every time.Duration
	next  time.Time
}

func New(perSecond int) *Pacer { return &Pacer{every: time.Second / time.Duration(perSecond), next: time.Now()} }

func (p *Pacer) Wait() {
	p.next = p.next.Add(p.every)
	time.Sleep(time.Until(p.next))
}
""",
            "pacer_test.go": r"""package pacer

import (
	"testing"
	"time"
)

// The rate over a real span is what the package promises.
func TestRateHolds(t *testing.T) {
	start := time.Now()
	p := New(20)
	for i := 0; i < 60; i++ {
		p.Wait()
	}
	if d := time.Since(start); d < 2950*time.Millisecond || d > 4*time.Second {
		t.Fatalf("60 turns at 20/s took %v", d)
	}
}

func TestCatchesUp(t *testing.T) {
	p := New(20)
	time.Sleep(200 * time.Millisecond)
	start := time.Now()
	for i := 0; i < 4; i++ {
		p.Wait()
	}
	if d := time.Since(start); d > 120*time.Millisecond {
		t.Fatalf("late turns were not given at once: %v", d)
	}
}
""",
            "run.sh": r"""set -e
sh setup.sh
./pacer.test -test.v
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-none-kdf-heartbeat",
        "none",
        "c, perl and tail; heartbeat, log follower and watchdog beside the work; one serial CPU-bound process",
        "nothing: each round of the key derivation needs the one before; heartbeat.pl, tail -f and timeout wait beside it and are ended at once",
        r"(?i)\bnothing\b|\bno (?:change|advice|gain|waste)|leave|by design|\bkdf\b",
        {
            "setup.sh": r"""set -e
[ -x kdf ] && exit 0
cc -O2 -o kdf.tmp kdf.c && mv kdf.tmp kdf
""",
            "kdf.c": r"""/* Known-answer test of an iterated key derivation: each round needs the one before it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    uint64_t x = 0x9e3779b97f4a7c15u, n = strtoull(argv[1], 0, 10);
    for (uint64_t i = 0; i < n; i++) {
        x ^= x >> 33; x *= 0xff51afd7ed558ccdu; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53u; x ^= x >> 33;
        if (i % (n / 4) == 0) { fprintf(stderr, "round %llu\n", (unsigned long long)i); }
    }
    printf("%016llx\n", (unsigned long long)x);
    return 0;
}
""",
            "heartbeat.pl": r"""# CI kills a job that says nothing for long
$| = 1; $SIG{TERM} = sub { exit 0 };
while (1) { sleep 1; print "still running\n" }
""",
            "run.sh": r"""set -e
sh setup.sh
: >kdf.log
tail -n +1 -f kdf.log & T=$!
perl heartbeat.pl & H=$!
rc=0
timeout 60 ./kdf 900000000 >got.txt 2>>kdf.log || rc=$?
kill $T $H; wait $T 2>/dev/null || :; wait $H 2>/dev/null || :
[ "$(cat got.txt)" = e365226c6bcf7ee5 ] || rc=1
[ $rc != 0 ] || echo "ok kdf $(cat got.txt)"
exit $rc
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-none-groff-passes",
        "none",
        "groff, awk and sh; passes until convergence; CPU-bound, looks like work done twice",
        "nothing: page numbers move from pass to pass and the last pass shows that they stay; no pass can start before the one before has ended",
        r"(?i)\bnothing\b|\bno (?:change|advice|gain|waste)|leave|by design|groff|troff|book\.sh",
        {
            "setup.sh": r"""set -e
[ -s body.tr ] && exit 0
perl -e 'for $s (1..160) { print ".HD $s\n"; for $p (1..9) { print ".P\n", join(" ", map { "term" . ($_*7919*$s*$p % 9973) . " is given in \\*[ref" . (1 + ($s*17+$p*5) % 160) . "]" } 1..40), ".\n" } }' >body.tmp
mv body.tmp body.tr
""",
            "head.tr": r""".de HD
.sp
.ds h\\$1 \\n%
.tm \\$1 \\n%
.sp
\fBSection \\$1\fP
.br
..
.de P
.sp 1
..
.de FT
'bp
'sp 1
..
.wh -1i FT
""",
            "book.sh": r"""# Typesets until the page numbers that the text refers to no longer change.
: >refs.aux
pass=0
while :; do
    pass=$((pass + 1))
    {
        cat head.tr
        awk '{ print ".ds ref" $1 " section " $1 " on page " $2 " (see also the notes there)" }' refs.aux
        awk '{ print ".br\nSection " $1 " ... " $2 }' refs.aux
        cat body.tr
    } >book.tr
    groff -Tps -ww book.tr >book.ps 2>refs.err
    grep -E '^[0-9]+ [0-9]+$' refs.err >refs.new || :
    echo "pass $pass: $(cksum <refs.new)"
    if cmp -s refs.aux refs.new; then break; fi
    mv refs.new refs.aux
    [ $pass -lt 8 ] || { echo "does not converge"; exit 1; }
done
""",
            "run.sh": r"""set -e
sh setup.sh
sh book.sh
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w20-none-ttl-expiry",
        "none",
        "tcl; server with a tick of 100 ms; client that sleeps; expiry in whole seconds is the subject",
        "nothing: a key with a TTL of 2 s must outlive its first TTL when it is refreshed, then expire; the waits are one chain and the TTL is near the smallest that the server knows; the server's tick is beside it",
        r"(?i)\bnothing\b|\bno (?:change|advice|gain|waste)|leave|by design|expire\.test|minikv|ttl",
        {
            "setup.sh": r"""exit 0
""",
            "minikv.tcl": r"""# minikv.tcl PORT: the server under test. Time to live is in whole seconds; ten times a second it drops what is out of date.
proc now {} { clock milliseconds }
proc cron {} { foreach k [array names ::ttl] { if {$::ttl($k) <= [now]} { unset ::ttl($k) ::val($k) } }; after 100 cron }
proc serve {c} {
    if {[gets $c line] < 0} { if {[eof $c]} { close $c }; return }
    lassign $line verb k a b
    switch $verb {
        SET { set ::val($k) $a; set ::ttl($k) [expr {[now] + 1000 * $b}]; puts $c OK }
        GET { puts $c [expr {[info exists ::val($k)] ? $::val($k) : "(nil)"}] }
        EXPIRE { set ::ttl($k) [expr {[now] + 1000 * $a}]; puts $c OK }
        SHUTDOWN { puts $c OK; flush $c; exit 0 }
    }
}
proc accept {c a p} { fconfigure $c -blocking 0 -buffering line; fileevent $c readable [list serve $c] }
socket -server accept -myaddr 127.0.0.1 [lindex $argv 0]
close [open minikv.ready w]
cron
vwait forever
""",
            "expire.test.tcl": r"""set s [socket 127.0.0.1 [lindex $argv 0]]
fconfigure $s -buffering line
proc r {args} { puts $::s $args; gets $::s }
set bad 0
proc is {got want name} { if {$got ne $want} { puts "not ok - $name: $got"; incr ::bad } else { puts "ok - $name" } }
is [r SET lease holder1 2] OK "set with ttl"
after 1200
is [r EXPIRE lease 2] OK "refresh"
after 1400
is [r GET lease] holder1 "a refreshed key outlives its first ttl"
after 900
is [r GET lease] (nil) "an expired key is gone"
r SHUTDOWN
exit $bad
""",
            "run.sh": r"""set -e
sh setup.sh
rm -f minikv.ready
tclsh minikv.tcl 18645 & S=$!
while [ ! -e minikv.ready ]; do sleep 0.02; done
rc=0
tclsh expire.test.tcl 18645 || rc=$?
wait $S
exit $rc
""",
        },
        prepare="sh setup.sh",
    ),
]
