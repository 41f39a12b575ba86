"""Plants of author 12a: real tools as engineers use them in CI, each with one fault in how it waits, or none."""

from waits import Plant

# What a verdict of a plant with nothing to change says.
NONE = r"(?i)\bnothing\b|\bno (change|fault|advice|gain|wait)|\bnot? worth|\bleave\b|\bby design\b|\bon purpose\b|\balready\b|\bbusy\b|\bon (a |the |both )?CPUs?\b"

PLANTS = [
    Plant(
        "w12a-pytest-sleep",
        "sleep",
        "python, pytest, node server, fixed sleep",
        "conftest.py sleeps 3 s for the API server, which is ready within some 0.2 s; ask its port until it answers",
        r"(?i)conftest|pytest|\bpython3?\b|time\.sleep|\bsleep(s|ing)?\b",
        {
            "api.js": """const http = require('http');
const port = Number(process.argv[2]);
// warm the template cache, as the real service does
let cache = {};
for (let i = 0; i < 60000; i++) cache['k' + i] = JSON.stringify({ id: i, name: 'item ' + i });
const server = http.createServer((req, res) => {
  const id = Number(req.url.split('/').pop());
  if (id >= 60000) { res.writeHead(404); return res.end(); }
  res.setHeader('content-type', 'application/json');
  res.end(cache['k' + id]);
});
server.listen(port, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
""",
            "conftest.py": 'import os, socket, subprocess, time\nimport pytest\n\nPORT = 18400\n\n\ndef up(port):\n    """Wait until the API is there."""\n    if not os.environ.get("FIX"):\n        time.sleep(3)  # the API needs some time to come up\n        return\n    end = time.monotonic() + 10\n    while time.monotonic() < end:\n        try:\n            socket.create_connection(("127.0.0.1", port), 1).close()\n            return\n        except OSError:\n            time.sleep(0.02)\n    raise RuntimeError("no API")\n\n\n@pytest.fixture(scope="session")\ndef api():\n    server = subprocess.Popen(["node", "api.js", str(PORT)])\n    try:\n        up(PORT)\n        yield f"http://127.0.0.1:{PORT}"\n    finally:\n        server.terminate()\n        server.wait()\n',
            "run.sh": """set -e
export PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 -m pytest -q -p no:cacheprovider .
""",
            "test_items.py": """import hashlib, json, urllib.error, urllib.request
import pytest


@pytest.mark.parametrize("n", range(40))
def test_item(api, n):
    with urllib.request.urlopen(f"{api}/items/{n}", timeout=5) as r:
        item = json.load(r)
    assert item["id"] == n


def test_missing(api):
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{api}/items/999999", timeout=5)


@pytest.mark.parametrize("n", range(4))
def test_signature(n):
    key = hashlib.pbkdf2_hmac("sha256", b"key%d" % n, b"salt", 250000)
    assert len(key) == 32
""",
        },
    ),
    Plant(
        "w12a-ninja-pool",
        "serial",
        "ninja, gcc, pool",
        "build.ninja's pool has depth 1, so that six independent compilers run one after another and a CPU idles; depth 2",
        r"(?i)\bninja\b|build\.ninja|\bpool\b|\bdepth\b|\bgcc\b|\bcc1\b|one (at a time|after (another|the other))",
        {
            "build.ninja.in": """# The runners had 2 GB once: one compiler at a time.
pool compile
  depth = @DEPTH@

rule cc
  command = gcc -O2 -c $in -o $out
  description = CC $out
  pool = compile

rule link
  command = gcc $in -o $out
  description = LINK $out

build out/main.o: cc main.c
build out/unit1.o: cc unit1.c
build out/unit2.o: cc unit2.c
build out/unit3.o: cc unit3.c
build out/unit4.o: cc unit4.c
build out/unit5.o: cc unit5.c
build out/unit6.o: cc unit6.c
build out/app: link out/main.o out/unit1.o out/unit2.o out/unit3.o out/unit4.o out/unit5.o out/unit6.o
default out/app
""",
            "gen.awk": r"""BEGIN {
  for (u = 1; u <= 6; u++) {
    f = "unit" u ".c"
    printf "#include <stdint.h>\n" > f
    for (i = 0; i < n; i++) {
      printf "uint32_t u%d_f%d(uint32_t *p, uint32_t a, uint32_t b) {\n", u, i > f
      printf "  for (uint32_t i = 0; i < a; i++) { p[i & 63] ^= (a << %d) + (b >> %d); a += p[(i + %d) & 63]; b = b * %du + a; if (b %% %d == 3) b ^= p[a & 63]; }\n", i % 7 + 1, i % 5 + 1, i, 2654435 + i, i % 11 + 5 > f
      printf "  switch (a %% 6) { case 0: return a + b; case 1: return a - b; case 2: return a * b; case 3: return a ^ b; case 4: return a | b; default: return p[b & 63]; }\n}\n" > f
    }
    close(f)
  }
  f = "main.c"
  printf "#include <stdint.h>\n" > f
  for (u = 1; u <= 6; u++) printf "uint32_t u%d_f0(uint32_t *, uint32_t, uint32_t);\n", u > f
  printf "int main(void) { uint32_t p[64] = {1}; uint32_t s = 0;\n" > f
  for (u = 1; u <= 6; u++) printf "s += u%d_f0(p, 9, %d);\n", u, u > f
  printf "return s == 12345; }\n" > f
}
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
DEPTH=1; [ -z "$FIX" ] || DEPTH=2
sed "s/@DEPTH@/$DEPTH/" build.ninja.in > build.ninja
rm -rf out .ninja_log .ninja_deps; mkdir out
ninja
./out/app
""",
            "setup.sh": """awk -v n=100 -f gen.awk && touch .prepared
""",
        },
        prepare="""awk -v n=100 -f gen.awk && touch .prepared
""",
        quiet=(4.6, 2.4),
    ),
    Plant(
        "w12a-cargo-lock",
        "lock",
        "rust, cargo, file lock, background child",
        "cargo doc and cargo test run side by side in one target directory: one waits for the other's lock on it; a target directory of its own for the doc job",
        r"(?i)\bcargo\b|\block(s|ed)?\b|\.cargo-\w*lock",
        {
            "Cargo.toml": """[package]
name = "engine"
version = "0.1.0"
edition = "2021"

[lib]
path = "lib.rs"

[profile.dev]
codegen-units = 1
incremental = false
debug = false
opt-level = 1

[profile.test]
codegen-units = 1
incremental = false
debug = false
opt-level = 1
""",
            "gen.awk": r"""BEGIN {
  for (i = 0; i < n; i++) {
    printf "#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]\npub struct S%d { pub a: u32, pub b: String, pub c: Vec<u8>, pub d: Option<Box<S%d>> }\n", i, int(i / 10) * 10
    printf "impl S%d { pub fn mix(&self, k: u32) -> u32 { self.c.iter().filter(|x| **x > %d).map(|x| *x as u32 * k).sum::<u32>() + self.a } }\n", i, i % 200
  }
  print "#[cfg(test)] mod tests { use super::*;"
  for (i = 0; i < n; i += 20) printf "#[test] fn t%d() { assert_eq!(S%d::default().mix(3), 0); }\n", i, i
  print "}"
}
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
PATH=$PATH:/root/.cargo/bin
export CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
rm -rf target target-doc
# Documentation and tests are separate jobs that start together.
DOC=target; [ -z "$FIX" ] || DOC=target-doc
CARGO_TARGET_DIR=$DOC cargo doc --no-deps & D=$!
cargo test --lib
wait $D
""",
            "setup.sh": """awk -v n=640 -f gen.awk > lib.rs && touch .prepared
""",
        },
        prepare="""awk -v n=640 -f gen.awk > lib.rs && touch .prepared
""",
        quiet=(5.0, 3.1),
    ),
    Plant(
        "w12a-prove-tail",
        "tail",
        "perl, prove -j2, pool",
        "99-e2e.t, by far the longest test, starts last and runs alone at the end; start it first",
        r"(?i)99-e2e|\be2e\b|\bprove\b|\blongest\b|starts? last",
        {
            "01-parse.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "02-money.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "03-tax.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "04-users.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "05-mail.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "06-search.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "07-report.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "08-import.t": """use strict; use warnings; use lib '.';
use Test::More tests => 2;
use Work;
like(Work::chain(300000), qr/^[0-9a-f]{64}$/, 'chain');
isnt(Work::chain(10), Work::chain(11), 'differs');
""",
            "99-e2e.t": """use strict; use warnings; use lib '.';
use Test::More tests => 4;
use Work;
like(Work::chain(600000), qr/^[0-9a-f]{64}$/, "order $_") for 1 .. 4;
""",
            "Work.pm": """package Work;
use strict; use warnings;
use Digest::SHA qw(sha256_hex);
use Time::HiRes ();
# Hash chains, as the ledger does.
sub chain { my ($n) = @_; my $h = 'genesis'; $h = sha256_hex($h . $_) for 1 .. $n; return $h }
1;
""",
            "run.sh": """set -e
ORDER="0*.t 99-e2e.t"; [ -z "$FIX" ] || ORDER="99-e2e.t 0*.t"
prove -j2 $ORDER
""",
        },
        quiet=(4.0, 2.7),
    ),
    Plant(
        "w12a-rspec-retry",
        "retry",
        "ruby, rspec, back-off, refused connection, python server",
        "the client asks a port where nobody listens (18402) five times with back-off (3 s) before it takes the live endpoint; take the dead one out of STOCK_URLS",
        r"(?i)\brspec\b|client\.rb|stock_spec|\bruby|\bretr(y|ies|ied)\b|back-?off|18402|refused",
        {
            "client.rb": """require 'net/http'
require 'json'

# Talks to the stock service; fails over to the next endpoint when one does not answer.
class StockClient
  ATTEMPTS = 5

  def initialize(urls)
    @urls = urls.dup
  end

  def get(path)
    attempt = 0
    begin
      JSON.parse(Net::HTTP.get(URI(@urls.first + path)))
    rescue Errno::ECONNREFUSED
      attempt += 1
      if attempt < ATTEMPTS
        sleep(0.2 * 2**(attempt - 1))
        retry
      end
      raise if @urls.size == 1
      @urls.shift
      attempt = 0
      retry
    end
  end
end
""",
            "run.sh": """set -e
rm -f ready
/usr/bin/python3 stub.py 18403 & S=$!
trap 'kill $S 2>/dev/null; wait $S 2>/dev/null || true' EXIT
while [ ! -e ready ]; do sleep 0.02; done
# 18402 was the port of the old stock service.
export STOCK_URLS=http://127.0.0.1:18402,http://127.0.0.1:18403
[ -z "$FIX" ] || STOCK_URLS=http://127.0.0.1:18403
rspec --no-color stock_spec.rb
""",
            "stock_spec.rb": """require 'digest'
require_relative 'client'

RSpec.configure { |c| c.expect_with :minitest }

RSpec.describe StockClient do
  before(:all) { @client = StockClient.new(ENV.fetch('STOCK_URLS').split(',')) }

  20.times do |i|
    it "reads item #{i}" do
      assert_equal 7, @client.get("/items/#{i}")['stock']
    end
  end

  it 'has a stable digest' do
    d = 'seed'
    800_000.times { d = Digest::SHA256.hexdigest(d) }
    assert_equal 64, d.size
  end
end
""",
            "stub.py": """import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"path": self.path, "stock": 7}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
s = S(("127.0.0.1", int(sys.argv[1])), H)
open("ready", "w").close()
s.serve_forever()
""",
        },
    ),
    Plant(
        "w12a-pg-lock",
        "lock",
        "postgres, psql, database lock, node server, background child",
        "the export keeps its transaction open while curl uploads for 3 s; ALTER TABLE of the migration waits for its lock; commit before the upload",
        r"(?i)migrate|ALTER TABLE|\block(s|ed)?\b|\bpsql\b|export|idle in transaction|\bcurl\b|artifacts|\bupload|18404|\bnode\b",
        {
            "artifacts.js": r"""// The artifact store: it scans what it gets before it answers.
const http = require('http');
http.createServer((req, res) => {
  req.resume();
  req.on('end', () => setTimeout(() => res.end('stored\n'), 3000));
}).listen(Number(process.argv[2]), '127.0.0.1', () => require('fs').writeFileSync('ready', ''));
""",
            "check.sql": """SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM (SELECT o.customer, sum(sqrt(o.total * g)) s FROM orders o, generate_series(1, 40) g GROUP BY 1) x WHERE s > 0;
SELECT count(*) FROM orders WHERE region = 'eu';
""",
            "export.sql": r"""BEGIN;
\copy orders TO 'orders.csv' CSV
\! touch exported
\! curl -sS -f -T orders.csv http://127.0.0.1:18404/orders.csv
COMMIT;
""",
            "export_fixed.sql": r"""BEGIN;
\copy orders TO 'orders.csv' CSV
COMMIT;
\! touch exported
\! curl -sS -f -T orders.csv http://127.0.0.1:18404/orders.csv
""",
            "migrate.sql": """ALTER TABLE orders ADD COLUMN region text NOT NULL DEFAULT 'eu';
CREATE INDEX ON orders(region, customer);
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
B=/usr/lib/postgresql/15/bin
rm -f ready exported orders.csv
D=$(mktemp -d /tmp/w12a-pg.XXXXXX)
tar -C $D -xf pg.tar
chown -R postgres $D
pg() { (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups $B/pg_ctl -D $D/data -s "$@" > /dev/null); }
node artifacts.js 18404 & A=$!
trap 'pg stop -m immediate 2>/dev/null || true; kill $A 2>/dev/null; wait $A 2>/dev/null || true; rm -rf $D' EXIT
pg start -w -l $D/log -o "-k $D -p 18405 -c listen_addresses= -c fsync=off -c autovacuum=off"
export PGHOST=$D PGPORT=18405 PGUSER=postgres PGDATABASE=postgres
Q="psql -q -v ON_ERROR_STOP=1"
$Q -f seed.sql
while [ ! -e ready ]; do sleep 0.02; done
SCRIPT=export.sql; [ -z "$FIX" ] || SCRIPT=export_fixed.sql
# The nightly export goes on beside the migration and its checks.
$Q -f $SCRIPT & E=$!
while [ ! -e exported ]; do sleep 0.02; done
$Q -f migrate.sql
$Q -f check.sql
wait $E
pg stop -m fast -w
""",
            "seed.sql": """CREATE TABLE orders(id int primary key, customer int, total numeric);
INSERT INTO orders SELECT i, i % 97, i * 1.25 FROM generate_series(1, 60000) i;
""",
            "setup.sh": """D=$(mktemp -d /tmp/w12a-pgi.XXXXXX) && chown postgres "$D" && (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/initdb -D "$D/data" -A trust -U postgres --no-sync --wal-segsize=1 -E UTF8 --locale=C > /dev/null) && tar -C "$D" -cf pg.tar data && rm -rf "$D" && touch .prepared
""",
        },
        prepare="""D=$(mktemp -d /tmp/w12a-pgi.XXXXXX) && chown postgres "$D" && (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/initdb -D "$D/data" -A trust -U postgres --no-sync --wal-segsize=1 -E UTF8 --locale=C > /dev/null) && tar -C "$D" -cf pg.tar data && rm -rf "$D" && touch .prepared
""",
    ),
    Plant(
        "w12a-ansible-forks",
        "serial",
        "ansible, python, curl, node server",
        "ansible runs with forks = 1: six nodes are drained one after another, each waits 0.7 s for the load balancer's answer; forks = 6",
        r"(?i)\bansible|\bforks?\b|\bdrain|\bcurl\b|18406|one (at a time|after (another|the other))",
        {
            "drain.js": r"""// The load balancer: a node is out of rotation 0.7 s after it was asked for.
const http = require('http');
http.createServer((req, res) => setTimeout(() => res.end('drained ' + req.url + '\n'), 700))
  .listen(Number(process.argv[2]), '127.0.0.1', () => require('fs').writeFileSync('ready', ''));
""",
            "inventory": """[web]
web1
web2
web3
web4
web5
web6

[web:vars]
ansible_connection=local
""",
            "run.sh": """set -e
rm -f ready
node drain.js 18406 & S=$!
trap 'kill $S 2>/dev/null; wait $S 2>/dev/null || true' EXIT
while [ ! -e ready ]; do sleep 0.02; done
FORKS=1; [ -z "$FIX" ] || FORKS=6
mkdir -p home
export ANSIBLE_HOME=$PWD/home ANSIBLE_LOCAL_TEMP=$PWD/home/tmp ANSIBLE_NOCOLOR=1 ANSIBLE_FORKS=$FORKS PYTHONDONTWRITEBYTECODE=1
ansible -i inventory web -m raw -a 'curl -sS -f http://127.0.0.1:18406/drain/{{ inventory_hostname }}'
""",
        },
    ),
    Plant(
        "w12a-node-timer",
        "timer",
        "node --test, event loop, timer, python server",
        "within.js never clears the time-out of its race: the test process stays for 4 s after its last test; clearTimeout",
        r"(?i)\bnode\b|smoke\.test|within\.js|\btimers?\b|setTimeout|clearTimeout",
        {
            "run.sh": """set -e
rm -f ready
/usr/bin/python3 stub.py 18407 & S=$!
trap 'kill $S 2>/dev/null; wait $S 2>/dev/null || true' EXIT
while [ ! -e ready ]; do sleep 0.02; done
node --test smoke.test.js > report.tap
tail -8 report.tap
""",
            "smoke.test.js": """const test = require('node:test');
const assert = require('node:assert');
const crypto = require('node:crypto');
const http = require('node:http');
const within = require('./within');

const get = path => new Promise((resolve, reject) => {
  http.get({ host: '127.0.0.1', port: 18407, path }, res => {
    let body = '';
    res.on('data', d => { body += d; }).on('end', () => resolve(body));
  }).on('error', reject);
});

for (let i = 0; i < 30; i++) {
  test(`page ${i}`, async () => {
    assert.strictEqual(await within(get(`/page/${i}`), 4000), 'ok');
    crypto.pbkdf2Sync('pw' + i, 'salt', 60000, 32, 'sha256');
  });
}
""",
            "stub.py": """import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
s = S(("127.0.0.1", int(sys.argv[1])), H)
open("ready", "w").close()
s.serve_forever()
""",
            "within.js": """// Rejects when the promise takes too long.
module.exports = function within(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('too late')), ms); });
  const race = Promise.race([promise, late]);
  return process.env.FIX ? race.finally(() => clearTimeout(timer)) : race;
};
""",
        },
    ),
    Plant(
        "w12a-java-poll",
        "poll",
        "java, shell child, poll",
        "Release.java looks each 3 s if its child left its file; wait for the process (waitFor) or look often",
        r"(?i)\bjava\b|Release|\bpoll|Thread\.sleep|pack\.done|verify\.done",
        {
            "Release.java": """import java.nio.file.*;

