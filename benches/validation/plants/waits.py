"""Builds with one planted fault in how they wait, by language, event loop, background child, server, watchdog, pool, retry and wrapper.

Each was written with its answer before it was recorded. With FIX=1 in its environment run.sh runs without the fault, so the gain
is known by removing it. A plant of kind "none" has nothing to change above its `spare` seconds: it is there to be left alone.
"""

import dataclasses

CPU = "import sys, time\nt = float(sys.argv[1])\nx = 0\nwhile time.process_time() < t: x += 1\n"
# A server that sleeps its second argument in each request.
HTTPD = """import http.server, socketserver, sys, time
delay = float(sys.argv[2])
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if delay: time.sleep(delay)
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
s = S(("127.0.0.1", int(sys.argv[1])), H)
open("ready", "w").close()
s.serve_forever()
"""
READY = "while [ ! -e ready ]; do sleep 0.02; done\n"
# The pause that the fault is.
PAUSE = 'P=%s; [ -z "$FIX" ] || P=%s\n'
PYTHON = "/usr/bin/python3"


def serve(port, delay="0"):
    return f"rm -f ready; {PYTHON} httpd.py {port} {delay} & S=$!\n{READY}"


@dataclasses.dataclass
class Plant:
    """A build with its fault. `line` is a regular expression that the right line, or the verdict of a "none", matches."""

    name: str
    kind: str
    axes: str
    answer: str
    line: str
    files: dict
    prepare: str = ""
    spare: float = 0.35
    # The seconds with and without the fault on CPUs that nobody else uses, if they are known without a measurement here.
    quiet: tuple | None = None


def jobs_makefile(seconds, names="a b c d", cpu="cpu.py"):
    return f"all: {names}\n{names}:\n\t{PYTHON} {cpu} {seconds} $@\n.PHONY: all {names}\n"


