"""Builds with one planted fault in how they wait, or none, written before the rules and the tool's output were read.

As in waits.py: FIX=1 in the environment makes run.sh behave as if the fault was repaired. Ports 18300 to 18309 on loopback.
Needs ruby (with its minitest), lua5.4, node, perl, java, bash, flock, curl and make.
"""

from waits import CPU, HTTPD, PYTHON, Plant, serve

# The verdict of a "none": only its general form was known to the author.
NOTHING = r"(?i)\bnothing\b|\bno (change|wait|fault)"


def stop(*pids):
    """The end of a run.sh that has started background processes: none is left behind."""
    names = " ".join(pids)
    return f"kill {names}; wait {names} 2>/dev/null\nexit 0\n"


PLANTS = [
    Plant(
        "ruby-fixture-nap",
        "nap",
        "ruby minitest fixture thread",
        "test_queue.rb sleeps 0.4 s in the setup of each of its 6 tests to let a worker start that is ready at once",
        r"test_queue\.rb|ruby",
        {
            "cpu.py": CPU,
            "worker.rb": """class Worker
  def initialize
    @jobs = Queue.new
    @done = Queue.new
    @thread = Thread.new do
      while (job = @jobs.pop)
        @done << job * 2
      end
    end
  end

  def call(job)
    @jobs << job
    @done.pop
  end

  def stop
    @jobs << nil
    @thread.join
  end
end
""",
            "test_queue.rb": """require "minitest/autorun"
require_relative "worker"

class TestQueue < Minitest::Test
  SETTLE = Float(ENV.fetch("SETTLE", "0.4"))

  def setup
    @worker = Worker.new
    sleep SETTLE # the worker thread must be up
  end

  def teardown
    @worker.stop
  end

  %w[empty one many negative zero large].each_with_index do |name, i|
    define_method("test_#{name}") do
      100.times { |k| assert_equal 2 * (k + i), @worker.call(k + i) }
    end
  end
end
""",
            "run.sh": f"""set -e
if [ -n "$FIX" ]; then SETTLE=0; else SETTLE=0.4; fi
export SETTLE
{PYTHON} cpu.py 0.8 compile
ruby test_queue.rb
""",
        },
    ),
    Plant(
        "asyncio-pipe-throttle",
        "nap",
        "python asyncio pipe producer perl",
        "export.py awaits asyncio.sleep(0.05) after each of 50 batches, so that load.pl behind the pipe waits for its input for 2.5 s",
        r"export\.py",
        {
            "cpu.py": CPU,
            "export.py": """import asyncio
import sys

PACE = float(sys.argv[1])


async def rows(queue):
    for batch in range(50):
        await queue.put([f"{batch},{i},{batch * i}" for i in range(200)])
        await asyncio.sleep(PACE)
    await queue.put(None)


async def write(queue):
    while (batch := await queue.get()) is not None:
        sys.stdout.write("\\n".join(batch) + "\\n")
        sys.stdout.flush()


async def main():
    queue = asyncio.Queue(maxsize=4)
    await asyncio.gather(rows(queue), write(queue))


asyncio.run(main())
""",
            "load.pl": """use strict;
use warnings;
my (%sum, $rows);
while (my $line = <STDIN>) {
    chomp $line;
    my ($batch, undef, $value) = split /,/, $line;
    $sum{$batch} += $value;
    $rows++;
}
printf "%d rows in %d batches\\n", $rows, scalar keys %sum;
""",
            "run.sh": f"""if [ -n "$FIX" ]; then PACE=0; else PACE=0.05; fi
{PYTHON} export.py $PACE | tee rows.csv | perl load.pl
{PYTHON} cpu.py 1.2 index rows.csv
""",
        },
    ),
    Plant(
        "bash-read-timeout",
        "poll",
        "bash read child",
        "build.sh looks every 1 s (read -t 1) whether its background child is there, for 4 steps of 0.4 s: use wait",
        r"build\.sh|bash",
        {
            "cpu.py": CPU,
            "build.sh": f"""#!/bin/bash
# Runs each step in the background and shows that it is alive.
tick=$1
mkfifo -m 600 tick.fifo
exec 8<>tick.fifo
rm -f tick.fifo

step() {{
    {PYTHON} cpu.py 0.4 "$1" &
    local pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        read -r -t "$tick" -u 8 _
    done
    wait "$pid" || exit 1
    echo "$1 done"
}}

for s in configure compile link package; do
    step "$s"
done
""",
            "run.sh": """rm -f tick.fifo
if [ -n "$FIX" ]; then TICK=0.01; else TICK=1; fi
bash build.sh $TICK
""",
        },
    ),
    Plant(
        "perl-backoff-later",
        "retry",
        "perl retry server",
        "smoke.pl doubles its pause after each refused connection, so that it sleeps up to 3.5 s although model.py listens after 1.8 s",
        r"smoke\.pl|perl",
        {
            "cpu.py": CPU,
            "model.py": """import socketserver
import sys
import time

weights = 0
while time.process_time() < 1.8:  # builds its tables, then listens
    weights += 1


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"%d\\n" % (len(line) + min(weights, 1)))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""",
            "smoke.pl": """use strict;
use warnings;
use IO::Socket::INET;
use Time::HiRes qw(sleep);

my ($port, $pause, $factor) = @ARGV;
my $sock;
for my $try (1 .. 400) {
    $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port, Proto => "tcp") and last;
    warn "not up yet ($!), again in $pause s\\n" if $try <= 5;
    sleep $pause;
    $pause *= $factor;
}
die "no server\\n" unless $sock;
$sock->autoflush(1);
for my $word (qw(alpha beta gamma delta)) {
    print $sock "$word\\n";
    my $answer = <$sock>;
    die "wrong answer for $word\\n" unless $answer == length($word) + 2;
}
print "ok\\n";
""",
            "run.sh": f"""if [ -n "$FIX" ]; then RETRY="0.02 1"; else RETRY="0.5 2"; fi
{PYTHON} model.py 18300 & S=$!
perl smoke.pl 18300 $RETRY
{PYTHON} cpu.py 0.6 report
"""
            + stop("$S"),
        },
    ),
    Plant(
        "lua-wait-file",
        "poll",
        "lua child file",
        "pack.lua looks only every 2 s (os.execute sleep) for the file that each of its two background jobs writes after 1.2 s",
        r"pack\.lua|lua",
        {
            "cpu.py": CPU,
            "render.sh": f'{PYTHON} cpu.py 1.2 "$1"\necho "$1" > "$1.tmp"\nmv "$1.tmp" "$1.out"\n',
            "pack.lua": """local interval = arg[1]

local function exists(name)
  local f = io.open(name)
  if f then f:close() end
  return f ~= nil
end

local function render(name)
  os.execute("sh render.sh " .. name .. " &")
  while not exists(name .. ".out") do
    os.execute("sleep " .. interval)
  end
end

local out = assert(io.open("atlas.txt", "w"))
for _, name in ipairs({ "sprites", "fonts" }) do
  render(name)
  for line in io.lines(name .. ".out") do out:write(line, "\\n") end
end
out:close()
""",
            "run.sh": """rm -f sprites.* fonts.* atlas.txt
if [ -n "$FIX" ]; then INTERVAL=0.03; else INTERVAL=2; fi
lua5.4 pack.lua $INTERVAL
""",
        },
    ),
    Plant(
        "shell-loop-tests",
        "jobs",
        "sh harness tests",
        "run_tests.sh runs six independent tests of 0.6 s one after another although there are two CPUs",
        r"run_tests\.sh|test_\w+\.sh",
        {
            "cpu.py": CPU,
            "run_tests.sh": """#!/bin/sh
failed=0
for t in test_*.sh; do
    if sh "$t" > "$t.log" 2>&1; then
        echo "ok   $t"
    else
        echo "FAIL $t"
        failed=1
    fi
done
exit $failed
""",
            **{
                f"test_{name}.sh": f"{PYTHON} cpu.py 0.6 {name} && echo {name} passed\n"
                for name in ("parse", "print", "merge", "split", "quote", "unicode")
            },
            "run.sh": """rm -f test_*.log
if [ -n "$FIX" ]; then
    printf '%s\\n' test_*.sh | xargs -P2 -I{} sh -c 'sh {} > {}.log 2>&1 && echo "ok   {}"'
else
    sh run_tests.sh
fi
""",
        },
    ),
    Plant(
        "make-recursive-serial",
        "jobs",
        "make recursive",
        "make is called without -j, and the two objects in each of its three sub-makes are made one after another: make -j2",
        r"\bg?make\b|Makefile",
        {
            "cpu.py": CPU,
            "Makefile": """LIBS = core net ui
app: libs
\tcat core.a net.a ui.a > app
libs:
\tfor l in $(LIBS); do $(MAKE) -f lib.mk LIB=$$l || exit 1; done
clean:
\trm -f *.o *.a app
.PHONY: libs clean
""",
            "lib.mk": f"""$(LIB).a: $(LIB)_read.o $(LIB)_write.o
\tcat $^ > $@
$(LIB)_%.o:
\t{PYTHON} cpu.py 0.6 $@
\techo $@ > $@
""",
            "run.sh": """make -s clean
if [ -n "$FIX" ]; then make -j2; else make; fi
""",
        },
    ),
    Plant(
        "flock-whole-job",
        "lock",
        "sh flock background",
        "publish.sh holds repo.lock while it packs for 1.4 s, so that the second one waits for the first: the lock is needed only for the index",
        r"publish\.sh|repo\.lock|flock",
        {
            "cpu.py": CPU,
            "publish.sh": f"""#!/bin/sh
# publish.sh TARGET SCOPE: packs TARGET and adds it to the index. SCOPE job: the lock from the start; index: only for the index.
exec 9> repo.lock
[ "$2" = index ] || flock 9
{PYTHON} cpu.py 1.4 "$1" 9>&-
[ "$2" = job ] || flock 9
echo "$1" >> index.txt
""",
            "run.sh": """rm -f index.txt repo.lock
if [ -n "$FIX" ]; then SCOPE=index; else SCOPE=job; fi
sh publish.sh amd64 $SCOPE & A=$!
sh publish.sh arm64 $SCOPE & B=$!
wait $A && wait $B && sort index.txt
""",
        },
    ),
    Plant(
        "ruby-lock-settle",
        "lock",
        "ruby python flock background",
        "sync.rb sleeps 2 s while it holds cache.lock, and compile.py waits for this lock",
        r"sync\.rb|ruby|cache\.lock",
        {
            "cpu.py": CPU,
            "sync.rb": """settle = Float(ARGV[0])
File.open("cache.lock", File::RDWR | File::CREAT) do |lock|
  lock.flock(File::LOCK_EX)
  File.write("locked", "")
  File.write("cache.idx", (1..20_000).map { |i| "#{i} #{i * 7919 % 10_007}" }.join("\\n"))
  sleep settle # let the file system settle
end
""",
            "compile.py": """import fcntl
import time

with open("cache.lock") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open("cache.idx") as f:
        entries = sum(1 for _ in f)
start = time.process_time()
n = 0
while time.process_time() - start < 1.2:
    n += 1
print(entries, "entries compiled")
""",
            "run.sh": f"""rm -f locked cache.lock cache.idx
if [ -n "$FIX" ]; then SETTLE=0; else SETTLE=2; fi
ruby sync.rb $SETTLE & A=$!
while [ ! -e locked ]; do sleep 0.02; done
{PYTHON} compile.py
wait $A
""",
        },
    ),
    Plant(
        "node-slow-route",
        "server",
        "node timer server curl",
        "app.js answers its one request /report only after 1.8 s (setTimeout), all others at once; curl waits for it",
        r"app\.js|node|/report|18301",
        {
            "cpu.py": CPU,
            "app.js": """const http = require('http');
const fs = require('fs');
const flushEvery = Number(process.argv[3]);

function report(done) {
  // The counters are flushed first.
  setTimeout(() => done(JSON.stringify({ total: 10 })), flushEvery);
}

http.createServer((req, res) => {
  const send = (body) => { res.setHeader('content-type', 'application/json'); res.end(body + '\\n'); };
  if (req.url === '/report') report(send);
  else send(JSON.stringify({ path: req.url }));
}).listen(Number(process.argv[2]), '127.0.0.1', () => fs.writeFileSync('ready', ''));
""",
            "run.sh": f"""rm -f ready
if [ -n "$FIX" ]; then FLUSH=0; else FLUSH=1800; fi
node app.js 18301 $FLUSH & S=$!
while [ ! -e ready ]; do sleep 0.02; done
for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS -o item.json http://127.0.0.1:18301/item/$i; done
curl -sS http://127.0.0.1:18301/report
{PYTHON} cpu.py 0.8 compare
"""
            + stop("$S"),
        },
    ),
    Plant(
        "java-client-timeout",
        "timeout",
        "java network server",
        "License.java waits for 2 s (setSoTimeout) for an answer of licensed.py on port 18302, which never answers, and then goes on without",
        r"(?i)java|license|18302",
        {
            "cpu.py": CPU,
            "licensed.py": """import socket
import sys

s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(16)
open("ready", "w").close()
held = []
while True:  # the licence pool is empty: clients are kept in the queue
    held.append(s.accept())
""",
            "License.java": """import java.io.*;
import java.net.*;

public class License {
    static String ask(int port) throws IOException {
        try (Socket s = new Socket("127.0.0.1", port)) {
            s.setSoTimeout(2000);
            s.getOutputStream().write("LEASE compiler\\n".getBytes());
            return new BufferedReader(new InputStreamReader(s.getInputStream())).readLine();
        } catch (SocketTimeoutException e) {
            return "none";
        }
    }

    public static void main(String[] args) throws IOException {
        String lease = args.length > 1 && args[1].equals("offline") ? "none" : ask(Integer.parseInt(args[0]));
        System.out.println("lease: " + lease + (lease.equals("none") ? ", community mode" : ""));
    }
}
""",
            "run.sh": f"""rm -f ready
if [ -n "$FIX" ]; then MODE=offline; else MODE=online; fi
{PYTHON} licensed.py 18302 & S=$!
while [ ! -e ready ]; do sleep 0.02; done
java License.java 18302 $MODE
{PYTHON} cpu.py 0.7 compile
"""
            + stop("$S"),
        },
    ),
    Plant(
        "node-launcher",
        "wrapper",
        "node sh launcher",
        "nxrun starts node three times for each of 10 calls: for the version and the place of the tool besides the tool itself",
        r"nxrun|resolve\.js|engines\.js",
        {
            "package.json": '{"name": "site", "engines": {"node": ">=12"}, "bin": {"minify": "./minify.js"}}\n',
            "engines.js": """const want = Number(require('./package.json').engines.node.replace(/[^0-9.]/g, ''));
if (parseInt(process.versions.node, 10) < want) { console.error('node is too old'); process.exit(1); }
""",
            "resolve.js": "console.log(require('path').resolve(require('./package.json').bin[process.argv[2]]));\n",
            "minify.js": """const fs = require('fs');
const css = fs.readFileSync(process.argv[2], 'utf8');
fs.writeFileSync(process.argv[3], css.replace(/\\s+/g, ' ').replace(/ ?([{};:,]) ?/g, '$1'));
""",
            "nxrun": """#!/bin/sh
# nxrun TOOL ARGS: runs a tool of package.json.
node engines.js || exit 1
bin=$(node resolve.js "$1") || exit 1
shift
exec node "$bin" "$@"
""",
            "style.css": "body {\n  margin : 0 ;\n  color : black ;\n}\n" * 200,
            "run.sh": """for i in 01 02 03 04 05 06 07 08 09 10; do
    cp style.css page$i.css
    echo "#p$i { top : $i ; }" >> page$i.css
    if [ -n "$FIX" ]; then node minify.js page$i.css page$i.min.css
    else sh nxrun minify page$i.css page$i.min.css; fi
done
""",
        },
    ),
    Plant(
        "probe-repeated",
        "repeat",
        "sh python probe",
        "probe.py --cflags is run 5 times with the same arguments and answer, 0.5 s each: run it once",
        r"probe\.py",
        {
            "cpu.py": CPU,
            "probe.py": """import sys
import time

n = 0
while time.process_time() < 0.5:  # tries which flags the compiler takes
    n += 1
print("-O2 -Wall" if sys.argv[1] == "--cflags" else "")
""",
            "step.sh": f"""#!/bin/sh
# step.sh IN OUT: one step of the chain; each needs the result of the step before.
flags=${{CFLAGS:-$({PYTHON} probe.py --cflags)}}
{PYTHON} cpu.py 0.25 $flags "$1"
(cat "$1"; echo "$2 with $flags") > "$2"
""",
            "run.sh": f"""set -e
unset CFLAGS
if [ -n "$FIX" ]; then CFLAGS=$({PYTHON} probe.py --cflags); export CFLAGS; fi
echo source > stage0
for i in 1 2 3 4 5; do
    sh step.sh stage$((i - 1)) stage$i
done
tail -n 1 stage5
""",
        },
    ),
    Plant(
        "heartbeat-and-fixture",
        "nap",
        "python unittest node heartbeat server background",
        "test_api.py sleeps 0.4 s in setUp before each of 6 tests; heartbeat.js and the server beside it are innocent",
        r"test_api\.py|unittest",
        {
            "cpu.py": CPU,
            "httpd.py": HTTPD,
            "heartbeat.js": """const http = require('http');
const port = Number(process.argv[2]);
const agent = new http.Agent({ keepAlive: true });
setInterval(() => {
  http.get({ host: '127.0.0.1', port, path: '/beat', agent }, (res) => res.resume()).on('error', () => {});
}, 250);
""",
            "test_api.py": """import os
import time
import unittest
import urllib.request

BASE = "http://127.0.0.1:18303"
GRACE = float(os.environ.get("GRACE", "0.4"))


def get(path):
    with urllib.request.urlopen(BASE + path) as answer:
        return answer.read()


class TestApi(unittest.TestCase):
    def setUp(self):
        time.sleep(GRACE)  # the server may still be busy with the test before

    def test_root(self):
        self.assertEqual(get("/"), b"ok")

    def test_list(self):
        self.assertEqual(get("/items"), b"ok")

    def test_item(self):
        self.assertEqual([get(f"/items/{i}") for i in range(5)], [b"ok"] * 5)

    def test_query(self):
        self.assertEqual(get("/items?q=a"), b"ok")

    def test_health(self):
        self.assertEqual(get("/health"), b"ok")

    def test_long(self):
        self.assertEqual(get("/" + "a" * 500), b"ok")


if __name__ == "__main__":
    unittest.main()
""",
            "run.sh": serve(18303)
            + f"""node heartbeat.js 18303 & H=$!
if [ -n "$FIX" ]; then GRACE=0; else GRACE=0.4; fi
export GRACE
{PYTHON} cpu.py 0.8 lint
{PYTHON} -m unittest -q test_api.py
"""
            + stop("$H", "$S"),
        },
    ),
    Plant(
        "run-timeout-tail",
        "timeout",
        "python subprocess child tail",
        "collect.py reads the finished log with tail -f under subprocess.run(timeout=2), so it always waits for the whole 2 s",
        r"collect\.py|\btail\b",
        {
            "cpu.py": CPU,
            "collect.py": """import subprocess
import sys

command = ["tail", "-n", "+1", *sys.argv[1:], "app.log"]
try:
    text = subprocess.run(command, stdout=subprocess.PIPE, timeout=2).stdout
except subprocess.TimeoutExpired as e:
    text = e.stdout or b""
errors = [line for line in text.splitlines() if b"ERROR" in line]
print(len(errors), "errors in", len(text.splitlines()), "lines")
""",
            "run.sh": f"""if [ -n "$FIX" ]; then FOLLOW=; else FOLLOW=-f; fi
{PYTHON} cpu.py 0.9 run
i=0; while [ $i -lt 300 ]; do echo "INFO step $i"; i=$((i + 1)); done > app.log
echo "ERROR disk is nearly full" >> app.log
{PYTHON} collect.py $FOLLOW
{PYTHON} cpu.py 0.4 report
""",
        },
    ),
    Plant(
        "none-chain",
        "none",
        "make server background asyncio",
        "nothing: make -j2 has only a chain of five steps that each need the one before; the server beside it idles as servers do",
        NOTHING,
        {
            "cpu.py": CPU,
            "cached.py": """import asyncio
import sys

store = {}


async def handle(reader, writer):
    while line := (await reader.readline()).decode().split():
        if line[0] == "SET":
            store[line[1]] = line[2]
        writer.write((store.get(line[1], "-") + "\\n").encode())
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", int(sys.argv[1]))
    open("ready", "w").close()
    async with server:
        await server.serve_forever()


asyncio.run(main())
""",
            "put.pl": """use strict;
use warnings;
use IO::Socket::INET;
my ($port, $key) = @ARGV;
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port, Proto => "tcp") or die "no cache: $!\\n";
$s->autoflush(1);
print $s "SET $key done\\n";
my $answer = <$s>;
print "$key $answer";
""",
            "Makefile": "site.html: bundle.js\n\tcp bundle.js site.html\n"
            + "".join(
                f"{new}: {old}\n\t{PYTHON} cpu.py {seconds} {new}\n\techo {new} > {new}\n\tperl put.pl 18304 {new}\n"
                for new, old, seconds in (
                    ("grammar.txt", "cpu.py", 0.6),
                    ("parser.txt", "grammar.txt", 0.8),
                    ("ast.txt", "parser.txt", 0.5),
                    ("ir.txt", "ast.txt", 0.7),
                    ("bundle.js", "ir.txt", 0.6),
                )
            ),
            "run.sh": f"""rm -f ready *.txt bundle.js site.html
{PYTHON} cached.py 18304 & S=$!
while [ ! -e ready ]; do sleep 0.02; done
make -s -j2
"""
            + stop("$S"),
        },
    ),
    Plant(
        "none-converge",
        "none",
        "sh python loop",
        "nothing: typeset.py is run five times with the same arguments, but its input changes each time until the references are stable",
        NOTHING,
        {
            "typeset.py": """import os
import sys
import time

name = sys.argv[1]
old = open(name + ".aux").read() if os.path.exists(name + ".aux") else "0"
n = 0
while time.process_time() < 0.65:
    n += 1
# Each pass moves a page break until the fourth has nothing more to move.
new = str(min(int(old) + 1, 4))
with open(name + ".aux", "w") as f:
    f.write(new)
with open(name + ".out", "w") as f:
    f.write(f"pages: {new}\\n")
""",
            "run.sh": f"""rm -f book.aux book.old book.out
pass=0
while [ $pass -lt 9 ]; do
    pass=$((pass + 1))
    {PYTHON} typeset.py book || exit 1
    cmp -s book.aux book.old && break
    cp book.aux book.old
done
echo "stable after $pass passes"
cat book.out
""",
        },
    ),
    Plant(
        "none-both-cpus",
        "none",
        "xargs perl heartbeat tail background",
        "nothing: xargs -P2 keeps both CPUs busy for the whole run; the heartbeat and tail -f beside it cost nothing",
        NOTHING,
        {
            "cpu.py": CPU,
            "alive.pl": """use strict;
use warnings;
use IO::Handle;
open(my $log, ">>", "progress.log") or die;
$log->autoflush(1);
while (1) {
    my $done = () = glob("shard_*.ok");
    print $log "$done shards done\\n";
    select(undef, undef, undef, 0.3);
}
""",
            "shard.sh": f'{PYTHON} cpu.py 0.8 "$1" && echo ok > "shard_$1.ok"\n',
            "run.sh": """rm -f shard_*.ok progress.log
: > progress.log
tail -f progress.log & T=$!
perl alive.pl & A=$!
seq 1 8 | xargs -n1 -P2 sh shard.sh
"""
            + stop("$A", "$T"),
        },
    ),
]
