"""Plants 12b: event loops and concurrency, and their innocent relatives. Ports 18420 to 18427, all on loopback."""

from waits import Plant

PYTHON = "/usr/bin/python3"
# The verdict of a plant with nothing to change, in whichever words.
NOTHING = (
    r"(?i)\b(nothing|no (single |one |further )?(wait|fault|pause|change|advice|saving|gain|remedy|suggestion)s?|not? .{0,20}worth)\b"
    r"|as (fast|short) as|already (well|fully|busy|uses)"
)
SETUP = "[ -e built ] || sh setup.sh\n"
READY = "while [ ! -e ready ]; do sleep 0.02; done\n"

# Uses its second argument of CPU seconds; the first names what it works on.
BURN = r"""#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
    double want = atof(argv[argc - 1]);
    struct timespec t;
    volatile unsigned long h = 1469598103934665603UL;
    do {
        for (int i = 0; i < 400000; i++) h = (h ^ i) * 1099511628211UL;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec + t.tv_nsec / 1e9 < want);
    printf("ok %s\n", argc > 2 ? argv[1] : argv[0]);
    return 0;
}
"""
# A chain of which each link needs the one before: it cannot be divided among CPUs.
CHAIN = r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
static uint64_t chain(uint64_t h, long n) {
    for (long i = 0; i < n; i++) { h ^= h >> 33; h *= 0xff51afd7ed558ccdULL; h ^= h >> 29; h += i; }
    return h;
}
"""

PLANTS = [
    Plant(
        "w12b-asyncio-blocked",
        "serial",
        "python asyncio, event loop, child processes, http",
        "the coroutines of smoke.py call subprocess.run (curl), which blocks the event loop: the eight probes run one after the other, "
        "each waiting 0.45 s for the answer of the server, though they are gathered; asyncio.create_subprocess_exec lets them run at once",
        r"(?i)smoke\.py|curl|127\.0\.0\.1:18420|localhost:18420|\b18420\b|backend\.py",
        {
            "run.sh": "set -e\nrm -f ready\n"
            + PYTHON
            + " backend.py 18420 0.45 & S=$!\ntrap 'kill $S 2>/dev/null; wait $S 2>/dev/null || :' EXIT\n"
            + READY
            + PYTHON
            + " smoke.py 18420\n",
            "backend.py": """import http.server, socketserver, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(sys.argv[2]))  # the remote data store that this stands for
        body = b'{"status": "up"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
open("ready", "w").close()
server.serve_forever()
""",
            "smoke.py": """import asyncio, os, subprocess, sys

PAGES = ["login", "cart", "search", "orders", "profile", "stock", "invoice", "health"]

async def probe(page):
    command = ["curl", "-sf", f"http://127.0.0.1:{sys.argv[1]}/{page}"]
    if os.environ.get("FIX"):
        child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        out = (await child.communicate())[0]
    else:
        out = subprocess.run(command, stdout=subprocess.PIPE).stdout
    return page, b"up" in out

async def main():
    results = await asyncio.gather(*(probe(page) for page in PAGES))
    bad = [page for page, up in results if not up]
    print(len(results), "pages probed,", len(bad), "bad", *bad)
    return bool(bad)

sys.exit(asyncio.run(main()))
""",
        },
        quiet=(3.75, 0.57),
    ),
    Plant(
        "w12b-node-timer",
        "timeout",
        "node, event loop, timer, child processes",
        "build.js races its bundles against a timer of 6 s that is never cleared: the bundles are done after a second, "
        "but node stays in its event loop until the timer fires; clearTimeout (or unref) when the race is decided",
        r"(?i)build\.js|\btimer\b|time-?out|setTimeout",
        {
            "run.sh": "set -e\nnode build.js\nls out/app.js out/vendor.js out/admin.js >/dev/null\n",
            "build.js": """const { execFile } = require('child_process');
const fs = require('fs');

function withTimeout(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(what + ' took too long')), ms);
  });
  const race = Promise.race([promise, late]);
  late.catch(() => {});
  return process.env.FIX ? race.finally(() => clearTimeout(timer)) : race;
}

