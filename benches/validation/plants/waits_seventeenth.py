"""Seventeenth set: CI jobs of web, mobile and monorepo teams (npm, node test runners, bundlers, caches, previews, bash and make).

Each was written with its answer before it was recorded; answers.md has the expert's words, the wrong statements and the measured gains.
"""

from waits import Plant

# burn(s) does s seconds of CPU work, however many share the CPU.
WORK = """const crypto = require("crypto");
exports.burn = (seconds, seed = "x") => {
  const start = process.cpuUsage();
  let h = seed;
  for (;;) {
    for (let i = 0; i < 400; i++) h = crypto.createHash("sha256").update(h + i).digest("hex");
    const u = process.cpuUsage(start);
    if ((u.user + u.system) / 1e6 >= seconds) return crypto.createHash("sha256").update(seed).digest("hex");
  }
};
"""
NPMRC = "update-notifier=false\nfund=false\naudit=false\ncache=.npm-cache\nlogs-max=0\n"
NOTHING = r"(?i)\bnothing\b|\bno (wait|change|advice|fault|gain)|(would|could|can) ?not .*(gain|save|shorten)|not worth|by design|(both|all|2|every) .*cpus? .*busy|cpus? (are|were|is|was) .*busy"

PLANTS = [
    # 1 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-race-timeout",
        "timer",
        "node; node --test; event loop kept alive after the last test; child's exit",
        "lib/with-timeout.js races each request against a 4 s timer and never clears it, so the test process idles about 4 s after its"
        " last test: clearTimeout in a finally (or unref).",
        r"(?i)^(?!.*lint\.js).*(api\.test|with-timeout|node --test|(node|test).*(timer|timeout|exit|idle|event loop|after)|(timer|timeout|event loop|epoll).*(node|test))",
        {
            "work.js": WORK,
            "lint.js": 'const { burn } = require("./work.js");\nburn(0.4, "lint");\nconsole.log("lint: 14 files, no problems");\n',
            "lib/with-timeout.js": """// Rejects if the promise has not settled in ms.
module.exports = function withTimeout(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("timed out after " + ms + " ms")), ms);
  });
  const race = Promise.race([promise, late]);
  late.catch(() => {});
  return process.env.FIX ? race.finally(() => clearTimeout(timer)) : race;
};
""",
            "test/api.test.js": """const test = require("node:test");
const assert = require("node:assert");
const http = require("node:http");
const withTimeout = require("../lib/with-timeout.js");
const get = (path) => new Promise((resolve, reject) => {
  http.get({ host: "127.0.0.1", port: 18541, path, agent: false }, (r) => {
    let body = "";
    r.on("data", (d) => (body += d)).on("end", () => resolve(body));
  }).on("error", reject);
});
let server;
test.before(() => new Promise((ok) => {
  server = http.createServer((q, r) => setTimeout(() => r.end(q.url), 15));
  server.listen(18541, "127.0.0.1", ok);
}));
test.after(() => new Promise((ok) => server.close(ok)));
for (let i = 0; i < 12; i++)
  test("GET /items/" + i, async () => assert.equal(await withTimeout(get("/items/" + i), 4000), "/items/" + i));
""",
            "run.sh": """set -e
node lint.js
node --test --test-reporter=tap test/ > report.tap
grep '^# pass' report.tap
gzip -kf report.tap
""",
        },
    ),
    # 2 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-retry-after",
        "poll",
        "node fetch client; python server; poll whose period the server's header dictates",
        "deploy.js sleeps the server's Retry-After (2 s) between status polls though each stage is ready after 0.5 s: long-poll, or poll"
        " each 0.1 s with growth.",
        r"(?i)deploy\.js|deploy.*(poll|sleep|retry|timer|wait|idle)|retry-after|(poll|sleep|timer|idle|wait).*(deploy|node)|node.*(poll|sleep|timer|idle)",
        {
            "work.js": WORK,
            "bundle.js": 'const { burn } = require("./work.js");\nrequire("fs").writeFileSync("bundle.js.out", burn(0.5, "bundle"));\n',
            "preview.py": """import http.server, json, time
started = {}
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, code, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(code)
        for k, v in headers: self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        started[self.path] = time.monotonic()
        self.answer(202, {"state": "queued"})
    def do_GET(self):
        if time.monotonic() - started[self.path] >= 0.5: self.answer(200, {"state": "ready"})
        else: self.answer(202, {"state": "building"}, [("Retry-After", "2")])
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
s = S(("127.0.0.1", 18542), H)
open("ready", "w").close()
s.serve_forever()
""",
            "deploy.js": """const base = "http://127.0.0.1:18542/";
const sleep = (ms) => new Promise((ok) => setTimeout(ok, ms));
(async () => {
  for (const stage of ["build", "alias"]) {
    await (await fetch(base + stage, { method: "POST", body: stage })).text();
    for (;;) {
      const r = await fetch(base + stage);
      const { state } = await r.json();
      console.log(stage, state);
      if (state === "ready") break;
      await sleep(process.env.FIX ? 100 : Number(r.headers.get("retry-after")) * 1000);
    }
  }
  process.exit(0);
})();
""",
            "run.sh": """rm -f ready
/usr/bin/python3 preview.py & S=$!
while [ ! -e ready ]; do sleep 0.02; done
node bundle.js && node deploy.js; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
    ),
    # 3 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-cache-save-lock",
        "lock",
        "flock; xz; two jobs of xargs -P2 serialised by a lock held over the compression",
        "save-cache.sh holds .store/lock while it compresses, so the second cache waits for the first and one CPU idles: compress to a"
        " temporary file first and take the lock only for the rename and the index line.",
        r"(?i)flock|\block\b|\.store|save-cache.*(lock|wait)",
        {
            "setup.sh": """[ -e data/b/done ] || /usr/bin/python3 - <<'E'
import os, random
for d in "ab":
    os.makedirs("data/" + d, exist_ok=True)
    r = random.Random(d)
    words = ["".join(r.choices("abcdefghijklmnop", k=r.randint(3, 9))) for _ in range(4000)]
    for i in range(24):
        with open(f"data/{d}/mod{i}.js", "w") as f: f.write(" ".join(r.choices(words, k=MOD)))
    open(f"data/{d}/done", "w").close()
E
""".replace("MOD", "20000"),
            "save-cache.sh": """# Saves data/$1 under the key $1; the index has one writer at a time.
set -e
if [ -z "$FIX" ]; then
  exec 9>.store/lock; flock 9
  tar cf - data/$1 | xz -T1 -6 > .store/tmp.$1
else
  tar cf - data/$1 | xz -T1 -6 > .store/tmp.$1
  exec 9>.store/lock; flock 9
fi
mv .store/tmp.$1 .store/$1.txz
echo "$1 $(wc -c < .store/$1.txz)" >> .store/index
""",
            "run.sh": """sh setup.sh
rm -rf .store; mkdir .store
printf 'a\\nb\\n' | xargs -P2 -n1 sh save-cache.sh || exit 1
cat .store/index
""",
        },
        prepare="sh setup.sh",
        quiet=(4.5, 2.6),
    ),
    # 4 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-npm-per-file",
        "wrapper",
        "npm started for each file; CPU-bound; a shell loop as lint-staged hooks have it",
        "The hook starts `npm run lint` for each of its files: npm's and node's start are nearly the whole time. One call with all files"
        " (or node directly).",
        r"(?i)\bnpm\b|start.*(node|interpreter)|(node|interpreter).*(start|again|times|launch)|lint\.js.*(each|times|files)",
        {
            ".npmrc": NPMRC,
            "package.json": '{"name": "shop", "version": "1.0.0", "private": true, "scripts": {"lint": "node lint.js"}}\n',
            "lint.js": """const fs = require("fs");
let bad = 0;
for (const f of process.argv.slice(2))
  fs.readFileSync(f, "utf8").split("\\n").forEach((l, i) => { if (/\\s$|\\bvar\\b/.test(l)) { bad++; console.log(f + ":" + (i + 1)); } });
process.exit(bad ? 1 : 0);
""",
            "setup.sh": """mkdir -p src
i=1
while [ $i -le 14 ]; do
  [ -e src/view$i.js ] || echo "export const view$i = (props) => props.items.map((x) => x + $i);" > src/view$i.js
  i=$((i + 1))
done
""",
            "run.sh": """sh setup.sh
if [ -z "$FIX" ]; then
  for f in src/*.js; do npm run -s lint -- "$f" || exit 1; done
else
  npm run -s lint -- src/*.js || exit 1
fi
echo "lint: $(ls src | wc -l) files clean"
""",
        },
        prepare="sh setup.sh",
        quiet=(3.2, 0.25),
    ),
    # 5 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-docs-prehook",
        "twice",
        "npm pre-hooks; CPU-bound; the same step twice over the same input",
        "The hooks prehtml and presearch both run extract.js over the same sources and write the same model.json: run it once (one step"
        " before both, or a check of its inputs).",
        r"(?i)extract|presearch|prehtml|model\.json|(same|identical|twice|again|2 times|two times).*(node|command|work)",
        {
            ".npmrc": NPMRC,
            "package.json": """{"name": "docs", "version": "1.0.0", "private": true, "scripts": {
  "model": "node extract.js src model.json",
  "prehtml": "npm run -s model",
  "html": "node render.js",
  "presearch": "npm run -s model",
  "search": "node index.js"
}}
""",
            "work.js": WORK,
            "setup.sh": """mkdir -p src
i=1
while [ $i -le 20 ]; do
  [ -e src/m$i.ts ] || printf '/** Module %s. */\\nexport function f%s(a: number): string;\\n' $i $i > src/m$i.ts
  i=$((i + 1))
done
""",
            "extract.js": """const fs = require("fs");
const { burn } = require("./work.js");
const [dir, out] = process.argv.slice(2);
const model = fs.readdirSync(dir).sort().map((f) => {
  const text = fs.readFileSync(dir + "/" + f, "utf8");
  return { file: f, doc: text.split("\\n")[0], type: burn(0.075, text) };
});
fs.writeFileSync(out, JSON.stringify(model));
""",
            "render.js": """const fs = require("fs");
require("./work.js").burn(0.3, "render");
fs.mkdirSync("site", { recursive: true });
for (const m of JSON.parse(fs.readFileSync("model.json"))) fs.writeFileSync("site/" + m.file + ".html", "<h1>" + m.file + "</h1>" + m.doc);
""",
            "index.js": """const fs = require("fs");
require("./work.js").burn(0.3, "index");
fs.mkdirSync("site", { recursive: true });
fs.writeFileSync("site/search.json", JSON.stringify(JSON.parse(fs.readFileSync("model.json")).map((m) => [m.file, m.doc])));
""",
            "run.sh": """sh setup.sh
rm -rf site model.json
npm run -s html || exit 1
if [ -z "$FIX" ]; then npm run -s search; else npm run -s --ignore-scripts search; fi || exit 1
echo "site: $(ls site | wc -l) files"
""",
        },
        prepare="sh setup.sh",
        quiet=(4.5, 2.8),
    ),
    # 6 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-grep-m1",
        "pipe",
        "bash pipeline; the reader has left, the writer learns it at its next line; waitpid",
        "`node watch.js | grep -m1 compiled`: grep ends at once but bash waits for the watcher too, which only meets the closed pipe when it"
        " logs again 4 s later: build once (--once) in CI, or start the watcher in the background and stop it.",
        r"(?i)watch\.js|watch(er| mode|ing)|pipeline|grep|node.*(idle|timer|interval|pipe|tick)|(bash|shell).*wait.*node",
        {
            "work.js": WORK,
            "watch.js": """// The bundler's watch mode: builds, then reports itself now and then. --once: builds and ends.
const fs = require("fs");
const { burn } = require("./work.js");
fs.mkdirSync("dist", { recursive: true });
const build = () => { fs.writeFileSync("dist/app.js", burn(0.7, "app")); process.stdout.write("[bundle] compiled in 0.7 s\\n"); };
process.stdout.on("error", () => process.exit(0));
build();
if (!process.argv.includes("--once")) {
  fs.watch("src", build);
  setInterval(() => process.stdout.write("[bundle] watching src, no changes\\n"), 4000);
}
""",
            "smoke.js": 'const { burn } = require("./work.js");\nburn(0.5, "smoke");\nif (require("fs").readFileSync("dist/app.js").length !== 64) process.exit(1);\nconsole.log("smoke: ok");\n',
            "ci.sh": """mkdir -p src; rm -rf dist
if [ -z "$FIX" ]; then
  node watch.js | grep -m1 'compiled in' || exit 1
else
  node watch.js --once | grep -m1 'compiled in' || exit 1
fi
node smoke.js
""",
            "run.sh": "exec bash ci.sh\n",
        },
    ),
    # 7 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-cpus-minus-one",
        "jobs",
        "node test runner with forked workers; CPU-bound; one worker on two CPUs",
        "runner.js takes cpus - 1 workers, which is one on a CI machine with two CPUs, while its parent only waits: as many workers as CPUs.",
        r"(?i)runner|worker|one (at a time|after (another|the other))|serial|sequential|parallel|(one|1|second|idle) (of )?.*cpu|cpu.*idle|more (jobs|processes)",
        {
            "work.js": WORK,
            "suite.js": """const { burn } = require("./work.js");
process.on("message", (file) => { burn(0.5, file); process.send({ file, ok: true }); });
process.on("disconnect", () => process.exit(0));
""",
            "runner.js": """const os = require("os");
const { fork } = require("child_process");
const files = ["auth", "cart", "checkout", "grid", "list", "map", "search", "table"].map((f) => f + ".test.js");
const size = Math.max(1, os.cpus().length - (process.env.FIX ? 0 : 1));
let open = files.length;
const queue = files.slice();
for (let i = 0; i < size; i++) {
  const worker = fork("./suite.js");
  const next = () => (queue.length ? worker.send(queue.shift()) : worker.disconnect());
  worker.on("message", ({ file }) => { console.log("PASS " + file); open--; next(); });
  next();
}
process.on("exit", () => { if (open) process.exitCode = 1; });
""",
            "run.sh": "node runner.js || exit 1\necho done\n",
        },
        quiet=(4.15, 2.15),
    ),
    # 8 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-telemetry-flush",
        "timeout",
        "python; a reporter thread in recv, the main thread on a condition with a time-out at exit; a silent loopback server",
        "Each of the two strings.py steps ends with a flush of its crash reporter that waits 2 s for a collector which never answers: turn the"
        " reporter off in CI (REPORT_DSN empty) or flush without waiting.",
        r"(?i)strings\.py|report|collector.*(answer|silen|slow|repl)|telemetry|flush|18543|(python|thread).*(time-?out|recv|socket|futex|condition|exit|answer)|(no|never|without).*answer|(server|peer).*(silent|answer)",
        {
            "collector.py": """# Stands for the collector's address that the CI network swallows: it takes connections and says nothing.
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 18543))
s.listen(16)
open("ready", "w").close()
held = []
while True: held.append(s.accept()[0])
""",
            "reporter.py": """import atexit, os, socket, threading