/** Packs the release and signs it off: starts each step and waits for the file that it leaves. */
public class Release {
    static void step(String script, String product) throws Exception {
        Path done = Path.of(product);
        Files.deleteIfExists(done);
        Process p = new ProcessBuilder("sh", script).inheritIO().start();
        if (System.getenv("FIX") != null && !System.getenv("FIX").isEmpty()) {
            p.waitFor();
            if (!Files.exists(done)) throw new IllegalStateException(product);
            return;
        }
        long end = System.nanoTime() + 60_000_000_000L;
        while (!Files.exists(done)) {
            if (System.nanoTime() > end) throw new IllegalStateException(product);
            Thread.sleep(3000);
        }
    }

    public static void main(String[] args) throws Exception {
        step("pack.sh", "pack.done");
        step("verify.sh", "verify.done");
        System.out.println("released");
    }
}
""",
            "gen.awk": r"""BEGIN {
  srand(7)
  for (i = 0; i < 80; i++) {
    printf "unsigned f%d(unsigned *p, unsigned a, unsigned b) { for (unsigned i = 0; i < a; i++) { p[i & 63] ^= (a << %d) + b; a += p[(i + %d) & 63]; b = b * %du + a; if (b %% %d == 3) b ^= p[a & 63]; } switch (a %% 5) { case 0: return a + b; case 1: return a - b; case 2: return a * b; default: return p[b & 63]; } }\n", i, i % 7 + 1, i, 2654435 + i, i % 11 + 5 > "table.c"
  }
  for (i = 0; i < 150000; i++) printf "%d %x %s\n", i, rand() * 1e9, "record of the day " (i % 977) > "payload"
}
""",
            "pack.sh": """set -e
