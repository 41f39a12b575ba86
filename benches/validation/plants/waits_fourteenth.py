"""CI jobs of an ordinary company with one planted fault in how they wait (or none)."""

from waits import Plant

# An HTTP stand-in for a service: argv = port, seconds that an answer takes, file that says it listens.
SERVICE = r"""import http.server, socketserver, sys, time
port, delay, ready = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
class H(http.server.BaseHTTPRequestHandler):
    def answer(self):
        n = int(self.headers.get("Content-Length") or 0)
        if n: self.rfile.read(n)
        time.sleep(delay)
        self.send_response(200); self.send_header("Content-Length", "3"); self.end_headers(); self.wfile.write(b"ok\n")
    do_GET = do_POST = do_PUT = answer
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    request_queue_size = 64
    daemon_threads = True
s = S(("127.0.0.1", port), H)
open(ready, "w").close()
s.serve_forever()
"""

# A generator of C modules whose compilation takes some CPU.
GEN_C = r"""import sys
n, funcs = int(sys.argv[1]), int(sys.argv[2])
for m in range(n):
    with open("src/mod%d.c" % m, "w") as f:
        f.write('#include "version.h"\n')
        for i in range(funcs):
            f.write("int m%d_f%d(int*a,int n){int s=%d;for(int i=0;i<n;i++){for(int j=0;j<n;j++){s+=a[i]*a[j]^(s>>3);if(s&%d)s-=a[j];"
                    "switch(s&7){case 1:s+=i;break;case 2:s^=j;break;case 3:s*=3;break;case 5:s-=n;}}}return s;}\n" % (m, i, i, i + 1))
        f.write('const char *m%d_version(void){return VERSION;}\n' % m)
with open("src/main.c", "w") as f:
    f.write('#include <stdio.h>\n#include "version.h"\n')
    for m in range(n): f.write("int m%d_f0(int*,int);\n" % m)
    f.write('int main(void){int a[8]={1,2,3,4,5,6,7,8};long t=0;')
    for m in range(n): f.write("t+=m%d_f0(a,8);" % m)
    f.write('printf("%s %ld\\n",VERSION,t);return 0;}\n')
"""

# A generator of shell scripts for shellcheck: argv = files, functions in each.
GEN_SH = r"""import sys
n, funcs = int(sys.argv[1]), int(sys.argv[2])
B = '''deploy_%d() {
  local src="$1" dst="$2"
  if [ -z "$src" ]; then
    echo "usage: deploy_%d src dst" >&2
    return 2
  fi
  for f in "$src"/*.conf; do
    [ -e "$f" ] || continue
    cp "$f" "$dst/$(basename "$f")" || return 1
  done
  case "$dst" in
    /srv/*) echo "installed %d" ;;
    *) echo "odd target $dst" ;;
  esac
}
deploy_%d "$1" "$2"
'''
for k in range(n):
    with open("scripts/deploy%d.sh" % k, "w") as f:
        f.write("#!/bin/bash\n" + "".join(B % (i, i, i, i) for i in range(funcs)))
"""