function bundle(name) {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['bundle.js', name], (err, out) => (err ? reject(err) : resolve(out.trim())));
  });
}

async function main() {
  fs.mkdirSync('out', { recursive: true });
  const done = await Promise.all(['app', 'vendor', 'admin'].map((n) => withTimeout(bundle(n), 6000, n)));
  console.log(done.join('\\n'));
  console.log('build finished');
}

main().catch((e) => { console.error(e); process.exit(1); });
""",
            "bundle.js": """const crypto = require('crypto');
const fs = require('fs');
const name = process.argv[2];
let digest = name;
const end = process.cpuUsage().user + 500000;
while (process.cpuUsage().user < end) for (let i = 0; i < 500; i++) digest = crypto.createHash('sha256').update(digest).digest('hex');
fs.writeFileSync('out/' + name + '.js', '/* ' + name + ' */\\n');
console.log('bundled ' + name);
""",
        },
        quiet=(6.1, 1.2),
    ),
    Plant(
        "w12b-go-backoff",
        "retry",
        "go, retry with back-off, service that starts slowly, tcp",
        "migrate waits for store with growing pauses (0.8 s, then 3.2 s): store listens 1.1 s after its start, but migrate sleeps "
        "till 4 s; retry each 50 ms (or cap the back-off, or let store tell that it is ready)",
        r"(?i)\bmigrate(\.go)?\b|back-?off|retr(y|ies)|\b18421\b",
        {
            "run.sh": "set -e\n"
            + SETUP
            + "./store 127.0.0.1:18421 & S=$!\ntrap 'kill $S 2>/dev/null; wait $S 2>/dev/null || :' EXIT\n./migrate 127.0.0.1:18421\n",
            "setup.sh": "set -e\nexport GO111MODULE=off CGO_ENABLED=0\ngo build -o store store.go\ngo build -o migrate migrate.go\ntouch built\n",
            "store.go": """package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Replays the journal: a second of CPU.
func replay() [32]byte {
	sum := sha256.Sum256([]byte("journal"))
	for {
		for i := 0; i < 2000; i++ {
			sum = sha256.Sum256(sum[:])
		}
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		if float64(u.Utime.Sec)+float64(u.Utime.Usec)/1e6 > 1.1 {
			return sum
		}
	}
}

func main() {
	replay()
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewScanner(c)
			for r.Scan() {
				fmt.Fprintln(c, "applied", r.Text())
			}
		}()
	}
}
""",
            "migrate.go": """package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"time"
)

func dial(addr string) net.Conn {
	pause := 800 * time.Millisecond
	for try := 0; try < 200; try++ {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c
		}
		if os.Getenv("FIX") != "" {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		time.Sleep(pause)
		if pause *= 4; pause > 3200*time.Millisecond {
			pause = 3200 * time.Millisecond
		}
	}
	panic("no store at " + addr)
}

func main() {
	c := dial(os.Args[1])
	defer c.Close()
	r := bufio.NewScanner(c)
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(c, "step %d\\n", i)
		if !r.Scan() {
			panic("store closed")
		}
	}
	fmt.Println("40 migrations applied")
}
""",
        },
        quiet=(4.0, 1.2),
    ),
    Plant(
        "w12b-java-last",
        "pool",
        "java executor, thread pool, child processes, longest job last",
        "the pool of two in Shards.java gets the longest shard, e2e-checkout (3 s of CPU), last: for three seconds it runs alone and the other "
        "CPU is idle; submit it first",
        r"(?i)e2e-checkout|longest|\bShards(\.java)?\b|executor",
        {
            "run.sh": "set -e\n"
            + SETUP
            + "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -cp . Shards shards.txt\n",
            "setup.sh": "set -e\ncc -O1 -o shard shard.c\njavac Shards.java\ntouch built\n",
            "shard.c": BURN,
            "shards.txt": "".join(
                f"unit-{n} 0.4\n" for n in ("core", "model", "parser", "render", "store", "tax", "ui", "util")
            )
            + "e2e-checkout 3.0\n",
            "Shards.java": """import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