xz -3 -T1 -k -f -c payload > payload.xz
touch pack.done
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -cp . Release
""",
            "setup.sh": """awk -f gen.awk && javac Release.java && touch .prepared
""",
            "verify.sh": """set -e
xz -dc payload.xz | cmp - payload
gcc -O2 -c table.c -o table.o
sha256sum payload.xz > payload.sum
touch verify.done
""",
        },
        prepare="""awk -f gen.awk && javac Release.java && touch .prepared
""",
        quiet=(6.1, 2.3),
    ),
    Plant(
        "w12a-curl-metrics",
        "timeout",
        "shell, curl, sqlite, perl server that hangs",
        "two posts to a metrics collector that never answers run into curl's --max-time of 2 s each; switch the metrics off or send them in the background",
        r"(?i)\bcurl\b|metric|collector|18408|\btime-?(d )?outs?\b|max-time",
        {
            "collector.pl": """# The metrics collector as it hangs since last week: the kernel takes the connections, nobody answers them.
use strict; use warnings;
use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => shift, Listen => 16, ReuseAddr => 1) or die "no socket: $!";
open my $f, '>', 'ready' or die; close $f;
sleep;
""",
            "gen.awk": r"""BEGIN {
  srand(3)
  print "BEGIN;"
  print "CREATE TABLE sale(id integer primary key, shop int, item int, price int);"
  for (i = 1; i <= 20000; i++) printf "INSERT INTO sale VALUES (%d, %d, %d, %d);\n", i, i % 31, int(rand() * 400), int(rand() * 9000)
  print "COMMIT;"
}
""",
            "metric.sh": """# Tells the collector how a stage went; never fails the job.
