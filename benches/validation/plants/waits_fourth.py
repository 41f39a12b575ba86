"""Runs with one planted fault in how they wait or how they use two CPUs, or none, written before the tool's rules and output were read.

As in waits_later.py: FIX=1 in the environment makes run.sh behave as if the fault was repaired, in the same directory.
Ports 18310 to 18319 on loopback. `sh run.sh` runs setup.sh itself if its product is missing (javac, go build, data): run once before you record.
Needs tclsh, go, node, java with javac, ruby, perl with prove, expect, gcc, git, sqlite (Python's), xz, xargs, taskset, curl, flock and make.
Every file is self-contained; only Plant comes from waits.
"""

import dataclasses
import sys

from waits import Plant

PYTHON = sys.executable
CPU = """import sys
import time

n = 0
while time.process_time() < float(sys.argv[1]):
    n += 1
print(*sys.argv[2:], "done")
"""
# The verdict of a "none": only its general form was known to the author.
NOTHING = r"(?i)\bnothing\b|\bno (change|wait|fault)"


def stop(*pids):
    """The end of a run.sh that has started background processes: none is left behind."""
    names = " ".join(pids)
    return f"kill {names} 2>/dev/null; wait {names} 2>/dev/null\nexit 0\n"


def c_source(name, functions):
    """A C file that takes gcc -O2 some tenths of a second."""
    text = "#include <stdio.h>\n#include <string.h>\n"
    for i in range(functions):
        text += f"""static long {name}_{i}(const unsigned char *s, long n, long *t) {{
    long a = {i + 1}, b = 0, k;
    for (k = 0; k < n; k++) {{
        switch (s[k] % {5 + i % 7}) {{
        case 0: a += t[k % 16] * {i + 3}; break;
        case 1: b ^= a << (k % {3 + i % 5}); break;
        case 2: t[(k + {i}) % 16] = a - b; break;
        case 3: a = (a * {31 + i}) % 10007; break;
        default: b += s[k] * a + t[(k * {i + 1}) % 16];
        }}
        if (a > b) t[k % 16] += a; else t[(k + 1) % 16] -= b;
    }}
    return a ^ b;
}}
"""
    calls = " + ".join(f"{name}_{i}(s, n, t)" for i in range(functions))
    return text + f"long {name}(const unsigned char *s, long n, long *t) {{ return {calls}; }}\n"


def c_main(names):
    declare = "".join(f"long {n}(const unsigned char *, long, long *);\n" for n in names)
    calls = " + ".join(f'{n}((const unsigned char *)"abcdefghij", 10, t)' for n in names)
    return f'#include <stdio.h>\n{declare}int main(void) {{ long t[16] = {{1, 2, 3}}; printf("%ld\\n", {calls}); return 0; }}\n'


MODULES = ("lexer", "parser", "types", "inliner", "alloc", "emit")