public class Shards {
    static int run(String name, String cost) throws Exception {
        Process p = new ProcessBuilder("./shard", name, cost).inheritIO().start();
        return p.waitFor();
    }

    public static void main(String[] args) throws Exception {
        List<String[]> shards = new ArrayList<>();
        for (String line : Files.readAllLines(Paths.get(args[0]))) shards.add(line.split(" "));
        if (System.getenv("FIX") != null && !System.getenv("FIX").isEmpty())
            shards.sort((a, b) -> Double.compare(Double.parseDouble(b[1]), Double.parseDouble(a[1])));
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<Integer>> results = new ArrayList<>();
        for (String[] s : shards) results.add(pool.submit(() -> run(s[0], s[1])));
        int bad = 0;
        for (Future<Integer> r : results) if (r.get() != 0) bad++;
        pool.shutdown();
        System.out.println(results.size() + " shards, " + bad + " failed");
        System.exit(bad == 0 ? 0 : 1);
    }
}
""",
        },
        quiet=(4.9, 3.5),
    ),
    Plant(
        "w12b-tcl-poll",
        "poll",
        "tcl event loop, poll with a long period, background jobs",
        "drive.tcl starts each of three steps in the background and looks for its done-file every 2 s, while the steps take about half a second; "
        "wait for the step itself (a fileevent on its pipe, or exec without &)",
        r"(?i)drive\.tcl|tclsh|\bafter\b.*\b(2000|2 ?s)|\.done\b|\bpoll",
        {
            "run.sh": "set -e\n" + SETUP + "rm -f *.done\ntclsh drive.tcl\n",
            "setup.sh": "set -e\ncc -O1 -o schema-gen step.c\ncp schema-gen doc-gen\ncp schema-gen pack-site\ntouch built\n",
            "step.c": BURN,
            "drive.tcl": """set steps {{schema-gen 0.6} {doc-gen 0.4} {pack-site 0.5}}

proc finished {} {
    after 0 next
}

proc look {name} {
    if {[file exists $name.done]} {
        finished
    } else {
        after 2000 [list look $name]
    }
}

proc ended {pipe} {
    gets $pipe line
    if {[eof $pipe]} {
        close $pipe
        finished
    }
}

proc next {} {
    global steps done
    if {[llength $steps] == 0} {
        set done 1
        return
    }
    lassign [lindex $steps 0] name cost
    set steps [lrange $steps 1 end]
    puts "step $name"
    if {[info exists ::env(FIX)] && $::env(FIX) ne ""} {
        set pipe [open "|./$name $cost"]
        fconfigure $pipe -blocking 0
        fileevent $pipe readable [list ended $pipe]
    } else {
        exec sh -c "./$name $cost >$name.log && touch $name.done" &
        after 2000 [list look $name]
    }
}

after 0 next
vwait done
puts "site built"
""",
        },
        quiet=(6.0, 1.55),
    ),
    Plant(
        "w12b-perl-pipe",
        "background",
        "perl select loop, pipe, background helper that keeps the pipe open, shell job control",
        "suite.sh leaves its helper sampler.sh running in the background with the suite's standard output: harness.pl has its results after a second, "
        "but reads till the end of the file, which comes when the helper ends; send the helper's output elsewhere and stop it with the suite",
        r"(?i)sampler(\.sh)?|harness\.pl|background|helper",
        {
            "run.sh": "set -e\n" + SETUP + "perl harness.pl alpha beta\n",
            "setup.sh": "set -e\ncc -O1 -o cases cases.c\ntouch built\n",
            "cases.c": BURN,
            "harness.pl": """use strict;
use warnings;
use IO::Select;

my $select = IO::Select->new;
my (%name, %text);
for my $suite (@ARGV) {
    open(my $fh, '-|', 'sh', 'suite.sh', $suite) or die "$suite: $!";
    $select->add($fh);
    $name{$fh} = $suite;
    $text{$suite} = '';
}
while ($select->count) {
    for my $fh ($select->can_read(30)) {
        my $got = sysread($fh, my $chunk, 4096);
        if ($got) {
            $text{$name{$fh}} .= $chunk;
            next;
        }
        $select->remove($fh);
        close($fh) or die "$name{$fh} failed";
    }
}
for my $suite (@ARGV) {
    die "$suite: no result" unless $text{$suite} =~ /^ok $suite/m;
    print "$suite passed\\n";
}
""",
            "suite.sh": """# One suite, with the memory sampler beside it.