[ -n "$METRICS_URL" ] || exit 0
curl -s -S -o /dev/null --max-time 2 -d "stage=$1" "$METRICS_URL" || echo "metrics: $1 not sent"
""",
            "report.sql": """SELECT count(*) FROM (SELECT shop, item, sum(price) OVER (PARTITION BY shop ORDER BY price, id) r FROM sale) WHERE r % 7 = 0;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000) SELECT sum(i % 7) FROM n;
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
rm -f ready sales.db
perl collector.pl 18408 & S=$!
trap 'kill $S 2>/dev/null; wait $S 2>/dev/null || true' EXIT
while [ ! -e ready ]; do sleep 0.02; done
METRICS_URL=http://127.0.0.1:18408/metrics; [ -z "$FIX" ] || METRICS_URL=
export METRICS_URL
sqlite3 -bail sales.db < load.sql
sh metric.sh load
sqlite3 -bail sales.db < report.sql > report.txt
sh metric.sh report
cat report.txt
""",
            "setup.sh": """awk -f gen.awk > load.sql && touch .prepared
""",
        },
        prepare="""awk -f gen.awk > load.sql && touch .prepared
""",
    ),
    Plant(
        "w12a-make-dots",
        "none",
        "make -j2, gcc, background child, watchdog",
        "nothing: make -j2 keeps both CPUs busy; the helper with its dots and timeout's wait are beside the work",
        NONE,
        {
            "Makefile": """OBJS = unit1.o unit2.o unit3.o unit4.o unit5.o unit6.o unit7.o unit8.o main.o
