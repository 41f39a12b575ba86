"""Twenty-sixth set: integration tests and CI scripts whose processes wait for each other, for services, or for nothing that can be saved."""

from waits import Plant

PLANTS = [
    Plant(
        "w26-order-queue",
        "poll",
        "ruby and redis, RPOP with a nap when empty, three worker processes in a chain",
        "stage.rb (three workers) naps 0.7 s whenever its redis list is empty, so every order waits at every stage; use BRPOP instead of RPOP and sleep",
        r"(?i)stage\.rb",
        {
            "run.sh": """#!/bin/bash
# Order pipeline, end to end: redis, three stage workers, two customer journeys.
set -eu
cd "$(dirname "$0")"
export REDIS_PORT=18840
W=$(mktemp -d)
pids=()
stop() { kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"; }
trap stop EXIT
redis-server --port $REDIS_PORT --bind 127.0.0.1 --save '' --appendonly no --dir "$W" >"$W/redis.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do redis-cli -p $REDIS_PORT ping >/dev/null 2>&1 && break; sleep 0.05; done
timeout 60 ruby stage.rb reserve orders:new orders:reserved & pids+=($!)
timeout 60 ruby stage.rb charge orders:reserved orders:charged & pids+=($!)
timeout 60 ruby stage.rb label orders:charged orders:labelled & pids+=($!)
for s in reserve charge label; do redis-cli -p $REDIS_PORT blpop up:$s 10 >/dev/null; done
timeout 60 ruby journey.rb
""",
            "journey.rb": """require "json"
require_relative "resp"
redis = Resp.new
%w[A-1001 A-1002].each do |id|
  redis.call("LPUSH", "orders:new", JSON.dump(id: id, lines: [["tea", 2], ["cup", 1]]))
  _, raw = redis.call("BRPOP", "orders:labelled", 20)
  job = JSON.parse(raw)
  abort "wrong order #{raw}" unless job["id"] == id && job["trail"].map(&:first) == %w[reserve charge label]
  puts "ok #{id}"
end
""",
            "resp.rb": """require "socket"
# The bit of the redis protocol that we need.
class Resp
  def initialize(port = ENV.fetch("REDIS_PORT"))
    @s = TCPSocket.new("127.0.0.1", port.to_i)
    @s.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  end

  def call(*args)
    @s.write("*#{args.size}\\r\\n" + args.map { |a| "$#{a.to_s.bytesize}\\r\\n#{a}\\r\\n" }.join)
    reply
  end

  def reply
    line = @s.gets.chomp
    case line[0]
    when "+", ":" then line[1..]
    when "-" then raise line
    when "$" then (n = line[1..].to_i) < 0 ? nil : @s.read(n + 2)[0, n]
    when "*" then (n = line[1..].to_i) < 0 ? nil : Array.new(n) { reply }
    end
  end
end
""",
            "stage.rb": """require "json"
require "digest"
require_relative "resp"
name, from, to = ARGV
IDLE = 0.7
redis = Resp.new
redis.call("RPUSH", "up:#{name}", 1)
trap("TERM") { exit!(0) }

def take(redis, from)
  if ENV["FIX"] == "1"
    hit = redis.call("BRPOP", from, 5)
    hit && hit[1]
  else
    job = redis.call("RPOP", from)
    sleep IDLE unless job
    job
  end
end

loop do
  raw = take(redis, from) or next
  job = JSON.parse(raw)
  digest = raw
  40_000.times { digest = Digest::SHA256.digest(digest) }
  (job["trail"] ||= []) << [name, digest.unpack1("H12")]
  redis.call("LPUSH", to, JSON.dump(job))
end
""",
        },
        "",
    ),
    Plant(
        "w26-report-migrate",
        "lock",
        "python, psql and postgres, table lock held by an idle transaction, migration rehearsal in bash",
        "weekly_report.py keeps its transaction open (idle in transaction) while it computes, so the ALTER TABLE of psql (0042_order_channel.sql) and the API checks after it wait for the lock; commit after the fetch",
        r"(?i)weekly_report|(psql|postgres|0042_order_channel|alter table).*(lock|transaction)|(lock|transaction).*(psql|postgres|0042_order_channel|alter table)",
        {
            "run.sh": """#!/bin/bash
# Migration rehearsal: the weekly report is made while the schema is migrated and the API checks run.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d /tmp/rehearsal.XXXXXX)
pg=
stop() { [ -n "$pg" ] && kill -INT "$pg" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"; }
trap stop EXIT
chown postgres "$W"; chmod 755 "$W"
tar -C "$W" -xf pgdata.tar
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
here=$PWD
cd "$W"
setpriv --reuid=postgres --regid=postgres --init-groups "$bin/postgres" -D "$W/data" -p 18841 -k "$W" \\
    -c listen_addresses= -c fsync=off -c log_min_messages=fatal -c jit=off >"$W/log" 2>&1 &
pg=$!
cd "$here"
export PGHOST=$W PGPORT=18841 PGUSER=postgres
for _ in $(seq 200); do pg_isready -q && break; sleep 0.05; done
mkfifo "$W/started"
timeout 60 /usr/bin/python3 weekly_report.py "$W/report.csv" "$W/started" &
report=$!
read -r _ <"$W/started"
timeout 60 psql -q -v ON_ERROR_STOP=1 -f migrations/0042_order_channel.sql
timeout 60 /usr/bin/python3 api_checks.py
wait $report
test -s "$W/report.csv"
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
T=$(mktemp -d /tmp/pgseed.XXXXXX)
chown postgres "$T"
as="setpriv --reuid=postgres --regid=postgres --init-groups"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
(cd "$T" && $as "$bin/initdb" -D "$T/data" -A trust --no-sync >/dev/null
 $as "$bin/pg_ctl" -D "$T/data" -o "-p 18841 -k $T -c listen_addresses='' -c fsync=off" -w -l "$T/log" start >/dev/null)
psql -q -h "$T" -p 18841 -U postgres -c "create table orders as select i as id, 'cust' || i % 977 as customer, (i * 7919) % 10000 as cents from generate_series(1, 60000) i" -c "create table audit(id serial, what text)"
(cd "$T" && $as "$bin/pg_ctl" -D "$T/data" -w -m fast stop >/dev/null)
tar -C "$T" -cf pgdata.tar data
rm -rf "$T"
""",
            "api_checks.py": '''"""Checks of the order API on the migrated schema."""
import hashlib
import time

import psycopg2
import psycopg2.errors

db = psycopg2.connect("dbname=postgres")
db.autocommit = True
cur = db.cursor()
for channel in ("web", "shop", "phone"):
    cur.execute("select id, customer, cents, channel from orders where cents %% 3 = %s order by id", (len(channel) % 3,))
    n = 0
    for row in cur.fetchall():
        token = repr(row).encode()
        for _ in range(9):
            token = hashlib.sha256(token).digest()
        n += token[0] & 1
    assert n > 1000, n
    print("ok", channel)

# A runaway search is cut off at the API's own limit, and not earlier.
cur.execute("set statement_timeout = '2500ms'")
began = time.monotonic()
try:
    cur.execute("select count(*) from orders where channel is null and pg_sleep(id) is not null")
except psycopg2.errors.QueryCanceled:
    took = time.monotonic() - began
else:
    raise SystemExit("the runaway search was not cut off")
assert 2.4 < took < 6, took
print("ok cut off")
''',
            "migrations/0042_order_channel.sql": """begin;
alter table orders add column channel text;
insert into audit(what) values ('0042_order_channel');
commit;
""",
            "weekly_report.py": '''"""Weekly report: revenue by customer, with a bootstrap interval."""
import os
import random
import sys

import psycopg2

out, started = sys.argv[1:]
db = psycopg2.connect("dbname=postgres")
cur = db.cursor()
cur.execute("select customer, cents from orders order by id")
rows = cur.fetchall()
if os.environ.get("FIX") == "1":
    db.commit()
with open(started, "w") as f:
    f.write("go\\n")

by = {}
for customer, cents in rows:
    by.setdefault(customer, []).append(cents)
rng = random.Random(7)
lines = []
for customer in sorted(by):
    cents = by[customer]
    means = sorted(sum(rng.choices(cents, k=len(cents))) for _ in range(520))
    lines.append("%s,%d,%d,%d" % (customer, sum(cents), means[26], means[-26]))
with open(out, "w") as f:
    f.write("\\n".join(lines) + "\\n")
cur.execute("insert into audit(what) values ('weekly report')")
db.commit()
''',
        },
        "sh setup.sh",
    ),
    Plant(
        "w26-gateway",
        "server",
        "nginx and python, upstream that accepts but does not answer, proxy time-out and next upstream, curl smoke test",
        "nginx gives every other request to the warming canary (catalogue.py on 18844), waits its proxy_read_timeout of 0.8 s and tries the next; take the canary out of the upstream until it is ready (or let max_fails count)",
        r"(?i)nginx.*(time-?out|upstream|proxy|catalogue|1884[34])|catalogue\.py|gateway\.conf|18844|canary",
        {
            "run.sh": """#!/bin/bash
# Smoke test of the gateway in front of the catalogue API.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d /tmp/gateway.XXXXXX)
chmod 755 "$W"
pids=()
stop() { kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"; }
trap stop EXIT
mkdir "$W/t"
conf=gateway.conf
if [ "${FIX:-}" = 1 ]; then sed '/127.0.0.1:18844/d' gateway.conf >"$W/gateway.conf"; conf=$W/gateway.conf; else cp gateway.conf "$W/gateway.conf"; fi
timeout 60 /usr/bin/python3 catalogue.py 18843 & pids+=($!)
timeout 60 /usr/bin/python3 catalogue.py 18844 --canary & pids+=($!)
nginx -p "$W/" -c "$W/gateway.conf" -e "$W/error.log" & pids+=($!)
for _ in $(seq 100); do curl -sf -o /dev/null http://127.0.0.1:18842/gateway-status && curl -sf -o /dev/null http://127.0.0.1:18843/items/0 && break; sleep 0.05; done
bash smoke.sh http://127.0.0.1:18842
""",
            "catalogue.py": '''"""The catalogue API; the canary fills its cache first."""
import json
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

warm = threading.Event()
if "--canary" not in sys.argv:
    warm.set()


class Api(BaseHTTPRequestHandler):
    def do_GET(self):
        warm.wait(50)
        item = int(self.path.rsplit("/", 1)[1])
        body = json.dumps({"item": item, "price": item * 7 % 100}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Api).serve_forever()
''',
            "gateway.conf": """daemon off;
pid gateway.pid;
worker_processes 1;
events { worker_connections 64; }
http {
    access_log access.log;
    client_body_temp_path t/body;
    proxy_temp_path t/proxy;
    fastcgi_temp_path t/fcgi;
    uwsgi_temp_path t/uwsgi;
    scgi_temp_path t/scgi;
    upstream catalogue {
        server 127.0.0.1:18843 max_fails=0;
        server 127.0.0.1:18844 max_fails=0;
    }
    server {
        listen 127.0.0.1:18842;
        location /gateway-status { return 200 "up\\n"; }
        location / {
            proxy_pass http://catalogue;
            proxy_connect_timeout 500ms;
            proxy_read_timeout 800ms;
            proxy_next_upstream error timeout http_502;
        }
    }
}
""",
            "smoke.sh": """base=$1
for i in 1 2 3 4 5 6 7 8 9 10; do
    got=$(curl -sf --max-time 10 "$base/items/$i")
    case $got in
        *"\\"price\\": $((i * 7 % 100))"*) echo "ok item $i" ;;
        *) echo "item $i: $got"; exit 1 ;;
    esac
done
""",
        },
        "",
    ),
    Plant(
        "w26-ssh-deploy",
        "repeat",
        "bash, ssh and sshd, one full handshake per remote command, deployment rehearsal",
        "deploy.sh makes a new ssh connection (key exchange, login) for each of its 16 remote commands; share one (ControlMaster and ControlPersist) or send one script",
        r"(?i)\bsshd?\b|deploy\.sh",
        {
            "run.sh": """#!/bin/bash
# Rehearses a deployment to a throw-away sshd.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d /tmp/deploy.XXXXXX)
pids=()
stop() { [ -S "$W/cm" ] && ssh -o ControlPath="$W/cm" -O exit app >/dev/null 2>&1 || true; kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"; }
trap stop EXIT
mkdir -p /run/sshd
cp keys/* "$W/"; chmod 600 "$W"/*_key
cat >"$W/sshd_config" <<X
Port 18845
ListenAddress 127.0.0.1
HostKey $W/host_key
AuthorizedKeysFile $W/client_key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PidFile none
SetEnv SHLVL=1
X
{
    echo "Host app"
    echo "  HostName 127.0.0.1"
    echo "  Port 18845"
    echo "  User root"
    echo "  IdentityFile $W/client_key"
    echo "  IdentitiesOnly yes"
    echo "  StrictHostKeyChecking no"
    echo "  UserKnownHostsFile /dev/null"
    echo "  LogLevel ERROR"
    if [ "${FIX:-}" = 1 ]; then
        echo "  ControlMaster auto"
        echo "  ControlPath $W/cm"
        echo "  ControlPersist 20"
    fi
} >"$W/ssh_config"
/usr/sbin/sshd -D -f "$W/sshd_config" -E "$W/sshd.log" & pids+=($!)
for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/18845) 2>/dev/null && break; sleep 0.05; done
bash deploy.sh "$W/ssh_config" "$W/app"
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
rm -rf keys; mkdir keys
ssh-keygen -q -t rsa -b 3072 -N '' -f keys/host_key
ssh-keygen -q -t rsa -b 4096 -N '' -f keys/client_key
""",
            "deploy.sh": """cfg=$1; app=$2
on() { timeout 20 ssh -F "$cfg" -n app "$@"; }
on mkdir -p "$app/releases/42" "$app/shared/log"
for f in app.py routes.py models.py settings.py; do
    on "echo '# $f' > $app/releases/42/$f"
    on "test -s $app/releases/42/$f"
    on "chmod 640 $app/releases/42/$f"
done
on ln -sfn "$app/shared/log" "$app/releases/42/log"
on ln -sfn "$app/releases/42" "$app/current"
test "$(on ls "$app/current/" | wc -l)" = 5 && echo deployed
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w26-java-pool",
        "pool",
        "java and perl, connection pool run dry, timed poll of a blocking queue (futex)",
        "the java test's StockClient does not give a connection back after a 404, so the pool of three runs dry and every third leak a borrow waits 1.5 s; give back in a finally",
        r"(?i)\bpool\b|StockClient|\bjava\b.*(wait|time-?out|park|futex|1\.5)",
        {
            "run.sh": """#!/bin/bash
# Integration test of the stock service client against a small stock server.
set -eu
cd "$(dirname "$0")"
timeout 60 perl stockd.pl 18847 & srv=$!
trap 'kill $srv 2>/dev/null || true; wait 2>/dev/null || true' EXIT
for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/18847) 2>/dev/null && break; sleep 0.05; done
timeout 60 java -Xshare:auto -XX:TieredStopAtLevel=1 -cp classes shop.StockClientIT 18847
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
mkdir -p classes
javac -d classes src/shop/*.java
""",
            "src/shop/Pool.java": """package shop;

import java.io.*;
import java.net.Socket;
import java.util.*;
import java.util.concurrent.*;

/** A small connection pool. */
final class Pool {
    static final int SIZE = 3;
    static final long MAX_WAIT_MS = 1500;

    final class Conn {
        final Socket socket;
        final BufferedReader in;
        final Writer out;

        Conn() throws IOException {
            socket = new Socket("127.0.0.1", port);
            socket.setTcpNoDelay(true);
            in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
            out = new OutputStreamWriter(socket.getOutputStream());
        }

        String ask(String line) throws IOException {
            out.write(line + "\\n");
            out.flush();
            return in.readLine();
        }
    }

    private final int port;
    private final BlockingQueue<Conn> idle = new LinkedBlockingQueue<>();
    private final Set<Conn> lent = ConcurrentHashMap.newKeySet();

    Pool(int port) throws IOException {
        this.port = port;
        for (int i = 0; i < SIZE; i++) idle.add(new Conn());
    }

    Conn borrow() throws IOException, InterruptedException {
        Conn c = idle.poll(MAX_WAIT_MS, TimeUnit.MILLISECONDS);
        if (c == null) {
            for (Conn old : lent) old.socket.close();
            lent.clear();
            for (int i = 1; i < SIZE; i++) idle.add(new Conn());
            c = new Conn();
        }
        lent.add(c);
        return c;
    }

    void giveBack(Conn c) {
        if (lent.remove(c)) idle.add(c);
    }
}
""",
            "src/shop/StockClient.java": """package shop;

import java.util.OptionalInt;

final class StockClient {
    private final Pool pool;

    StockClient(Pool pool) {
        this.pool = pool;
    }

    OptionalInt stock(String sku) throws Exception {
        Pool.Conn c = pool.borrow();
        String answer = c.ask(sku);
        if (answer.startsWith("404")) {
            if ("1".equals(System.getenv("FIX"))) pool.giveBack(c);
            return OptionalInt.empty();
        }
        pool.giveBack(c);
        return OptionalInt.of(Integer.parseInt(answer.substring(4)));
    }
}
""",
            "src/shop/StockClientIT.java": """package shop;

public final class StockClientIT {
    public static void main(String[] args) throws Exception {
        StockClient client = new StockClient(new Pool(Integer.parseInt(args[0])));
        int found = 0, gone = 0;
        for (int i = 0; i < 400; i++) {
            String sku = (i % 40 == 7 ? "old-" : "sku-") + i;
            if (client.stock(sku).isPresent()) found++;
            else gone++;
        }
        if (found != 390 || gone != 10) throw new AssertionError(found + " " + gone);
        System.out.println("ok: " + found + " found, " + gone + " discontinued");
    }
}
""",
            "stockd.pl": """use strict;
use warnings;
use IO::Socket::INET;
use IO::Select;
my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 16, ReuseAddr => 1) or die "$!";
my $sel = IO::Select->new($l);
my %buf;
while (1) {
    for my $s ($sel->can_read) {
        if ($s == $l) { my $c = $l->accept; $c->autoflush(1); $sel->add($c); $buf{$c} = ''; next; }
        if (!sysread($s, $buf{$s}, 4096, length $buf{$s})) { $sel->remove($s); delete $buf{$s}; close $s; next; }
        while ($buf{$s} =~ s/^(.*)\\n//) {
            my $sku = $1;
            print $s $sku =~ /^old-/ ? "404\\n" : "200 " . (length($sku) * 3) . "\\n";
        }
    }
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w26-stop-grace",
        "shutdown",
        "perl supervisor, bash entry point, node; TERM kept by a shell that waits for its child",
        "procman.pl waits its grace of 4 s for bash bin/entrypoint.sh, which does not pass SIGTERM to node web.js as it runs it as a foreground child with a trap; exec node",
        r"(?i)entrypoint|procman|web\.js",
        {
            "run.sh": """#!/bin/bash
# Starts the Procfile, runs the end-to-end check, stops everything.
set -eu
cd "$(dirname "$0")"
rm -rf run; mkdir run
trap 'rm -rf run' EXIT
timeout -k 1 60 perl procman.pl Procfile -- bash e2e.sh
""",
            "Procfile": """web: bash bin/entrypoint.sh 18848
clock: exec /usr/bin/python3 clock.py
""",
            "bin/entrypoint.sh": """#!/bin/bash
set -eu
export APP_ENV=ci PORT=$1
mkdir -p run/cache
if [ "${FIX:-}" = 1 ]; then
    echo $$ >run/web.pid
    exec node web.js
fi
trap 'rm -f run/web.pid; exit 0' TERM INT
echo $$ >run/web.pid
node web.js
""",
            "clock.py": '''"""Fires the minutely jobs."""
import signal
import sys
import threading

done = threading.Event()
signal.signal(signal.SIGTERM, lambda *a: done.set())
open("run/clock.ready", "w").close()
while not done.wait(60):
    print("tick", file=sys.stderr)
''',
            "e2e.sh": """set -eu
for _ in $(seq 200); do [ -e run/web.ready ] && [ -e run/clock.ready ] && break; sleep 0.05; done
for p in / /login /cart /orders/17 /search?q=tea /admin/jobs /static/app.css /logout; do
    curl -sf --max-time 5 "http://127.0.0.1:18848$p" | grep -q "\\"path\\":\\"$p\\""
done 2>/dev/null || { echo "e2e failed"; exit 1; }
echo "e2e ok"
""",
            "procman.pl": """#!/usr/bin/perl
# procman: a small foreman. procman.pl PROCFILE -- COMMAND...
use strict;
use warnings;
use POSIX ":sys_wait_h";
use Time::HiRes qw(time sleep);
my ($file, undef, @cmd) = @ARGV;
my $GRACE = 4;
my %pid;
open my $f, '<', $file or die "$file: $!";
while (<$f>) {
    my ($name, $line) = /^(\\w+):\\s*(.+)$/ or next;
    my $p = fork;
    if (!$p) { setpgrp; exec 'sh', '-c', "exec $line" =~ s/^exec exec/exec/r; }
    $pid{$name} = $p;
}
my $rc = system(@cmd) >> 8;
kill 'TERM', values %pid;
my $end = time + $GRACE;
while (%pid && time < $end) {
    for my $n (keys %pid) { delete $pid{$n} if waitpid($pid{$n}, WNOHANG) }
    sleep 0.05 if %pid;
}
for my $n (sort keys %pid) {
    kill 'KILL', -$pid{$n};
    waitpid $pid{$n}, 0;
}
exit $rc;
""",
            "web.js": """const http = require("http");
const fs = require("fs");
let n = 0;
const server = http.createServer((req, res) => {
  n += 1;
  res.end(JSON.stringify({ path: req.url, n }));
});
server.listen(Number(process.env.PORT), "127.0.0.1", () => fs.writeFileSync("run/web.ready", "1"));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
""",
        },
        "",
    ),
    Plant(
        "w26-fixture-sync",
        "work",
        "rsync client and daemon over loopback, needless compression",
        "rsync compresses at zstd level 16 what goes over loopback (SYNC_OPTS of sync.env); leave out --compress",
        r"(?i)rsync.*(compress|zstd)|(compress|zstd).*rsync|sync\.env",
        {
            "run.sh": """#!/bin/bash
# Copies the fixtures to the two test nodes (rsync daemon on this machine) and compares.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d /tmp/nodes.XXXXXX)
trap 'kill $d 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"' EXIT
mkdir "$W/node1" "$W/node2"
printf 'use chroot = no\\nuid = root\\ngid = root\\nlog file = /dev/null\\n[node1]\\npath = %s/node1\\nread only = no\\n[node2]\\npath = %s/node2\\nread only = no\\n' "$W" "$W" >"$W/rsyncd.conf"
timeout 60 rsync --daemon --no-detach --address=127.0.0.1 --port=18849 --config="$W/rsyncd.conf" & d=$!
for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/18849) 2>/dev/null && break; sleep 0.05; done
. ./sync.env
for n in node1 node2; do
    timeout 60 rsync $SYNC_OPTS fixtures/ "rsync://127.0.0.1:18849/$n/"
    diff -rq fixtures "$W/$n" && echo "ok $n"
done
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
rm -rf fixtures; mkdir fixtures
/usr/bin/python3 - <<'X'
import random
r = random.Random(3)
words = ["%s%d" % (r.choice(["sku", "cust", "order", "ship", "addr"]), r.randrange(4000)) for _ in range(3000)]
for i in range(6):
    with open("fixtures/tenant%02d.jsonl" % i, "w") as f:
        for n in range(9000):
            f.write('{"id":%d,"k":"%s","v":"%s","x":%d}\\n' % (n, r.choice(words), r.choice(words), r.getrandbits(60)))
X
""",
            "sync.env": """SYNC_OPTS="-a --delete --compress --compress-choice=zstd --compress-level=16"
[ "${FIX:-}" = 1 ] && SYNC_OPTS="-a --delete" || true
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w26-console",
        "timer",
        "expect and sqlite3 on a terminal, a prompt that never matches",
        "expect (console.exp) waits for the prompt 'sqlite> ' although consolerc sets another, so every step costs its time-out of 1 s; match the real prompt",
        r"(?i)\bexpect\b.*(time-?out|prompt|console|sqlite)|console\.exp|consolerc",
        {
            "run.sh": """#!/bin/bash
# Drives the support console as an operator would.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
sqlite3 "$W/shop.db" <seed.sql
timeout 60 expect console.exp "$W/shop.db"
test "$(sqlite3 "$W/shop.db" 'select count(*) from refund')" = 2
echo ok
""",
            "console.exp": """# Two refunds and a check by hand.
set timeout 1
log_user 0
set db [lindex $argv 0]
set prompt "sqlite> "
if {[info exists env(FIX)] && $env(FIX) eq "1"} { set prompt "shop=> " }
spawn -noecho sqlite3 -interactive -init consolerc $db

proc say {line} {
    global prompt
    expect -ex $prompt
    send -- "$line\\r"
}
say "insert into refund select id, cents from orders where id = 17;"
say "insert into refund select id, cents from orders where id = 18;"
say "select 'refunds:' || count(*) from refund;"
expect {
    -ex "refunds:2" {}
    timeout { puts "no answer"; exit 1 }
}
say ".quit"
expect eof
wait
""",
            "consolerc": """.prompt "shop=> " "  ...> "
.headers off
""",
            "seed.sql": """create table orders(id integer primary key, cents int);
create table refund(order_id int, cents int);
with recursive n(i) as (select 1 union all select i+1 from n where i < 20000)
insert into orders select i, (i * 7919) % 10000 from n;
""",
        },
        "",
    ),
    Plant(
        "w26-log-ready",
        "pipe",
        "perl follower piped to grep -m1, node API, end seen only at the next write",
        "after grep -m1 has found the line, the pipeline still waits for perl logs.pl, which ends only with SIGPIPE at the next log line (4.5 s heartbeat); let the follower stop at the line (--until)",
        r"(?i)logs\.pl",
        {
            "run.sh": """#!/bin/bash
# API smoke test: start, wait for the log line, call.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d)
trap 'kill $api 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"' EXIT
LOG=$W/api.log
: >"$LOG"
timeout 60 node api.js 18850 >>"$LOG" 2>&1 & api=$!
if [ "${FIX:-}" = 1 ]; then
    timeout 30 perl logs.pl --until 'listening on' "$LOG"
else
    timeout 30 perl logs.pl "$LOG" | grep -m1 'listening on'
fi
for i in 1 2 3; do curl -sf --max-time 5 "http://127.0.0.1:18850/v1/users/$i" | grep -q "\\"id\\":$i"; done
echo "smoke ok"
""",
            "api.js": """const http = require("http");
const crypto = require("crypto");
const port = Number(process.argv[2]);
const key = crypto.pbkdf2Sync("ci", "salt", 250000, 32, "sha256").toString("hex");
console.log("key schedule ready", key.slice(0, 8));
http
  .createServer((req, res) => res.end(JSON.stringify({ id: Number(req.url.split("/").pop()), k: key.slice(0, 4) })))
  .listen(port, "127.0.0.1", () => console.log(`listening on ${port}`));
setInterval(() => console.log("metrics rss=%d", process.memoryUsage().rss), 4500);
""",
            "logs.pl": """#!/usr/bin/perl
# logs.pl [--until TEXT] FILE: prints a log and follows it.
use strict;
use warnings;
$| = 1;
my $until = $ARGV[0] eq '--until' ? (splice @ARGV, 0, 2)[1] : undef;
open my $f, '<', $ARGV[0] or die "$ARGV[0]: $!";
while (1) {
    while (my $line = <$f>) {
        print $line;
        exit 0 if defined $until && index($line, $until) >= 0;
    }
    select undef, undef, undef, 0.1;
    seek $f, 0, 1;
}
""",
        },
        "",
    ),
    Plant(
        "w26-none-window",
        "none",
        "go and node, rate limiter contract test that waits for the window",
        "the test waits on purpose until limitd's window of 4 s is over and checks before and after; nothing to change",
        r"nothing",
        {
            "run.sh": """#!/bin/bash
# Contract test of the rate limiter.
set -eu
cd "$(dirname "$0")"
timeout 60 ./limitd 18851 & d=$!
trap 'kill $d 2>/dev/null || true; wait 2>/dev/null || true' EXIT
for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/18851) 2>/dev/null && break; sleep 0.05; done
timeout 60 node window.test.mjs http://127.0.0.1:18851/
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
export GOCACHE="$PWD/.gocache" GOFLAGS=-mod=mod GO111MODULE=on CGO_ENABLED=0 GOPATH="$PWD/.gopath"
go build -o limitd ./limitd.go
rm -rf .gocache .gopath
""",
            "limitd.go": """// limitd: a fixed-window limiter, five calls in any window of four seconds.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	limit  = 5
	window = 4 * time.Second
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	var start time.Time
	n := 0
	for {
		c, err := l.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer c.Close()
			r := bufio.NewReader(c)
			for {
				line, err := r.ReadString('\\n')
				if err != nil || strings.TrimSpace(line) == "" {
					break
				}
			}
			mu.Lock()
			now := time.Now()
			if now.Sub(start) >= window {
				start, n = now, 0
			}
			n++
			ok, left := n <= limit, window-now.Sub(start)
			mu.Unlock()
			if ok {
				fmt.Fprint(c, "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
			} else {
				fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\\r\\nRetry-After-Ms: %d\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n", left.Milliseconds())
			}
		}()
	}
}
""",
            "window.test.mjs": """import assert from "node:assert";
import { setTimeout as pause } from "node:timers/promises";

const url = process.argv[2];
const statuses = async (n) => {
  const all = [];
  for (let i = 0; i < n; i++) all.push((await fetch(url)).status);
  return all;
};
await fetch(url);
const t0 = Date.now();
const rest = await statuses(8);
assert.equal(rest.filter((s) => s === 429).length >= 3, true, "the burst is limited");
const limited = await fetch(url);
assert.equal(limited.status, 429);
const left = Number(limited.headers.get("retry-after-ms"));
assert(left > 2000 && left <= 4000, `window announced: ${left}`);

await pause(left / 2);
assert.equal((await fetch(url)).status, 429, "half way through, still limited");
await pause(left / 2 + 60 - 0);
assert.equal((await fetch(url)).status, 200, "the next window is open");
assert(Date.now() - t0 >= 3000);
console.log("ok: limited, and open again after the announced window");
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w26-none-bench",
        "none",
        "pgbench and postgres, fixed measuring time at a fixed rate",
        "pgbench -T 5 -R 60 measures for 5 s on purpose; nothing to change",
        r"nothing",
        {
            "run.sh": """#!/bin/bash
# Throughput gate: a fixed measuring time, at a fixed rate, must not miss more than a few.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d /tmp/gate.XXXXXX)
pg=
stop() { [ -n "$pg" ] && kill -INT "$pg" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"; }
trap stop EXIT
chown postgres "$W"; chmod 755 "$W"
tar -C "$W" -xf pgdata.tar
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
here=$PWD
cd "$W"
setpriv --reuid=postgres --regid=postgres --init-groups "$bin/postgres" -D "$W/data" -p 18852 -k "$W" \\
    -c listen_addresses= -c fsync=off -c log_min_messages=fatal >"$W/log" 2>&1 &
pg=$!
cd "$here"
export PGHOST=$W PGPORT=18852 PGUSER=postgres
for _ in $(seq 200); do pg_isready -q && break; sleep 0.05; done
timeout 60 "$bin/pgbench" -n -c 2 -j 1 -R 60 -T 5 postgres >"$W/gate.txt" 2>/dev/null
awk '/^number of transactions actually processed/ { n = $NF } END { sub(/\\/.*/, "", n); print "processed", n; exit !(n + 0 > 150) }' "$W/gate.txt"
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
T=$(mktemp -d /tmp/pgbenchseed.XXXXXX)
chown postgres "$T"
as="setpriv --reuid=postgres --regid=postgres --init-groups"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
(cd "$T" && $as "$bin/initdb" -D "$T/data" -A trust --no-sync >/dev/null
 $as "$bin/pg_ctl" -D "$T/data" -o "-p 18852 -k $T -c listen_addresses='' -c fsync=off" -w -l "$T/log" start >/dev/null)
"$bin/pgbench" -q -i -s 2 -h "$T" -p 18852 -U postgres postgres >/dev/null 2>&1
(cd "$T" && $as "$bin/pg_ctl" -D "$T/data" -w -m fast stop >/dev/null)
tar -C "$T" -cf pgdata.tar data
rm -rf "$T"
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w26-none-504",
        "none",
        "nginx, node and curl, test of a proxy time-out",
        "the test checks that nginx gives up on a hung backend after its 4 s, not before; nothing to change",
        r"nothing",
        {
            "run.sh": """#!/bin/bash
# The gateway must give up on a hung backend: 504, after the configured time and not before.
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d /tmp/gw504.XXXXXX)
chmod 755 "$W"; mkdir "$W/t"; cp gateway.conf "$W/"
pids=()
stop() { kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$W"; }
trap stop EXIT
timeout 60 node hung.js 18854 & pids+=($!)
nginx -p "$W/" -c "$W/gateway.conf" -e "$W/error.log" & pids+=($!)
for _ in $(seq 100); do curl -sf -o /dev/null http://127.0.0.1:18853/quick && break; sleep 0.05; done
read -r code took <<<"$(curl -s -o /dev/null -w '%{http_code} %{time_total}' --max-time 10 http://127.0.0.1:18853/hung)"
echo "status $code after $took s"
test "$code" = 504
awk -v t="$took" 'BEGIN { exit !(t >= 3.9 && t < 8) }'
test "$(curl -s -o /dev/null -w '%{http_code}' --max-time 5 http://127.0.0.1:18853/quick)" = 200
""",
            "gateway.conf": """daemon off;
pid gateway.pid;
worker_processes 1;
events { worker_connections 64; }
http {
    access_log access.log;
    client_body_temp_path t/body;
    proxy_temp_path t/proxy;
    fastcgi_temp_path t/fcgi;
    uwsgi_temp_path t/uwsgi;
    scgi_temp_path t/scgi;
    upstream backend {
        server 127.0.0.1:18854 max_fails=0;
    }
    server {
        listen 127.0.0.1:18853;
        location / {
            proxy_pass http://backend;
            proxy_connect_timeout 500ms;
            proxy_read_timeout 4s;
        }
    }
}
""",
            "hung.js": """const http = require("http");
http
  .createServer((req, res) => {
    if (req.url !== "/hung") res.end("quick\\n");
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
""",
        },
        "",
    ),
    Plant(
        "w26-none-bisect",
        "none",
        "git bisect run with make and gcc, a dependent chain of builds of different sources",
        "each bisect step needs the verdict of the one before, and each builds other sources; nothing to change",
        r"nothing",
        {
            "run.sh": """#!/bin/bash
# Finds the commit that broke `check` (which fails in optimised builds only).
set -eu
cd "$(dirname "$0")"
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git clone -q --no-hardlinks history "$W/work"
cd "$W/work"
git bisect start main main~59 >/dev/null
timeout 120 git bisect run sh -c 'make -s check || exit 125; ./check' >"$W/log" 2>&1
git bisect log | grep '# first bad commit'
git show -s --format=%s refs/bisect/bad | grep -q 'step 38$'
""",
            "setup.sh": """set -e
cd "$(dirname "$0")"
rm -rf history; mkdir history
git -C history -c init.defaultBranch=main init -q
git -C history symbolic-ref HEAD refs/heads/main
/usr/bin/python3 mkhistory.py | git -C history fast-import --quiet
""",
            "mkhistory.py": '''"""A history of 60 commits of a generated parser, for git fast-import."""
import sys

out = sys.stdout


def parser(n):
    rules = []
    for i in range(240):
        rules.append("static int rule%d(int a, int b) { int s = %d; for (int i = 0; i < (a & 15); i++) { s = s * %d + (b >> (i & 7)); if (s %% %d == 0) s ^= a; } return s; }"
                     % (i, i + n, 31 + (i * n) % 17, 3 + i % 11))
    body = "".join(" case %d: return rule%d(a, b);\\n" % (i, i) for i in range(240))
    return "\\n".join(rules) + "\\nint run(int k, int a, int b) { switch (k) {\\n" + body + " } return 0; }\\n"


def main_c(n):
    bad = "#ifdef __OPTIMIZE__\\n return 1;\\n#endif\\n" if n >= 38 else ""
    return ("int run(int, int, int);\\nint main(void) { int s = 0; for (int k = 0; k < 240; k++) s += run(k, k, s);\\n"
            "%s return s == 0x7fffffff; }\\n" % bad)


make = "check: parser.o main.o\\n\\tcc -o check main.o parser.o\\n%.o: %.c\\n\\tcc -O2 -c -o $@ $<\\n"
for n in range(60):
    out.write("commit refs/heads/main\\ncommitter Dev <dev@example.org> %d +0000\\n" % (1700000000 + 3600 * n))
    msg = "parser: tune rules, step %d" % n
    out.write("data %d\\n%s\\n" % (len(msg), msg))
    for name, text in (("parser.c", parser(n)), ("main.c", main_c(n)), ("Makefile", make), (".gitignore", "*.o\\ncheck\\n")):
        out.write("M 644 inline %s\\ndata %d\\n%s\\n" % (name, len(text), text))
''',
        },
        "sh setup.sh",
    ),
]