if [ -n "$FIX" ]; then
    sh sampler.sh $1 >/dev/null &
    P=$!
    trap 'kill $P 2>/dev/null; wait $P 2>/dev/null' EXIT
else
    sh sampler.sh $1 &
fi
./cases $1 0.9
""",
            "sampler.sh": """# Twelve samples, one each half second.
trap 'exit 0' TERM
n=0
while [ $n -lt 12 ]; do
    grep MemAvailable /proc/meminfo >>samples.$1
    sleep 0.5
    n=$((n + 1))
done
rm -f samples.$1
""",
        },
        quiet=(6.1, 0.95),
    ),
    Plant(
        "w12b-slow-stop",
        "stop",
        "python selectors loop, service that stops slowly, signal, wait in the shell",
        "collector.py only sets a flag at SIGTERM and looks at it when its select returns, at the next tick of 5 s: run.sh waits for its end "
        "long after the last event; wake the loop by the signal (signal.set_wakeup_fd, or raise in the handler)",
        r"(?i)collector\.py|SIGTERM|\b18423\b|slow(ly)? to (stop|end|exit)|shut ?down",
        {
            "run.sh": "set -e\nrm -f ready\n"
            + PYTHON
            + " collector.py 18423 & S=$!\ntrap 'kill -9 $S 2>/dev/null || :' EXIT\n"
            + READY
            + PYTHON
            + " emit.py 18423\nkill -TERM $S\nwait $S\ntrap - EXIT\ngrep -q '^300 events' report.txt\ncat report.txt\n",
            "collector.py": """import os, selectors, signal, socket, sys

stopped = False

def stop(number, frame):
    global stopped
    stopped = True

signal.signal(signal.SIGTERM, stop)
loop = selectors.DefaultSelector()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
loop.register(listener, selectors.EVENT_READ, "listener")
if os.environ.get("FIX"):
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    loop.register(wake, selectors.EVENT_READ, "wake")
open("ready", "w").close()
data = b""
while not stopped:
    for key, _ in loop.select(timeout=5.0):
        if key.data == "listener":
            conn, _ = listener.accept()
            loop.register(conn, selectors.EVENT_READ, "conn")
        elif key.data == "wake":
            key.fileobj.recv(64)
        else:
            chunk = key.fileobj.recv(65536)
            if not chunk:
                loop.unregister(key.fileobj)
                key.fileobj.close()
            data += chunk
with open("report.txt", "w") as report:
    print(data.count(b"\\n"), "events", file=report)
""",
            "emit.py": """import hashlib, socket, sys

conn = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for number in range(300):
    digest = hashlib.pbkdf2_hmac("sha256", b"event", str(number).encode(), 12000)
    conn.sendall(digest.hex().encode() + b"\\n")
conn.close()
print("300 events sent")
""",
        },
        quiet=(5.85, 0.9),
    ),
    Plant(
        "w12b-lock-upload",
        "lock",
        "make -j, lock file, flock, upload, http",
        "each of four packages is built and uploaded under one flock of .publish.lock: make -j4 starts them at once, but three wait for the lock while the "
        "fourth waits a second for the server; hold the lock only while the index is written",
        r"(?i)flock|\.publish\.lock|\block(ed|s)?\b|publish\.sh",
        {
            "run.sh": "set -e\nrm -f ready index.txt *.pkg\n"
            + PYTHON
            + " registry.py 18424 1.0 & S=$!\ntrap 'kill $S 2>/dev/null; wait $S 2>/dev/null || :' EXIT\n"
            + READY
            + "make -s -j4 all\n[ $(wc -l <index.txt) = 4 ]\n",
            "Makefile": "PACKAGES = core.pkg cli.pkg web.pkg docs.pkg\nall: $(PACKAGES)\n"
            "ifeq ($(FIX),)\n%.pkg:\n\t@flock .publish.lock sh publish.sh $*\nelse\n%.pkg:\n\t@sh publish.sh $*\nendif\n",
            "publish.sh": """# Pack, upload, enter into the index.
