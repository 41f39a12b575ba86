"""Twelve backend and data jobs, each with one planted fault in how it waits or uses two CPUs, or with none.

Each was written with its answer (answers.md) before anyone recorded it. Ports 18450 to 18459.
"""

from waits import Plant

HEAD = "set -e\n[ -e .prepared ] || sh setup.sh\n"
# The verdict about a run that has nothing to change.
NOTHING = (
    r"(?i)\bnothing\b|\bno (?:change|waste|advice|fault|gain|wait)\b|\bnot? (?:worth|to be) chang|\bleave\b|\bby design\b"
    r"|\bon purpose\b|\bintended\b|\bwell used\b"
)

ARCHIVE_SETUP = r"""set -e
rm -f seed.db
/usr/bin/python3 - <<'E'
import random, sqlite3
random.seed(15)
d = sqlite3.connect("seed.db")
d.execute("create table events(id integer primary key, month text, body text)")
d.execute("create table batches(id integer primary key, name text, rows integer)")
w = ["".join(random.choices("abcdefghijklmnop", k=random.randint(3, 9))) for _ in range(4000)]
for i in range(18000):
    d.execute("insert into events(month, body) values(?, ?)", ("2024-01" if i < 17000 else "2024-02", " ".join(random.choices(w, k=22))))
d.commit()
E
touch .prepared
"""
ARCHIVE_RUN = (
    HEAD
    + r"""cp seed.db shop.db
rm -f plan cold.xz; mkfifo plan
/usr/bin/python3 archive.py shop.db 2024-01 > plan &
A=$!
read -r what < plan
echo "archiving $what, importing"
/usr/bin/python3 import_batch.py shop.db
wait $A
rm -f plan
sqlite3 shop.db 'select count(*), (select rows from batches) from events'
"""
)
ARCHIVE_PY = r"""# Moves a month of events to cold storage.
import lzma, os, sqlite3, sys

db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
month = sys.argv[2]
late = bool(os.environ.get("FIX"))
if not late:
    db.execute("begin immediate")
rows = db.execute("select id, body from events where month = ?", (month,)).fetchall()
print(month, len(rows), flush=True)
packed = lzma.compress("\n".join(b for _, b in rows).encode(), preset=6)
with open("cold.xz", "wb") as f:
    f.write(packed)
if late:
    db.execute("begin immediate")
db.executemany("delete from events where id = ?", ((i,) for i, _ in rows))
db.execute("commit")
"""
IMPORT_PY = r"""# Registers a batch, checks its records and stores them.
import hashlib, sqlite3, sys, time

db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
batch = db.execute("insert into batches(name, rows) values('nightly', 0)").lastrowid
good = []
for i in range(900):
    good.append(hashlib.pbkdf2_hmac("sha256", b"%d" % i, b"batch", 11000).hex())
db.execute("begin immediate")
db.executemany("insert into events(month, body) values('2024-03', ?)", ((g,) for g in good))
db.execute("update batches set rows = ? where id = ?", (len(good), batch))
db.execute("commit")
"""

AGENT_RUN = (
    HEAD
    + r"""rm -f sandbox.out
node sandbox.js 18451 > sandbox.out &
S=$!
trap 'kill $S 2>/dev/null || true' EXIT
until grep -qs listening sandbox.out; do sleep 0.02; done
node smoke.js 18451
kill $S; wait $S || true
"""
)
SANDBOX_JS = r"""// Stands for the payment provider's sandbox: it answers after its usual 0.21 s, any number at once.
const http = require('http');
http.createServer((q, r) => setTimeout(() => r.end('{"status":"settled"}'), 210))
  .listen(+process.argv[2], '127.0.0.1', () => console.log('listening'));
"""
SMOKE_JS = r"""// Asks for the state of 22 payments, all at once.
const http = require('http');
const agent = new http.Agent({ keepAlive: true, maxSockets: process.env.FIX ? 24 : 1 });
const get = (id) => new Promise((ok, no) => http.get(
  { host: '127.0.0.1', port: +process.argv[2], path: '/payments/' + id, agent }, (r) => {
    let t = ''; r.on('data', (d) => { t += d; }); r.on('end', () => ok(JSON.parse(t).status));
  }).on('error', no));
(async () => {
  const states = await Promise.all(Array.from({ length: 22 }, (_, i) => get(i)));
  if (states.some((s) => s !== 'settled')) process.exit(1);
  console.log(states.length + ' settled');
  agent.destroy();
})();
"""