sent = threading.Condition()
pending = 0
def post(host, port, body):
    global pending
    with socket.create_connection((host, port)) as c:
        c.sendall(b"POST /envelope HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        c.recv(100)
    with sent:
        pending -= 1
        sent.notify_all()
def session(step):
    global pending
    dsn = os.environ.get("REPORT_DSN")
    if not dsn: return
    host, port = dsn.split(":")
    pending += 1
    threading.Thread(target=post, args=(host, int(port), step.encode()), daemon=True).start()
    atexit.register(flush, 2.0)
def flush(timeout):
    with sent: sent.wait_for(lambda: pending == 0, timeout)
""",
            "strings.py": """import json, sys, time, reporter
step = sys.argv[1]
reporter.session(step)
n = 0
while time.process_time() < 0.5: n += 1
with open(step + ".json", "w") as f: json.dump({"step": step, "strings": 412}, f)
print(step + ": 412 strings", flush=True)
""",
            "run.sh": """rm -f ready extract.json compile.json
/usr/bin/python3 collector.py & S=$!
while [ ! -e ready ]; do sleep 0.02; done
REPORT_DSN=127.0.0.1:18543; [ -z "$FIX" ] || REPORT_DSN=
export REPORT_DSN
/usr/bin/python3 strings.py extract && /usr/bin/python3 strings.py compile; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
    ),
    # 9 ------------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-none-loadtest",
        "none",
        "node client and server; a constant arrival rate for a fixed time; a test that measures time",
        "Nothing: the step is a load test of 40 requests a second for 4 s, its duration and its pauses are what it is for; the server's 30 ms"
        " are what it measures.",
        NOTHING,
        {
            "server.js": """const http = require("http");
const fs = require("fs");
http.createServer((q, r) => setTimeout(() => r.end("ok"), 30)).listen(18544, "127.0.0.1", () => fs.writeFileSync("ready", ""));
""",
            "load.js": """// node load.js --rate N --duration S: N requests a second at even distances for S seconds; the 95th percentile is the verdict.
const http = require("http");
const option = (k) => Number(process.argv[process.argv.indexOf(k) + 1]);
const rate = option("--rate"), duration = option("--duration");
const agent = new http.Agent({ keepAlive: true });
const times = [];
let sent = 0, failed = 0;
const shot = () => {
  sent++;
  const t = performance.now();
  http.get({ host: "127.0.0.1", port: 18544, agent }, (r) => r.resume().on("end", () => times.push(performance.now() - t))).on("error", () => failed++);
};
const clock = setInterval(shot, 1000 / rate);
setTimeout(() => {
  clearInterval(clock);
  setTimeout(() => {
    times.sort((a, b) => a - b);
    console.log("sent " + sent + " p50 " + times[times.length >> 1].toFixed(0) + " ms p95 " + times[Math.floor(times.length * 0.95)].toFixed(0) + " ms");
    process.exit(failed || times.length < sent * 0.9 ? 1 : 0);
  }, 100);
}, duration * 1000);
""",
            "run.sh": """rm -f ready
node server.js & S=$!
while [ ! -e ready ]; do sleep 0.02; done
node load.js --rate 40 --duration 4; R=$?
kill $S; wait $S 2>/dev/null
exit $R
""",
        },
        spare=0.5,
    ),
    # 10 -----------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-none-heartbeat",
        "none",
        "make -j2 of node bundles under timeout(1); a perl heartbeat beside it; CPU-bound",
        "Nothing: both CPUs bundle all the time; the heartbeat's sleeps keep the CI service from ending a silent job and delay nobody, and"
        " timeout only guards.",
        NOTHING,
        {
            "work.js": WORK,
            "bundle.js": 'const { burn } = require("./work.js");\nconst out = process.argv[2];\nrequire("fs").writeFileSync(out, burn(0.8, out));\n',
            "Makefile": "OUT := $(patsubst %,dist/%.js,admin cart home login map search)\nall: $(OUT)\ndist/%.js:\n\t@node bundle.js $@\n",
            "run.sh": """rm -rf dist; mkdir dist
perl -e '$| = 1; while (1) { sleep 1; print "still building\\n" }' & H=$!
timeout 300 make -s -j2 all; R=$?
kill $H; wait $H 2>/dev/null
echo "$(ls dist | wc -l) bundles"
exit $R
""",
        },
        spare=0.5,
    ),
    # 11 -----------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-none-expand",
        "none",
        "node code generator run until its output no longer changes; CPU-bound chain on one CPU",
        "Nothing: each pass of expand.js reads the file of the pass before it and expands one more level, the last one proves that it is"
        " stable; the passes are neither the same work nor can they run at once.",
        NOTHING,
        {
            "work.js": WORK,
            "schema.graphql": "\n".join(
                [
                    "query Page { ...Layout }",
                    "fragment Layout { head ...Body }",
                    "fragment Body { title ...Card }",
                    "fragment Card { id price }",
                    "",
                ]
            ),
            "expand.js": """// Expands the fragments of in one level deep into out, and checks the result against the schema.
const fs = require("fs");
const { burn } = require("./work.js");
const [from, to] = process.argv.slice(2);
const text = fs.readFileSync(from, "utf8");
const body = Object.fromEntries([...fs.readFileSync("schema.graphql", "utf8").matchAll(/fragment (\\w+) \\{ (.*) \\}/g)].map((m) => [m[1], m[2]]));
const result = text.replace(/\\.\\.\\.(\\w+)/g, (_, f) => body[f]);
burn(0.8, result);
fs.writeFileSync(to, result);
""",
            "run.sh": """rm -rf gen; mkdir gen
head -1 schema.graphql > gen/query.graphql
passes=0
while :; do
  node expand.js gen/query.graphql gen/next.graphql || exit 1
  passes=$((passes + 1))
  if cmp -s gen/query.graphql gen/next.graphql; then break; fi
  mv gen/next.graphql gen/query.graphql
done
rm gen/next.graphql
echo "stable after $passes passes: $(cat gen/query.graphql)"
""",
        },
        spare=0.5,
    ),
    # 12 -----------------------------------------------------------------------------------------------------------------
    Plant(
        "w17-none-devserver",
        "none",
        "node dev server idle on inotify and a tick; two CPU-bound end-to-end shards; a short flock on the report",
        "Nothing: the dev server idles because it is asked rarely, the lock is held for a line, and both CPUs render all the time.",
        NOTHING,
        {
            "work.js": WORK,
            "devserver.js": """const http = require("http");
const fs = require("fs");
fs.watch("src", () => console.log("changed"));
setInterval(() => fs.statSync("src"), 250);
http.createServer((q, r) => r.end("<main>" + q.url + "</main>")).listen(18545, "127.0.0.1", () => fs.writeFileSync("ready", ""));
""",
            "shard.js": """const { burn } = require("./work.js");
const { execFileSync } = require("child_process");
(async () => {
  for (let i = 0; i < 6; i++) {
    const html = await (await fetch("http://127.0.0.1:18545/page" + i)).text();
    burn(0.4, html);
    execFileSync("flock", ["report.lock", "sh", "-c", "echo shard " + process.argv[2] + " page " + i + " ok >> report.txt"]);
  }
  process.exit(0);
})();
""",
            "run.sh": """mkdir -p src; rm -f ready report.txt report.lock
node devserver.js & S=$!
while [ ! -e ready ]; do sleep 0.02; done
printf '1\\n2\\n' | timeout 120 xargs -P2 -n1 node shard.js; R=$?
kill $S; wait $S 2>/dev/null
echo "$(wc -l < report.txt) pages ok"
exit $R
""",
        },
        spare=0.5,
    ),
]