set -e
seq 1 150000 | sed "s/^/$1 /" | gzip -9 >$1.tmp
curl -sf -T $1.tmp http://127.0.0.1:18424/$1 >/dev/null
if [ -n "$FIX" ]; then
    flock .publish.lock sh -c 'echo "$1" >>index.txt' - $1
else
    echo $1 >>index.txt
fi
mv $1.tmp $1.pkg
echo "published $1"
""",
            "registry.py": """import http.server, socketserver, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(float(sys.argv[2]))  # the scan and the replication at the other side
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True

server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
open("ready", "w").close()
server.serve_forever()
""",
        },
        quiet=(4.3, 1.2),
    ),
    Plant(
        "w12b-ruby-resolver",
        "timeout",
        "ruby, udp, DNS-like time-out, fallback",
        "resolve.rb asks the first name server of resolvers.conf, 127.0.0.1:18425, where nobody answers, and waits for its time-out of 1.5 s at each of "
        "three names before it asks the second; remove the dead server (or remember that it is dead)",
        r"(?i)resolve\.rb|resolvers?\.conf|\b18425\b|time-?out|name ?server|\bruby\b",
        {
            "run.sh": "set -e\nrm -f ready\n"
            + PYTHON
            + " names.py 18426 & S=$!\ntrap 'kill $S 2>/dev/null; wait $S 2>/dev/null || :' EXIT\n"
            + READY
            + "if [ -n \"$FIX\" ]; then\n    echo '127.0.0.1 18426' >resolvers.conf\nelse\n    printf '127.0.0.1 18425\\n127.0.0.1 18426\\n' >resolvers.conf\nfi\n"
            "ruby --disable-gems resolve.rb db.test queue.test cache.test\n",
            "resolve.rb": """require 'socket'

servers = File.readlines('resolvers.conf').map { |l| h, p = l.split; [h, p.to_i] }
ARGV.each do |name|
  answer = nil
  servers.each do |host, port|
    s = UDPSocket.new
    s.send(name, 0, host, port)
    if IO.select([s], nil, nil, 1.5)
      answer = s.recvfrom(512)[0]
    end
    s.close
    break if answer
  end
  abort "#{name}: not found" unless answer
  puts "#{name} #{answer}"
end
""",
            "names.py": """import socket, sys

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", int(sys.argv[1])))
open("ready", "w").close()
while True:
    name, peer = s.recvfrom(512)
    s.sendto(b"127.0.0.%d" % (10 + len(name)), peer)
""",
        },
        quiet=(4.55, 0.1),
    ),
    Plant(
        "w12b-c-pool-ok",
        "none",
        "c, pthreads, pool, condition variables, progress tick",
        "two workers keep both CPUs busy to the end; the main thread's join, the progress thread's tick of half a second and the "
        "writer that waits for results cost nothing",
        NOTHING,
        {
            "run.sh": "set -e\n" + SETUP + "./transcode\n",
            "setup.sh": "set -e\ncc -O2 -pthread -o transcode transcode.c\ntouch built\n",
            "transcode.c": CHAIN
            + r"""#include <pthread.h>
