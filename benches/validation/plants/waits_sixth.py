"""26 builds, test runs and CI jobs with one planted fault (or none) in how they wait or use two CPUs: the sixth part.

Ports 18400 to 18419 on loopback. run.sh makes what it needs by setup.sh, if that is missing.
"""

from waits import Plant

PY = "/usr/bin/python3"
SETUP = "[ -e .made ] || { sh setup.sh && : >.made; } || exit 1\n"
MAKE_SETUP = "[ -e .made ] || { sh setup.sh && : >.made; }"
# The end of a server that run.sh started as $S.
STOP = "kill $S 2>/dev/null; wait $S 2>/dev/null\n"
UP = "while [ ! -e up ]; do sleep 0.02; done\n"

# Generated C: `sh gen.sh NAME FUNCTIONS` writes NAME.c. It is work for the optimizer, not for the run.
GEN_C = """name=$1; n=$2; i=0
{
  echo 'typedef unsigned long u;'
  while [ $i -lt $n ]; do
    echo "u ${name}_$i(u a, u b, u *p) { for (u k = 0; k < b % 64; k++) { switch ((a + k) % 7) { case 0: a = a * $i + p[k]; break; case 1: a ^= p[k + 1] >> 3; break; case 2: p[k] += a; break; case 3: a -= b * p[k + 2]; break; case 4: p[k + 3] = a ^ $i; break; default: a = (a << 5) | (a >> 59); } } return a + p[$i % 8]; }"
    i=$((i + 1))
  done
} >$name.c
"""

PLANTS = []


def plant(*args, **more):
    PLANTS.append(Plant(*args, **more))


# ---------------------------------------------------------------------------------------------------------------- with a fault

plant(
    "w6_node_ready_poll",
    "poll",
    "node, event loop, two servers, readiness poll",
    "suite.js asks each service once, sleeps 2 s, and asks again, though the services are up after 0.5 s: poll at 50 to 100 ms (or wait for the service's ready message).",
    r"suite\.js|setTimeout|1840[01]|readiness|waitFor",
    {
        "svc.js": """// node svc.js PORT WARM_UP_MS: loads its fixtures, then listens.
const http = require('http');
const [port, warm] = process.argv.slice(2).map(Number);
setTimeout(() => http.createServer((q, r) => r.end(JSON.stringify({ path: q.url, port }))).listen(port, '127.0.0.1'), warm);
process.on('SIGTERM', () => process.exit(0));
""",
        "suite.js": """const http = require('http');
const { spawn } = require('child_process');
const PERIOD = process.env.FIX ? 50 : 2000;
const sleep = ms => new Promise(r => setTimeout(r, ms));
const get = (port, path) => new Promise((ok, no) => http.get({ host: '127.0.0.1', port, path, agent: false }, r => {
  let s = ''; r.on('data', d => s += d); r.on('end', () => ok(JSON.parse(s)));
}).on('error', no));
async function waitFor(port) {
  for (let i = 0; i < 200; i++) {
    try { return await get(port, '/health'); } catch (e) { await sleep(PERIOD); }
  }
  throw new Error('service on ' + port + ' did not come up');
}
(async () => {
  const db = spawn(process.execPath, ['svc.js', '18400', '500'], { stdio: 'inherit' });
  await waitFor(18400);
  const api = spawn(process.execPath, ['svc.js', '18401', '500'], { stdio: 'inherit' });
  await waitFor(18401);
  let n = 0;
  for (let i = 0; i < 40; i++) {
    const a = await get(i % 2 ? 18400 : 18401, '/item/' + i);
    if (a.path !== '/item/' + i) throw new Error('bad answer ' + i);
    n++;
  }
  console.log(n + ' requests passed');
  for (const c of [api, db]) { const gone = new Promise(r => c.on('exit', r)); c.kill(); await gone; }
})().catch(e => { console.error(e); process.exit(1); });
""",
        "run.sh": "exec node suite.js\n",
    },
)