app: $(OBJS)
	gcc -o $@ $(OBJS)
%.o: %.c
	gcc -O2 -c -o $@ $<
clean:
	rm -f app *.o
""",
            "dots.pl": """# The CI ends a job that prints nothing for a while: a dot each second.
$| = 1;
while (1) { sleep 1; print "." }
""",
            "gen.awk": r"""BEGIN {
  for (u = 1; u <= 8; u++) {
    f = "unit" u ".c"
    printf "#include <stdint.h>\n" > f
    for (i = 0; i < n; i++) {
      printf "uint32_t u%d_f%d(uint32_t *p, uint32_t a, uint32_t b) {\n", u, i > f
      printf "  for (uint32_t i = 0; i < a; i++) { p[i & 63] ^= (a << %d) + (b >> %d); a += p[(i + %d) & 63]; b = b * %du + a; if (b %% %d == 3) b ^= p[a & 63]; }\n", i % 7 + 1, i % 5 + 1, i, 2654435 + i, i % 11 + 5 > f
      printf "  switch (a %% 6) { case 0: return a + b; case 1: return a - b; case 2: return a * b; case 3: return a ^ b; case 4: return a | b; default: return p[b & 63]; }\n}\n" > f
    }
    close(f)
  }
  f = "main.c"
  printf "#include <stdint.h>\n" > f
  for (u = 1; u <= 8; u++) printf "uint32_t u%d_f0(uint32_t *, uint32_t, uint32_t);\n", u > f
  printf "int main(void) { uint32_t p[64] = {1}; uint32_t s = 0;\n" > f
  for (u = 1; u <= 8; u++) printf "s += u%d_f0(p, 9, %d);\n", u, u > f
  printf "return s == 12345; }\n" > f
}
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
make -s clean
perl dots.pl & DOTS=$!
timeout 120 make -j2
kill $DOTS
wait $DOTS 2>/dev/null || true
./app
""",
            "setup.sh": """awk -v n=100 -f gen.awk && touch .prepared
