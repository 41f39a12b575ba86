"""Twelve release-engineering and infrastructure runs, with one planted fault each or with nothing to change.

Written without knowledge of the program's rules. run.sh makes its products by setup.sh if they are missing; FIX=1 runs it repaired.
"""

from waits import Plant

PY = "/usr/bin/python3"

# Deterministic package contents that compress like text: gen.py NAME KILOBYTES SEED.
GEN = """import random, sys
name, kb, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)
words = ["".join(r.choices("abcdefghijklmnopqrstuvwxyz0123456789_/.", k=r.randint(3, 11))) for _ in range(6000)]
with open(name, "w") as f:
    n = 0
    while n < kb * 1024:
        s = " ".join(r.choices(words, k=2000)) + "\\n"
        f.write(s); n += len(s)
"""

NOTHING = r"(?i)nothing|no (change|advice|fault|waste|clear|single)|as it should|by design|both CPUs|fully used"


def run(text, product=".prepared"):
    return f"[ -e {product} ] || sh setup.sh\n" + text


PLANTS = [
    # ---------------------------------------------------------------- waits
    Plant(
        "w19-stop",
        "wait",
        "service manager, signal not forwarded, Popen.wait with a time-out, shell as main process",
        "entrypoint.sh keeps a shell as the unit's main process; it puts off its TERM trap until app.py ends, so each of the two stops "
        "lasts unitctl's whole stop time-out of 2 s until KILL; exec app.py (or forward the signal)",
        r"(?i)entrypoint|unitctl.*(wait|stop|poll|sleep|time-?out)|app\.py|stop.?time-?out|SIGTERM|SIGKILL|\bTERM\b",
        {
            "run.sh": run(f"{PY} unitctl.py deploy\n"),
            "setup.sh": "mkdir -p site\necho '<h1>release</h1>' >site/index.html\n: >.prepared\n",
            "entrypoint.sh": """# Main process of the unit.
trap 'echo "entrypoint: stopping" >>unit.log' TERM
umask 022
if [ -n "$FIX" ]; then exec """
            + PY
            + """ app.py "$1"; fi
"""
            + PY
            + """ app.py "$1"
""",
            "app.py": """import http.server, os, sys
os.chdir("site")
class H(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
class S(http.server.HTTPServer):
    allow_reuse_address = True
s = S(("127.0.0.1", int(sys.argv[1])), H)
os.write(3, b"READY=1\\n")
os.close(3)
s.serve_forever()
""",
            "unitctl.py": """# Blue/green: stop blue when green answers. KillMode=mixed: TERM to the main process, KILL to the group after the time-out.
import hashlib, os, signal, subprocess, urllib.request
TIMEOUT_STOP_SEC = 2.0

def start(port):
    r, w = os.pipe()
    def pre():
        os.setsid()
        os.dup2(w, 3)
    p = subprocess.Popen(["/bin/sh", "entrypoint.sh", str(port)], preexec_fn=pre, pass_fds=(3,) if w == 3 else (3, w))
    os.close(w)
    got = os.read(r, 16)
    os.close(r)
    assert got.startswith(b"READY"), got
    return p

def stop(p):
    p.send_signal(signal.SIGTERM)
    try:
        p.wait(TIMEOUT_STOP_SEC)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()

def smoke(port):
    assert b"release" in urllib.request.urlopen(f"http://127.0.0.1:{port}/").read()

def attest(seed):
    d = seed
    for _ in range(2_600_000):
        d = hashlib.sha256(d).digest()
    return d

blue = start(18610)
smoke(18610)
attest(b"blue")
green = start(18611)
smoke(18611)
stop(blue)
attest(b"green")
stop(green)
print("deployed")
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w19-migrate",
        "wait",
        "database, lock held over a slow call, sqlite busy handler, python, HTTP",
        "migrate.py announces the migration to the slow chat webhook (hookd.py, 2.5 s) inside its write transaction; backfill.py waits in "
        "sqlite's busy handler for the lock meanwhile; announce after COMMIT",
        r"(?i)hookd|webhook|announce|migrate\.py|backfill.*(wait|lock|busy|sleep)|sqlite|app\.db|database lock|18612",
        {
            "run.sh": run(f"""cp seed.db app.db; rm -f app.db-journal hook.ready locked
{PY} hookd.py 18612 2.5 & S=$!
while [ ! -e hook.ready ]; do sleep 0.02; done
{PY} migrate.py & M=$!
while [ ! -e locked ]; do sleep 0.02; done
{PY} backfill.py & B=$!
wait $M && wait $B; rc=$?
kill $S; wait $S 2>/dev/null
[ $rc = 0 ] && {PY} verify.py
"""),
            "setup.sh": PY
            + """ - <<'E'
import os, sqlite3
if os.path.exists("seed.db"): os.unlink("seed.db")
c = sqlite3.connect("seed.db")
c.execute("create table orders(id integer primary key, sku text)")
c.execute("create table audit(id integer primary key, digest text)")
c.executemany("insert into orders(sku) values(?)", [(f"sku{i % 97}",) for i in range(60000)])
c.commit()
E
: >.prepared
""",
            "hookd.py": """import http.server, sys, time
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(float(sys.argv[2]))
        self.send_response(204); self.end_headers()
    def log_message(self, *a): pass
class S(http.server.HTTPServer):
    allow_reuse_address = True
s = S(("127.0.0.1", int(sys.argv[1])), H)
open("hook.ready", "w").close()
s.serve_forever()
""",
            "migrate.py": """import os, sqlite3, urllib.request
def announce():
    urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:18612/chat", b"0042 add orders.region")).read()
c = sqlite3.connect("app.db", isolation_level=None)
c.execute("begin immediate")
open("locked", "w").close()
c.execute("alter table orders add column region text")
c.execute("update orders set region = 'r' || (id % 7)")
if not os.environ.get("FIX"): announce()
c.execute("commit")
if os.environ.get("FIX"): announce()
""",
            "backfill.py": """import hashlib, sqlite3
c = sqlite3.connect("app.db", timeout=60, isolation_level=None)
c.execute("begin immediate")
for i in range(30):
    d = b"%d" % i
    for _ in range(260000): d = hashlib.sha256(d).digest()
    c.execute("insert into audit(digest) values(?)", (d.hex(),))
c.execute("commit")
""",
            "verify.py": """import sqlite3
c = sqlite3.connect("app.db")
assert c.execute("select count(region) from orders").fetchone()[0] == 60000
assert c.execute("select count(*) from audit").fetchone()[0] == 30
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w19-pkglock",
        "wait",
        "packaging scriptlets, flock inherited by a daemon, perl, shell",
        "the first package's postinst starts inventory.pl, which inherits descriptor 9, the package lock, and keeps it until it ends 4.5 s "
        "later; the second install waits in flock for it; start it with 9>&-",
        r"(?i)inventory|flock|pkg\.lock|package lock|postinst|pkginst|descriptor 9|lock.*held|held.*lock",
        {
            "run.sh": run("""rm -rf root; mkdir root; rm -f agent.pid
sh pkginst.sh inventory-agent && sh pkginst.sh web; rc=$?
kill "$(cat agent.pid)" 2>/dev/null
while kill -0 "$(cat agent.pid)" 2>/dev/null; do sleep 0.02; done
exit $rc
"""),
            "setup.sh": f"""for p in inventory-agent web; do
mkdir -p pkgs/$p/usr/share; {PY} gen.py pkgs/$p/usr/share/$p.dat 9000 7
tar -C pkgs/$p -cf - . | xz -1 >$p.tar.xz; done
: >.prepared
""",
            "gen.py": GEN,
            "pkginst.sh": """# Installs one package under the package lock, as dpkg does.
exec 9>pkg.lock
flock 9
for v in 1 2 3; do rm -rf root/$1; mkdir root/$1; xz -dc $1.tar.xz | tar -C root/$1 -xf -; xz -tq $1.tar.xz; done
(cd root/$1 && find . -type f | xargs sha512sum) >root/$1.sums
[ ! -e postinst.$1 ] || sh postinst.$1
""",
            "postinst.inventory-agent": """# First-boot inventory goes on in the background.
if [ -n "$FIX" ]; then exec 9>&-; fi
setsid perl inventory.pl >/dev/null 2>&1 </dev/null &
echo $! >agent.pid
""",
            "inventory.pl": """# Walks the machine gently and leaves when it has seen everything.
use strict; use warnings;
$SIG{TERM} = sub { exit 0 };
my @parts = map { "/usr/share/part$_" } 1 .. 9;
for my $p (@parts) { my @s = stat $p; select undef, undef, undef, 0.5; }
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w19-logship",
        "wait",
        "log shipper, node event loop, linger timer at end of input, pipe",
        "shipper.js does not flush its last, partial batch at the end of its input: it waits until the linger timer of 4 s fires; flush "
        "on 'close'",
        r"(?i)shipper|linger|\bnode\b.*(timer|wait|end of)|flush|batch",
        {
            "run.sh": run(f"""rm -f shipped.log col.ready
{PY} collector.py 18614 & S=$!
while [ ! -e col.ready ]; do sleep 0.02; done
perl signall.pl | node shipper.js 18614; rc=$?
kill $S; wait $S 2>/dev/null
[ $rc = 0 ] && [ "$(wc -l <shipped.log)" = 1200 ]
"""),
            "setup.sh": f"{PY} gen.py artifact 3000 3\n: >.prepared\n",
            "gen.py": GEN,
            "signall.pl": """# Signs 1200 chunks of the artifact and logs each.
use strict; use warnings; use Digest::SHA qw(sha512_hex);
$| = 1;
open my $f, "<", "artifact" or die; local $/; my $d = <$f>;
for my $i (1 .. 1200) {
    my $c = substr($d, ($i * 2048) % 2000000, 60000);
    my $h = ""; $h = sha512_hex($h . $c) for 1 .. 12;
    print "signed $i $h\\n";
}
""",
            "shipper.js": """const http = require('http'), rl = require('readline');
const LINGER_MS = 4000, BATCH = 500, port = +process.argv[2];
let batch = [], timer = null;
function flush() {
  clearTimeout(timer); timer = null;
  if (!batch.length) return;
  const body = batch.join('\\n') + '\\n'; batch = [];
  const q = http.request({ host: '127.0.0.1', port, method: 'POST', path: '/ingest', agent: false,
    headers: { 'Content-Length': Buffer.byteLength(body) } }, r => r.resume());
  q.on('error', e => { console.error(e.message); process.exit(1); });
  q.end(body);
}
const lines = rl.createInterface({ input: process.stdin });
lines.on('line', l => {
  batch.push(l);
  if (batch.length >= BATCH) flush();
  else if (!timer) timer = setTimeout(flush, LINGER_MS);
});
if (process.env.FIX) lines.on('close', flush);
""",
            "collector.py": """import http.server, socketserver, sys, threading
lock = threading.Lock()
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        b = self.rfile.read(int(self.headers["Content-Length"]))
        with lock, open("shipped.log", "ab") as f: f.write(b)
        self.send_response(204); self.end_headers()
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
s = S(("127.0.0.1", int(sys.argv[1])), H)
open("col.ready", "w").close()
s.serve_forever()
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w19-usedns",
        "wait",
        "ssh-like transport, reverse look-up by a dead resolver, perl select, server side of many short sessions",
        "pushd.pl looks up each client's name by the resolver at 18616, which never answers, and waits 0.5 s in each of 8 sessions "
        "(UseDNS yes); UseDNS no, as the addresses are not used",
        r"(?i)pushd|UseDNS|reverse|look-?up|resolver|\bDNS\b|18616|18615",
        {
            "run.sh": run("""rm -rf remote push.ready; mkdir remote
perl resolver.pl 18616 & R=$!
perl pushd.pl 18615 18616 & S=$!
while [ ! -e push.ready ]; do sleep 0.02; done
sh provision.sh; rc=$?
kill $S $R; wait $S $R 2>/dev/null
[ $rc = 0 ] && [ "$(ls remote | wc -l)" = 8 ]
"""),
            "setup.sh": f"{PY} gen.py template 2200 5\n: >.prepared\n",
            "gen.py": GEN,
            "provision.sh": """# Renders the configuration of each role and pushes it.
for role in web api db cache queue cron edge log; do
  sed "s/a/$role/g; s/e/E/g; s/[0-9][0-9]*/<&>/g" template | xz -1 -T1 >rendered.$role.xz || exit 1
  perl push.pl 18615 $role rendered.$role.xz || exit 1
done
""",
            "push.pl": """use strict; use warnings; use IO::Socket::INET;
my ($port, $role, $file) = @ARGV;
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port) or die "connect: $!";
my $banner = <$s>; die "no banner" unless defined $banner && $banner =~ /^PUSH/;
open my $f, "<", $file or die; binmode $f; local $/; my $d = <$f>;
print $s "$role " . length($d) . "\\n" . $d; $s->flush;
my $r = <$s>; exit(defined $r && $r =~ /^OK/ ? 0 : 1);
""",
            "pushd.pl": """use strict; use warnings; use IO::Socket::INET; use Socket;
my ($port, $dns) = @ARGV;
my $UseDNS = $ENV{FIX} ? 0 : 1;
my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $port, Listen => 8, ReuseAddr => 1) or die "listen: $!";
open my $t, ">", "push.ready"; close $t;
sub reverse_lookup {
    my $u = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $dns, Proto => "udp") or return;
    $u->send("\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x011\\x010\\x010\\x03127\\x07in-addr\\x04arpa\\x00\\x00\\x0c\\x00\\x01");
    my $v = ""; vec($v, fileno($u), 1) = 1;
    return unless select($v, undef, undef, 0.5);
    my $a; $u->recv($a, 512); return $a;
}
while (my $c = $l->accept) {
    reverse_lookup() if $UseDNS;
    print $c "PUSH-1.0\\n"; $c->flush;
    my $h = <$c>; next unless defined $h && $h =~ /^(\\w+) (\\d+)/;
    my ($role, $n) = ($1, $2); my $d = "";
    read $c, $d, $n;
    open my $f, ">", "remote/$role" or die; print $f $d; close $f;
    print $c "OK\\n"; close $c;
}
""",
            "resolver.pl": """# A forwarder whose upstream is gone: takes questions, has no answers.
use strict; use warnings; use IO::Socket::INET;
my $u = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Proto => "udp") or die "bind: $!";
my $q; while (1) { $u->recv($q, 512); }
""",
        },
        "sh setup.sh",
    ),
    # ---------------------------------------------------------------- CPU-bound
    Plant(
        "w19-layers",
        "cpu",
        "container image layers, the same compression twice, two jobs already, gzip",
        "mklayer.sh compresses each layer with gzip -9 twice, once for the digest's name and once for the blob; compress once to a file "
        "and take the digest of that",
        r"(?i)mklayer|twice|two times|again|repeat|same (command|work|input|bytes)|\b12\b.*gzip|gzip.*(\b12\b|per layer|each layer)",
        {
            "run.sh": run("""rm -rf blobs; mkdir blobs
ls layers | xargs -P2 -n1 sh mklayer.sh || exit 1
[ "$(ls blobs | wc -l)" = 6 ] && (cd blobs && for b in *; do echo "$b  $b"; done | sha256sum -c --quiet)
"""),
            "setup.sh": f"""for i in 1 2 3 4 5 6; do mkdir -p layers/l$i/opt; {PY} gen.py layers/l$i/opt/app.dat 22000 $i; done
: >.prepared
""",
            "gen.py": GEN,
            "mklayer.sh": """set -e
pack() { tar --sort=name --mtime=@0 --owner=0 --group=0 -C layers/$1 -cf - . | gzip -9n; }
if [ -n "$FIX" ]; then
  pack $1 >blobs/.$1
  d=$(sha256sum <blobs/.$1); d=${d%% *}
  mv blobs/.$1 blobs/$d
else
  d=$(pack $1 | sha256sum); d=${d%% *}
  pack $1 >blobs/$d
fi
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w19-dbgsym",
        "cpu",
        "package compression, static split into two shards, imbalance, xz",
        "build-debs.sh gives even and odd places of the sorted list to its two shards, so that one gets every small package and the other "
        "every -dbgsym one; the first is done early and its CPU idles; hand packages from one queue to both",
        r"(?i)shard|imbalance|uneven|unbalanced|dbgsym|build-debs|packdeb|longest|\balone\b|one (CPU|job|process) (at a time|only)|queue",
        {
            "run.sh": run('rm -rf out; mkdir out\nsh build-debs.sh && [ "$(ls out | wc -l)" = 12 ]\n'),
            "setup.sh": f"""for p in apt bind curl dhcp exim fuse; do mkdir -p stage/$p stage/$p-dbgsym
{PY} gen.py stage/$p/bin 120 1; {PY} gen.py stage/$p-dbgsym/debug 1500 2; done
: >.prepared
""",
            "gen.py": GEN,
            "build-debs.sh": """# Packs every staged package, on two CPUs.
if [ -n "$FIX" ]; then ls stage | xargs -P2 -n1 sh packdeb.sh; exit; fi
shard() { ls stage | awk "NR % 2 == $1" | while read -r p; do sh packdeb.sh $p || exit 1; done; }
shard 1 & a=$!
shard 0 & b=$!
wait $a && wait $b
""",
            "packdeb.sh": """set -e
tar -C stage/$1 -cf - . | xz -6 -T1 >out/$1.data.tar.xz
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w19-indexer",
        "cpu",
        "artifact mirror, go, one mutex held over the work, two workers, futex",
        "indexer (go) holds the index's mutex while it hashes each artifact, so its two workers take turns and one CPU idles; hash first, "
        "hold the mutex for the map only",
        r"(?i)indexer|mutex|\block|contention|futex|goroutine",
        {
            "run.sh": run('./indexer pool.dat >index.txt && [ "$(wc -l <index.txt)" = 84 ]\n', "indexer"),
            "setup.sh": f"{PY} gen.py pool.dat 6000 9\nGO111MODULE=off GOTOOLCHAIN=local go build -o indexer indexer.go\n",
            "gen.py": GEN,
            "indexer.go": """package main

import (
	"crypto/sha512"
	"fmt"
	"os"
	"sort"
	"sync"
)

type Index struct {
	mu      sync.Mutex
	digests map[int]string
	narrow  bool
}

func digest(b []byte, seed int) string {
	var d [64]byte
	d[0] = byte(seed)
	for i := 0; i < 6; i++ {
		h := sha512.New()
		h.Write(d[:])
		h.Write(b)
		copy(d[:], h.Sum(nil))
	}
	return fmt.Sprintf("%x", d)
}

func (x *Index) Add(n int, b []byte) {
	if x.narrow {
		d := digest(b, n)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.digests[n] = d
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.digests[n] = digest(b, n)
}

func main() {
	b, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	x := &Index{digests: map[int]string{}, narrow: os.Getenv("FIX") != ""}
	jobs := make(chan int)
	var wg sync.WaitGroup
	for w := 0; w < 2; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range jobs {
				x.Add(n, b)
			}
		}()
	}
	for n := 0; n < 84; n++ {
		jobs <- n
	}
	close(jobs)
	wg.Wait()
	var keys []int
	for k := range x.digests {
		keys = append(keys, k)
	}
	sort.Ints(keys)
	for _, k := range keys {
		fmt.Println(k, x.digests[k])
	}
}
""",
        },
        "sh setup.sh",
    ),
    # ---------------------------------------------------------------- nothing to change
    Plant(
        "w19-canary",
        "none",
        "canary bake, a window that is the command's purpose, asyncio, probes at a rate",
        "nothing: canary_bake.py watches green for its window of 4 s at 10 probes a second; a shorter window judges less",
        NOTHING,
        {
            "run.sh": run(f"""rm -f green.ready
{PY} green.py 18620 & S=$!
while [ ! -e green.ready ]; do sleep 0.02; done
{PY} canary_bake.py --url-port 18620 --window 4 --rate 10 --max-error-rate 0.01; rc=$?
kill $S; wait $S 2>/dev/null
exit $rc
"""),
            "setup.sh": ": >.prepared\n",
            "green.py": """import asyncio, sys
async def serve(r, w):
    await r.readuntil(b"\\r\\n\\r\\n")
    w.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
    await w.drain(); w.close()
async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), reuse_address=True)
    open("green.ready", "w").close()
    async with s: await s.serve_forever()
asyncio.run(main())
""",
            "canary_bake.py": """# Judges the new release: a constant load over a window, then error rate and p99 of what was seen in it.
import argparse, asyncio, time
p = argparse.ArgumentParser()
for a, t in (("--url-port", int), ("--window", float), ("--rate", float), ("--max-error-rate", float)): p.add_argument(a, type=t)
a = p.parse_args()
async def probe():
    t = time.perf_counter()
    r, w = await asyncio.open_connection("127.0.0.1", a.url_port)
    w.write(b"GET /healthz HTTP/1.1\\r\\nHost: green\\r\\n\\r\\n")
    ok = (await r.read()).startswith(b"HTTP/1.1 200")
    w.close()
    return ok, time.perf_counter() - t
async def main():
    begin, seen = time.monotonic(), []
    n = int(a.window * a.rate)
    for i in range(n):
        await asyncio.sleep(max(0, begin + (i + 1) / a.rate - time.monotonic()))
        seen.append(await probe())
    bad = sum(not ok for ok, _ in seen) / n
    print(f"errors {bad:.3f}, p99 {sorted(s for _, s in seen)[int(n * 0.99) - 1] * 1000:.1f} ms")
    return bad > a.max_error_rate
raise SystemExit(asyncio.run(main()))
""",
        },
        "sh setup.sh",
        0.5,
    ),
    Plant(
        "w19-failover",
        "none",
        "lock server in tcl, lease, a test that measures time, killed leader, read on a socket",
        "nothing: the drill measures that the standby takes over when the killed leader's lease of 3 s ends, neither sooner nor later",
        NOTHING,
        {
            "run.sh": run(f"""rm -f lockd.ready
tclsh lockd.tcl 18622 3000 & S=$!
while [ ! -e lockd.ready ]; do sleep 0.02; done
{PY} test_failover_time.py 18622 2.6 3.6; rc=$?
kill $S; wait $S 2>/dev/null
exit $rc
"""),
            "setup.sh": ": >.prepared\n",
            "lockd.tcl": """# Grants one lease; a holder that does not renew it in time loses it to the first that waits.
lassign $argv port lease
set holder ""; set waiting {}; set timer ""
proc expire {} { global holder; set holder ""; grant }
proc grant {} {
    global holder waiting timer lease
    if {$holder ne "" || ![llength $waiting]} return
    set waiting [lassign $waiting holder]
    catch { puts $holder granted; flush $holder }
    set timer [after $lease expire]
}
proc hear c {
    global holder waiting timer lease
    if {[gets $c line] < 0} { if {[eof $c]} { close $c }; return }
    switch $line {
        acquire { lappend waiting $c; grant }
        renew { if {$c eq $holder} { after cancel $timer; set timer [after $lease expire] } }
        release { if {$c eq $holder} { after cancel $timer; expire } }
    }
}
proc accept {c host port} { fconfigure $c -blocking 0 -buffering line; fileevent $c readable [list hear $c] }
socket -server accept -myaddr 127.0.0.1 $port
close [open lockd.ready w]
vwait forever
""",
            "leader.pl": """use strict; use warnings; use IO::Socket::INET;
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]) or die;
print $s "acquire\\n"; $s->flush; my $g = <$s>;
$| = 1; print "leading\\n";
while (1) { print $s "renew\\n"; $s->flush; select undef, undef, undef, 0.25; }
""",
            "standby.pl": """use strict; use warnings; use IO::Socket::INET;
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]) or die;
print $s "acquire\\n"; $s->flush;
my $g = <$s>;
print "leading\\n"; print $s "release\\n"; $s->flush;
""",
            "test_failover_time.py": """# The promise: no takeover while the lease of a dead leader may still be believed, and one soon after.
import subprocess, sys, time
port, least, most = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
leader = subprocess.Popen(["perl", "leader.pl", port], stdout=subprocess.PIPE)
assert leader.stdout.readline() == b"leading\\n"
standby = subprocess.Popen(["perl", "standby.pl", port], stdout=subprocess.PIPE)
time.sleep(0.4)
leader.kill()
t = time.monotonic()
assert standby.stdout.readline() == b"leading\\n"
took = time.monotonic() - t
leader.wait(); standby.wait()
print(f"takeover after {took:.2f} s")
assert least <= took <= most, took
""",
        },
        "sh setup.sh",
        0.6,
    ),
    Plant(
        "w19-restore",
        "none",
        "restore of a backup on both CPUs, watchdog and health tick beside it, idle catalogue server, timeout, flock never contended",
        "nothing: two workers decompress and check on both CPUs all the time; watchdog.pl, health.sh and catalogd.py wait beside them",
        NOTHING,
        {
            "run.sh": run(f"""rm -rf data; mkdir data; rm -f catalog.ready
{PY} catalogd.py 18624 & C=$!
perl watchdog.pl $$ 60 & W=$!
sh health.sh & H=$!
while [ ! -e catalog.ready ]; do sleep 0.02; done
ls dump | flock restore.lock timeout 60 xargs -P2 -n1 sh restore1.sh; rc=$?
kill $C $W $H; wait $C $W $H 2>/dev/null
exit $rc
"""),
            "setup.sh": f"""mkdir -p dump
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do {PY} gen.py t 8000 $i; sha512sum <t >sum.$i; bzip2 -9 <t >dump/$i; done; rm t
: >.prepared
""",
            "gen.py": GEN,
            "restore1.sh": """set -e
bzip2 -dc dump/$1 >data/$1
sha512sum <data/$1 | cmp -s - sum.$1
""",
            "watchdog.pl": """use strict; use warnings;
my ($pid, $limit) = @ARGV; $SIG{TERM} = sub { exit 0 };
for (1 .. $limit) { sleep 1; exit 0 unless kill 0, $pid; }
kill "TERM", $pid;
""",
            "health.sh": """# The service manager wants a sign of life twice a second.
trap 'kill $z 2>/dev/null; exit 0' TERM
while :; do date +%s >health; sleep 0.5 & z=$!; wait $z; done
""",
            "catalogd.py": """import select, socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
e = select.epoll(); e.register(s, select.EPOLLIN)
open("catalog.ready", "w").close()
while True:
    for fd, ev in e.poll(1.0): s.accept()[0].close()
""",
        },
        "sh setup.sh",
        0.5,
    ),
    Plant(
        "w19-reproducible",
        "none",
        "reproducible-build check, the same build twice on purpose and at once, tar and xz",
        "nothing: the check builds the package twice, in two differing environments and at once, because their equality is its result",
        NOTHING,
        {
            "run.sh": run("""rm -rf rb; mkdir rb
TZ=UTC LC_ALL=C REPRO=first sh buildpkg.sh rb/first & a=$!
TZ=Asia/Tokyo LC_ALL=POSIX REPRO=second sh buildpkg.sh rb/second & b=$!
wait $a && wait $b && cmp rb/first.deb rb/second.deb && echo reproducible
"""),
            "setup.sh": f"""mkdir -p src; {PY} gen.py src/a.dat 2800 1; {PY} gen.py src/b.dat 2800 2
: >.prepared
""",
            "gen.py": GEN,
            "buildpkg.sh": """set -e
mkdir -p $1.root/DEBIAN; cp src/*.dat $1.root/
printf 'Package: demo\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: R <r@example.org>\\nDescription: demo\\n' >$1.root/DEBIAN/control
chmod -R u=rwX,go=rX $1.root
find $1.root -exec touch -d @1700000000 {} +
SOURCE_DATE_EPOCH=1700000000 dpkg-deb --root-owner-group --threads-max=1 -Zxz -z6 -b $1.root $1.deb >/dev/null
""",
        },
        "sh setup.sh",
        0.5,
    ),
]