PLANTS = [
    Plant(
        "tcl-after-poll",
        "poll",
        "tcl event-loop child file",
        "build.tcl looks only every 1.2 s (after 1200) for the object that its background compile.sh writes after 0.4 s, three times",
        r"build\.tcl|tclsh",
        {
            "cpu.py": CPU,
            "compile.sh": f'{PYTHON} cpu.py 0.4 "$1" > "$1.log"\nmv "$1.log" "$1.o"\n',
            "build.tcl": """set every [lindex $argv 0]

proc check {name} {
    if {[file exists $name.o]} {
        set ::done $name
    } else {
        after $::every [list check $name]
    }
}

foreach name {lexer parser codegen} {
    exec sh compile.sh $name &
    check $name
    vwait ::done
    puts "$::done is compiled"
}
""",
            "run.sh": """rm -f *.o *.log
if [ -n "$FIX" ]; then EVERY=20; else EVERY=1200; fi
tclsh build.tcl $EVERY
""",
        },
    ),
    Plant(
        "go-ticker-port",
        "poll",
        "go network server",
        "waitport (go) looks for port 18310 only on the ticks of a 2.5 s time.Ticker, but catalog.py listens after 0.4 s",
        r"waitport|18310",
        {
            "cpu.py": CPU,
            "setup.sh": "GOFLAGS= GO111MODULE=off go build -o waitport waitport.go\n",
            "waitport.go": """package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	every, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err)
	}
	start := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for range ticker.C {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+os.Args[1], time.Second)
		if err == nil {
			c.Close()
			fmt.Println("up after", time.Since(start).Round(10*time.Millisecond))
			return
		}
		if time.Since(start) > 30*time.Second {
			os.Exit(1)
		}
	}
}
""",
            "catalog.py": """import http.server
import sys
import time

while time.process_time() < 0.4:  # reads its catalogue
    pass


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\\n")

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""",
            "run.sh": f"""[ -x waitport ] || sh setup.sh || exit 1
if [ -n "$FIX" ]; then EVERY=20ms; else EVERY=2500ms; fi
{PYTHON} catalog.py 18310 & S=$!
./waitport 18310 $EVERY
curl -sS http://127.0.0.1:18310/a
{PYTHON} cpu.py 0.9 contract-tests
"""
            + stop("$S"),
        },
    ),
    Plant(
        "node-worker-atomics",
        "nap",
        "node worker_threads futex",
        "indexer.js (a worker thread of node) blocks for 0.3 s with Atomics.wait after each of 8 batches; main.js waits for its messages",
        r"indexer\.js|main\.js|node",
        {
            "cpu.py": CPU,
            "main.js": """const { Worker } = require('worker_threads');
const worker = new Worker('./indexer.js', { workerData: { batches: 8, pause: Number(process.argv[2]) } });
let words = 0;
worker.on('message', (n) => { words += n; });
worker.on('exit', () => console.log(words + ' words'));
""",
            "indexer.js": """const { parentPort, workerData } = require('worker_threads');
const cell = new Int32Array(new SharedArrayBuffer(4));
for (let b = 0; b < workerData.batches; b++) {
  const index = new Map();
  for (let i = 0; i < 30000; i++) index.set('w' + ((i * 7919) % 9973), b);
  parentPort.postMessage(index.size);
  // Give the main thread a chance to take it.
  if (workerData.pause) Atomics.wait(cell, 0, 0, workerData.pause);
}
""",
            "run.sh": f"""if [ -n "$FIX" ]; then PAUSE=0; else PAUSE=300; fi
{PYTHON} cpu.py 0.7 collect
node main.js $PAUSE
""",
        },
    ),
    Plant(
        "java-pool-linger",
        "timeout",
        "java threads exit",
        "Pack (java) has done its work after 0.5 s but its thread pool is never shut down, so that the JVM ends 3 s later when the idle threads time out",
        r"(?i)\bjava\b|\bpack\b",
        {
            "cpu.py": CPU,
            "setup.sh": "javac Pack.java\n",
            "Pack.java": """import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Pack {
    static int pack(int seed) throws IOException {
        byte[] data = new byte[400_000];
        for (int i = 0; i < data.length; i++) data[i] = (byte) ((i * seed) % 97);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DeflaterOutputStream z = new DeflaterOutputStream(out)) { z.write(data); }
        return out.size();
    }

    public static void main(String[] args) throws Exception {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(2, 2, 3, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        pool.allowCoreThreadTimeOut(true);
        List<Future<Integer>> sizes = new ArrayList<>();
        for (int i = 1; i <= 6; i++) { final int seed = i; sizes.add(pool.submit(() -> pack(seed))); }
        int total = 0;
        for (Future<Integer> f : sizes) total += f.get();
        System.out.println(total + " bytes packed");
        if (args.length > 0 && args[0].equals("close")) pool.shutdown();
    }
}
""",
            "run.sh": f"""[ -f Pack.class ] || sh setup.sh || exit 1
if [ -n "$FIX" ]; then END=close; else END=; fi
{PYTHON} cpu.py 0.7 compile
java -cp . Pack $END
""",
        },
    ),
    Plant(
        "grandchild-holds-pipe",
        "pipe",
        "python subprocess grandchild eof background",
        "check.py waits 3 s for the end of lint.sh's output because statd.py, which lint.sh leaves in the background for 3 s, has kept the pipe open; lint.sh ends after 0.6 s",
        r"statd\.py|lint\.sh",
        {
            "cpu.py": CPU,
            "statd.py": """import os
import socket

# Keeps the file states for the next run; ends by itself if nobody asks for 3 s.
s = socket.socket(socket.AF_UNIX)
if os.path.exists("statd.sock"):
    os.unlink("statd.sock")
s.bind("statd.sock")
s.listen(4)
s.settimeout(3)
with open("statd.pid", "w") as f:
    f.write(str(os.getpid()))
try:
    while True:
        s.accept()[0].close()
except TimeoutError:
    pass
""",
            "lint.sh": f"""if [ -n "$FIX" ]; then {PYTHON} statd.py > statd.log 2>&1 &
else {PYTHON} statd.py &
fi
{PYTHON} cpu.py 0.6 lint
""",
            "check.py": """import subprocess

out = subprocess.run(["sh", "lint.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
print(len(out.splitlines()), "lines of lint")
""",
            "run.sh": f"""rm -f statd.pid
{PYTHON} check.py
{PYTHON} cpu.py 0.8 compile
[ -f statd.pid ] && kill $(cat statd.pid) 2>/dev/null
exit 0
""",
        },
    ),
    Plant(
        "node-graceful-drain",
        "server",
        "node timer signal shutdown",
        "web.js needs 2.5 s to end after SIGTERM (setTimeout before process.exit) although no connection is open; run.sh waits for it",
        r"web\.js|node",
        {
            "cpu.py": CPU,
            "web.js": """const http = require('http');
const fs = require('fs');
const [port, grace] = process.argv.slice(2).map(Number);
const server = http.createServer((req, res) => { res.setHeader('connection', 'close'); res.end('ok\\n'); });
process.on('SIGTERM', () => {
  server.close();
  // The load balancer needs time to notice.
  setTimeout(() => process.exit(0), grace);
});
server.listen(port, '127.0.0.1', () => fs.writeFileSync('ready', ''));
""",
            "run.sh": f"""rm -f ready
if [ -n "$FIX" ]; then GRACE=0; else GRACE=2500; fi
node web.js 18311 $GRACE & S=$!
while [ ! -e ready ]; do sleep 0.02; done
for p in a b c d; do curl -sS -o page http://127.0.0.1:18311/$p || exit 1; done
kill -TERM $S
wait $S
{PYTHON} cpu.py 0.8 report
""",
        },
    ),
    Plant(
        "mkdir-lock-poll",
        "lock",
        "sh mkdir lock poll background",
        "deploy.sh tries its lock directory only every 1.5 s, but each holds it for 0.4 s: the second and the third of three wait 1.5 and 3 s",
        r"deploy\.sh|site\.lock|sleep",
        {
            "cpu.py": CPU,
            "deploy.sh": f"""#!/bin/sh
# deploy.sh NAME PAUSE: puts NAME into the site; one at a time.
until mkdir site.lock 2>/dev/null; do sleep "$2"; done
{PYTHON} cpu.py 0.4 "$1"
echo "$1" >> site.txt
rmdir site.lock
""",
            "run.sh": """rm -rf site.lock site.txt
if [ -n "$FIX" ]; then PAUSE=0.02; else PAUSE=1.5; fi
sh deploy.sh api $PAUSE & A=$!
sh deploy.sh web $PAUSE & B=$!
sh deploy.sh doc $PAUSE & C=$!
wait $A; wait $B; wait $C
sort site.txt
""",
        },
    ),
    Plant(
        "sqlite-long-transaction",
        "lock",
        "python sqlite busy background",
        "ingest.py computes for 2 s inside its write transaction on runs.db; stats.py waits in sqlite's busy handler for all that time before its own 1.6 s",
        r"ingest\.py|runs\.db",
        {
            "ingest.py": """import os
import sqlite3
import sys
import time


def digest():
    n = 0
    start = time.process_time()
    while time.process_time() - start < 2:
        n += 1
    return n


db = sqlite3.connect("runs.db", isolation_level=None)
db.execute("create table if not exists runs (name, value)")
early = sys.argv[1] == "before" and digest()
if not early:
    db.execute("begin immediate")
    open("begun", "w").close()
    early = digest()
else:
    db.execute("begin immediate")
db.execute("insert into runs values ('ingest', ?)", (min(early, 1),))
db.execute("commit")
""",
            "stats.py": """import sqlite3
import time

db = sqlite3.connect("runs.db", timeout=20)
db.execute("create table if not exists stats (name, value)")
db.execute("insert into stats values ('start', 1)")
db.commit()
start = time.process_time()
n = 0
while time.process_time() - start < 1.6:
    n += 1
print("statistics done")
""",
            "run.sh": f"""rm -f runs.db runs.db-journal begun
if [ -n "$FIX" ]; then WHEN=before; : > begun; else WHEN=inside; fi
{PYTHON} ingest.py $WHEN & A=$!
while [ ! -e begun ]; do sleep 0.02; done
{PYTHON} stats.py
wait $A
""",
        },
    ),
    Plant(
        "ruby-retry-after",
        "retry",
        "ruby http retry server",
        "push.rb sleeps 3 s after a 503 (Retry-After: 3 of registry.py), but registry.py is warm after 0.5 s",
        r"push\.rb|ruby|registry\.py|18312",
        {
            "cpu.py": CPU,
            "registry.py": """import http.server
import sys
import time

PORT, AFTER = sys.argv[1:]
START = time.monotonic()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        warm = time.monotonic() - START > 0.5
        self.send_response(200 if warm else 503)
        if not warm:
            self.send_header("Retry-After", AFTER)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\\n")

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler)
open("ready", "w").close()
server.serve_forever()
""",
            "push.rb": """require "net/http"
uri = URI("http://127.0.0.1:#{ARGV[0]}/v2/")
tries = 0
loop do
  answer = Net::HTTP.get_response(uri)
  break if answer.code == "200"
  abort "no registry" if (tries += 1) > 100
  sleep Float(answer["Retry-After"])
end
puts "pushed after #{tries} refusals"
""",
            "run.sh": f"""rm -f ready
if [ -n "$FIX" ]; then AFTER=0.05; else AFTER=3; fi
{PYTHON} registry.py 18312 $AFTER & S=$!
while [ ! -e ready ]; do sleep 0.02; done
ruby push.rb 18312
{PYTHON} cpu.py 0.9 sign
"""
            + stop("$S"),
        },
    ),
    Plant(
        "gcc-one-driver",
        "jobs",
        "gcc compiler sh",
        "one gcc call compiles six C files one after another (one cc1 at a time) although there are two CPUs: compile them at once, two gcc -c, or make -j2",
        r"\bgcc\b|\bcc1\b|build\.sh",
        {
            **{f"{n}.c": c_source(n, 60) for n in MODULES},
            "main.c": c_main(MODULES),
            "build.sh": "#!/bin/sh\nexec gcc -O2 -o app main.c lexer.c parser.c types.c inliner.c alloc.c emit.c\n",
            "run.sh": """rm -f app *.o
if [ -n "$FIX" ]; then
    printf '%s\\n' *.c | xargs -n1 -P2 gcc -O2 -c && gcc -o app *.o
else
    sh build.sh
fi
./app
""",
        },
    ),
    Plant(
        "prove-one-slow-test",
        "nap",
        "perl prove tests",
        "one of 120 tests under prove, t/058_session.t, sleeps 2.6 s until a session has expired; all others take milliseconds",
        r"058_session",
        {
            **{
                f"t/{i:03}_{('parse', 'print', 'quote', 'merge')[i % 4]}.t": f'print "1..1\\n"; print {i} * 2 == {2 * i} ? "ok 1\\n" : "not ok 1\\n";\n'
                for i in range(1, 121)
                if i != 58
            },
            "t/058_session.t": """use strict;
use warnings;
my $ttl = $ENV{SESSION_TTL} // 2.5;
print "1..2\\n";
my $end = time() + $ttl;
print "ok 1 - session is open\\n";
select(undef, undef, undef, $ttl + 0.1);
print "ok 2 - session has expired\\n";
""",
            "run.sh": """if [ -n "$FIX" ]; then SESSION_TTL=0; else SESSION_TTL=2.5; fi
export SESSION_TTL
prove -Q t
""",
        },
    ),
    Plant(
        "perl-debounce-fifo",
        "timeout",
        "perl select fifo debounce",
        "watch.pl waits for 1.4 s of silence on its FIFO (select) before it builds, twice; the events come 0.03 s apart",
        r"watch\.pl|perl",
        {
            "cpu.py": CPU,
            "changes.sh": 'for f in a b c d; do echo "$1/$f"; sleep 0.03; done > events.fifo\n',
            "watch.pl": f"""use strict;
use warnings;
use IO::Select;

my ($quiet) = @ARGV;
open(my $fifo, "+<", "events.fifo") or die "no FIFO: $!\\n";
my $select = IO::Select->new($fifo);
for my $set (qw(css js)) {{
    system("sh changes.sh $set &");
    my %changed;
    while (my ($ready) = $select->can_read(%changed ? $quiet : 20)) {{
        sysread($ready, my $text, 4096) or last;
        $changed{{$_}}++ for split /\\n/, $text;
    }}
    printf "%d files of %s changed\\n", scalar keys %changed, $set;
    system("{PYTHON}", "cpu.py", "0.5", $set) == 0 or die;
}}
""",
            "run.sh": """rm -f events.fifo
mkfifo events.fifo
if [ -n "$FIX" ]; then QUIET=0.15; else QUIET=1.4; fi
perl watch.pl $QUIET
""",
        },
    ),
    Plant(
        "git-hook-sleep",
        "nap",
        "git hook sh",
        "the pre-commit hook sleeps 1 s in each of 3 commits",
        r"pre-commit|\bhook|\bgit\b",
        {
            "cpu.py": CPU,
            "hooks/pre-commit": """#!/bin/sh
# The editor may still be writing.
sleep "${SETTLE:-1}"
git diff --cached --check
""",
            "run.sh": f"""rm -rf repo
if [ -n "$FIX" ]; then SETTLE=0; else SETTLE=1; fi
export SETTLE
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
chmod +x hooks/pre-commit
git init -q repo
git -C repo config core.hooksPath "$PWD/hooks"
for v in 1.0 1.1 1.2; do
    {PYTHON} cpu.py 0.3 "version $v" > repo/version.txt
    git -C repo add version.txt
    git -C repo commit -q -m "$v" || exit 1
done
git -C repo rev-list --count HEAD
""",
        },
    ),
    Plant(
        "fsync-each-record",
        "disk",
        "python fsync disk",
        "journal.py calls fsync after each of 1500 small records: write all, then once",
        r"journal\.py|fsync",
        {
            "cpu.py": CPU,
            "journal.py": """import os
import sys

records, each = int(sys.argv[1]), sys.argv[2] == "each"
with open("journal.log", "wb") as f:
    for i in range(records):
        f.write(b"%d %d\\n" % (i, i * 7919 % 10007))
        if each:
            f.flush()
            os.fsync(f.fileno())
    f.flush()
    os.fsync(f.fileno())
print(records, "records are safe")
""",
            "run.sh": f"""rm -f journal.log
if [ -n "$FIX" ]; then WHEN=end; else WHEN=each; fi
{PYTHON} cpu.py 0.6 collect
{PYTHON} journal.py 1500 $WHEN
""",
        },
    ),
    Plant(
        "xz-single-thread",
        "jobs",
        "pipeline xz tar",
        "the pipeline tar | xz | sha256sum waits for xz, which compresses with one thread (-T1) on two CPUs: xz -T2",
        r"\bxz\b",
        {
            "setup.sh": f"mkdir -p data && {PYTHON} fill.py\n",
            "fill.py": """import random

random.seed(4)
words = ["".join(random.choices("etaoinshrdlu", k=random.randint(2, 9))) for _ in range(6000)]
for part in range(3):
    with open(f"data/part{part}.txt", "w") as f:
        f.write(" ".join(random.choices(words, k=330_000)))
""",
            "run.sh": """[ -f data/part2.txt ] || sh setup.sh || exit 1
if [ -n "$FIX" ]; then T=2; else T=1; fi
tar -cf - data | xz -3 -T$T --block-size=512KiB | tee data.tar.xz | sha256sum
""",
        },
    ),
    Plant(
        "spin-lock-16-jobs",
        "lock",
        "xargs python lock spin jobs",
        "xargs -P16 starts 16 link.py at once, which spin (no sleep) on the lock directory db.lock and take the two CPUs away from its holder: -P2, or a lock that blocks (flock)",
        r"-P ?(16|2)|link\.py|db\.lock|xargs",
        {
            "link.py": """import os
import sys
import time


def work(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


work(0.03)
while True:  # one at a time in the database
    try:
        os.mkdir("db.lock")
        break
    except FileExistsError:
        pass
work(0.05)
with open("db.txt", "a") as f:
    f.write(sys.argv[1] + "\\n")
os.rmdir("db.lock")
""",
            "run.sh": f"""rm -rf db.lock db.txt
if [ -n "$FIX" ]; then P=2; else P=16; fi
seq 1 20 | xargs -n1 -P$P {PYTHON} link.py
sort -n db.txt | tail -n 1
""",
        },
    ),
    Plant(
        "java-per-file",
        "wrapper",
        "java sh launcher loop",
        "run.sh starts one JVM for each of 30 small files, and its start is nearly all of the time: Fmt takes many files, call it once",
        r"(?i)\bjava\b|\bfmt\b",
        {
            "setup.sh": "javac Fmt.java\n",
            "Fmt.java": """import java.nio.file.*;
import java.util.stream.*;

public class Fmt {
    public static void main(String[] args) throws Exception {
        for (String name : args) {
            Path p = Path.of(name);
            String text = Files.readAllLines(p).stream().map(String::stripTrailing).collect(Collectors.joining("\\n"));
            Files.writeString(Path.of(name + ".out"), text + "\\n");
        }
    }
}
""",
            **{f"page{i:02}.txt": f"page {i}   \nof the manual \n" * 40 for i in range(30)},
            "run.sh": """[ -f Fmt.class ] || sh setup.sh || exit 1
rm -f *.out
if [ -n "$FIX" ]; then java -cp . Fmt page*.txt
else for f in page*.txt; do java -cp . Fmt "$f"; done; fi
ls *.out | wc -l
""",
        },
    ),
    Plant(
        "make-phony-rebuild",
        "repeat",
        "make rebuild",
        "the phony target schema is made again, with the same result, in each of the three calls of make (0.7 s each): give it its file name",
        r"schema|gen\.py",
        {
            "gen.py": """import sys
import time

while time.process_time() < 0.7:
    pass
with open("schema.h", "w") as f:
    f.write("#define FIELDS 12\\n")
""",
            "Makefile": f"""app: schema main.txt
\tcat schema.h main.txt > app
schema:
\t{PYTHON} gen.py
test: app
\tgrep -q FIELDS app
install: app
\tcp app app.installed
.PHONY: schema test install
""",
            "file.mk": f"""app: schema.h main.txt
\tcat schema.h main.txt > app
schema.h: gen.py
\t{PYTHON} gen.py
test: app
\tgrep -q FIELDS app
install: app
\tcp app app.installed
.PHONY: test install
""",
            "main.txt": "int main(void) { return FIELDS; }\n",
            "run.sh": """rm -f app schema.h app.installed
if [ -n "$FIX" ]; then F=file.mk; else F=Makefile; fi
make -f $F && make -f $F test && make -f $F install
""",
        },
    ),
    Plant(
        "taskset-one-cpu",
        "affinity",
        "taskset make",
        "taskset -c 0 keeps make -j2 and all its jobs on one of the two CPUs",
        r"taskset|affinity|pinned|one CPU",
        {
            "cpu.py": CPU,
            "Makefile": f"""app: a.o b.o c.o d.o e.o f.o
\tcat $^ > $@
%.o:
\t{PYTHON} cpu.py 0.6 $@ > $@
""",
            "run.sh": """rm -f app *.o
if [ -n "$FIX" ]; then make -s -j2; else taskset -c 0 make -s -j2; fi
""",
        },
    ),
    Plant(
        "sigstop-throttle",
        "throttle",
        "perl signal cpulimit child",
        "gentle.pl stops its child (SIGSTOP) for half of the time, so that 1.5 s of work take 3 s",
        r"gentle\.pl|SIGSTOP|stopped",
        {
            "cpu.py": CPU,
            "gentle.pl": """use strict;
use warnings;
use POSIX ":sys_wait_h";
# gentle.pl PERCENT COMMAND...: gives the command only so much of the CPU.
my ($percent, @command) = @ARGV;
my $pid = fork // die "fork: $!\\n";
if (!$pid) { exec @command or die "exec: $!\\n"; }
if ($percent >= 100) { waitpid($pid, 0); exit $? >> 8; }
my $slice = 0.1;
while (1) {
    select(undef, undef, undef, $slice * $percent / 100);
    last if waitpid($pid, WNOHANG) == $pid;
    kill STOP => $pid;
    select(undef, undef, undef, $slice * (1 - $percent / 100));
    kill CONT => $pid;
}
exit $? >> 8;
""",
            "run.sh": f"""if [ -n "$FIX" ]; then PERCENT=100; else PERCENT=50; fi
perl gentle.pl $PERCENT {PYTHON} cpu.py 1.8 thumbnails
{PYTHON} cpu.py 0.5 pages
""",
        },
    ),
    Plant(
        "queue-get-timeout",
        "timeout",
        "python threads queue exit",
        "crawl.py has done its work after 0.2 s, but its thread sees the stop flag only when queue.get(timeout=2.5) is over: send an end mark",
        r"crawl\.py",
        {
            "cpu.py": CPU,
            "crawl.py": """import queue
import sys
import threading

jobs = queue.Queue()
stop = threading.Event()
pages = []


def worker():
    while not stop.is_set():
        try:
            job = jobs.get(timeout=2.5)
        except queue.Empty:
            continue
        if job is not None:
            pages.append(sum(i * job for i in range(20_000)))
        jobs.task_done()


thread = threading.Thread(target=worker)
thread.start()
for i in range(60):
    jobs.put(i)
jobs.join()
stop.set()
if sys.argv[1] == "mark":
    jobs.put(None)
thread.join()
print(len(pages), "pages")
""",
            "run.sh": f"""if [ -n "$FIX" ]; then END=mark; else END=flag; fi
{PYTHON} crawl.py $END
{PYTHON} cpu.py 0.9 index
""",
        },
    ),
    Plant(
        "expect-wrong-prompt",
        "timeout",
        "expect terminal sh",
        "answer.exp waits until its time-out of 1 s for a prompt that install.sh no longer prints (three times), then answers anyway",
        r"answer\.exp|expect",
        {
            "cpu.py": CPU,
            "install.sh": f"""for what in licence plugins telemetry; do
    printf '%s: accept? [y/N] ' "$what"
    read -r answer
    [ "$answer" = y ] || exit 1
    {PYTHON} cpu.py 0.25 "$what"
done
""",
            "answer.exp": """set prompt [lindex $argv 0]
set timeout 1
log_user 0
spawn sh install.sh
foreach what {licence plugins telemetry} {
    expect -ex $prompt {} timeout {}
    send "y\\r"
    set timeout 10
    expect "$what done"
    set timeout 1
}
expect eof
set status [lindex [wait] 3]
puts "installed: $status"
exit $status
""",
            "run.sh": f"""if [ -n "$FIX" ]; then PROMPT='accept? [y/N] '; else PROMPT='Do you accept (yes/no)?'; fi
expect answer.exp "$PROMPT"
{PYTHON} cpu.py 0.6 verify
""",
        },
    ),
    Plant(
        "none-make-gcc-j2",
        "none",
        "make gcc tcl heartbeat background",
        "nothing: make -j2 keeps both CPUs busy with gcc; the heartbeat of alive.tcl (after 400) costs nothing",
        NOTHING,
        {
            **{f"{n}.c": c_source(n, 60) for n in (*MODULES, "link", "debug")},
            "main.c": c_main((*MODULES, "link", "debug")),
            "alive.tcl": """proc beat {} {
    puts stderr "[llength [glob -nocomplain *.o]] objects"
    after 400 beat
}
beat
vwait forever
""",
            "Makefile": "OBJ = main.o "
            + " ".join(f"{n}.o" for n in (*MODULES, "link", "debug"))
            + "\napp: $(OBJ)\n\tgcc -o $@ $(OBJ)\n%.o: %.c\n\tgcc -O2 -c $<\n",
            "run.sh": """rm -f app *.o
tclsh alive.tcl 2> alive.log & T=$!
make -s -j2
./app
"""
            + stop("$T"),
        },
    ),
    Plant(
        "none-java-pool",
        "none",
        "java threads heartbeat",
        "nothing: the two threads of Solve (java) keep both CPUs busy; main waits for them and a timer thread prints every 0.25 s",
        NOTHING,
        {
            "setup.sh": "javac Solve.java\n",
            "Solve.java": """import java.util.*;
import java.util.concurrent.*;

public class Solve {
    static long solve(int seed) {
        long x = seed, hits = 0;
        for (int i = 0; i < 600_000_000; i++) {
            x = (x * 6364136223846793005L + 1442695040888963407L);
            if ((x >>> 33) % 1009 == 7) hits++;
        }
        return hits;
    }

    public static void main(String[] args) throws Exception {
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(r -> { Thread t = new Thread(r); t.setDaemon(true); return t; });
        timer.scheduleAtFixedRate(() -> System.err.println("alive"), 250, 250, TimeUnit.MILLISECONDS);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<Long>> parts = new ArrayList<>();
        for (int i = 1; i <= 8; i++) { final int seed = i; parts.add(pool.submit(() -> solve(seed))); }
        long total = 0;
        for (Future<Long> f : parts) total += f.get();
        pool.shutdown();
        System.out.println(total);
    }
}
""",
            "run.sh": """[ -f Solve.class ] || sh setup.sh || exit 1
java -cp . Solve 2> alive.log
""",
        },
    ),
    Plant(
        "none-one-recurrence",
        "none",
        "awk flock timeout watchdog",
        "nothing: one awk computes a recurrence, each step from the one before, on one CPU; its lock is free, and the time-out and the watchdog beside it do not delay it",
        NOTHING,
        {
            "orbit.awk": """BEGIN {
    x = 0.3; y = 0.1
    for (i = 0; i < steps; i++) {
        z = 1 - 1.4 * x * x + y
        y = 0.3 * x
        x = z
        if (x > 1.2) peaks++
    }
    printf "%d peaks after %d steps\\n", peaks, steps
}
""",
            "watchdog.sh": 'while kill -0 "$1" 2>/dev/null; do date +%s > beat; sleep 0.5; done\n',
            "run.sh": """rm -f beat
timeout 60 flock orbit.lock awk -v steps=40000000 -f orbit.awk & A=$!
sh watchdog.sh $A & W=$!
wait $A
"""
            + stop("$W"),
        },
    ),
    Plant(
        "none-balanced-pipe",
        "none",
        "pipeline python perl",
        "nothing: sim.py and fold.pl on both ends of the pipe each need a whole CPU for nearly the same time",
        NOTHING,
        {
            "sim.py": """import sys

seed = 1
for block in range(600):
    lines = []
    for _ in range(4000):
        seed = (seed * 1103515245 + 12345) % 2147483648
        lines.append(str(seed))
    sys.stdout.write(" ".join(lines) + "\\n")
    n = 0
    for i in range(50000):
        n += i
""",
            "fold.pl": """use strict;
use warnings;
my ($sum, %seen) = (0);
while (my $line = <STDIN>) {
    for my $v (split " ", $line) {
        $sum = ($sum * 31 + $v) % 1000003;
        $seen{$sum % 997}++;
        for my $k (1 .. 26) { $sum = ($sum + $k * $v) % 1000003; }
    }
}
printf "%d %d\\n", $sum, scalar keys %seen;
""",
            "run.sh": f"{PYTHON} sim.py | perl fold.pl\n",
        },
    ),
]