PLANTS = [
    Plant(
        "tcl-after",
        "nap",
        "tcl server",
        "tclsh naps 5 x 0.5 s although it has a connection",
        r"t\.tcl|tclsh",
        {
            "httpd.py": HTTPD,
            "t.tcl": """set s [socket 127.0.0.1 18101]
fconfigure $s -buffering line -translation crlf
set n [expr {[info exists env(FIX)] ? 0 : 500}]
for {set i 0} {$i < 5} {incr i} {
  puts $s "GET / HTTP/1.1\\nHost: x\\n"
  while {[gets $s line] > 0} {}
  read $s 2
  after $n
}
""",
            "run.sh": serve(18101) + "tclsh t.tcl\nkill $S\n",
        },
    ),
    Plant(
        "tcl-vwait",
        "nap",
        "tcl event-loop server",
        "tclsh waits in its event loop for timers of its own, 4 x 0.6 s, and watches a socket",
        r"t\.tcl|tclsh",
        {
            "httpd.py": HTTPD,
            "t.tcl": """set s [socket 127.0.0.1 18102]
fconfigure $s -blocking 0
fileevent $s readable {read $s}
set n [expr {[info exists env(FIX)] ? 0 : 600}]
for {set i 0} {$i < 4} {incr i} { after $n {set done 1}; vwait done }
""",
            "run.sh": serve(18102) + "tclsh t.tcl\nkill $S\n",
        },
    ),
    Plant(
        "ruby-thread",
        "nap",
        "ruby threads",
        "ruby's main thread sleeps 4 x 0.6 s; another thread's ticks are not it",
        r"ruby|t\.rb",
        {
            "t.rb": 'Thread.new { loop { sleep 0.1 } }\n4.times { sleep(ENV["FIX"] ? 0 : 0.6) }\n',
            "run.sh": "ruby t.rb\n",
        },
    ),
    Plant(
        "ruby-startup",
        "server",
        "ruby server retry",
        "the server sleeps 2 s before it listens, the client polls for it",
        r"srv\.rb|cli\.rb",
        {
            "srv.rb": """require "socket"
sleep 2 unless ENV["FIX"]
s = TCPServer.new("127.0.0.1", 18104)
c = s.accept; c.puts "ok"; c.close
""",
            "cli.rb": """require "socket"
begin
  puts TCPSocket.new("127.0.0.1", 18104).gets
rescue Errno::ECONNREFUSED
  sleep 0.2; retry
end
""",
            "run.sh": "ruby srv.rb & ruby cli.rb; wait\n",
        },
    ),
    Plant(
        "php-usleep",
        "nap",
        "php server",
        "php sleeps 6 x 0.4 s between requests",
        r"c\.php",
        {
            "i.php": "<?php echo 'ok';\n",
            "c.php": "<?php\nfor ($i = 0; $i < 6; $i++) { file_get_contents('http://127.0.0.1:18105/i.php');"
            " if (!getenv('FIX')) usleep(400000); }\n",
            "run.sh": "php -S 127.0.0.1:18105 >/dev/null 2>&1 & S=$!\nuntil curl -s -o /dev/null 127.0.0.1:18105/i.php;"
            " do sleep 0.02; done\nphp c.php\nkill $S\n",
        },
    ),
    Plant(
        "perl-canread",
        "nap",
        "perl event-loop server",
        "perl waits 4 x 0.8 s on a socket on which nothing comes: the time-out ends it",
        r"t\.pl",
        {
            "httpd.py": HTTPD,
            "t.pl": """use IO::Socket::INET; use IO::Select;
my $s = IO::Socket::INET->new("127.0.0.1:18106") or die;
my $sel = IO::Select->new($s);
for (1..4) { $sel->can_read($ENV{FIX} ? 0 : 0.8); }
""",
            "run.sh": serve(18106) + "perl t.pl\nkill $S\n",
        },
    ),
    Plant(
        "node-pollchild",
        "none",
        "node background",
        "node looks for a file every 250 ms; the worker's CPU is the time",
        r"cpu\.py|your code",
        {
            "cpu.py": CPU,
            "t.js": """const {spawn} = require('child_process'); const fs = require('fs');
try { fs.unlinkSync('done') } catch {}
spawn('sh', ['-c', '/usr/bin/python3 cpu.py 1.5; touch done'], {stdio: 'ignore'});
const t = setInterval(() => { if (fs.existsSync('done')) clearInterval(t) }, 250);
""",
            "run.sh": "node t.js\n",
        },
    ),
    Plant(
        "node-timers",
        "nap",
        "node event-loop server",
        "node's own timers, 5 x 0.5 s, between requests to its own server",
        r"t\.js",
        {
            "t.js": """const http = require('http'); const {setTimeout: nap} = require('timers/promises');
const s = http.createServer((q, r) => r.end('ok')).listen(0, async () => {
  for (let i = 0; i < 5; i++) { await (await fetch(`http://127.0.0.1:${s.address().port}/`)).text(); if (!process.env.FIX) await nap(500); }
  process.exit(0);
});
""",
            "run.sh": "node t.js\n",
        },
    ),
    Plant(
        "node-serial",
        "jobs",
        "node pool",
        "four independent processes of 0.5 s in turn",
        r"node|t\.js|order|jobs",
        {
            "cpu.py": CPU,
            "t.js": """const {execFile} = require('child_process'); const run = require('util').promisify(execFile);
const lane = async all => { for (const i of all) await run('/usr/bin/python3', ['cpu.py', '0.5', `m${i}`]) };
process.env.FIX ? Promise.all([lane([0, 1]), lane([2, 3])]) : lane([0, 1, 2, 3]);
""",
            "run.sh": "node t.js\n",
        },
    ),
    Plant(
        "asyncio-sem1",
        "jobs",
        "python event-loop pool",
        "asyncio's semaphore of 1 runs six processes of 0.35 s in turn",
        r"t\.py|order|jobs",
        {
            "cpu.py": CPU,
            "t.py": """import asyncio, os
async def main():
    sem = asyncio.Semaphore(2 if os.environ.get("FIX") else 1)
    async def one(i):
        async with sem:
            p = await asyncio.create_subprocess_exec("/usr/bin/python3", "cpu.py", "0.35", f"case{i}")
            await p.wait()
    await asyncio.gather(*(one(i) for i in range(6)))
asyncio.run(main())
""",
            "run.sh": PYTHON + " t.py\n",
        },
    ),
    Plant(
        "mp-pool1",
        "jobs",
        "python pool",
        "multiprocessing.Pool(1) has six tasks of 0.35 s",
        r"t\.py|one CPU|jobs",
        {
            "t.py": """import multiprocessing, os, time
def f(i):
    t = time.process_time()
    while time.process_time() - t < 0.35: pass
if __name__ == "__main__":
    with multiprocessing.Pool(2 if os.environ.get("FIX") else 1) as p: p.map(f, range(6), 1)
""",
            "run.sh": PYTHON + " t.py\n",
        },
    ),
    Plant(
        "threadpool-sleep",
        "nap",
        "python pool",
        "a pool of one thread runs five sleep 0.4",
        r"sleep",
        {
            "t.py": """import concurrent.futures, subprocess, os
with concurrent.futures.ThreadPoolExecutor(1) as p:
    list(p.map(lambda i: subprocess.run(["sleep", "0" if os.environ.get("FIX") else "0.4"]), range(5)))
""",
            "run.sh": PYTHON + " t.py\n",
        },
    ),
    Plant(
        "queue-get",
        "nap",
        "python threads pool",
        "a producer thread sleeps 3 x 1.0 s; the consumer's time-outs of 0.7 s are only polls",
        r"t\.py",
        {
            "t.py": """import queue, threading, time, os
q = queue.Queue()
def produce():
    for i in range(3):
        time.sleep(0 if os.environ.get("FIX") else 1.0); q.put(i)
threading.Thread(target=produce).start()
n = 0
while n < 3:
    try: q.get(timeout=0.7); n += 1
    except queue.Empty: pass
""",
            "run.sh": PYTHON + " t.py\n",
        },
    ),
    Plant(
        "unix-daemon",
        "server",
        "python server",
        "the daemon sleeps 0.5 s in each of four requests over a Unix socket",
        r"d\.py|c\.py",
        {
            "d.py": """import socket, os, time
s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen()
while True:
    c, _ = s.accept(); c.recv(10); time.sleep(0 if os.environ.get("FIX") else 0.5); c.send(b"ok"); c.close()
""",
            "c.py": """import socket
for i in range(4):
    s = socket.socket(socket.AF_UNIX); s.connect("sock"); s.send(b"x"); s.recv(10); s.close()
""",
            "run.sh": f"rm -f sock; {PYTHON} d.py & S=$!\nwhile [ ! -S sock ]; do sleep 0.02; done; sleep 0.05\n{PYTHON} c.py\nkill $S\n",
        },
    ),
    Plant(
        "make-serial",
        "jobs",
        "make",
        "make without -j has six independent compilations",
        r"make.*(-j|at once|jobs)",
        {
            "gen.py": "for i in range(6):\n    open(f'f{i}.c', 'w').write('\\n'.join(f'int f{i}_{k}(int *p, int n)"
            " {{ int s = 0; for (int i = 0; i < n; i++) s += p[i] * {k} ^ (s >> 3); return s; }}' for k in range(600)))\n",
            "Makefile": "all: f0.o f1.o f2.o f3.o f4.o f5.o\n%.o: %.c\n\tgcc -O2 -c -o $@ $<\n",
            "run.sh": "rm -f *.o; make ${FIX:+-j2} >/dev/null\n",
        },
        prepare=PYTHON + " gen.py\n",
    ),
    Plant(
        "ninja-j1",
        "jobs",
        "ninja",
        "ninja -j1 has six independent steps of 0.35 s",
        r"ninja.*(-j|at once|jobs)",
        {
            "cpu.py": CPU,
            "build.ninja": f"rule c\n command = {PYTHON} cpu.py 0.35 $out && touch $out\n"
            + "".join(f"build o{i}: c\n" for i in range(6)),
            "run.sh": 'rm -f o? .ninja_log; J=-j1; [ -z "$FIX" ] || J=-j2; ninja $J >/dev/null\n',
        },
    ),
    Plant(
        "xargs-p1",
        "jobs",
        "xargs",
        "xargs starts one xz after the other on eight files",
        r"xargs|-P",
        {"run.sh": "rm -f *.xz; ls f* | xargs -n1 ${FIX:+-P2} xz -k -6\n"},
        prepare="for i in 1 2 3 4 5 6 7 8; do head -c 400000 /dev/urandom | base64 > f$i; done\n",
    ),
    Plant(
        "linters",
        "jobs",
        "sh python perl node php",
        "four linters of one script do not depend on each other",
        r"order of 4 commands|at once",
        {
            "lint-a.py": CPU,
            "lint-b.pl": "my $x=0; $x++ while (times)[0] < $ARGV[0];\n",
            "lint-c.js": "const t=+process.argv[2]*1e3; while (process.cpuUsage().user/1e3<t);\n",
            "lint-d.php": "<?php $t=(float)$argv[1]; do { $u=getrusage(); } while ($u['ru_utime.tv_sec']+$u['ru_utime.tv_usec']/1e6<$t);\n",
            "run.sh": f"""set -e
if [ -n "$FIX" ]; then
  ({PYTHON} lint-a.py 0.5; node lint-c.js 0.5) & (perl lint-b.pl 0.5; php lint-d.php 0.5); wait; exit
fi
{PYTHON} lint-a.py 0.5
perl lint-b.pl 0.5
node lint-c.js 0.5
php lint-d.php 0.5
""",
        },
    ),
    Plant(
        "sqlite-busy",
        "nap",
        "sqlite lock",
        "sqlite3 waits 2 s, in busy naps, for the lock that another sqlite3 has while its child sleeps",
        r"sqlite3",
        {
            "run.sh": PAUSE % (2, 0)
            + """rm -f db; sqlite3 db 'create table t(x)'
sqlite3 db 'begin exclusive' ".system sleep $P" 'commit' &
sleep 0.1
sqlite3 -cmd '.timeout 8000' db 'insert into t values(1)'
wait
"""
        },
    ),
    Plant(
        "flock-two",
        "lock",
        "sh lock",
        "flock serialises two jobs of sleep 0.9",
        r"flock|lock|sleep 0\.9",
        {
            "run.sh": """job() { if [ -n "$FIX" ]; then sh -c 'sleep 0.9; :'; else flock lock sh -c 'sleep 0.9; :'; fi; }
job & job & wait
"""
        },
    ),
    Plant(
        "go-sleep",
        "nap",
        "go threads",
        "go sleeps 3 x 0.7 s beside a ticker of 50 ms",
        r"\bt sleeps",
        {
            "t.go": """package main
import ("time"; "os")
func main() {
  go func() { for range time.Tick(50 * time.Millisecond) {} }()
  for i := 0; i < 3; i++ { if os.Getenv("FIX") == "" { time.Sleep(700 * time.Millisecond) } }
}
""",
            "run.sh": "./t\n",
        },
        prepare="go build -o t t.go\n",
    ),
    Plant(
        "go-server",
        "server",
        "go server curl",
        "the go server sleeps 0.6 s in each of four requests",
        r"curl|\bs\b",
        {
            "s.go": """package main
import ("time"; "os"; "net/http")
func main() {
  http.ListenAndServe("127.0.0.1:18120", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
    if os.Getenv("FIX") == "" { time.Sleep(600 * time.Millisecond) }
    w.Write([]byte("ok")) }))
}
""",
            "run.sh": "./s & S=$!\nsleep 0.2\nfor i in 1 2 3 4; do curl -s -o /dev/null 127.0.0.1:18120/$i; done\nkill $S\n",
        },
        prepare="go build -o s s.go\n",
    ),
    Plant(
        "java-sleep",
        "nap",
        "java threads",
        "Thread.sleep 4 x 0.5 s",
        r"java|\bT\b",
        {
            "T.java": "public class T { public static void main(String[] a) throws Exception { for (int i = 0; i < 4; i++) {"
            ' if (System.getenv("FIX") == null) Thread.sleep(500); System.out.println(i); } } }\n',
            "run.sh": "java -cp . T\n",
        },
        prepare="javac T.java\n",
    ),
    Plant(
        "java-pool1",
        "jobs",
        "java pool",
        "a pool of one thread works on four tasks of 0.5 s",
        r"java|\bT\b",
        {
            "T.java": """import java.util.concurrent.*; import java.lang.management.*;
public class T { public static void main(String[] a) throws Exception {
 ExecutorService e = Executors.newFixedThreadPool(System.getenv("FIX") == null ? 1 : 2);
 ThreadMXBean b = ManagementFactory.getThreadMXBean();
 for (int i = 0; i < 4; i++) e.submit(() -> { long t = b.getCurrentThreadCpuTime(); double x = 0;
  while (b.getCurrentThreadCpuTime() - t < 500000000L) for (int k = 0; k < 1000; k++) x += Math.sqrt(k); return x; });
 e.shutdown(); e.awaitTermination(60, TimeUnit.SECONDS); } }
""",
            "run.sh": "java -cp . T\n",
        },
        prepare="javac T.java\n",
    ),
    Plant(
        "curl-retry",
        "nap",
        "curl server retry",
        "curl sleeps 1 s before each of two repetitions, as the server answers 503 at first",
        r"curl",
        {
            "s.py": """import http.server, os
n = 0
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global n; n += 1
        self.send_response(200 if n > 2 or os.environ.get("FIX") else 503); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 18123), H); open("ready", "w").close(); s.serve_forever()
""",
            "run.sh": f"rm -f ready; {PYTHON} s.py & S=$!\n{READY}curl -s --retry 4 --retry-delay 1 127.0.0.1:18123/\nkill $S\n",
        },
    ),
    Plant(
        "wget-wait",
        "nap",
        "wget server retry",
        "wget --wait=1 sleeps between four files",
        r"wget",
        {
            "httpd.py": HTTPD,
            "run.sh": serve(18124)
            + PAUSE % (1, 0)
            + "wget -q -P out --wait=$P http://127.0.0.1:18124/a http://127.0.0.1:18124/b http://127.0.0.1:18124/c http://127.0.0.1:18124/d\nkill $S\n",
        },
    ),
    Plant(
        "timeout-tail",
        "nap",
        "sh wrapper background watchdog",
        "sh sleeps 4 x 0.6 s below timeout, beside tail -f",
        r"sleep",
        {
            "run.sh": PAUSE % (0.6, 0)
            + "export P; : > log\ntimeout 60 sh -c 'tail -f log & for i in 1 2 3 4; do sleep $P; echo $i >> log; done; kill $!'\n"
        },
    ),
    Plant(
        "watchdog-cpu",
        "none",
        "sh watchdog",
        "1.6 s are a program's own work; a watchdog sleeps beside it",
        r"cpu\.py|your code",
        {"cpu.py": CPU, "run.sh": f"(sleep 20; kill $$) 2>/dev/null & W=$!\n{PYTHON} cpu.py 1.6\nkill $W\n"},
    ),
    Plant(
        "pytest-fixture",
        "nap",
        "pytest",
        "pytest's fixture sleeps 0.5 s in each of five tests",
        r"pytest",
        {
            "test_a.py": "import pytest, time, os\n@pytest.fixture\ndef svc():\n    time.sleep(0 if os.environ.get('FIX') else 0.5); yield 1\n"
            + "".join(f"def test_{i}(svc): assert svc == 1\n" for i in range(5)),
            "run.sh": "/usr/bin/pytest -q -p no:cacheprovider test_a.py >/dev/null\n",
        },
    ),
    Plant(
        "pytest-slow",
        "none",
        "pytest",
        "one of thirty tests works for 1.6 s: pytest's own work",
        r"pytest|your code",
        {
            "test_a.py": "import time, pytest\n@pytest.mark.parametrize('i', range(30))\ndef test_i(i):\n    t = time.process_time()\n"
            "    while i == 17 and time.process_time() - t < 1.6: pass\n",
            "run.sh": "/usr/bin/pytest -q -p no:cacheprovider test_a.py >/dev/null\n",
        },
    ),
    Plant(
        "git-again",
        "again",
        "sh git",
        "the script asks git for the same 400 times",
        r"git",
        {
            "run.sh": 'n=400; [ -z "$FIX" ] || n=1\ni=0; while [ $i -lt $n ]; do v=$(git rev-parse HEAD); i=$((i+1)); done\n'
        },
        prepare="git init -q . ; git -c user.email=a@b -c user.name=a commit -q --allow-empty -m x\n",
    ),
    Plant(
        "npm-run",
        "wrapper",
        "node wrapper",
        "npm run starts npm below npm: node alone does it in 50 ms",
        r"npm",
        {
            "package.json": '{"name":"x","version":"1.0.0","scripts":{"a":"npm run -s b","b":"npm run -s c","c":"node c.js"}}\n',
            "c.js": "console.log(1)\n",
            "run.sh": 'if [ -n "$FIX" ]; then node c.js; else npm run -s a; fi >/dev/null\n',
        },
    ),
    Plant(
        "until-curl",
        "nap",
        "curl server retry poll",
        "the server works for 1.2 s before it listens, the script looks once a second",
        r"run\.sh|sleep|curl|httpd",
        {
            "httpd.py": "import time\nwhile time.process_time() < 1.2: pass\n" + HTTPD,
            "run.sh": f"rm -f ready; {PYTHON} httpd.py 18133 0 & S=$!\n"
            + PAUSE % (1, 0.02)
            + "until curl -s -o /dev/null 127.0.0.1:18133/; do sleep $P; done\nkill $S\n",
        },
    ),
    Plant(
        "heartbeat",
        "nap",
        "python background",
        "python sleeps 5 x 0.5 s beside a heartbeat loop",
        r"t\.py",
        {
            "t.py": "import time, os\nfor i in range(5): time.sleep(0 if os.environ.get('FIX') else 0.5)\n",
            "run.sh": f"(while :; do echo; sleep 0.2; done) >/dev/null & H=$!\n{PYTHON} t.py\nkill $H\n",
        },
    ),
    Plant(
        "coproc-pipe",
        "server",
        "perl server bash",
        "the coprocess sleeps 0.5 s in each of five answers over its pipe",
        r"s\.pl",
        {
            "s.pl": '$| = 1; while (<STDIN>) { select(undef, undef, undef, $ENV{FIX} ? 0 : 0.5); print "ok\\n"; }\n',
            "run.sh": "coproc perl s.pl\nfor i in 1 2 3 4 5; do echo $i >&${COPROC[1]}; read -r x <&${COPROC[0]}; done\nkill $COPROC_PID\n",
        },
    ),
    Plant(
        "make-chain",
        "none",
        "make",
        "one job of 2 s decides and the others fit beside it",
        r"cpu\.py|your code",
        {
            "cpu.py": CPU,
            "Makefile": f"all: a b c d\na:\n\t{PYTHON} cpu.py 2.0\nb c d:\n\t{PYTHON} cpu.py 0.3 $@\n.PHONY: all a b c d\n",
            "run.sh": "make -j2 >/dev/null\n",
        },
    ),
    Plant(
        "taskset-make",
        "wrapper",
        "make wrapper",
        "taskset -c 0 holds make -j2 on one CPU",
        r"taskset|CPU",
        {
            "cpu.py": CPU,
            "Makefile": jobs_makefile(0.5),
            "run.sh": 'T="taskset -c 0"; [ -z "$FIX" ] || T=; $T make -j2 >/dev/null\n',
        },
    ),
    Plant(
        "tar-xz",
        "none",
        "pipe",
        "xz is the time, and tar waits for it",
        r"xz|your code",
        {"run.sh": "tar cf - data | xz -6 > x.xz\n"},
        prepare="mkdir -p data; for i in 1 2 3; do head -c 900000 /dev/urandom | base64 > data/$i; done\n",
    ),
    Plant(
        "ruby-joinpoll",
        "none",
        "ruby threads poll",
        "ruby polls a thread every 0.3 s that waits for a process of 1.6 s",
        r"cpu\.py|your code",
        {
            "cpu.py": CPU,
            "t.rb": f"t = Thread.new {{ system('{PYTHON} cpu.py 1.6') }}\nnil until t.join(0.3)\n",
            "run.sh": "ruby t.rb\n",
        },
    ),
    Plant(
        "sh-wait-all",
        "nap",
        "sh background",
        "sleep 2 in the background beside 1.2 s of CPU, both waited for",
        r"sleep",
        {"cpu.py": CPU, "run.sh": PAUSE % (2, 0) + f"sleep $P &\n{PYTHON} cpu.py 1.2\nwait\n"},
    ),
    Plant(
        "php-serialised",
        "server",
        "php server xargs",
        "the single-threaded server sleeps 0.4 s in each of six requests of two clients",
        r"php|curl",
        {
            "i.php": "<?php if (!getenv('FIX')) usleep(400000); echo 'ok';\n",
            "run.sh": "php -S 127.0.0.1:18142 >/dev/null 2>&1 & S=$!\nsleep 0.3\n"
            "echo 1 2 3 4 5 6 | xargs -n1 -P2 sh -c 'curl -s -o /dev/null 127.0.0.1:18142/i.php?$0'\nkill $S\n",
        },
    ),
    Plant(
        "ctest-serial",
        "jobs",
        "ctest",
        "ctest without -j has five tests of 0.4 s",
        r"ctest",
        {
            "cpu.py": CPU,
            "CTestTestfile.cmake": "".join(f'add_test(t{i} {PYTHON} "cpu.py" 0.4 t{i})\n' for i in range(5)),
            "run.sh": "ctest ${FIX:+-j2} >/dev/null\n",
        },
    ),
    Plant(
        "prove-serial",
        "jobs",
        "prove perl",
        "prove without -j has five tests of 0.4 s",
        r"prove",
        {
            **{f"t/{i}.t": 'my $x=0; $x++ while (times)[0] < 0.4; print "1..1\\nok 1\\n";\n' for i in range(5)},
            "run.sh": "prove -Q ${FIX:+-j2} t >/dev/null\n",
        },
    ),
    Plant(
        "perl-waitpid",
        "none",
        "perl background poll",
        "perl polls waitpid every 250 ms for a worker of 1.6 s",
        r"t\.pl|your code|perl",
        {
            "t.pl": "use POSIX ':sys_wait_h'; my $p = fork; if (!$p) { my $x = 0; $x++ while (times)[0] < 1.6; exit }\n"
            "while (waitpid($p, WNOHANG) == 0) { select(undef, undef, undef, 0.25) }\n",
            "run.sh": "perl t.pl\n",
        },
    ),
    Plant(
        "sub-make",
        "jobs",
        "make",
        "make runs make -C of two directories in turn, each with two jobs of 0.5 s",
        r"make.*(-j|at once|jobs)",
        {
            "cpu.py": CPU,
            "Makefile": "all:\n\t$(MAKE) -C a\n\t$(MAKE) -C b\n",
            "a/Makefile": jobs_makefile(0.5, "x y", "../cpu.py"),
            "b/Makefile": jobs_makefile(0.5, "x y", "../cpu.py"),
            "run.sh": "make -s ${FIX:+-j2}\n",
        },
    ),
    Plant(
        "server-timeout",
        "nap",
        "python server watchdog wrapper",
        "only timeout 2 ends the server, 1.9 s after its last request",
        r"timeout|httpd",
        {
            "httpd.py": HTTPD,
            "run.sh": PAUSE % (2, 0.6)
            + f"rm -f ready; timeout $P {PYTHON} httpd.py 18146 0 & S=$!\n{READY}curl -s -o /dev/null 127.0.0.1:18146/\nwait $S\n",
        },
    ),
]