""",
        },
        prepare="""awk -v n=100 -f gen.awk && touch .prepared
""",
        spare=0.6,
    ),
    Plant(
        "w12a-pgbench-rate",
        "none",
        "postgres, pgbench, rate by design",
        "nothing: pgbench measures latency at 50 queries a second for 4 s, which is its purpose",
        NONE,
        {
            "pick.sql": r"""\set id random(1, 100000)
SELECT abalance FROM pgbench_accounts WHERE aid = :id;
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
B=/usr/lib/postgresql/15/bin
D=$(mktemp -d /tmp/w12a-pg.XXXXXX)
tar -C $D -xf pg.tar
chown -R postgres $D
pg() { (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups $B/pg_ctl -D $D/data -s "$@" > /dev/null); }
trap 'pg stop -m immediate 2>/dev/null || true; rm -rf $D' EXIT
pg start -w -l $D/log -o "-k $D -p 18409 -c listen_addresses= -c fsync=off -c autovacuum=off"
export PGHOST=$D PGPORT=18409 PGUSER=postgres PGDATABASE=postgres
$B/pgbench -i -q -s 1 2>/dev/null
# The latency at the load of a working day: 50 queries a second for four seconds; 99 of 100 within 100 ms.
$B/pgbench -n -f pick.sql -c 4 -j 1 -R 50 -T 4 -L 100 | tee report.txt
grep -q 'number of failed transactions: 0' report.txt
pg stop -m fast -w
""",
            "setup.sh": """D=$(mktemp -d /tmp/w12a-pgi.XXXXXX) && chown postgres "$D" && (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/initdb -D "$D/data" -A trust -U postgres --no-sync --wal-segsize=1 -E UTF8 --locale=C > /dev/null) && tar -C "$D" -cf pg.tar data && rm -rf "$D" && touch .prepared