# The seconds with and without the fault on two CPUs that nobody else uses: the author's, from the lengths of the system calls that
# wait and from CPU times.
QUIET = {
    "tcl-after-poll": (3.7, 1.4),
    "go-ticker-port": (3.4, 1.4),
    "node-worker-atomics": (3.3, 0.9),
    "java-pool-linger": (4.0, 1.0),
    "grandchild-holds-pipe": (3.9, 1.5),
    "node-graceful-drain": (3.5, 1.0),
    "mkdir-lock-poll": (3.5, 1.3),
    "sqlite-long-transaction": (3.7, 2.1),
    "ruby-retry-after": (4.1, 1.6),
    "gcc-one-driver": (4.1, 2.1),
    "prove-one-slow-test": (3.1, 0.5),
    "perl-debounce-fifo": (4.0, 1.5),
    "git-hook-sleep": (4.0, 1.0),
    "fsync-each-record": (2.4, 0.7),
    "xz-single-thread": (1.5, 0.85),
    "spin-lock-16-jobs": (5.5, 1.6),
    "java-per-file": (2.5, 0.1),
    "make-phony-rebuild": (2.2, 0.75),
    "taskset-one-cpu": (3.7, 1.9),
    "sigstop-throttle": (4.1, 2.4),
    "queue-get-timeout": (3.6, 1.1),
    "expect-wrong-prompt": (4.5, 1.5),
    "none-make-gcc-j2": (2.9, 2.9),
    "none-java-pool": (3.3, 3.3),
    "none-one-recurrence": (3.4, 3.4),
    "none-balanced-pipe": (2.7, 2.7),
}
PLANTS = [dataclasses.replace(plant, quiet=QUIET[plant.name]) for plant in PLANTS]