EXECUTOR_JAVA = r"""import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;

/** Digests the day's statements on two threads and prints their root. */
public class Statements {
    static byte[] digest(int n) throws Exception {
        MessageDigest m = MessageDigest.getInstance("SHA-256");
        byte[] b = ("statement " + n).getBytes();
        for (int i = 0; i < 250000; i++) b = m.digest(b);
        return b;
    }
    public static void main(String[] a) throws Exception {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(2, 2, 4, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        pool.allowCoreThreadTimeOut(true);
        List<Future<byte[]>> all = new ArrayList<>();
        for (int i = 0; i < 24; i++) { int n = i; all.add(pool.submit(() -> digest(n))); }
        MessageDigest root = MessageDigest.getInstance("SHA-256");
        for (Future<byte[]> f : all) root.update(f.get());
        System.out.println("root " + HexFormat.of().formatHex(root.digest()));
        if (System.getenv("FIX") != null) pool.shutdown();
    }
}
"""

TEARDOWN_PY = r"""# The API's tests: each class has its own server in a thread, on a port of its own.
import hashlib, http.client, http.server, os, socketserver, threading, unittest


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # An answer is one write.
    timeout = 2.4  # A connection that is kept alive is dropped after this.

    def do_GET(self):
        body = hashlib.pbkdf2_hmac("sha256", self.path.encode(), b"api", 60000).hex().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *a):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True


class Base:
    @classmethod
    def setUpClass(cls):
        cls.server = Server(("127.0.0.1", cls.port), Api)
        cls.thread = threading.Thread(target=cls.server.serve_forever, args=(0.02,))
        cls.thread.start()
        cls.client = http.client.HTTPConnection("127.0.0.1", cls.port)

    @classmethod
    def tearDownClass(cls):
        if os.environ.get("FIX"):
            cls.client.close()
        cls.server.shutdown()
        cls.server.server_close()
        cls.thread.join()

    def ask(self, path):
        self.client.request("GET", path)
        r = self.client.getresponse()
        self.assertEqual(r.status, 200)
        self.assertEqual(len(r.read()), 64)


class Orders(Base, unittest.TestCase):
    port = 18452

    def test_list(self):
        for i in range(6):
            self.ask("/orders?page=%d" % i)

    def test_one(self):
        self.ask("/orders/7")


class Invoices(Base, unittest.TestCase):
    port = 18453

    def test_list(self):
        for i in range(6):
            self.ask("/invoices?page=%d" % i)

    def test_one(self):
        self.ask("/invoices/7")


if __name__ == "__main__":
    unittest.main()
"""

LOCK_RUN = (
    HEAD
    + r"""rm -f ship.pid
bash assets.sh
bash migrate.sh
# The metrics must be out before the job's machine goes.
tail -s 0.05 -f --pid="$(cat ship.pid)" /dev/null
echo released
"""
)
LOCK_ASSETS = r"""set -e
# One change of the release at a time.
exec 9> release.lock
flock 9
/usr/bin/python3 work.py assets 0.5
# What this stage measured goes to the collector beside the next stage.
if [ -n "$FIX" ]; then
  /usr/bin/python3 ship_metrics.py 9>&- &
else
  /usr/bin/python3 ship_metrics.py &
fi
echo $! > ship.pid
"""
LOCK_MIGRATE = r"""set -e
exec 9> release.lock
flock 9
/usr/bin/python3 work.py migrate 2.6
"""
LOCK_SHIP = r"""# The collector takes a batch every 0.3 s from one sender: its quota.
import time
for batch in range(10):
    with open("collector.log", "a") as f:
        f.write("batch %d\n" % batch)
    time.sleep(0.3)
"""
WORK_PY = r"""# Digests until it has used the CPU time of its second argument; each digest needs the one before.
import hashlib, sys, time
h = sys.argv[1].encode()
while time.process_time() < float(sys.argv[2]):
    for _ in range(2000):
        h = hashlib.sha256(h).digest()
print(sys.argv[1], h.hex()[:12])
"""