plant(
    "w6_prove_serial",
    "serial",
    "perl, prove, tests run one after the other, child that answers slowly",
    "prove runs six independent test files one after the other, each mostly waiting for its own bench.pl: prove -j4.",
    r"prove|t/0[1-6]|\.t\b|-j|bench\.pl",
    {
        "setup.sh": r"""mkdir -p t
for i in 01 02 03 04 05 06; do
cat >t/$i.t <<'END'
use strict; use warnings;
use Test::More tests => 3;
# Each file has a bench of its own: it calibrates for a while before it answers.
open(my $b, '-|', $^X, 'bench.pl', $0) or die;
my $x = 1;
for (1 .. 2_000_000) { $x = ($x * 31 + $_) % 1000003 }
ok($x > 0, 'model');
my $line = <$b>;
like($line, qr/^calibrated/, 'bench answers');
close $b;
is($?, 0, 'bench ends well');
END
done
""",
        "bench.pl": 'use strict; use warnings;\n$| = 1;\nselect(undef, undef, undef, 0.8);\nprint "calibrated for $ARGV[0]\\n";\n',
        "run.sh": SETUP + 'J=; [ -z "$FIX" ] || J=-j4\nexec prove $J t/\n',
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_make_shell_loop",
    "serial",
    "make, recursive make in a shell loop, C compiler, -j that is lost",
    "make -j2 is given, but the top rule walks the directories in a shell for loop, so that one compiler runs at a time: make each directory a target.",
    r"for d in|shell loop|DIRS|Makefile|make -C|\b(wire|codec|audio|video)\b|-j|one after|one at a time|serial|parallel",
    {
        "gen.sh": GEN_C,
        "setup.sh": """for d in wire codec audio video; do
  mkdir -p $d; (cd $d && sh ../gen.sh $d 140)
  printf 'lib%s.a: %s.o\\n\\trm -f $@; ar rcs $@ $<\\n%s.o: %s.c\\n\\t$(CC) -O2 -c -o $@ $<\\n' $d $d $d $d >$d/Makefile
done
""",
        "Makefile": """DIRS = wire codec audio video
ifdef FIX
all: $(DIRS)
.PHONY: all $(DIRS)
$(DIRS):
\t$(MAKE) -C $@
else
all:
\tfor d in $(DIRS); do $(MAKE) -C $$d || exit 1; done
endif
""",
        "run.sh": SETUP + "rm -f */*.o */*.a\nexec make -j2\n",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_xargs_longest_last",
    "pool",
    "xargs -P2, xz, longest job of the pool starts last",
    "xargs -P2 takes the images by name, so the largest (zz_rootfs) starts last and runs alone: list them by size (ls -S).",
    r"zz_rootfs|xargs|longest|largest|starts? last",
    {
        "setup.sh": r"""mk() { perl -e 'srand($ARGV[1]); my @w = map { join "", map { chr(97 + rand 26) } 1 .. 3 + rand 8 } 1 .. 4000; my $n = 0; while ($n < $ARGV[0]) { my $s = join(" ", map { $w[rand @w] } 1 .. 40) . "\n"; print $s; $n += length $s }' $2 $3 >img/$1; }
mkdir -p img
mk aa_boot 900000 1; mk bb_kernel 900000 2; mk cc_dtb 900000 3; mk dd_initrd 900000 4; mk zz_rootfs 3600000 5
""",
        "run.sh": SETUP
        + 'rm -f img/*.xz\nS=; [ -z "$FIX" ] || S=-S\ncd img && ls $S | xargs -P2 -n1 xz -T1 -6 -k\nR=$?\nls -l *.xz | wc -l\nexit $R\n',
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_flock_whole_job",
    "lock",
    "sh, flock, two jobs at once, perl",
    "pack.sh takes index.lock before the long rendering, so that the two jobs run one after the other: take the lock only for the line that is added to the index.",
    r"flock|index\.lock|pack\.sh|\block\b",
    {
        "render.pl": 'my ($n, $x) = (shift, 7);\nfor (1 .. 36_000_000) { $x = ($x * 31 + $_) % 1000003 }\nprint "$n $x\\n";\n',
        "pack.sh": """# sh pack.sh NAME: renders NAME and enters it into the shared index
exec 9>>index.lock
if [ -z "$FIX" ]; then
  flock 9
  perl render.pl $1 >$1.out || exit 1
else
  perl render.pl $1 >$1.out || exit 1
  flock 9
fi
cat $1.out >>index
""",
        "run.sh": "rm -f index *.out\nsh pack.sh north & A=$!\nsh pack.sh south & B=$!\nwait $A || exit 1\nwait $B || exit 1\n[ $(wc -l <index) = 2 ]\n",
    },
)

plant(
    "w6_sqlite_autocommit",
    "fsync",
    "sqlite3, fsync, one transaction for each row",
    "sqlite3 loads the fixture rows each in a transaction of its own, and each commit waits for the disk: BEGIN and COMMIT around the load (or synchronous=OFF for a test data base).",
    r"sqlite3|fsync|fdatasync|transaction|commit|disk|jbd2|ext4",
    {
        "setup.sh": "i=0; while [ $i -lt 350 ]; do echo \"INSERT INTO part VALUES($i, 'part number $i', $((i * 7919 % 1000)));\"; i=$((i + 1)); done >rows.sql\n",
        "run.sh": SETUP
        + """rm -f fixture.db fixture.db-*
{
  echo 'CREATE TABLE part(id INTEGER PRIMARY KEY, name TEXT, price INTEGER);'
  [ -z "$FIX" ] || echo 'BEGIN;'
  cat rows.sql
  [ -z "$FIX" ] || echo 'COMMIT;'
} | sqlite3 fixture.db || exit 1
[ "$(sqlite3 fixture.db 'SELECT count(*) FROM part')" = 350 ]
""",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_curl_dead_mirror",
    "retry",
    "sh, curl, retry with a delay against a mirror that is gone",
    "fetch.sh asks first the mirror on 18403, that nobody serves, and curl retries twice with a second between, for each of two packages: take the dead mirror from the list (or no retry on a refused connection).",
    r"curl|fetch\.sh|18403|mirror|retry",
    {
        "serve.py": """import functools, http.server
class H(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer.allow_reuse_address = True
s = http.server.ThreadingHTTPServer(("127.0.0.1", 18402), functools.partial(H, directory="pub"))
open("up", "w").close()
s.serve_forever()
""",
        "fetch.sh": """# sh fetch.sh PACKAGE: from the first mirror that has it
for m in $(cat mirrors); do
  curl -sSf --retry 2 --retry-delay 1 --retry-connrefused -o got/$1 http://127.0.0.1:$m/$1 2>>fetch.log && exit 0
done
exit 1
""",
        "run.sh": f"""mkdir -p pub got; rm -f up got/* fetch.log
for p in zlib.txt expat.txt; do seq 1 2000 >pub/$p; done
if [ -z "$FIX" ]; then echo 18403 18402 >mirrors; else echo 18402 >mirrors; fi
{PY} serve.py & S=$!
{UP}R=0
for p in zlib.txt expat.txt; do sh fetch.sh $p && cmp -s pub/$p got/$p || R=1; done
{STOP}exit $R
""",
    },
)

plant(
    "w6_perl_licence_timeout",
    "timeout",
    "perl, select, server that never answers, time-out waited for",
    "synth.pl asks the licence server on 18404, that takes the connection and never answers, waits out its 2 s time-out for each of two designs, and goes on in evaluation mode: repair the server, or run in evaluation mode without asking.",
    r"synth\.pl|18404|licd|licen[cs]e|can_read",
    {
        "licd.py": """import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 18404)); s.listen(8)
open("up", "w").close()
held = []
while True: held.append(s.accept())
""",
        "synth.pl": """use strict; use warnings;
use IO::Socket::INET; use IO::Select;
sub licence {
    return 'evaluation' if $ENV{SYNTH_EVALUATION};
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => 18404, Timeout => 2) or return 'evaluation';
    print $s "CHECKOUT synth\\n"; $s->flush;
    return 'evaluation' unless IO::Select->new($s)->can_read(2);
    my $l = <$s>; chomp $l; return $l;
}
for my $design (@ARGV) {
    my $mode = licence();
    my $x = 1;
    for (1 .. 7_000_000) { $x = ($x * 31 + $_) % 1000003 }
    print "$design: $x gates ($mode)\\n";
}
""",
        "run.sh": f"""rm -f up
{PY} licd.py & S=$!
{UP}[ -z "$FIX" ] || export SYNTH_EVALUATION=1
perl synth.pl alu fpu; R=$?
{STOP}exit $R
""",
    },
)

plant(
    "w6_java_pool_not_shut",
    "idle",
    "java, thread pool, process that lives on after its work",
    "Report's pool is never shut down: its idle threads live for keepAlive (4 s) and keep the JVM up after the last line is printed: pool.shutdown().",
    r"\bjava\b|Report|\bpool\b|keep.?[Aa]live|JVM|idle thread",
    {
        "Report.java": """import java.util.*;
import java.util.concurrent.*;

public class Report {
    static long sum(int seed) {
        long x = seed;
        for (int i = 0; i < 200_000_000; i++) x = x * 6364136223846793005L + i;
        return x;
    }
    public static void main(String[] a) throws Exception {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(0, 2, 4, TimeUnit.SECONDS, new SynchronousQueue<>(), new ThreadPoolExecutor.CallerRunsPolicy());
        List<Future<Long>> parts = new ArrayList<>();
        for (int i = 0; i < 6; i++) { int n = i; parts.add(pool.submit(() -> sum(n))); }
        long t = 0;
        for (Future<Long> p : parts) t += p.get();
        System.out.println("report " + t);
        if (System.getenv("FIX") != null) pool.shutdown();
    }
}
""",
        "setup.sh": "javac -d . Report.java\n",
        "run.sh": SETUP + "exec java -Xshare:auto -cp . Report\n",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_asyncio_blocked_loop",
    "event loop",
    "python, asyncio, mock server whose handler blocks the loop",
    "mock.py calls time.sleep(0.3) in a coroutine, so that twelve requests that are sent at once are answered one after the other: await asyncio.sleep(0.3).",
    r"mock\.py|time\.sleep|18405|asyncio|clock_nanosleep",
    {
        "mock.py": """import asyncio, os, time

async def backend():
    # stands for the data base of the real service
    if os.environ.get("FIX"):
        await asyncio.sleep(0.3)
    else:
        time.sleep(0.3)

async def serve(r, w):
    line = await r.readline()
    await backend()
    w.write(b"done " + line)
    await w.drain()
    w.close()

async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", 18405, reuse_address=True)
    open("up", "w").close()
    async with s:
        await s.serve_forever()

asyncio.run(main())
""",
        "contract.py": """import asyncio

async def case(n):
    r, w = await asyncio.open_connection("127.0.0.1", 18405)
    w.write(b"case %d\\n" % n)
    got = await r.readline()
    w.close()
    assert got == b"done case %d\\n" % n, got

async def main():
    await asyncio.gather(*(case(n) for n in range(12)))
    print("12 cases passed")

asyncio.run(main())
""",
        "run.sh": f"rm -f up\n{PY} mock.py & S=$!\n{UP}{PY} contract.py; R=$?\n{STOP}exit $R\n",
    },
)

plant(
    "w6_tcl_fixed_settle",
    "sleep",
    "tcl, fixed pause before a smoke test, server",
    "smoke.tcl waits 3 s by `after 3000` for stock.tcl, that listens after 0.3 s: connect in a loop with a short pause (or wait for its ready line).",
    r"smoke\.tcl|after 3000|tclsh|18406|stock\.tcl",
    {
        "stock.tcl": """proc accept {c a p} { fconfigure $c -buffering line; fileevent $c readable [list serve $c] }
proc serve {c} {
    if {[gets $c l] < 0} { close $c; return }
    if {$l eq "quit"} { close $c; exit 0 }
    puts $c "stock $l [string length $l]"
}
after 300
socket -server accept -myaddr 127.0.0.1 18406
vwait forever
""",
        "smoke.tcl": """set stock [open "|[info nameofexecutable] stock.tcl" r]
if {[info exists env(FIX)]} {
    for {set i 0} {$i < 100} {incr i} {
        if {![catch {socket 127.0.0.1 18406} s]} break
        after 50
    }
} else {
    after 3000 ;# let the server settle
    set s [socket 127.0.0.1 18406]
}
fconfigure $s -buffering line
foreach item {bolt nut washer gasket} {
    puts $s $item
    gets $s l
    if {$l ne "stock $item [string length $item]"} { puts stderr "bad: $l"; exit 1 }
    puts "ok $item"
}
puts $s quit
read $s
close $s
read $stock
close $stock
""",
        "run.sh": "exec tclsh smoke.tcl\n",
    },
)

plant(
    "w6_node_per_file",
    "wrapper",
    "sh, node, an interpreter started for each file",
    "run.sh starts node 60 times, once for each page, and nearly all of each is node's start: give all pages to one node fmt.js.",
    r"\bnode\b|fmt\.js",
    {
        "setup.sh": "mkdir -p pages; i=100; while [ $i -lt 160 ]; do seq 1 $i >pages/p$i.txt; i=$((i + 1)); done\n",
        "fmt.js": """const fs = require('fs');
for (const f of process.argv.slice(2)) {
  const s = fs.readFileSync(f, 'utf8').split('\\n').map(l => l.padStart(8)).join('\\n');
  fs.writeFileSync(f.replace(/\\.txt$/, '.out'), s);
}
""",
        "run.sh": SETUP
        + """rm -f pages/*.out
if [ -z "$FIX" ]; then
  for f in pages/*.txt; do node fmt.js $f || exit 1; done
else
  node fmt.js pages/*.txt || exit 1
fi
[ $(ls pages/*.out | wc -l) = 60 ]
""",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_pipe_date_stamp",
    "pipe",
    "sh, pipe, slow reader that starts date for each line",
    "stamp.sh starts date for each line of the log, so that the build blocks on the full pipe: stamp in one process (one perl, or ts).",
    r"stamp\.sh|\bdate\b|pipe",
    {
        "build.py": """import sys
for i in range(3200):
    sys.stdout.write("[%4d/3200] CC obj/unit_%04d.o  -O2 -g -Iinclude -Isrc -Wall -Wextra -DNDEBUG -DUNIT=%d %s\\n" % (i + 1, i, i, "-Wno-x" * 6))
    sys.stdout.flush()
""",
        "stamp.sh": 'while IFS= read -r l; do\n  echo "$(date +%H:%M:%S) $l"\ndone\n',
        "stamp.pl": "my ($at, $s) = (0, '');\nwhile (<STDIN>) {\n  my $t = time;\n  if ($t != $at) { my @n = localtime($at = $t); $s = sprintf '%02d:%02d:%02d', @n[2, 1, 0] }\n  print \"$s $_\";\n}\n",
        "run.sh": f"""if [ -z "$FIX" ]; then
  {PY} build.py | sh stamp.sh >build.log
else
  {PY} build.py | perl stamp.pl >build.log
fi
[ $(wc -l <build.log) = 3200 ]
""",
    },
)

plant(
    "w6_node_stop_grace",
    "stop",
    "node, server that does not stop on SIGTERM, grace time of a supervisor",
    "web.js closes its listener on SIGTERM but an event stream (/events) keeps it open, so that stop.sh waits its grace of 4 s and kills it: end the open streams (server.closeAllConnections()).",
    r"stop\.sh|web\.js|18407|grace|SIGTERM|/events",
    {
        "web.js": """const http = require('http'), fs = require('fs');
const s = http.createServer((q, r) => {
  if (q.url === '/events') { r.writeHead(200, { 'content-type': 'text/event-stream' }); r.write('data: hello\\n\\n'); return; }
  let x = 7; for (let i = 0; i < 3e6; i++) x = (x * 31 + i) % 1000003;
  r.end('page ' + q.url + ' ' + x);
});
s.listen(18407, '127.0.0.1', () => fs.writeFileSync('up', ''));
process.on('SIGTERM', () => {
  s.close(() => process.exit(0));
  if (process.env.FIX) s.closeAllConnections();
});
""",
        "stop.sh": """# sh stop.sh PID: SIGTERM, 4 s of grace, SIGKILL
kill -TERM $1
i=0
while kill -0 $1 2>/dev/null && [ $i -lt 40 ]; do sleep 0.1; i=$((i + 1)); done
kill -KILL $1 2>/dev/null
exit 0
""",
        "run.sh": f"""rm -f up events
node web.js & S=$!
{UP}curl -sN http://127.0.0.1:18407/events >events 2>/dev/null & C=$!
while [ ! -s events ]; do sleep 0.02; done
R=0
for i in 1 2 3 4 5 6 7 8 9 10; do curl -sf http://127.0.0.1:18407/page$i | grep -q "page /page$i" || R=1; done
# The server is reaped as soon as it has gone, as a supervisor does.
sh stop.sh $S & T=$!
wait $S 2>/dev/null
wait $T
wait $C 2>/dev/null
exit $R
""",
    },
)

plant(
    "w6_make_twice",
    "twice",
    "make, C compiler, the same work done twice",
    "version.h is written anew at each make, so that `make check` compiles the four units again that `make app` compiled just before: write it only when its text changes (or one make call).",
    r"version\.h|twice|again|make (-j2 )?check|second make|(cc1|gcc|\bcc\b).*(same|times)|same.*(cc1|gcc|\bcc\b)",
    {
        "gen.sh": GEN_C,
        "setup.sh": "for u in scan parse emit link; do sh gen.sh $u 130; sed -i '1i #include \"version.h\"' $u.c; done\n",
        "main.c": '#include <stdio.h>\n#include "version.h"\nint main(void) { puts(VERSION); return 0; }\n',
        "Makefile": """U = scan parse emit link
O = $(U:=.o) main.o
app: $(O)
\t$(CC) -o $@ $(O)
%.o: %.c version.h
\t$(CC) -O2 -c -o $@ $<
version.h: FORCE
ifdef FIX
\t@echo '#define VERSION "4.2"' >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
else
\t@echo '#define VERSION "4.2"' >$@
endif
check: app
\t./app | grep -q 4.2
.PHONY: check FORCE
""",
        "run.sh": SETUP + "rm -f *.o app version.h\nmake -j2 app && make -j2 check\n",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_unittest_backoff",
    "slow test",
    "python, unittest, one slow test of many, retry with back-off",
    "test_client.test_gives_up sleeps the client's real back-off (0.5 + 1 + 2 s) to see four failures; the other tests take nothing: give the client a back-off of 0 (or a fake sleep) in that test.",
    r"test_client|test_gives_up|client\.py|back.?off|time\.sleep|unittest",
    {
        "client.py": """import os, time

class Client:
    def __init__(self, transport, tries=4, base=0.5):
        self.transport, self.tries, self.base = transport, tries, base

    def get(self, path):
        for n in range(self.tries):
            try:
                return self.transport(path)
            except OSError:
                if n + 1 < self.tries:
                    time.sleep(self.base * 2 ** n)
        raise RuntimeError("gave up on " + path)
""",
        "test_client.py": """import os, unittest
from client import Client

class Paths(unittest.TestCase):
    pass

for i in range(60):
    def t(self, i=i):
        self.assertEqual(Client(lambda p: p.upper()).get("/p%d" % i), "/P%d" % i)
    setattr(Paths, "test_path_%02d" % i, t)

class Failures(unittest.TestCase):
    def test_gives_up(self):
        calls = []
        def broken(path):
            calls.append(path)
            raise OSError("refused")
        more = {"base": 0} if os.environ.get("FIX") else {}
        with self.assertRaises(RuntimeError):
            Client(broken, **more).get("/x")
        self.assertEqual(len(calls), 4)
""",
        "run.sh": f"exec {PY} -m unittest -q test_client\n",
    },
)

plant(
    "w6_tee_watchdog",
    "background",
    "sh, tee, forgotten watchdog that holds the pipe",
    "job.sh ends after half a second, but its watchdog's `sleep 6` still has the pipe to tee, so that the step waits for it: kill the watchdog with its sleep at the end (or keep it off the pipe).",
    r"sleep 6|\bsleep\b|watchdog|\btee\b|job\.sh",
    {
        "work.pl": 'my $x = 7;\nfor (1 .. 9_000_000) { $x = ($x * 31 + $_) % 1000003; print "step $_ $x\\n" unless $_ % 1_000_000 }\n',
        "job.sh": """# a watchdog: 6 s for the job
if [ -z "$FIX" ]; then
  ( sleep 6; kill $$ 2>/dev/null ) & W=$!
  perl work.pl; R=$?
  kill $W
else
  ( sleep 6 & P=$!; trap 'kill $P; wait $P; exit 0' TERM; wait $P; kill $$ 2>/dev/null ) >/dev/null 2>&1 & W=$!
  perl work.pl; R=$?
  kill $W; wait $W
fi
exit $R
""",
        "run.sh": "sh job.sh 2>&1 | tee job.log\n[ $(grep -c ^step job.log) = 9 ]\n",
    },
)

plant(
    "w6_udp_resolver",
    "timeout",
    "C, UDP, first name server does not answer",
    "fetchres asks the name server on 18408, that does not answer, twice with 1 s each, before the one on 18409, for each of two names: put the working server first (or take the dead one out).",
    r"fetchres|18408|name ?server|nameservers|UDP|udp",
    {
        "ns.py": """import socket, select
dead = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); dead.bind(("127.0.0.1", 18408))
live = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); live.bind(("127.0.0.1", 18409))
open("up", "w").close()
while True:
    for s in select.select([dead, live], [], [])[0]:
        q, a = s.recvfrom(512)
        if s is live: s.sendto(q + b" 10.0.0.7", a)
""",
        "fetchres.c": r"""#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static int ask(int port, const char *name, char *out, size_t n)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int s = socket(AF_INET, SOCK_DGRAM, 0), got = -1;
    if (connect(s, (struct sockaddr *)&a, sizeof a)) return -1;
    for (int try = 0; try < 2 && got < 0; try++) {
        struct pollfd p = { s, POLLIN, 0 };
        if (send(s, name, strlen(name), 0) < 0) break;
        if (poll(&p, 1, 1000) > 0) got = recv(s, out, n - 1, 0);
    }
    close(s);
    if (got >= 0) out[got] = 0;
    return got;
}
int main(int c, char **v)
{
    int port[8], ports = 0;
    FILE *f = fopen("nameservers", "r");
    while (f && ports < 8 && fscanf(f, "%d", &port[ports]) == 1) ports++;
    for (int i = 1; i < c; i++) {
        char out[512]; int k = 0;
        while (k < ports && ask(port[k], v[i], out, sizeof out) < 0) k++;
        if (k == ports) { fprintf(stderr, "%s: no address\n", v[i]); return 1; }
        puts(out);
    }
    return 0;
}
""",
        "setup.sh": "cc -O1 -o fetchres fetchres.c\n",
        "run.sh": SETUP
        + f"""rm -f up
if [ -z "$FIX" ]; then echo 18408 18409 >nameservers; else echo 18409 >nameservers; fi
{PY} ns.py & S=$!
{UP}./fetchres deps.example assets.example; R=$?
{STOP}exit $R
""",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_serial_ci_steps",
    "serial",
    "sh, node, perl, python, three independent steps one after the other",
    "ci.sh runs lint (node), docs (perl) and the integration test (python, that waits for a device) one after the other, though none needs another: start them at once and wait for all.",
    r"ci\.sh|lint\.js|docs\.pl|integ\.py|serial|one after|at once|parallel|at the same time|overlap|steps",
    {
        "lint.js": "let x = 7; for (let i = 0; i < 260e6; i++) x = (x * 31 + i) % 1000003;\nconsole.log('lint ok', x);\n",
        "docs.pl": 'my $x = 7;\nfor (1 .. 26_000_000) { $x = ($x * 31 + $_) % 1000003 }\nprint "docs ok $x\\n";\n',
        "integ.py": """# Four cycles of a device that takes 0.4 s for each, and cannot be made faster.
import subprocess
d = subprocess.Popen(["perl", "device.pl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for i in range(4):
    d.stdin.write("cycle %d\\n" % i)
    assert d.stdout.readline() == "done cycle %d\\n" % i
d.stdin.close()
assert d.wait() == 0
print("integration ok")
""",
        "device.pl": '$| = 1;\nwhile (<STDIN>) { select(undef, undef, undef, 0.4); print "done $_" }\n',
        "ci.sh": f"""if [ -z "$FIX" ]; then
  node lint.js || exit 1
  perl docs.pl || exit 1
  {PY} integ.py || exit 1
else
  node lint.js & A=$!
  perl docs.pl & B=$!
  {PY} integ.py || exit 1
  wait $A || exit 1
  wait $B || exit 1
fi
""",
        "run.sh": "exec sh ci.sh\n",
    },
)

plant(
    "w6_cargo_jobs_1",
    "serial",
    "rust, cargo, jobs = 1 in the configuration",
    ".cargo/config.toml has build.jobs = 1, so that the four independent crates are compiled one after the other on one of two CPUs: take the line out (or CARGO_BUILD_JOBS=2).",
    r"cargo|jobs\b|config\.toml|rustc.*(one|at once|parallel|serial)",
    {
        "setup.sh": r"""mkdir -p .cargo src
printf '[build]\njobs = 1\n[net]\noffline = true\n' >.cargo/config.toml
D=
for c in wire store query plan; do
  mkdir -p $c/src; D="$D$c = { path = \"$c\" }
"
  printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2021"\n' $c >$c/Cargo.toml
  i=0
  while [ $i -lt 80 ]; do
    echo "pub fn f$i(a: &mut Vec<u64>, s: &str) -> Result<u64, String> { let n = s.parse::<u64>().map_err(|e| format!(\"{e} $i\"))?; a.extend((0..n).map(|x| x * $i)); a.sort(); Ok(a.iter().filter(|x| **x > $i).map(|x| x ^ n).sum()) }"
    i=$((i + 1))
  done >$c/src/lib.rs
done
printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n[dependencies]\n%s' "$D" >Cargo.toml
echo 'fn main() { let mut v = vec![3, 1, 2]; let r = [wire::f1(&mut v, "4"), store::f2(&mut v, "5"), query::f3(&mut v, "6"), plan::f4(&mut v, "7")]; println!("{r:?}"); }' >src/main.rs
""",
        "run.sh": SETUP
        + 'rm -rf target\n[ -z "$FIX" ] || export CARGO_BUILD_JOBS=2\ncargo build -q --offline && ./target/debug/app\n',
    },
    prepare=MAKE_SETUP,
)

# ------------------------------------------------------------------------------------------------------- with nothing to change

NOTHING = r"[Nn]othing|[Nn]o (wait|change|advice|fault)|[Nn]one\b|CPUs? (is|are|was|were) busy|by design|on purpose"

plant(
    "w6_none_tick_server",
    "none",
    "node, idle server's tick beside two busy workers",
    "Nothing: the metrics server's 100 ms tick and its idle wait are beside two workers that keep both CPUs busy.",
    NOTHING,
    {
        "metrics.js": """const http = require('http'), fs = require('fs');
let ticks = 0, jobs = 0;
setInterval(() => { ticks++; fs.writeFileSync('metrics.txt', `ticks ${ticks} jobs ${jobs}\\n`); }, 100);
http.createServer((q, r) => { jobs++; r.end('ok'); }).listen(18410, '127.0.0.1', () => fs.writeFileSync('up', ''));
process.on('SIGTERM', () => process.exit(0));
""",
        "work.pl": 'my $x = 7 + $ARGV[0];\nfor (1 .. 62_000_000) { $x = ($x * 31 + $_) % 1000003 }\nprint "part $ARGV[0] $x\\n";\n',
        "run.sh": f"""rm -f up
node metrics.js & S=$!
{UP}perl work.pl 1 & A=$!
perl work.pl 2; R=$?
wait $A || R=1
curl -sf http://127.0.0.1:18410/done >/dev/null || R=1
{STOP}exit $R
""",
    },
)

plant(
    "w6_none_watchdog_make",
    "none",
    "make -j2, C compiler, watchdog with a one second sleep beside it",
    "Nothing: make -j2 has both CPUs busy with equal units; the watchdog that sleeps beside it is ended with its sleep when make ends.",
    NOTHING,
    {
        "gen.sh": GEN_C,
        "setup.sh": "for u in a b c d e f g h; do sh gen.sh $u 90; done\n",
        "Makefile": "all: a.o b.o c.o d.o e.o f.o g.o h.o\n%.o: %.c\n\t$(CC) -O2 -c -o $@ $<\n",
        "watchdog.sh": """# sh watchdog.sh SECONDS PID: ends PID if it makes for too long
trap 'kill $P 2>/dev/null; exit 0' TERM
n=0
while [ $n -lt $1 ]; do sleep 1 & P=$!; wait $P; n=$((n + 1)); done
kill $2
""",
        "run.sh": SETUP
        + """rm -f *.o
make -j2 & M=$!
sh watchdog.sh 120 $M & W=$!
wait $M; R=$?
kill $W; wait $W
exit $R
""",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_none_soak_rate",
    "none",
    "perl, rate limit that is the command's purpose, server",
    "Nothing: soak.pl is asked for 10 requests a second for 3 seconds; the pauses are the measurement.",
    NOTHING,
    {
        "serve.py": """import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer.allow_reuse_address = True
s = http.server.ThreadingHTTPServer(("127.0.0.1", 18411), H)
open("up", "w").close()
s.serve_forever()
""",
        "soak.pl": """use strict; use warnings;
use Getopt::Long; use IO::Socket::INET; use Time::HiRes qw(time sleep);
# A soak test: a constant rate for a given time, and the latencies that it saw.
GetOptions('rate=f' => \\my $rate, 'seconds=f' => \\my $seconds) or die;
my ($t0, @ms) = (time);
for my $i (0 .. $rate * $seconds - 1) {
    my $due = $t0 + $i / $rate - time;
    sleep $due if $due > 0;
    my $a = time;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => 18411) or die "refused";
    print $s "GET / HTTP/1.0\\r\\n\\r\\n"; $s->flush;
    my $r = <$s>; die unless $r =~ / 200 /;
    1 while <$s>;
    push @ms, 1000 * (time - $a);
}
@ms = sort { $a <=> $b } @ms;
printf "%d requests, median %.1f ms, worst %.1f ms\\n", scalar @ms, $ms[@ms / 2], $ms[-1];
""",
        "run.sh": f"rm -f up\n{PY} serve.py & S=$!\n{UP}perl soak.pl --rate 10 --seconds 3; R=$?\n{STOP}exit $R\n",
    },
)

plant(
    "w6_none_typeset_converge",
    "none",
    "python, passes until the page numbers are stable, as latex does",
    "Nothing: typeset.py runs three times because each pass needs the page numbers of the one before, until they do not change.",
    NOTHING,
    {
        "typeset.py": """# One pass: breaks the chapters into pages, with a table of contents from the pass before, and writes the page numbers.
import hashlib, json, os
old = json.load(open("book.aux")) if os.path.exists("book.aux") else {}
page = 1 + (len(old) + 39) // 40
new = {}
for c in range(90):
    new["chapter %d" % c] = page
    h = b"%d %d" % (c, page)
    for i in range(36000):
        h = hashlib.sha256(h).digest()
    page += 1 + h[0] % 4
with open("book.out", "w") as f:
    for k in new: f.write("%s .... %s\\n" % (k, old.get(k, "??")))
with open("book.aux.new", "w") as f: json.dump(new, f)
""",
        "run.sh": f"""rm -f book.*
n=0
while :; do
  {PY} typeset.py || exit 1
  n=$((n + 1))
  if cmp -s book.aux.new book.aux; then break; fi
  [ $n -lt 6 ] || exit 1
  mv book.aux.new book.aux
done
echo "stable after $n passes"
! grep -q '??' book.out
""",
    },
)

plant(
    "w6_none_clock_drift",
    "none",
    "C, timerfd, a test that measures time",
    "Nothing: driftcheck compares two clocks over 3 s of a 10 ms timer; the time that it waits is what it measures.",
    NOTHING,
    {
        "driftcheck.c": r"""/* driftcheck SECONDS: how far a 10 ms timerfd runs from CLOCK_MONOTONIC_RAW in SECONDS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int c, char **v)
{
    long want = c > 1 ? atol(v[1]) * 100 : 300, seen = 0;
    int t = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec s = { { 0, 10000000 }, { 0, 10000000 } };
    timerfd_settime(t, 0, &s, NULL);
    double a = now();
    while (seen < want) { uint64_t n; if (read(t, &n, sizeof n) != sizeof n) return 2; seen += n; }
    double d = now() - a - seen / 100.0;
    printf("drift %.3f ms in %ld periods\n", d * 1000, seen);
    return d > 0.05 || d < -0.05;
}
""",
        "setup.sh": "cc -O1 -o driftcheck driftcheck.c\n",
        "run.sh": SETUP + "exec ./driftcheck 3\n",
    },
    prepare=MAKE_SETUP,
)

plant(
    "w6_none_hash_chain",
    "none",
    "make -j2, python, a chain in which each step needs the one before",
    "Nothing: the three seals are a chain by design, each derived from the one before; a second job has nothing that it could run.",
    NOTHING,
    {
        "seal.py": """# seal.py FROM TO: the next seal of the chain. The cost of the derivation is its purpose (PBKDF2).
import hashlib, sys
src, dst = sys.argv[1:]
k = hashlib.pbkdf2_hmac("sha256", open(src, "rb").read(), b"seal of " + dst.encode(), 3_600_000)
open(dst, "w").write(k.hex() + "\\n")
""",
        "Makefile": f"all: seal3\nseal1: root.txt\n\t{PY} seal.py $< $@\nseal2: seal1\n\t{PY} seal.py $< $@\nseal3: seal2\n\t{PY} seal.py $< $@\n",
        "root.txt": "root of the chain\n",
        "run.sh": "rm -f seal1 seal2 seal3\nexec make -j2\n",
    },
)

assert len(PLANTS) == 26 and len({p.name for p in PLANTS}) == 26 and sum(p.kind == "none" for p in PLANTS) == 6