#include <time.h>
enum { TILES = 48 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int next_tile, done_tiles, finished;
static uint64_t result[TILES];

static void *worker(void *arg) {
    for (;;) {
        pthread_mutex_lock(&lock);
        int tile = next_tile < TILES ? next_tile++ : -1;
        pthread_mutex_unlock(&lock);
        if (tile < 0) return NULL;
        uint64_t h = chain(tile + 1, 50000000L);
        pthread_mutex_lock(&lock);
        result[tile] = h;
        done_tiles++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
}

static void *writer(void *arg) {
    FILE *out = fopen("tiles.txt", "w");
    int written = 0;
    pthread_mutex_lock(&lock);
    while (written < TILES) {
        while (written < TILES && !result[written]) pthread_cond_wait(&changed, &lock);
        fprintf(out, "%d %016lx\n", written, (unsigned long)result[written]);
        written++;
        if (written == TILES) break;
    }
    pthread_mutex_unlock(&lock);
    fclose(out);
    return NULL;
}

static void *progress(void *arg) {
    pthread_mutex_lock(&lock);
    while (!finished) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 500000000;
        if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
        pthread_cond_timedwait(&changed, &lock, &t);
        fprintf(stderr, "\r%d of %d", done_tiles, TILES);
    }
    pthread_mutex_unlock(&lock);
    fprintf(stderr, "\n");
    return NULL;
}

int main(void) {
    pthread_t w[2], out, tick;
    pthread_create(&tick, NULL, progress, NULL);
    pthread_create(&out, NULL, writer, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&w[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(w[i], NULL);
    pthread_join(out, NULL);
    pthread_mutex_lock(&lock);
    finished = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(tick, NULL);
    printf("%d tiles\n", TILES);
    return 0;
}
""",
        },
    ),
    Plant(
        "w12b-watchdog-ok",
        "none",
        "shell job control, watchdog, heartbeat, service that starts slowly, readiness poll of 20 ms",
        "the watchdog's sleep of 45 s and the heartbeat of 1 s run beside the work and are stopped with it; the poll of 20 ms sees the service at once; "
        "the time is the CPU of the ledger's replay and then of the audit, each a chain that cannot be divided, the second needing the first",
        NOTHING,
        {
            "run.sh": "set -e\n"
            + SETUP
            + """rm -f ready
(sleep 45; echo 'watchdog: too long' >&2; kill $$) & W=$!
(while :; do echo 'still at work'; sleep 1; done) & H=$!
./ledger serve 2>/dev/null >state.txt & S=$!
stop() {
    for p in $W $H; do
        c=$(ps -o pid= --ppid $p || :)
        kill $p $c 2>/dev/null || :
    done
    kill $S 2>/dev/null || :
    wait 2>/dev/null || :
}
trap stop EXIT
while [ ! -e ready ]; do sleep 0.02; done
./ledger audit $(cat state.txt)
""",
            "setup.sh": "set -e\ncc -O2 -o ledger ledger.c\ntouch built\n",
            "ledger.c": CHAIN
            + r"""#include <unistd.h>
#include <fcntl.h>
int main(int argc, char **argv) {
    if (!strcmp(argv[1], "serve")) {
        printf("%lu\n", (unsigned long)chain(7, 700000000L));
        fflush(stdout);
        close(open("ready", O_CREAT | O_WRONLY, 0644));
        for (;;) sleep(5);
    }
    printf("audited %016lx\n", (unsigned long)chain(strtoul(argv[2], NULL, 10), 600000000L));
    return 0;
}
""",
        },
    ),
    Plant(
        "w12b-timer-test-ok",
        "none",
        "python asyncio, test that measures time, unittest",
        "test_drift.py measures how late the event loop's timers fire, at 80 ticks of 50 ms: the four seconds are what it measures, "
        "and nothing else waits",
        NOTHING,
        {
            "run.sh": "set -e\n" + PYTHON + " -m unittest -q test_drift\n",
            "test_drift.py": '''"""The scheduler's timers must not drift: measured on the real clock over four seconds."""
import asyncio, time, unittest

PERIOD, TICKS = 0.05, 80

class Drift(unittest.TestCase):
    def test_drift(self):
        late = []

        async def ticker(loop, start):
            for n in range(1, TICKS + 1):
                due = start + n * PERIOD
                await asyncio.sleep(due - loop.time())
                late.append(loop.time() - due)

        async def main():
            loop = asyncio.get_running_loop()
            await ticker(loop, loop.time())

        start = time.monotonic()
        asyncio.run(main())
        elapsed = time.monotonic() - start
        late.sort()
        print(f"elapsed {elapsed:.2f} s, median {1e3 * late[TICKS // 2]:.1f} ms late, worst {1e3 * late[-1]:.1f} ms")
        self.assertEqual(len(late), TICKS)
        self.assertLess(abs(elapsed - PERIOD * TICKS), 1.0)
        self.assertLess(late[TICKS // 2], 0.05)
''',
        },
    ),
    Plant(
        "w12b-rate-limit-ok",
        "none",
        "node server, perl client, rate limit by design, retry-after",
        "publish.pl sends nine notices to a gateway that admits one each 0.4 s and refuses (429, the run fails) what comes sooner: the pauses are the "
        "gateway's terms, told in its answers, not a fault of the client",
        NOTHING,
        {
            "run.sh": "set -e\nrm -f ready\nnode gateway.js 18427 & S=$!\ntrap 'kill $S 2>/dev/null; wait $S 2>/dev/null || :' EXIT\n"
            + READY
            + "perl publish.pl 18427 9\n",
            "gateway.js": """const http = require('http');
const fs = require('fs');
const interval = 400;  // the contract: one notice each 0.4 s
let next = 0;
http.createServer((req, res) => {
  req.resume();
  req.on('end', () => {
    const now = Date.now();
    if (now < next) {
      res.writeHead(429, { 'Content-Length': 0, Connection: 'close' });
    } else {
      next = now + interval;
      res.writeHead(202, { 'Content-Length': 0, 'X-RateLimit-Reset-Ms': interval, Connection: 'close' });
    }
    res.end();
  });
}).listen(Number(process.argv[2]), '127.0.0.1', () => fs.closeSync(fs.openSync('ready', 'w')));
""",
            "publish.pl": """use strict;
use warnings;
use IO::Socket::INET;

my ($port, $count) = @ARGV;
my $wait = 0;
for my $n (1 .. $count) {
    # The gateway says how long it wants to be left alone.
    select(undef, undef, undef, $wait / 1000 + 0.005) if $wait;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "gateway: $!";
    my $body = "notice $n";
    print $s "POST /notices HTTP/1.1\\r\\nHost: gateway\\r\\nContent-Length: " . length($body) . "\\r\\nConnection: close\\r\\n\\r\\n$body";
    my $answer = join '', <$s>;
    die "notice $n refused: " . substr($answer, 0, 30) . "\\n" unless $answer =~ m{^HTTP/1.1 202};
    $wait = $answer =~ /X-RateLimit-Reset-Ms: (\\d+)/i ? $1 : 0;
}
print "$count notices accepted\\n";
""",
        },
    ),
    Plant(
        "w12b-pipeline-ok",
        "none",
        "go goroutines and channel, pipe, perl select loop with a tick",
        "the time is the CPU of one chain of SHA-256 in sealer, each link of which needs the one before; the perl reader's select tick, "
        "the waiting goroutine and the idle second CPU are not faults",
        NOTHING,
        {
            "run.sh": "set -e\n" + SETUP + "./sealer | perl verify.pl\n",
            "setup.sh": "set -e\nexport GO111MODULE=off CGO_ENABLED=0\ngo build -o sealer sealer.go\ntouch built\n",
            "sealer.go": """package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
)

const blocks, links = 40, 450000

func main() {
	seals := make(chan [32]byte, 4)
	go func() {
		sum := sha256.Sum256([]byte("genesis"))
		for b := 0; b < blocks; b++ {
			for i := 0; i < links; i++ {
				sum = sha256.Sum256(sum[:])
			}
			seals <- sum
		}
		close(seals)
	}()
	out := bufio.NewWriter(os.Stdout)
	for seal := range seals {
		fmt.Fprintf(out, "%x\\n", seal)
		out.Flush()
	}
}
""",
            "verify.pl": """use strict;
use warnings;
use IO::Select;

my $select = IO::Select->new(\\*STDIN);
my ($text, $ticks) = ('', 0);
while (1) {
    if (!$select->can_read(0.05)) {
        $ticks++;  # nothing yet: the place where a terminal's progress line is drawn
        next;
    }
    my $got = sysread(STDIN, my $chunk, 4096);
    last unless $got;
    $text .= $chunk;
}
my @seals = $text =~ /^([0-9a-f]{64})$/mg;
die "only " . @seals . " seals\\n" unless @seals == 40;
print scalar(@seals), " seals read\\n";
""",
        },
    ),
]