BROKER_PL = r"""# A small message broker: a length of 4 bytes and a body, appended to the topic and answered with OK.
use strict; use IO::Socket::INET;
my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 8, ReuseAddr => 1) or die "listen: $!";
open(my $topic, '>', 'topic.log') or die;
print STDOUT "listening\n"; close STDOUT;
sub full { my ($s, $n) = @_; my $b = ''; while (length($b) < $n) { sysread($s, $b, $n - length($b), length($b)) or return undef; } return $b; }
while (my $c = $l->accept) {
    while (defined(my $h = full($c, 4))) {
        my $b = full($c, unpack('N', $h)); last unless defined $b;
        print $topic $b, "\n";
        syswrite($c, "OK\n");
    }
    close $c;
}
"""
PUBLISH_PL = r"""# Publishes the outbox in order; the next message goes when the one before is acknowledged.
use strict; use IO::Socket::INET;
my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ARGV[0]) or die "connect: $!";
my $sent = 0;
for my $n (1 .. 110) {
    my $body = "order $n " . ('x' x 200);
    if ($ENV{FIX}) {
        syswrite($s, pack('N', length $body) . $body);
    } else {
        syswrite($s, pack('N', length $body));
        syswrite($s, $body);
    }
    sysread($s, my $ok, 3) or die "broker gone";
    $sent++ if $ok eq "OK\n";
}
print "$sent acknowledged\n";
exit($sent == 110 ? 0 : 1);
"""
BROKER_RUN = (
    HEAD
    + r"""rm -f broker.out
perl broker.pl 18454 > broker.out &
B=$!
trap 'kill $B 2>/dev/null || true' EXIT
until grep -qs listening broker.out; do sleep 0.02; done
perl publish.pl 18454
kill $B; wait $B || true
"""
)

CURL_RUN = (
    HEAD
    + r"""node catalog.js 18455 &
S=$!
trap 'kill $S 2>/dev/null || true' EXIT
U=http://127.0.0.1:18455
if [ -n "$FIX" ]; then
  n=0
  until curl -fs $U/health; do n=$((n+1)); [ $n -lt 400 ]; sleep 0.05; done
else
  curl -fsS --retry 6 --retry-connrefused $U/health 2> curl.err
fi
for sku in 3 14 15 92; do curl -fsS $U/sku/$sku > /dev/null; done
echo "e2e passed"
kill $S; wait $S || true
"""
)
CATALOG_JS = r"""// The catalogue's search service: it builds its index and then listens.
const http = require('http'), { createHash } = require('crypto');
const index = new Map();
let h = Buffer.from('catalogue');
while (process.uptime() < 3.3) {
  for (let i = 0; i < 500; i++) h = createHash('sha256').update(h).digest();
  index.set(index.size, h.toString('hex'));
}
http.createServer((q, r) => r.end(q.url === '/health' ? 'up\n' : index.get(+q.url.split('/').pop())))
  .listen(+process.argv[2], '127.0.0.1');
"""

NPM_SETUP = r"""set -e
rm -rf migrations; mkdir migrations
for n in 01 02 03 04 05 06 07 08 09 10 11 12; do
  echo "create table t$n(id integer primary key, name text); insert into t$n(name) values('a'), ('b');" > migrations/$n.sql
done
touch .prepared
"""
NPM_RUN = (
    HEAD
    + r"""rm -f app.db
export npm_config_cache="$PWD/.npm-cache" npm_config_update_notifier=false npm_config_offline=true
if [ -n "$FIX" ]; then
  npm run -s migrate -- migrations/*.sql
else
  for m in migrations/*.sql; do npm run -s migrate -- "$m"; done
fi
[ "$(sqlite3 app.db 'select count(*) from sqlite_master')" = 12 ]
"""
)
MIGRATE_JS = r"""// Applies the migrations that are its arguments, in their order.
const { execFileSync } = require('child_process'), fs = require('fs');
for (const m of process.argv.slice(2)) {
  execFileSync('sqlite3', ['-bail', 'app.db'], { input: 'pragma synchronous = off; begin;' + fs.readFileSync(m, 'utf8') + 'commit;' });
  console.log('applied ' + m);
}
"""

