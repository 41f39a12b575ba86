"""Part 9b: servers, clients, event loops, databases, locks, time-outs, containers, terminals, log followers.

Ports 18420 to 18439. run.sh calls setup.sh when its products are missing. Every plant runs in its own directory.
"""

from waits import Plant

NOTHING = r"(?i)\bnothing\b|\bno (?:waits?|changes?|advice|faults?|savings?)\b|\bnone\b"

# A chain of dependent steps: argument 1 is the number of millions; with a second argument it asks as a wizard does.
CHAIN = r"""#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
int main(int argc, char **argv) {
    uint64_t x = argc > 2 ? strtoull(argv[2], 0, 0) : 88172645463325252ull;
    long n = atol(argv[1]) * 1000000L;
    for (long i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; x *= 0x9E3779B97F4A7C15ull; x |= 1; }
    printf("%016llx\n", (unsigned long long)x);
    return 0;
}
"""

PLANTS = [
    Plant(
        "pgsmart",
        "stop",
        "postgres, service stop, idle session, time-out",
        "the database is stopped in smart mode while psql of the test suite keeps an idle session open: pg_ctl waits its whole time-out of 4 s,"
        " then stops in fast mode. End the session first, or stop with -m fast",
        r"(?i)pg_ctl|postgres|psql|\bstop\.sh|smart|idle session|shut ?down",
        {
            "setup.sh": r"""set -e
. ./user.sh
if [ ! -e data/PG_VERSION ]; then
    mkdir -p data; chmod 700 data
    $AS initdb -D data -U postgres -A trust -N >initdb.log 2>&1
fi
""",
            "user.sh": r"""# postgres refuses to run as root
AS=
[ "$(id -u)" != 0 ] || AS="unshare --user --map-user=$(id -u postgres) --map-group=$(id -g postgres)"
""",
            "stop.sh": r""". ./user.sh
if [ -n "$FIX" ]; then
    $AS pg_ctl -D data -s -m fast stop
else
    # let clients finish first
    $AS pg_ctl -D data -s -m smart -t 4 stop 2>/dev/null || $AS pg_ctl -D data -s -m fast stop
fi
""",
            "suite.sql": r"""DROP TABLE IF EXISTS orders;
CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric);
INSERT INTO orders SELECT i, i % 97, i * 1.25 FROM generate_series(1, 60000) i;
CREATE INDEX ON orders (customer);
SELECT customer, sum(total) FROM orders GROUP BY customer ORDER BY 2 DESC LIMIT 3;
""",
            "run.sh": r"""set -e
[ -e data/PG_VERSION ] || sh setup.sh
. ./user.sh
$AS pg_ctl -D data -s -w -l pg.log -o "-p 18421 -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off" start
PSQL="psql -h 127.0.0.1 -p 18421 -U postgres -d postgres -q -X"
rm -f session; mkfifo session
# the session in which the fixtures live
$PSQL <session >fixtures.out 2>&1 & F=$!
exec 3>session
echo "CREATE TEMP TABLE fixture AS SELECT 1 AS one; SELECT * FROM fixture;" >&3
$PSQL -f suite.sql >suite.out 2>/dev/null
sh stop.sh
exec 3>&-
wait $F || :
grep -q rows suite.out
echo suite ok
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "pidone",
        "signal",
        "container, PID 1, signal, stop's grace time",
        "the container's PID 1 is a shell that starts the server as its child: it has no handler for SIGTERM and passes nothing on, so that the stop"
        " waits the whole grace time of 4 s and kills. `exec` the server in entry.sh (or an init that forwards signals)",
        r"(?i)entry\.sh|stop\.sh|app\.py|grace|SIGTERM|SIGKILL|\bPID 1\b|unshare",
        {
            "setup.sh": "/usr/bin/python3 -m py_compile app.py; touch products\n",
            "app.py": r"""import http.server, signal, sys

class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "3"); self.end_headers(); self.wfile.write(b"ok\n")
    def log_message(self, *a): pass

signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
s = http.server.HTTPServer(("127.0.0.1", 18422), H)
print("listening", flush=True)
s.serve_forever()
""",
            "entry.sh": r"""#!/bin/sh
export MODE=test
[ -z "$FIX" ] || exec /usr/bin/python3 app.py
/usr/bin/python3 app.py
echo "app ended"
""",
            "stop.sh": r"""# stop.sh PID: as the container engine does: SIGTERM, grace time, SIGKILL
kill -TERM $1
n=0
while kill -0 $1 2>/dev/null; do
    if [ $n -ge 40 ]; then kill -KILL $1; break; fi
    sleep 0.1; n=$((n + 1))
done
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
rm -f out; mkfifo out
unshare -Ur --pid --fork --kill-child sh entry.sh >out 2>/dev/null & U=$!
exec 3<out
read -r line <&3
R=0
for i in 1 2 3 4 5; do curl -sf http://127.0.0.1:18422/$i >/dev/null || R=1; done
read -r C rest </proc/$U/task/$U/children
sh stop.sh $C
wait $U 2>/dev/null
exec 3<&-
[ $R = 0 ] && echo container test ok
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "nodepool",
        "loop",
        "node, event loop, UNIX socket, connection pool",
        "the tests are over at once, but the connection pool is never ended: its idle connections keep node's event loop alive until the idle"
        " time-out of 4 s. Call pool.end() after the tests",
        r"(?i)test\.js|pool(?:\.js)?|node\b.*(?:idle|loop|timer|event|end|exit|wait)|idle",
        {
            "setup.sh": "node --check pool.js && node --check test.js && node --check store.js && touch products\n",
            "store.js": r"""const net = require("net"), fs = require("fs");
try { fs.unlinkSync("store.sock"); } catch {}
const data = new Map();
net.createServer(c => {
  let rest = "";
  c.on("error", () => {});
  c.on("data", d => {
    rest += d;
    let i;
    while ((i = rest.indexOf("\n")) >= 0) {
      const [op, k, v] = rest.slice(0, i).split(" ");
      rest = rest.slice(i + 1);
      if (op === "set") data.set(k, v);
      c.write((data.get(k) ?? "") + "\n");
    }
  });
}).listen("store.sock", () => console.log("ready"));
""",
            "pool.js": r"""const net = require("net");
exports.Pool = class {
  constructor(path, { max = 4, idleTimeoutMillis = 4000 } = {}) {
    Object.assign(this, { path, max, idleTimeoutMillis, idle: [], all: new Set(), waiting: [] });
  }
  release(c) {
    const next = this.waiting.shift();
    if (next) return next(c);
    this.idle.push(c);
    c.timer = setTimeout(() => { this.idle = this.idle.filter(x => x !== c); this.all.delete(c); c.destroy(); }, this.idleTimeoutMillis);
  }
  acquire() {
    const c = this.idle.pop();
    if (c) { clearTimeout(c.timer); return Promise.resolve(c); }
    if (this.all.size < this.max) {
      const c = net.connect(this.path);
      this.all.add(c);
      return new Promise((ok, no) => { c.once("connect", () => ok(c)); c.once("error", no); });
    }
    return new Promise(ok => this.waiting.push(ok));
  }
  async query(line) {
    const c = await this.acquire();
    const answer = await new Promise(ok => { c.once("data", d => ok(String(d).trim())); c.write(line + "\n"); });
    this.release(c);
    return answer;
  }
  end() { for (const c of this.all) { clearTimeout(c.timer); c.destroy(); } this.all.clear(); this.idle = []; }
};
""",
            "test.js": r"""const assert = require("assert"), { Pool } = require("./pool");
(async () => {
  const pool = new Pool("store.sock");
  await Promise.all(Array.from({ length: 400 }, (_, i) => pool.query(`set k${i} v${i}`)));
  for (let i = 0; i < 400; i++) assert.equal(await pool.query(`get k${i}`), `v${i}`);
  console.log("800 assertions ok");
  if (process.env.FIX) pool.end();
})();
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
rm -f ready; mkfifo ready
node store.js >ready & S=$!
read -r line <ready
node test.js; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "nagle",
        "protocol",
        "ruby, TCP client, two writes and a read, delayed acknowledgement",
        "the client writes each request in two small pieces and waits for its answer: Nagle's algorithm holds the second piece until the server's"
        " delayed acknowledgement, about 40 ms each time. One write for both, or TCP_NODELAY",
        r"(?i)client\.rb|queue\.rb|\bruby\b|nagle|NODELAY|18423|round ?trips?|delayed ack",
        {
            "setup.sh": "ruby -c client.rb >/dev/null && ruby -c queue.rb >/dev/null && touch products\n",
            "queue.rb": r"""require "socket"
s = TCPServer.new("127.0.0.1", 18423)
$stdout.puts "ready"; $stdout.flush
c = s.accept
n = 0
while (head = c.read(4))
  c.read(head.unpack1("N"))
  c.write([n += 1].pack("N"))
end
""",
            "client.rb": r"""require "socket"
c = TCPSocket.new("127.0.0.1", 18423)
c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) if ENV["FIX"].to_s != ""
c.sync = true
last = 0
90.times do |i|
  body = "{\"job\": #{i}, \"state\": \"queued\"}"
  c.write([body.bytesize].pack("N"))
  c.write(body)
  last = c.read(4).unpack1("N")
end
abort "lost" if last != 90
puts "90 messages acknowledged"
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
rm -f ready; mkfifo ready
ruby queue.rb >ready & S=$!
read -r line <ready
ruby client.rb; R=$?
wait $S
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "expectprompt",
        "timeout",
        "expect, pseudo-terminal, interactive question, time-out",
        "the expect script waits for two questions by their old words, which the installer no longer prints: each time its time-out of 2 s passes and it"
        " answers anyhow. Correct the two patterns (or give the installer its --yes)",
        r"(?i)answers\.exp|\bexpect\b|install(?:er)?\.sh|prompt|question|pseudo-?terminal|\bpty\b|terminal|\bread\b.*(?:input|answer)",
        {
            "setup.sh": r"""mkdir -p tree
i=0
while [ $i -lt 150 ]; do seq $i $((i + 900)) >tree/f$i.txt; i=$((i + 1)); done
tar -cf payload.tar tree && rm -r tree
""",
            "installer.sh": r"""#!/bin/sh
printf 'Do you accept the licence? [yes/no] '; read -r a
[ "$a" = yes ] || exit 1
printf 'Destination folder [/opt/tool]: '; read -r d
rm -rf "$d"; mkdir -p "$d"
echo "unpacking ..."
tar -C "$d" -xf payload.tar
printf 'Add tool to PATH? (y/N) '; read -r p
sha256sum "$d"/tree/* >"$d"/manifest
echo "installed $(wc -l <"$d"/manifest) files"
""",
            "answers.exp": r"""set timeout 2
set fix [expr {[info exists env(FIX)] && $env(FIX) ne ""}]
spawn sh installer.sh
expect "accept the licence"
send "yes\r"
if {$fix} { expect "Destination folder" } else { expect "Install directory" }
send "dest\r"
if {$fix} { expect "to PATH?" } else { expect "Update PATH" }
send "n\r"
set timeout 60
expect eof
catch wait r
exit [lindex $r 3]
""",
            "run.sh": r"""[ -e payload.tar ] || sh setup.sh
expect answers.exp >dialogue.log || exit 1
grep -q 'installed 150 files' dialogue.log && rm -rf dest && echo installer test ok
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "sqlitelock",
        "lock",
        "sqlite, fcntl lock, two processes, busy time-out, HTTP service",
        "each of the two importers begins its write transaction before it asks the address service for its rows (8 batches, 0.25 s each), so that the other"
        " waits for the database's lock through all of it: they run one after another. Fetch first, then BEGIN, insert, COMMIT. Beyond the repair:"
        " the 8 batches could be asked at once",
        r"(?i)import\.py|geo\.py|18428|db\.sqlite|sqlite|\block(?:ed|s)?\b|transaction|BEGIN",
        {
            "setup.sh": r"""for p in a b; do seq 1 160 | sed "s/^/$p-street /" >$p.csv; done
""",
            "geo.py": r"""import http.server, json, socketserver, time

class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(0.25)  # the map's own search
        out = json.dumps([[r, len(r) * 0.5, sum(map(ord, r)) * 0.01] for r in rows]).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(out))); self.end_headers(); self.wfile.write(out)
    def log_message(self, *a): pass

class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

s = S(("127.0.0.1", 18428), H)
print("ready", flush=True)
s.serve_forever()
""",
            "import.py": r"""import json, os, sqlite3, sys, urllib.request

def rows(name):
    lines = [l.strip() for l in open(name)]
    for i in range(0, len(lines), 20):
        q = urllib.request.Request("http://127.0.0.1:18428/", json.dumps(lines[i:i + 20]).encode())
        yield from json.load(urllib.request.urlopen(q))

db = sqlite3.connect("db.sqlite", timeout=60, isolation_level=None)
if os.environ.get("FIX"):
    ready = list(rows(sys.argv[1]))
    db.execute("BEGIN IMMEDIATE")
else:
    db.execute("BEGIN IMMEDIATE")
    ready = rows(sys.argv[1])
db.executemany("INSERT INTO places VALUES (?, ?, ?)", ready)
db.execute("COMMIT")
""",
            "run.sh": r"""[ -e b.csv ] || sh setup.sh
rm -f db.sqlite* ready; mkfifo ready
/usr/bin/python3 geo.py >ready & S=$!
read -r line <ready
sqlite3 db.sqlite 'CREATE TABLE places (name TEXT PRIMARY KEY, lat REAL, lon REAL)'
/usr/bin/python3 import.py a.csv & A=$!
/usr/bin/python3 import.py b.csv & B=$!
R=0
wait $A || R=1
wait $B || R=1
kill $S; wait $S 2>/dev/null
[ $R = 0 ] && [ "$(sqlite3 db.sqlite 'SELECT count(*) FROM places')" = 320 ] && echo 320 places
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "stalelock",
        "lock",
        "perl, lock directory, stale lock, poll",
        "the cache's lock directory was left behind by a job that died: cache.pl polls it with sleep 1 until it is older than 4 s. The holder's PID is"
        " in it: a lock whose holder is dead can be broken at once (or the job removes its lock when it ends)",
        r"(?i)cache\.pl|cache\.lock|\bstale\b|lock dir|\block\b|\bperl\b.*(?:sleep|wait|poll)",
        {
            "setup.sh": r"""i=0; mkdir -p deps
while [ $i -lt 60 ]; do seq $i $((i + 3000)) >deps/$i; i=$((i + 1)); done
touch products
""",
            "cache.pl": r"""use strict; use warnings; use Time::HiRes qw(time sleep); use Digest::SHA;
my ($lock, $max_age) = ("cache.lock", 4);
sub dead { open my $f, "<", "$lock/pid" or return 0; my $p = <$f>; chomp $p; return !kill 0, $p; }
sub drop { unlink "$lock/pid"; rmdir $lock; }
until (mkdir $lock) {
    my $t = (Time::HiRes::stat($lock))[9];
    if (($ENV{FIX} && dead()) || (defined $t && time() - $t > $max_age)) { print "breaking a stale lock\n"; drop(); next; }
    sleep 1;
}
open my $p, ">", "$lock/pid"; print $p "$$\n"; close $p;
my $all = Digest::SHA->new(256);
for my $f (sort glob "deps/*") { $all->add(Digest::SHA->new(256)->addfile($f)->hexdigest); }
print "cache key ", $all->hexdigest, "\n";
drop();
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
# what the job that ran out of memory left behind
rm -rf cache.lock; mkdir cache.lock; sh -c 'echo $$' >cache.lock/pid
perl cache.pl && [ ! -e cache.lock ]
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "php404",
        "retry",
        "php, HTTP client, back-off, permanent error",
        "plugins.php retries an answer of 404 three times with back-off (0.2, 0.4, 0.8 s) for each of three plugins before it takes the old address: a 404"
        " will not change by waiting. Retry only on 5xx and connection errors",
        r"(?i)plugins\.php|back-?off|\bretr(?:y|ies)|\b404\b|\bphp\b.*(?:sleep|wait|pause)",
        {
            "setup.sh": r"""mkdir -p www/v1 www/v2
for p in cache auth mail; do echo "{\"name\": \"$p\", \"version\": \"1.4\"}" >www/v1/$p.json; done
echo '{"name": "core", "version": "2.0"}' >www/v2/core.json
echo '<?php $p = __DIR__ . "/www" . $_SERVER["REQUEST_URI"]; if (is_file($p)) { readfile($p); } else { http_response_code(404); echo "no"; }' >router.php
""",
            "plugins.php": r"""<?php
function fetch(string $url): ?array {
    $pause = 0.2;
    for ($try = 0; $try < 4; $try++) {
        $context = stream_context_create(["http" => ["ignore_errors" => true, "timeout" => 5, "header" => "Connection: close"]]);
        $body = @file_get_contents($url, false, $context);
        $status = isset($http_response_header) ? (int) explode(" ", $http_response_header[0])[1] : 0;
        if ($status === 200) return json_decode($body, true);
        if (getenv("FIX") && $status >= 400 && $status < 500) return null;
        if ($try < 3) usleep((int) ($pause * 1e6));
        $pause *= 2;
    }
    return null;
}
$base = "http://127.0.0.1:18424";
foreach (["core", "cache", "auth", "mail"] as $name) {
    $p = fetch("$base/v2/$name.json") ?? fetch("$base/v1/$name.json");
    if (!$p) { fwrite(STDERR, "$name is missing\n"); exit(1); }
    echo "$p[name] $p[version]\n";
}
""",
            "run.sh": r"""[ -e router.php ] || sh setup.sh
php -S 127.0.0.1:18424 router.php >server.log 2>&1 & S=$!
until curl -s -o /dev/null http://127.0.0.1:18424/v2/core.json; do sleep 0.02; done
php plugins.php; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "tmuxsleep",
        "sleep",
        "tmux, terminal, screen capture, sleep in place of a condition",
        "the terminal test sleeps 1.2 s after each of its three key sequences before it looks at the screen, which shows the result within"
        " milliseconds. Look again every 50 ms until the text is there (or tmux wait-for)",
        r"(?i)\bsleep 1\.2|\bsleep\b.*1\.2|screen\.sh|\bsleep\b.*\b(?:three|3)\b|tmux",
        {
            "setup.sh": "luac -p app.lua 2>/dev/null || lua -e 'assert(loadfile(\"app.lua\"))'; touch products\n",
            "app.lua": r"""io.write("calc> "); io.flush()
for line in io.lines() do
  if line == "quit" then break end
  local f = load("return " .. line)
  print("= " .. tostring(f and f()))
  io.write("calc> "); io.flush()
end
""",
            "screen.sh": r"""# screen.sh KEYS TEXT: type, then the screen must show the text
tmux -L w9b send-keys -t app "$1" Enter
if [ -n "$FIX" ]; then
    n=0
    until tmux -L w9b capture-pane -p -t app | grep -q -F -e "$2"; do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.05; done
else
    sleep 1.2
    tmux -L w9b capture-pane -p -t app | grep -q -F -e "$2" || exit 1
fi
echo "ok $1"
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
TMUX_TMPDIR=$(mktemp -d); export TMUX_TMPDIR; unset TMUX
tmux -L w9b -f /dev/null new-session -d -s app -x 80 -y 24 lua app.lua
R=0
sh screen.sh '6*7' '= 42' || R=1
sh screen.sh 'string.rep("ab", 3)' '= ababab' || R=1
sh screen.sh '#"terminal"' '= 8' || R=1
tmux -L w9b kill-server
rm -rf "$TMUX_TMPDIR"
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "busyboxtail",
        "poll",
        "log follower, busybox tail, pipes, poll of one second",
        "the driver learns from the worker's log that a step is done, and the log is followed with busybox tail, which looks once a second: each of the"
        " five steps waits up to 1 s for work of a tenth of it. Follow with GNU tail (inotify), or let the worker answer in a pipe",
        r"(?i)busybox|\btail\b|work\.log|follow|events\b",
        {
            "setup.sh": r"""for u in a b c d e; do
    { echo '#include <stdio.h>'; i=0
      while [ $i -lt 60 ]; do echo "int $u$i(int x) { return x * $i + 1; }"; i=$((i + 1)); done; } >$u.c
done
touch products
""",
            "worker.sh": r"""while read -r u; do
    gcc -O1 -c $u.c -o $u.o && echo "done $u" || echo "failed $u"
done
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
rm -f jobs events *.o; mkfifo jobs events; : >work.log
sh worker.sh <jobs >>work.log & W=$!
exec 3>jobs
if [ -n "$FIX" ]; then tail -n +1 -f work.log >events 3>&- & else busybox tail -n +1 -f work.log >events 3>&- & fi
T=$!
exec 4<events
R=0
for u in a b c d e; do
    echo $u >&3
    while read -r line <&4; do
        case $line in "done $u") break;; failed*) R=1; break;; esac
    done
done
exec 3>&-
wait $W
kill $T; wait $T 2>/dev/null
exec 4<&-
[ $R = 0 ] && ls a.o b.o c.o d.o e.o
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "erlshutdown",
        "stop",
        "erlang, supervisor, shutdown time-out",
        "the worker traps exits and throws the supervisor's shutdown message away in its catch-all clause: the supervisor waits the whole shutdown"
        " time-out of 4 s and then kills it. Handle {'EXIT', _, _} in the worker's loop",
        r"(?i)\berl\b|beam|erlang|worker|supervisor|shut ?down",
        {
            "setup.sh": "erlc ledger.erl\n",
            "ledger.erl": r"""-module(ledger).
-behaviour(supervisor).
-export([main/0, init/1, start_worker/0, worker/1]).

init([]) ->
    {ok, {{one_for_one, 1, 5},
          [{worker, {?MODULE, start_worker, []}, permanent, 4000, worker, [?MODULE]}]}}.

start_worker() -> proc_lib:start_link(?MODULE, worker, [self()]).

worker(Parent) ->
    process_flag(trap_exit, true),
    register(worker, self()),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop(os:getenv("FIX", ""), 0).

loop(Fix, Sum) ->
    receive
        {add, From, N} -> From ! {sum, Sum + N}, loop(Fix, Sum + N);
        {'EXIT', _, Reason} when Fix =/= "" -> exit(Reason);
        _ -> loop(Fix, Sum)
    end.

main() ->
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(?MODULE, []),
    Last = lists:foldl(fun(N, _) -> worker ! {add, self(), N}, receive {sum, S} -> S end end, 0, lists:seq(1, 20000)),
    200010000 = Last,
    io:format("20000 bookings ok~n"),
    unlink(Sup),
    Ref = monitor(process, Sup),
    exit(Sup, shutdown),
    receive {'DOWN', Ref, process, _, _} -> ok end,
    halt(0).
""",
            "run.sh": r"""[ -e ledger.beam ] || sh setup.sh
erl -noshell -noinput -pa . -eval 'ledger:main().' </dev/null
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "asyncsem",
        "serial",
        "python, asyncio, HTTP client, semaphore of one",
        "upload.py sends its ten artefacts one after another, because its semaphore admits one: each waits 0.35 s for the store's answer, while both"
        " CPUs idle. Admit several at once (the store answers them in parallel)",
        r"(?i)upload\.py|store\.py|18425|semaphore|one after (?:another|the other)|at once|concurren|in parallel|asyncio",
        {
            "setup.sh": r"""mkdir -p out; for i in 0 1 2 3 4 5 6 7 8 9; do seq $i 20000 >out/$i.txt; done; touch products
""",
            "store.py": r"""import asyncio

async def serve(r, w):
    head = await r.readuntil(b"\r\n\r\n")
    n = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await r.readexactly(n)
    await asyncio.sleep(0.35)  # the replicas' acknowledgement
    w.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await w.drain()
    w.close()

async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", 18425)
    print("ready", flush=True)
    await s.serve_forever()

asyncio.run(main())
""",
            "upload.py": r"""import asyncio, glob, os, zlib

async def put(sem, name):
    body = zlib.compress(open(name, "rb").read())
    async with sem:
        r, w = await asyncio.open_connection("127.0.0.1", 18425)
        w.write(b"PUT /%s HTTP/1.1\r\nHost: store\r\nContent-Length: %d\r\n\r\n" % (name.encode(), len(body)) + body)
        await w.drain()
        status = await r.readline()
        w.close()
        assert b"201" in status, status

async def main():
    sem = asyncio.Semaphore(10 if os.environ.get("FIX") else 1)
    names = sorted(glob.glob("out/*.txt"))
    await asyncio.gather(*(put(sem, n) for n in names))
    print(len(names), "artefacts stored")

asyncio.run(main())
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
rm -f ready; mkfifo ready
/usr/bin/python3 store.py >ready & S=$!
read -r line <ready
/usr/bin/python3 upload.py; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "deadresolver",
        "timeout",
        "perl, UDP, name service on loopback, time-out",
        "the first name server of resolv.list never answers: each of the three names waits its time-out of 1.3 s before the second server is asked, which"
        " answers at once. Take the dead server out of the list (or remember that it is dead, or ask both)",
        r"(?i)resolve\.pl|resolv\.list|18430|\bperl\b(?! named).*(?:answer|wait|select|UDP|time-?out|socket|network)|name server|\bDNS\b",
        {
            "setup.sh": r"""printf '127.0.0.1:18430\n127.0.0.1:18431\n' >resolv.list; printf '127.0.0.1:18431\n' >resolv.live
perl -c resolve.pl 2>/dev/null; perl -c named.pl 2>/dev/null; touch products
""",
            "named.pl": r"""use strict; use warnings; use IO::Socket::INET;
# 18430 is up but hears nothing; 18431 serves
my $mute = IO::Socket::INET->new(Proto => "udp", LocalAddr => "127.0.0.1:18430") or die;
my $s = IO::Socket::INET->new(Proto => "udp", LocalAddr => "127.0.0.1:18431") or die;
$| = 1; print "ready\n";
my %zone = (db => "10.0.0.2", cache => "10.0.0.3", queue => "10.0.0.4");
while ($s->recv(my $q, 512)) { $s->send("$q " . ($zone{$q} // "none")); }
""",
            "resolve.pl": r"""use strict; use warnings; use IO::Socket::INET; use IO::Select;
open my $f, "<", $ENV{FIX} ? "resolv.live" : "resolv.list" or die; chomp(my @servers = <$f>);
sub lookup {
    my $name = shift;
    for my $server (@servers) {
        my $s = IO::Socket::INET->new(Proto => "udp", PeerAddr => $server) or next;
        $s->send($name);
        next unless IO::Select->new($s)->can_read(1.3);
        $s->recv(my $a, 512);
        return (split / /, $a)[1];
    }
    die "no answer for $name\n";
}
open my $o, ">", "hosts.out" or die;
print $o "$_ ", lookup($_), "\n" for qw(db cache queue);
""",
            "run.sh": r"""[ -e products ] || sh setup.sh
rm -f ready; mkfifo ready
perl named.pl >ready & S=$!
read -r line <ready
perl resolve.pl; R=$?
kill $S; wait $S 2>/dev/null
[ $R = 0 ] && grep -q 'queue 10.0.0.4' hosts.out && echo hosts resolved
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "wakeups",
        "none",
        "C, timer, a test that measures time",
        "nothing: the program measures how late the kernel wakes it from 4000 sleeps of 1 ms; the sleeps are the measurement",
        NOTHING,
        {
            "setup.sh": "gcc -O2 wakeups.c -o wakeups\n",
            "wakeups.c": r"""#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static int less(const void *a, const void *b) { long x = *(long *)a, y = *(long *)b; return (x > y) - (x < y); }
static long late[4000];
int main(void) {
    struct timespec t, n;
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (int i = 0; i < 4000; i++) {
        t.tv_nsec += 1000000;
        if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
        clock_gettime(CLOCK_MONOTONIC, &n);
        late[i] = (n.tv_sec - t.tv_sec) * 1000000000L + n.tv_nsec - t.tv_nsec;
    }
    qsort(late, 4000, sizeof *late, less);
    printf("wake-up latency: median %ld us, 99%% %ld us, worst %ld us\n", late[2000] / 1000, late[3960] / 1000, late[3999] / 1000);
    return 0;
}
""",
            "run.sh": "[ -e wakeups ] || sh setup.sh\n./wakeups\n",
        },
        "sh setup.sh",
    ),
    Plant(
        "tickbeside",
        "none",
        "node server's tick, perl watchdog, one serial computation",
        "nothing: the wall is the chain of dependent steps of ./chain on one CPU; the idle node server's tick and the watchdog's alarm go on beside it"
        " and end with it",
        NOTHING,
        {
            "setup.sh": "gcc -O2 chain.c -o chain\n",
            "chain.c": CHAIN,
            "server.js": r"""const http = require("http");
let ticks = 0, last = "";
setInterval(() => { ticks++; }, 100);
http.createServer((q, a) => {
  if (q.method === "POST") { let b = ""; q.on("data", d => b += d); q.on("end", () => { last = b.trim(); a.end("stored\n"); }); }
  else a.end(last + "\n");
}).listen(18426, "127.0.0.1", () => console.log("ready"));
""",
            "watchdog.pl": r"""# watchdog.pl PID SECONDS: ends a job that hangs
my ($pid, $left) = @ARGV;
while ($left-- > 0) { sleep 1; exit 0 unless kill 0, $pid; }
kill "KILL", $pid;
""",
            "run.sh": r"""[ -e chain ] || sh setup.sh
rm -f ready; mkfifo ready
node server.js >ready & S=$!
read -r line <ready
perl watchdog.pl $$ 120 & W=$!
curl -s -X POST --data-binary "$(./chain 800)" http://127.0.0.1:18426/ && curl -s http://127.0.0.1:18426/ | grep -q '^[0-9a-f]\{16\}$'; R=$?
kill $W $S; wait $W $S 2>/dev/null
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "expectwork",
        "none",
        "expect, pseudo-terminal, dialogue with a program that computes",
        "nothing: expect answers each question at once; what it waits for is the computation of ./keywizard, one chain of dependent steps",
        NOTHING,
        {
            "setup.sh": "gcc -O2 keywizard.c -o keywizard\n",
            "keywizard.c": r"""#include <stdio.h>
#include <stdint.h>
#include <string.h>
static uint64_t stretch(uint64_t x) {
    for (int p = 0; p <= 100; p += 2) {
        for (long i = 0; i < 10000000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; x *= 0x9E3779B97F4A7C15ull; x |= 1; }
        printf("\rstretching %3d%%", p); fflush(stdout);
    }
    puts(""); return x;
}
int main(void) {
    char a[100]; uint64_t x = 1;
    printf("Pass phrase: "); fflush(stdout);
    if (!fgets(a, sizeof a, stdin)) return 1;
    for (char *c = a; *c; c++) x = x * 31 + *c;
    x = stretch(x);
    printf("Fingerprint %08x, go on? [y/n] ", (unsigned)x); fflush(stdout);
    if (!fgets(a, sizeof a, stdin) || a[0] != 'y') return 1;
    x = stretch(x);
    printf("Key %016llx written\n", (unsigned long long)x);
    return 0;
}
""",
            "dialogue.exp": r"""set timeout 120
spawn ./keywizard
expect "Pass phrase:"
send "correct horse\r"
expect -re {Fingerprint [0-9a-f]{8}, go on}
send "y\r"
expect -re {Key [0-9a-f]{16} written}
expect eof
catch wait r
exit [lindex $r 3]
""",
            "run.sh": "[ -e keywizard ] || sh setup.sh\nexpect dialogue.exp >dialogue.log && grep -q written dialogue.log && echo wizard test ok\n",
        },
        "sh setup.sh",
    ),
    Plant(
        "goload",
        "none",
        "go, TCP server and load generator, fixed rate for a fixed time",
        "nothing: the command is a load test that sends 50 requests a second for 4 s on purpose and checks the latency; the time and the rate are"
        " what it was asked for",
        NOTHING,
        {
            "setup.sh": "GO111MODULE=off GOCACHE=$PWD/.gocache GOFLAGS= go build -o load load.go\n",
            "load.go": r"""package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"sort"
	"sync"
	"time"
)

func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			r := bufio.NewReader(c)
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					c.Close()
					return
				}
				fmt.Fprintf(c, "echo %s", line)
			}
		}()
	}
}

func main() {
	rate := flag.Int("rate", 50, "requests a second")
	span := flag.Duration("duration", 4*time.Second, "of the load")
	limit := flag.Duration("p99", 250*time.Millisecond, "highest latency of 99 percent")
	listen := flag.Bool("serve", false, "be the server")
	flag.Parse()
	if *listen {
		l, err := net.Listen("tcp", "127.0.0.1:18427")
		if err != nil {
			panic(err)
		}
		fmt.Println("ready")
		serve(l)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var took []time.Duration
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	end := time.Now().Add(*span)
	for now := range tick.C {
		if now.After(end) {
			break
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			t := time.Now()
			c, err := net.Dial("tcp", "127.0.0.1:18427")
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "hello\n")
			if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				mu.Lock()
				took = append(took, time.Since(t))
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	p99 := took[len(took)*99/100]
	fmt.Printf("%d requests, 99%% within %v\n", len(took), p99)
	if p99 > *limit {
		os.Exit(1)
	}
}
""",
            "run.sh": r"""[ -e load ] || sh setup.sh
rm -f ready; mkfifo ready
./load -serve >ready & S=$!
read -r line <ready
./load -rate 50 -duration 4s -p99 250ms; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "slots",
        "none",
        "flock, two slots, both CPUs busy",
        "nothing: six jobs start at once and wait with flock for one of two slots, which keeps both CPUs busy from the start to the end; a job that"
        " did not wait for its slot would wait for a CPU",
        NOTHING,
        {
            "setup.sh": "gcc -O2 chain.c -o chain\n",
            "chain.c": CHAIN,
            "job.sh": r"""# job.sh N: one of two at a time
exec 9>slot.$(($1 % 2))
flock 9
./chain 220 $1$1$1 >part.$1
""",
            "run.sh": r"""[ -e chain ] || sh setup.sh
rm -f part.*
P=
for i in 1 2 3 4 5 6; do sh job.sh $i & P="$P $!"; done
R=0
for p in $P; do wait $p || R=1; done
[ $R = 0 ] && [ "$(cat part.* | wc -l)" = 6 ] && echo 6 parts
""",
        },
        "sh setup.sh",
    ),
]