""",
        },
        prepare="""D=$(mktemp -d /tmp/w12a-pgi.XXXXXX) && chown postgres "$D" && (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/initdb -D "$D/data" -A trust -U postgres --no-sync --wal-segsize=1 -E UTF8 --locale=C > /dev/null) && tar -C "$D" -cf pg.tar data && rm -rf "$D" && touch .prepared
""",
        spare=0.6,
    ),
    Plant(
        "w12a-go-ttl",
        "none",
        "go test, timers, parallel tests",
        "nothing: the tests measure that a lease ends on time on the real clock, and run in parallel already",
        NONE,
        {
            "go.mod": """module example.com/lease

go 1.19
""",
            "lease.go": """package lease

import (
	"sync"
	"time"
)

// Table holds leases that the kernel's clock ends.
type Table struct {
	mu   sync.Mutex
	ends map[string]chan time.Time
}

func New() *Table { return &Table{ends: map[string]chan time.Time{}} }

// Take leases key for ttl; the channel tells when it ended.
func (t *Table) Take(key string, ttl time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	t.mu.Lock()
	t.ends[key] = c
	t.mu.Unlock()
	time.AfterFunc(ttl, func() {
		t.mu.Lock()
		delete(t.ends, key)
		t.mu.Unlock()
		c <- time.Now()
	})
	return c
}

// Held tells if key is leased.
func (t *Table) Held(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.ends[key]
	return ok
}
""",
            "lease_test.go": """package lease

import (
	"crypto/sha256"
	"testing"
	"time"
)