QUOTE_GO = r"""package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
)

// The quote service under load: some work for each request.
func main() {
	http.HandleFunc("/quote", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.Sum256([]byte(r.URL.RawQuery))
		for i := 0; i < 4000; i++ {
			h = sha256.Sum256(h[:])
		}
		fmt.Fprintf(w, "%x", h)
	})
	http.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
"""
LOADGEN_GO = r"""package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"sync"
	"time"
)

// Offers a fixed rate for a fixed time, whatever the service's speed, and reports the latencies' percentiles.
func main() {
	url := flag.String("url", "", "")
	rate := flag.Int("rate", 100, "requests a second")
	duration := flag.Duration("duration", 5*time.Second, "how long the load is offered")
	limit := flag.Duration("p99", 200*time.Millisecond, "the objective")
	flag.Parse()
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	end := time.After(*duration)
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
loop:
	for n := 0; ; n++ {
		select {
		case <-end:
			break loop
		case <-tick.C:
			wg.Add(1)
			go func(n int) {
				defer wg.Done()
				t := time.Now()
				r, err := http.Get(fmt.Sprintf("%s?n=%d", *url, n))
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				mu.Lock()
				took = append(took, time.Since(t))
				mu.Unlock()
			}(n)
		}
	}
	wg.Wait()
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	p99 := took[len(took)*99/100]
	fmt.Printf("%d requests, p50 %v, p99 %v\n", len(took), took[len(took)/2], p99)
	if p99 > *limit {
		os.Exit(1)
	}
}
"""
LOAD_SETUP = r"""set -e
export GO111MODULE=off GOFLAGS=
go build -o quote quote.go
go build -o loadgen loadgen.go
touch .prepared
"""
LOAD_RUN = (
    HEAD
    + r"""./quote 18456 &
Q=$!
trap 'kill $Q 2>/dev/null || true' EXIT
until curl -fs http://127.0.0.1:18456/health; do sleep 0.02; done
# The service objective is stated for 100 requests a second held for 5 s.
./loadgen -url http://127.0.0.1:18456/quote -rate 100 -duration 5s -p99 2s
kill $Q; wait $Q || true
"""
)

ETL_PY = r"""# Rehashes the accounts' tokens on two processes.
import hashlib, multiprocessing, sys

def part(n):
    return [hashlib.pbkdf2_hmac("sha256", b"%d.%d" % (n, i), b"token", 90000).hex() for i in range(4)]

if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        rows = [t for p in pool.imap(part, range(64)) for t in p]
    with open("tokens.txt", "w") as f:
        f.write("\n".join(rows) + "\n")
    print(len(rows), "tokens")
"""
METRICS_JS = r"""// The job's metrics end point, with a tick that rolls its window.
const http = require('http');
let rolled = 0;
setInterval(() => { rolled++; }, 500);
http.createServer((q, r) => r.end('rolled ' + rolled + '\n')).listen(+process.argv[2], '127.0.0.1', () => console.log('listening'));
"""
ETL_RUN = (
    HEAD
    + r"""rm -f metrics.out
node metrics.js 18457 > metrics.out &
M=$!
# The CI system ends a job that prints nothing, so something is printed.
sh heartbeat.sh &
H=$!
trap 'kill $M $H 2>/dev/null || true' EXIT
timeout 120 /usr/bin/python3 rehash.py
kill $M $H
wait $M || true
wait $H || true
[ "$(wc -l < tokens.txt)" = 256 ]
"""
)
HEARTBEAT_SH = r"""trap 'kill $N; exit 0' TERM
while :; do
  sleep 0.5 &
  N=$!
  wait $N
  echo "still rehashing"
done
"""

RANK_SETUP = r"""set -e
rm -f links.db
/usr/bin/python3 - <<'E'
import random, sqlite3
random.seed(51)
d = sqlite3.connect("links.db")
n = 40000
d.executescript("create table page(id integer primary key, out integer, rank real, last real);"
                "create table link(dst integer, src integer, primary key(dst, src)) without rowid;")
links = {(random.randrange(n) * random.randrange(n) // n, s) for s in range(n) for _ in range(20)}
d.executemany("insert into link values(?, ?)", links)
out = [0] * n
for _, s in links: out[s] += 1
d.executemany("insert into page values(?, ?, ?, 0)", ((i, out[i], 1.0 / n) for i in range(n)))
d.commit()
E
touch .prepared
"""
RANK_PASS = r"""pragma synchronous = off;
begin;
update page set last = rank;
update page set rank = 0.15 / 40000 + 0.85 * coalesce((select sum(p.last / p.out) from link l join page p on p.id = l.src where l.dst = page.id), 0);
commit;
select sum(abs(rank - last)) > 0.000015 from page;
"""
RANK_RUN = (
    HEAD
    + r"""cp links.db ranks.db
# A pass reads the ranks of the pass before, until they stand still.
n=0
while :; do
  n=$((n+1))
  more=$(sqlite3 ranks.db < pass.sql)
  echo "pass $n: more=$more"
  [ "$more" = 1 ] || break
  [ $n -lt 60 ]
done
sqlite3 ranks.db 'select id from page order by rank desc limit 3'
"""
)