PLANTS = [
    # 1 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-migrate-lock",
        "lock",
        "python+sqlite3 CLI; background child; database lock held over a network call",
        "migrate.py opens BEGIN IMMEDIATE and, still inside the transaction, posts to the audit service, which takes 2.6 s; "
        "the seeding (sqlite3 app.db in seed.sh) polls for the write lock in its busy handler all that time and only then can go on "
        "to the reindexing. Commit before the call (FIX): seed and reindex overlap the audit.",
        r"(?i)migrate\.py|seed\.(sh|sql)|sqlite3?\b|app\.db|audit|18440",
        {
            "run.sh": """set -e
[ -e base.db ] || sh setup.sh
rm -f app.db app.db-* *.ready migrating; cp base.db app.db
/usr/bin/python3 service.py 18440 2.6 audit.ready & A=$!
/usr/bin/python3 service.py 18441 2.2 search.ready & B=$!
while [ ! -e audit.ready ] || [ ! -e search.ready ]; do sleep 0.03; done
/usr/bin/python3 migrate.py app.db & M=$!
while [ ! -e migrating ]; do sleep 0.03; done
sh seed.sh
wait $M
kill $A $B; wait $A $B 2>/dev/null || true
sqlite3 app.db 'select count(*) from customers; select count(*) from order_notes;'
""",
            "setup.sh": """rm -f base.db
sqlite3 base.db 'create table customers(id integer primary key, name text); create table orders(id integer primary key, customer int);'
""",
            "migrate.py": r"""import os, sqlite3, sys, urllib.request
db = sqlite3.connect(sys.argv[1], isolation_level=None)
def audit():
    # Every schema change is reported to the audit service.
    urllib.request.urlopen("http://127.0.0.1:18440/audit", data=b"0042_order_notes").read()
db.execute("BEGIN IMMEDIATE")
db.execute("CREATE TABLE order_notes(id INTEGER PRIMARY KEY, note TEXT)")
db.execute("INSERT INTO order_notes(note) VALUES ('migrated')")
if os.environ.get("FIX"):
    db.execute("COMMIT"); open("migrating", "w").close(); audit()
else:
    open("migrating", "w").close(); audit(); db.execute("COMMIT")
print("0042_order_notes applied")
""",
            "seed.sh": """set -e
sqlite3 -cmd '.timeout 30000' app.db < seed.sql
curl -sf http://127.0.0.1:18441/reindex
""",
            "seed.sql": "with recursive n(i) as (select 1 union all select i+1 from n where i<2000) insert into customers(name) select 'customer '||i from n;\n",
            "service.py": SERVICE,
        },
    ),
    # 2 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-lint-row",
        "serial",
        "shell; two CPU-bound linters one after the other on two CPUs",
        "lint.sh runs shellcheck over scripts/ and then the node licence/style linter over web/, which do not depend on each other, "
        "one after the other: run them at once (FIX).",
        r"(?i)lint\.sh|shellcheck|lint-web|node\b",
        {
            "run.sh": "set -e\n[ -e web/f0.js ] && [ -e scripts/deploy0.sh ] || sh setup.sh\nsh lint.sh\necho lint ok\n",
            "setup.sh": """mkdir -p scripts web
/usr/bin/python3 gen_sh.py 4 50
node -e 'const fs=require("fs");for(let k=0;k<40;k++){let s="";for(let i=0;i<500;i++)s+=`// item ${i}\\nfunction f${k}_${i}(a, b) { return a * ${i} + b; }\\n`;fs.writeFileSync(`web/f${k}.js`,s)}'
""",
            "gen_sh.py": GEN_SH,
            "lint.sh": """set -e
if [ -n "$FIX" ]; then
  shellcheck -s bash scripts/*.sh & A=$!
  node lint-web.js web & B=$!
  wait $A; wait $B
else
  shellcheck -s bash scripts/*.sh
  node lint-web.js web
fi
""",
            "lint-web.js": r"""// Reports near-duplicate lines: a trigram comparison of each function with its neighbours.
const fs = require("fs"), dir = process.argv[2];
const grams = s => { const g = new Set(); for (let i = 0; i + 3 <= s.length; i++) g.add(s.slice(i, i + 3)); return g; };
let compared = 0, same = 0;
for (const f of fs.readdirSync(dir)) {
  const lines = fs.readFileSync(dir + "/" + f, "utf8").split("\n").filter(l => l.startsWith("function"));
  const sets = lines.map(grams);
  for (let i = 0; i < sets.length; i++)
    for (let j = i + 1; j < Math.min(sets.length, i + 120); j++) {
      let n = 0; for (const g of sets[i]) if (sets[j].has(g)) n++;
      compared++; if (n === sets[i].size && lines[i] === lines[j]) same++;
    }
}
console.log("compared", compared, "same", same);
if (same) process.exit(1);
""",
        },
        quiet=(3.7, 2.1),
    ),
    # 3 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-npm-dead-registry",
        "retry",
        "npm; retries with back-off inside node's event loop against a registry that is not there",
        "npm install first asks the company registry (127.0.0.1:18459), where nobody listens in this runner; npm waits 1.2 s and 2.5 s "
        "between its tries, fails, and ci.sh installs the vendored tarball as it could have done at once (FIX).",
        r"(?i)npm install|\bnpm\b|registry|18459|fetch-retr|tinyfmt",
        {
            "run.sh": "set -e\n[ -e vendor/tinyfmt-1.0.0.tgz ] || sh setup.sh\nsh ci.sh\n",
            "setup.sh": """mkdir -p home vendor pkg/package
echo '{"name":"tinyfmt","version":"1.0.0","main":"index.js"}' > pkg/package/package.json
echo 'module.exports = n => n.toFixed(2);' > pkg/package/index.js
tar -C pkg -czf vendor/tinyfmt-1.0.0.tgz package
""",
            "package.json": '{"name":"shop","version":"1.0.0","private":true,"scripts":{"test":"node test.js"}}\n',
            ".npmrc": "registry=http://127.0.0.1:18459/\nfetch-retries=2\nfetch-retry-mintimeout=1200\nfetch-retry-maxtimeout=2500\naudit=false\nfund=false\nupdate-notifier=false\nprogress=false\n",
            "test.js": 'const f = require("tinyfmt"); require("assert").equal(f(1), "1.00"); console.log("ok");\n',
            "ci.sh": """set -e
export HOME="$PWD/home"; rm -rf node_modules home/.npm package-lock.json
if [ -z "$FIX" ]; then
  npm install --no-save --loglevel=error tinyfmt@1.0.0 2>npm.log || npm install --no-save --offline ./vendor/tinyfmt-1.0.0.tgz
else
  npm install --no-save --offline ./vendor/tinyfmt-1.0.0.tgz
fi
node test.js
""",
        },
    ),
    # 4 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-rollout-poll",
        "poll",
        "shell+curl; deploy script that polls two rollouts with a long period",
        "deploy.sh asks for the rollout's status every 3 s (sleep $POLL_SECONDS) while each of the two rollouts is ready after 1.1 s: "
        "1.9 s are slept away twice. Poll every 0.1 s (FIX).",
        r"(?i)deploy\.sh|\bsleep\b|poll",
        {
            "run.sh": """set -e
rm -f *.ready
/usr/bin/python3 controller.py & C=$!
while [ ! -e controller.ready ]; do sleep 0.03; done
sh deploy.sh web && sh deploy.sh worker
kill $C; wait $C 2>/dev/null || true
""",
            "deploy.sh": """set -e
POLL_SECONDS=3; [ -z "$FIX" ] || POLL_SECONDS=0.1
app=$1 api=http://127.0.0.1:18443
curl -sf "$api/rollout/$app"
until curl -sf "$api/status/$app" | grep -q available; do
  sleep "$POLL_SECONDS"
done
echo "$app deployed"
""",
            "controller.py": r"""import http.server, time
started = {}
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        _, verb, app = self.path.split("/")
        if verb == "rollout":
            started[app] = time.monotonic(); b = b"progressing\n"
        else:
            b = b"available\n" if time.monotonic() - started[app] > 1.1 else b"progressing\n"
        self.send_response(200); self.send_header("Content-Length", str(len(b))); self.end_headers(); self.wfile.write(b)
    def log_message(self, *a): pass
http.server.HTTPServer.allow_reuse_address = True
s = http.server.HTTPServer(("127.0.0.1", 18443), H)
open("controller.ready", "w").close()
s.serve_forever()
""",
        },
    ),
    # 5 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-e2e-fixed-wait",
        "sleep",
        "node --test; timers of an event loop spread over many small tests",
        "each of the six end-to-end tests in e2e/checkout.test.mjs pauses a fixed 700 ms (page.waitForTimeout) after the click, although "
        "the order is visible after some 30 ms: wait for the order instead (FIX).",
        r"(?i)checkout|e2e|waitForTimeout|page\.mjs|node --test|(timer|timeout|sleep).{0,60}node|node.{0,60}(timer|timeout|sleep|0\.7|700)",
        {
            "run.sh": """set -e
rm -f app.ready
node app.mjs & S=$!
while [ ! -e app.ready ]; do sleep 0.03; done
node --test e2e/checkout.test.mjs > e2e.log || { cat e2e.log; kill $S; exit 1; }
tail -n 8 e2e.log
kill $S; wait $S 2>/dev/null || true
""",
            "app.mjs": r"""import http from "node:http"; import fs from "node:fs";
const orders = new Map();
http.createServer((q, r) => {
  const id = q.url.split("/")[2];
  if (q.method === "POST") { setTimeout(() => orders.set(id, "placed"), 30); r.statusCode = 202; r.end(); }
  else { r.statusCode = orders.has(id) ? 200 : 404; r.end(orders.get(id) ?? ""); }
}).listen(18444, "127.0.0.1", () => fs.writeFileSync("app.ready", ""));
""",
            "e2e/page.mjs": r"""const base = "http://127.0.0.1:18444/orders/";
export const page = {
  click: id => fetch(base + id, { method: "POST" }),
  waitForTimeout: ms => new Promise(ok => setTimeout(ok, ms)),
  status: async id => (await fetch(base + id)).text(),
  async waitForOrder(id) {
    for (let i = 0; i < 500; i++) { if (await this.status(id) === "placed") return; await new Promise(ok => setTimeout(ok, 10)); }
    throw new Error("no order " + id);
  },
};
""",
            "e2e/checkout.test.mjs": r"""import test from "node:test"; import assert from "node:assert"; import { page } from "./page.mjs";
for (const who of ["guest", "member", "voucher", "gift", "express", "pickup"])
  test("checkout as " + who, async () => {
    await page.click(who);
    if (process.env.FIX) await page.waitForOrder(who);
    else await page.waitForTimeout(700);
    assert.equal(await page.status(who), "placed");
  });
""",
        },
    ),
    # 6 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-upload-serial",
        "serial",
        "node client, threaded python store; network round trips one after the other",
        "upload.mjs puts twelve artifacts one after the other into a store that acknowledges each after 0.35 s and serves many at once: "
        "upload them together (FIX).",
        r"(?i)upload|artifact|18445|store\b|service\.py|\bPUT\b",
        {
            "run.sh": """set -e
[ -e artifacts/a11.bin ] || sh setup.sh
rm -f store.ready
/usr/bin/python3 service.py 18445 0.35 store.ready & S=$!
while [ ! -e store.ready ]; do sleep 0.03; done
node upload.mjs artifacts
kill $S; wait $S 2>/dev/null || true
""",
            "setup.sh": "mkdir -p artifacts\nfor i in 00 01 02 03 04 05 06 07 08 09 10 11; do head -c 60000 /dev/zero > artifacts/a$i.bin; done\n",
            "upload.mjs": r"""import fs from "node:fs";
const dir = process.argv[2];
async function put(name) {
  const r = await fetch("http://127.0.0.1:18445/" + name, { method: "PUT", body: fs.readFileSync(dir + "/" + name) });
  if (!r.ok) throw new Error(name);
  await r.text();
}
const names = fs.readdirSync(dir).sort();
if (process.env.FIX) await Promise.all(names.map(put));
else for (const name of names) await put(name);
console.log("uploaded", names.length);
""",
            "service.py": SERVICE,
        },
    ),
    # 7 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-stamp-rebuild",
        "twice",
        "make -j2, gcc; a stamp that makes the second make compile everything again",
        "stamp.sh writes src/version.h anew before `make package`, with the same content; each object depends on it, so all eight modules "
        "are compiled a second time. Write the stamp only if it changed (FIX).",
        r"(?i)stamp|version\.h|twice|second time|2 times|again|recompil|rebuil|repeat|same (command|work|input|output)",
        {
            "run.sh": """set -e
[ -e src/mod0.c ] || sh setup.sh
rm -f src/*.o src/version.h app app.tar
sh stamp.sh; make -s -j2 app
./app
sh stamp.sh; make -s -j2 package
ls -l app.tar | cut -c1-10
""",
            "setup.sh": "mkdir -p src\n/usr/bin/python3 gen_c.py 8 60\n",
            "gen_c.py": GEN_C,
            "stamp.sh": """echo '#define VERSION "1.4.2"' > version.tmp
if [ -n "$FIX" ] && cmp -s version.tmp src/version.h; then rm version.tmp; else mv version.tmp src/version.h; fi
""",
            "Makefile": "OBJS := $(patsubst %.c,%.o,$(wildcard src/*.c))\n\napp: $(OBJS)\n\tgcc -o $@ $(OBJS)\n\nsrc/%.o: src/%.c src/version.h\n\tgcc -O2 -c -o $@ $<\n\npackage: app\n\ttar -cf app.tar app\n",
        },
        quiet=(4.3, 2.2),
    ),
    # 8 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-flaky-retry",
        "retry",
        "bats+curl against php -S; retry wrapper with a pause of its own",
        "the first request after the start of the PHP server finds no route cache and is answered 503, so the bats run fails each time and retry.sh "
        "pauses 4 s before it runs again. Warm the cache before the tests (FIX) and the first attempt passes.",
        r"(?i)retry|\bsleep\b|bats\b|flak|attempt|503|warm|routes\.cache",
        {
            "run.sh": """set -e
rm -f routes.cache
php -S 127.0.0.1:18446 router.php >php.log 2>&1 & S=$!
until curl -s -o /dev/null http://127.0.0.1:18446/healthz; do sleep 0.03; done
[ -z "$FIX" ] || php warm.php
sh retry.sh 3 bats api.bats
kill $S; wait $S 2>/dev/null || true
""",
            "retry.sh": """n=$1; shift; i=1
while :; do
  "$@" && exit 0
  [ "$i" -lt "$n" ] || exit 1
  echo "attempt $i failed, again in 4 s"; i=$((i+1))
  sleep 4
done
""",
            "warm.php": "<?php\nfile_put_contents('routes.cache', json_encode(['/orders' => 'orders']));\n",
            "router.php": r"""<?php
if ($_SERVER['REQUEST_URI'] === '/healthz') { echo 'up'; return true; }
if (!file_exists('routes.cache')) { require 'warm.php'; http_response_code(503); echo 'warming'; return true; }
echo 'orders: 3';
return true;
""",
            "api.bats": r"""@test "orders are listed" {
  run curl -sf http://127.0.0.1:18446/orders
  [ "$status" -eq 0 ]
  [ "$output" = "orders: 3" ]
}
@test "orders are listed again" {
  run curl -sf http://127.0.0.1:18446/orders
  [ "$output" = "orders: 3" ]
}
""",
        },
    ),
    # 9 ---------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-none-tailer",
        "none",
        "make -j2 with a log tailer, a keep-alive echo and a time limit beside it",
        "Nothing to change: both CPUs compile all the time; tail -F shows the log, the keep-alive loop sleeps, timeout 120 stands by, all beside the work.",
        r"(?i)nothing|no (wait|change|advice|fault)|busy|CPU|compil|cc1|gcc",
        {
            "run.sh": """set -e
[ -e src/mod0.c ] || sh setup.sh
rm -f src/*.o app; : > build.log
tail -F -n 0 build.log 2>/dev/null & T=$!
sh keepalive.sh & K=$!
timeout 120 make -j2 app >> build.log
./app
kill $T $K; wait $T $K 2>/dev/null || true
""",
            "keepalive.sh": "while :; do sleep 1 & P=$!; trap 'kill $P; exit' TERM; wait $P; echo 'still building' >> build.log; done\n",
            "setup.sh": "mkdir -p src\necho '#define VERSION \"2.0\"' > src/version.h\n/usr/bin/python3 gen_c.py 14 60\n",
            "gen_c.py": GEN_C,
            "Makefile": "OBJS := $(patsubst %.c,%.o,$(wildcard src/*.c))\n\napp: $(OBJS)\n\tgcc -o $@ $(OBJS)\n\nsrc/%.o: src/%.c\n\tgcc -O2 -c -o $@ $<\n",
        },
        quiet=(3.8, 3.8),
    ),
    # 10 --------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-none-loadtest",
        "none",
        "node load generator with a fixed rate and duration against a python service",
        "Nothing to change: the command is a load test, 20 requests a second for 4 s by order; the service's 60 ms answers overlap and the p95 is what is measured. "
        "A shorter duration or a higher rate would be another test.",
        r"(?i)nothing|no (wait|change|advice|fault)|by design|on purpose|load ?test|measur|rate|duration",
        {
            "run.sh": """set -e
rm -f svc.ready
/usr/bin/python3 service.py 18447 0.06 svc.ready & S=$!
while [ ! -e svc.ready ]; do sleep 0.03; done
node loadtest.mjs --url http://127.0.0.1:18447/price --rate 20 --duration 4
kill $S; wait $S 2>/dev/null || true
""",
            "loadtest.mjs": r"""import { parseArgs } from "node:util";
const { values: o } = parseArgs({ options: { url: { type: "string" }, rate: { type: "string" }, duration: { type: "string" } } });
const total = o.rate * o.duration, took = [];
let sent = 0, done = 0;
const tick = setInterval(async () => {
  if (++sent === total) clearInterval(tick);
  const t = performance.now();
  await (await fetch(o.url)).text();
  took.push(performance.now() - t);
  if (++done === total) {
    took.sort((a, b) => a - b);
    const p95 = took[Math.floor(total * 0.95)];
    console.log(`${total} requests, p95 ${p95 < 1500 ? "within" : "over"} the objective`);
    process.exit(p95 < 1500 ? 0 : 1);
  }
}, 1000 / o.rate);
""",
            "service.py": SERVICE,
        },
    ),
    # 11 --------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-none-java-ready",
        "none",
        "java service, readiness poll with a short period, then sqlite3 migrations and a smoke test",
        "Nothing to change in how it waits: the service computes its price table for the whole time before it listens, and the loop that waits for it asks every 0.1 s; "
        "migrations are run beside it already.",
        r"(?i)nothing|no (wait|change|advice|fault)|Catalog|java|price table|busy|CPU",
        {
            "run.sh": """set -e
[ -e Catalog.class ] || sh setup.sh
rm -f app.db
java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp . Catalog 18448 & S=$!
sqlite3 app.db < migrations.sql
sh wait-for.sh http://127.0.0.1:18448/health 200
test "$(curl -sf http://127.0.0.1:18448/health)" = ok
kill $S; wait $S 2>/dev/null || true
sqlite3 app.db 'select count(*) from sku'
""",
            "setup.sh": "javac Catalog.java\n",
            "wait-for.sh": """i=0
until curl -s -o /dev/null "$1"; do
  i=$((i+1)); [ "$i" -lt "$2" ] || { echo "$1 not up" >&2; exit 1; }
  sleep 0.1
done
""",
            "migrations.sql": "begin; create table sku(id integer primary key, name text); with recursive n(i) as (select 1 union all select i+1 from n where i<500) insert into sku(name) select 'sku '||i from n; commit;\n",
            "Catalog.java": r"""import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class Catalog {
    public static void main(String[] a) throws Exception {
        long x = 88172645463325252L; double[] table = new double[1 << 12];
        for (long i = 0; i < 900_000_000L; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; table[(int) (x & 4095)] += (x & 255) * 0.01; }
        System.out.println("price table ready " + (table[7] > 0));
        HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(a[0])), 0);
        s.createContext("/health", h -> { h.sendResponseHeaders(200, 2); h.getResponseBody().write("ok".getBytes()); h.close(); });
        s.start();
    }
}
""",
        },
        quiet=(2.4, 2.4),
    ),
    # 12 --------------------------------------------------------------------------------------------------------------
    Plant(
        "w14-none-lint-pool",
        "none",
        "xargs -P2 over shellcheck with a time limit for each file",
        "Nothing to change: the linters already run two at a time on two CPUs, in eight even pieces; xargs and timeout only wait for their children.",
        r"(?i)nothing|no (wait|change|advice|fault)|busy|CPU|shellcheck",
        {
            "run.sh": """set -e
[ -e scripts/deploy7.sh ] || sh setup.sh
ls scripts/*.sh | xargs -P 2 -n 1 timeout 60 shellcheck -s bash
echo lint ok
""",
            "setup.sh": "mkdir -p scripts\n/usr/bin/python3 gen_sh.py 8 60\n",
            "gen_sh.py": GEN_SH,
        },
        quiet=(3.0, 3.0),
    ),
]