// The accuracy of a lease's end on the real clock is what is tested: within half a second after seconds, as the contract says.
func accuracy(t *testing.T, ttl time.Duration) {
	t.Parallel()
	table := New()
	start := time.Now()
	c := table.Take("k", ttl)
	time.Sleep(ttl / 2)
	if !table.Held("k") {
		t.Fatal("ended early")
	}
	off := (<-c).Sub(start) - ttl
	if off < 0 || off > 500*time.Millisecond {
		t.Fatalf("off by %v", off)
	}
}

func TestAccuracy1s(t *testing.T) { accuracy(t, time.Second) }
func TestAccuracy2s(t *testing.T) { accuracy(t, 2*time.Second) }
func TestAccuracy3s(t *testing.T) { accuracy(t, 3*time.Second) }

func TestDigest(t *testing.T) {
	t.Parallel()
	d := sha256.Sum256(nil)
	for i := 0; i < 3000000; i++ {
		d = sha256.Sum256(d[:])
	}
}
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
export GOCACHE=$PWD/gocache GOFLAGS=-mod=mod GOPROXY=off
go test -v -count=1 -timeout 60s -parallel 4 .
""",
            "setup.sh": """mkdir -p gocache && GOCACHE=$PWD/gocache GOFLAGS=-mod=mod GOPROXY=off go test -count=1 -run TestDigest . > /dev/null && touch .prepared
""",
        },
        prepare="""mkdir -p gocache && GOCACHE=$PWD/gocache GOFLAGS=-mod=mod GOPROXY=off go test -count=1 -run TestDigest . > /dev/null && touch .prepared
""",
        spare=0.6,
    ),
    Plant(
        "w12a-git-bisect",
        "none",
        "git bisect run, gcc, watchdog, serial by nature",
        "nothing: each step of a bisection depends on the one before, and its compiler is on a CPU all the time",
        NONE,
        {
            "gen.awk": r"""BEGIN {
  printf "#include <stdint.h>\n"
  for (i = 0; i < n; i++) {
    printf "uint32_t f%d(uint32_t *p, uint32_t a, uint32_t b) {\n", i
    printf "  for (uint32_t i = 0; i < a; i++) { p[i & 63] ^= (a << %d) + (b >> %d); a += p[(i + %d) & 63]; b = b * %du + a; if (b %% %d == 3) b ^= p[a & 63]; }\n", i % 7 + 1, i % 5 + 1, i, 2654435 + i, i % 11 + 5
    printf "  switch (a %% 6) { case 0: return a + b; case 1: return a - b; case 2: return a * b; case 3: return a ^ b; case 4: return a | b; default: return p[b & 63]; }\n}\n"
  }
  printf "int main(int argc, char **argv) { uint32_t p[64] = {1}; f0(p, argc, 2); return %d > 41; }\n", c
}
""",
            "run.sh": """set -e
[ -e .prepared ] || sh setup.sh
export GIT_CONFIG_GLOBAL=/dev/null
cd repo
git bisect reset -q 2>/dev/null || true
git checkout -q main
git bisect start main "$(git rev-list --max-parents=0 main)" > /dev/null
git bisect run sh ../try.sh > ../bisect.txt 2>&1
grep -q 'is the first bad commit' ../bisect.txt
git show -s --format='first bad: %s' refs/bisect/bad
git bisect reset > /dev/null 2>&1
""",
            "setup.sh": """set -e
rm -rf repo
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=ci GIT_AUTHOR_EMAIL=ci@example.com GIT_COMMITTER_NAME=ci GIT_COMMITTER_EMAIL=ci@example.com
git init -q -b main repo
for c in $(seq 1 60); do
  awk -v n=90 -v c=$c -f gen.awk > repo/app.c
  git -C repo add app.c
  git -C repo commit -q -m "change $c"
done
touch .prepared
""",
            "try.sh": """gcc -O2 -o ../app app.c || exit 125
timeout 60 ../app
""",
        },
        prepare="""set -e
rm -rf repo
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=ci GIT_AUTHOR_EMAIL=ci@example.com GIT_COMMITTER_NAME=ci GIT_COMMITTER_EMAIL=ci@example.com
git init -q -b main repo
for c in $(seq 1 60); do
  awk -v n=90 -v c=$c -f gen.awk > repo/app.c
  git -C repo add app.c
  git -C repo commit -q -m "change $c"
done
touch .prepared
""",
        spare=0.6,
    ),
]