LEDGER_JS = r"""// Verifies the ledger: an entry's digest covers the digest before it, so entry n needs entry n - 1.
const { createHash } = require('crypto');
let h = Buffer.alloc(32);
const entries = +process.argv[2];
for (let i = 0; i < entries; i++) h = createHash('sha256').update(h).update('entry ' + i).digest();
console.log('ledger ends in ' + h.toString('hex').slice(0, 12));
"""
EXPORT_PY = r"""# Sends a table to the warehouse, which takes a part every 0.1 s.
import sys, time
with open(sys.argv[1] + ".sent", "w") as f:
    for n in range(10):
        f.write("%d\n" % n)
        time.sleep(0.1)
"""
LEDGER_RUN = (
    HEAD
    + r"""rm -f *.sent exported
node verify_ledger.js 2300000 &
V=$!
# The exports share one session of the warehouse.
(flock session.lock /usr/bin/python3 export.py customers) &
A=$!
(flock session.lock /usr/bin/python3 export.py orders; touch exported) &
B=$!
until [ -e exported ]; do sleep 0.5; done
wait $A; wait $B
cat customers.sent orders.sent | wc -l
wait $V
"""
)
TOUCH = "touch .prepared\n"
PREP = "sh setup.sh\n"

PLANTS = [
    Plant(
        "w15-archive-in-transaction",
        "lock",
        "python, sqlite; a process in sqlite's busy handler (short sleeps); the lock's holder computes",
        "archive.py compresses the month inside its write transaction (begin immediate), so import_batch.py's first insert waits for"
        " shop.db's lock all that time; compress before the transaction, and both run on the two CPUs",
        r"(?im)^(?=.*(?:wait|lock|busy|sleep|poll|transaction))(?=.*(?:import_batch|archive\.py|shop\.db|sqlite|database))",
        {"run.sh": ARCHIVE_RUN, "setup.sh": ARCHIVE_SETUP, "archive.py": ARCHIVE_PY, "import_batch.py": IMPORT_PY},
        PREP,
        quiet=(4.6, 2.8),
    ),
    Plant(
        "w15-agent-one-socket",
        "serial",
        "node; event loop in epoll; a server that answers after 0.21 s; 22 requests one after another behind a connection limit",
        "smoke.js asks sandbox.js (port 18451) 22 times, one at a time, because its http.Agent has maxSockets 1, though Promise.all wants"
        " them at once; raise maxSockets",
        r"(?i)smoke\.js|sandbox\.js|\b18451\b|maxSockets",
        {"run.sh": AGENT_RUN, "setup.sh": TOUCH, "sandbox.js": SANDBOX_JS, "smoke.js": SMOKE_JS},
        PREP,
    ),
    Plant(
        "w15-executor-lingers",
        "linger",
        "java; pool threads in a futex until their keep-alive ends; the process's end is late",
        "java Statements has printed its result but its executor's threads stay 4 s, idle (keepAliveTime), because nobody calls"
        " shutdown(); shut the pool down",
        r"(?im)^(?=.*(?:java|Statements|executor|\bpool))(?=.*(?:wait|idle|linger|keep.?alive|shutdown|shut down|exit|\bends?\b|futex|after its))",
        {
            "run.sh": HEAD + "java -Xshare:auto -cp . Statements\n",
            "setup.sh": "set -e\njavac Statements.java\n" + TOUCH,
            "Statements.java": EXECUTOR_JAVA,
        },
        PREP,
    ),
    Plant(
        "w15-teardown-keepalive",
        "timeout",
        "python; threads in one process: main thread joins (futex) a server thread that polls an idle connection until its time-out",
        "test_api.py's tearDownClass waits in server_close() for the server's thread, which waits 2.4 s for another request on the"
        " client's open kept-alive connection, twice; close the client first",
        r"(?im)^(?=.*(?:test_api|tear.?down|server_close|\b1845[23]\b|connection))(?=.*(?:wait|idle|keep.?alive|kept|time.?out|close|join|poll))",
        {"run.sh": HEAD + "/usr/bin/python3 test_api.py\n", "setup.sh": TOUCH, "test_api.py": TEARDOWN_PY},
        PREP,
    ),
    Plant(
        "w15-lock-left-to-child",
        "lock",
        "bash, flock, python; a background helper has inherited the lock's descriptor",
        "migrate.sh's flock waits for release.lock 3 s after assets.sh has ended, because ship_metrics.py in the background inherited"
        " descriptor 9 and holds it; start it with 9>&-",
        r"(?i)\bflock\b|release\.lock|migrate\.sh.*wait|ship_metrics.*(?:lock|inherit|descriptor)|(?:lock|inherit|descriptor).*ship_metrics",
        {
            "run.sh": LOCK_RUN,
            "setup.sh": TOUCH,
            "assets.sh": LOCK_ASSETS,
            "migrate.sh": LOCK_MIGRATE,
            "ship_metrics.py": LOCK_SHIP,
            "work.py": WORK_PY,
        },
        PREP,
        quiet=(6.2, 3.7),
    ),
    Plant(
        "w15-two-small-writes",
        "network",
        "perl; client and server in read on a loopback socket; 40 ms of delayed acknowledgement for each message",
        "publish.pl writes a message's length and body apart, so Nagle's algorithm keeps the body until broker.pl's kernel has sent its"
        " delayed acknowledgement, about 41 ms for each of 110 messages; one write, or TCP_NODELAY",
        r"(?i)publish\.pl|broker\.pl|\b18454\b|nagle|nodelay|delayed.?ack|round.?trip",
        {"run.sh": BROKER_RUN, "setup.sh": TOUCH, "broker.pl": BROKER_PL, "publish.pl": PUBLISH_PL},
        PREP,
    ),
    Plant(
        "w15-curl-doubles",
        "backoff",
        "curl, node; curl's own doubling pauses (poll) around a server that starts; the server is ready long before the next attempt",
        "curl --retry sleeps 1, 2, 4 s; catalog.js listens after 3.4 s, so curl sleeps 3.6 s beside a server that is ready; ask"
        " again every 0.05 s",
        r"(?im)--retry|back.?off|^(?=.*\bcurl\b)(?=.*(?:retr|sleep|pause|poll|wait|again|attempt))",
        {"run.sh": CURL_RUN, "setup.sh": TOUCH, "catalog.js": CATALOG_JS},
        PREP,
    ),
    Plant(
        "w15-npm-each-migration",
        "wrapper",
        "sh, npm, node, sqlite; CPU: an interpreter and its wrapper start for each of 12 small steps",
        "run.sh starts npm (and node) anew for each of 12 migrations and each start costs far more than the migration; give all to one"
        " npm run migrate, or call node migrate.js",
        r"(?i)\bnpm\b|migrate\.js|\bnode\b.*(?:times|again|start|each)",
        {
            "run.sh": NPM_RUN,
            "setup.sh": NPM_SETUP,
            "migrate.js": MIGRATE_JS,
            "package.json": '{"name": "app", "version": "1.0.0", "private": true, "scripts": {"migrate": "node migrate.js"}}\n',
        },
        PREP,
    ),
    Plant(
        "w15-none-fixed-rate-load",
        "none",
        "go; a ticker's open-loop load for a fixed time; server mostly idle",
        "nothing: the load of 100 requests a second for 5 s is the command's purpose",
        NOTHING,
        {"run.sh": LOAD_RUN, "setup.sh": LOAD_SETUP, "quote.go": QUOTE_GO, "loadgen.go": LOADGEN_GO},
        PREP,
    ),
    Plant(
        "w15-none-heartbeat-beside",
        "none",
        "python pool on both CPUs; beside it a shell's heartbeat, timeout's watchdog, a node server's tick",
        "nothing: both CPUs rehash all the time and everything that sleeps is beside it",
        NOTHING,
        {
            "run.sh": ETL_RUN,
            "setup.sh": TOUCH,
            "rehash.py": ETL_PY,
            "metrics.js": METRICS_JS,
            "heartbeat.sh": HEARTBEAT_SH,
        },
        PREP,
    ),
    Plant(
        "w15-none-rank-passes",
        "none",
        "sh, sqlite; the same command again and again on one CPU until its result stands still",
        "nothing: a pass needs the ranks of the pass before, and the passes end when the ranks stand still",
        NOTHING,
        {"run.sh": RANK_RUN, "setup.sh": RANK_SETUP, "pass.sql": RANK_PASS},
        PREP,
    ),
    Plant(
        "w15-none-lock-off-path",
        "none",
        "node, flock, python, sh; a lock's queue, paced sends and a poll, all over before a chain of digests ends",
        "nothing: verify_ledger.js is a chain of digests that one CPU must do, and all the waits end before it does",
        NOTHING,
        {"run.sh": LEDGER_RUN, "setup.sh": TOUCH, "verify_ledger.js": LEDGER_JS, "export.py": EXPORT_PY},
        PREP,
    ),
]
