"""Builds, package managers, test runners and CI scripts with one planted fault in how they wait or use two CPUs (part 9a).

Ports 18400 to 18419, loopback only. run.sh prepares the products by setup.sh if they are missing.
"""

from waits import Plant

SETUP = "[ -e .prepared ] || sh setup.sh\n"
# C sources that take gcc -O2 a good half second each: gen.pl COUNT FUNCTIONS [HEADER]
GEN = r"""my ($count, $functions, $header) = @ARGV;
for my $c (1 .. $count) {
    open my $o, '>', sprintf("unit%02d.c", $c) or die;
    print $o "#include \"$header\"\n" if $header;
    for my $i (1 .. $functions) {
        print $o "int u${c}_f$i(int a, int b) { int s = $i; for (int k = 0; k < a; k++) { s += (k * b) ^ (s >> 3);\n",
            "  if (s % 7 == ", $i % 7, ") s -= k; else if (s % 11 == 3) s ^= b;\n",
            "  switch (s & 7) { case 0: s += a; break; case 1: s *= 3; break; case 2: s ^= k << 2; break;\n",
            "  case 3: s -= b / (k + 1); break; case 5: s = s * $i + b; break; default: s++; } } return s; }\n";
    }
    print $o "const char *u${c}_v(void) { return BUILD_REV; }\n" if $header;
}
"""
BURN = (
    "import sys, time\nt = float(sys.argv[1])\nx = 0\nwhile time.process_time() < t: x += 1\nprint('ok', sys.argv[2])\n"
)

PLANTS = [
    # ------------------------------------------------------------------ a lock around each compiler call
    Plant(
        "w9a-make-flock",
        "lock",
        "make, flock, gcc, two CPUs",
        "make -j2 runs each gcc under one `flock .cc.lock` (left from a compiler with node licence), so only one compiles at a time "
        "and one CPU idles: take the lock away (CCLOCK=), then -j2 works",
        r"flock|\.cc\.lock|file lock|lock.*(gcc|cc)",
        {
            "gen.pl": GEN,
            "setup.sh": "set -e\nperl gen.pl 8 62\ntouch .prepared\n",
            "Makefile": "CCLOCK = flock .cc.lock\n"
            "OBJS = $(patsubst %.c,%.o,$(sort $(wildcard unit*.c)))\n"
            "libunits.a: $(OBJS)\n\tar rcs $@ $(OBJS)\n"
            "%.o: %.c\n\t$(CCLOCK) gcc -O2 -c -o $@ $<\n"
            "clean:\n\trm -f unit*.o libunits.a\n",
            "run.sh": "set -e\n" + SETUP + "make -s clean\n"
            'if [ -n "$FIX" ]; then make -j2 CCLOCK=; else make -j2; fi\n',
        },
        "sh setup.sh",
        # From the CPU seconds of its processes: the machine was loaded when it was written.
        quiet=(4.3, 2.2),
    ),
    # ------------------------------------------------------------------ a fixture that sleeps for each test
    Plant(
        "w9a-pytest-fixture",
        "sleep",
        "pytest, a server as fixture",
        "the function-scoped fixture `stub` starts stubd.py and sleeps 0.7 s for each of the 7 tests; the server is ready after 0.1 s and "
        "stateless: start it once (scope=session), or connect until it answers in place of the sleep",
        r"pytest|conftest|stub|test_api|python3? .*sleep",
        {
            "setup.sh": "touch .prepared\n",
            "stubd.py": "import http.server, sys\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        self.send_response(200); self.end_headers(); self.wfile.write(self.path.encode())\n"
            "    def log_message(self, *a): pass\n"
            "http.server.HTTPServer.allow_reuse_address = True\n"
            "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n",
            "conftest.py": "import os, subprocess, sys, time, urllib.request\n"
            "import pytest\n\n"
            "@pytest.fixture(scope='session' if os.environ.get('FIX') else 'function')\n"
            "def stub():\n"
            "    p = subprocess.Popen([sys.executable, 'stubd.py', '18401'])\n"
            "    time.sleep(0.7)  # let it come up\n"
            "    yield lambda path: urllib.request.urlopen('http://127.0.0.1:18401' + path, timeout=5).read().decode()\n"
            "    p.kill()\n"
            "    p.wait()\n",
            "test_api.py": "import pytest\n\n"
            "@pytest.mark.parametrize('path', ['/users', '/orders', '/carts', '/items', '/login', '/logout', '/health'])\n"
            "def test_path(stub, path):\n    assert stub(path) == path\n",
            "run.sh": "set -e\n" + SETUP + "pytest -q -p no:cacheprovider test_api.py\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ jobs = 1 in a configuration file
    Plant(
        "w9a-cargo-jobs",
        "serial",
        "cargo, rustc, two CPUs",
        "`.cargo/config.toml` has `[build] jobs = 1`: five independent crates compile one after the other on one of two CPUs: remove the "
        "line (or CARGO_BUILD_JOBS=2, cargo build -j2)",
        r"cargo|rustc|jobs|-j ?2",
        {
            "gen.pl": r"""for my $c ('alpha', 'beta', 'gamma', 'delta', 'omega') {
    mkdir $c; mkdir "$c/src";
    open my $t, '>', "$c/Cargo.toml" or die;
    print $t "[package]\nname = \"$c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\n";
    open my $o, '>', "$c/src/lib.rs" or die;
    for my $i (1 .. 32) {
        print $o "pub fn f$i(v: &[u32], w: &mut Vec<String>) -> u64 {\n  let mut m = std::collections::BTreeMap::new();\n",
            "  for (k, x) in v.iter().enumerate() { *m.entry(x.rotate_left($i) ^ k as u32).or_insert(0u64) += u64::from(*x) * $i; }\n",
            "  for (k, x) in &m { if x % 3 == ", $i % 3, " { w.push(format!(\"{k}-{x}-$i\")); } }\n  w.sort();\n  m.values().sum()\n}\n";
    }
}
""",
            "setup.sh": "set -e\nperl gen.pl\ncargo generate-lockfile --offline -q\ntouch .prepared\n",
            "Cargo.toml": '[workspace]\nresolver = "2"\nmembers = ["alpha", "beta", "gamma", "delta", "omega"]\n\n'
            "[profile.release]\ncodegen-units = 1\n",
            ".cargo/config.toml": "[build]\njobs = 1\n",
            "run.sh": "set -e\n" + SETUP + "rm -rf target\n"
            '[ -z "$FIX" ] || export CARGO_BUILD_JOBS=2\ncargo build --offline --release\nrm -rf target\n',
        },
        "sh setup.sh",
        # From the CPU seconds of its processes: the machine was loaded when it was written.
        quiet=(5.3, 3.3),
    ),
    # ------------------------------------------------------------------ remotes one after the other
    Plant(
        "w9a-git-fetch-all",
        "serial",
        "git, remotes with latency",
        "`git fetch --all` goes to five mirrors one after the other and waits 0.9 s for each connection (ssh-standin: the far end's "
        "authentication), with idle CPUs: git fetch --all --jobs=5 (fetch.parallel) overlaps them",
        r"git|fetch|ssh-standin|upload-pack",
        {
            "setup.sh": "set -e\nrm -rf m?.git seed clone\n"
            "git init -q -b main seed\ncd seed\necho 1 > a\ngit add a\n"
            "git -c user.name=ci -c user.email=ci@localhost commit -q -m one\ncd ..\n"
            "for i in 1 2 3 4 5; do git clone -q --bare seed m$i.git; done\n"
            "touch .prepared\n",
            # Stands in for ssh to a far host: connection and authentication take 0.9 s, then the command runs.
            "ssh-standin": 'shift\nsleep 0.9\nexec sh -c "$*"\n',
            "run.sh": "set -e\n" + SETUP + "rm -rf clone\ngit init -q -b main clone\ncd clone\n"
            'export GIT_SSH_COMMAND="sh $PWD/../ssh-standin" GIT_SSH_VARIANT=simple\n'
            'for i in 1 2 3 4 5; do git remote add m$i "mirror$i:${PWD%/clone}/m$i.git"; done\n'
            'if [ -n "$FIX" ]; then git fetch -q --all --jobs=5; else git fetch -q --all; fi\n'
            "git rev-parse m1/main m5/main\ncd ..\nrm -rf clone\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ npm install waits for an audit that nobody answers
    Plant(
        "w9a-npm-audit",
        "timeout",
        "npm, a registry that never answers, its time-out",
        "`npm install` of vendored tarballs posts an audit to the registry at 127.0.0.1:18403, whose gateway takes the connection and never "
        "answers, and waits until fetch-timeout (4 s): an offline install needs no audit: audit=false / --no-audit (or a gateway that "
        "answers or refuses)",
        r"npm|18403|registry|audit|gateway|node.*(wait|answer|time)",
        {
            "setup.sh": "set -e\nrm -rf vendor pkg\nmkdir -p vendor pkg/package\n"
            "for n in left mid right; do\n"
            '  printf \'{"name":"w9a-%s","version":"1.0.0","main":"index.js"}\\n\' $n > pkg/package/package.json\n'
            "  echo \"module.exports = '$n'\" > pkg/package/index.js\n"
            "  tar -C pkg -czf vendor/w9a-$n-1.0.0.tgz package\ndone\nrm -rf pkg\ntouch .prepared\n",
            "package.json": '{"name":"app","version":"1.0.0","private":true,"dependencies":{'
            '"w9a-left":"file:vendor/w9a-left-1.0.0.tgz","w9a-mid":"file:vendor/w9a-mid-1.0.0.tgz",'
            '"w9a-right":"file:vendor/w9a-right-1.0.0.tgz"}}\n',
            ".npmrc": "registry=http://127.0.0.1:18403/\naudit=true\nfund=false\nupdate-notifier=false\nfetch-timeout=4000\n",
            # The way out of a closed network: connections are taken and nothing comes back.
            "gateway.pl": "use IO::Socket::INET;\n"
            "my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 18403, Listen => 50, ReuseAddr => 1) or die;\n"
            "open my $r, '>', 'up' or die; close $r;\nmy @held;\nwhile (my $c = $l->accept) { push @held, $c }\n",
            "check.js": "console.log(['left', 'mid', 'right'].map(n => require('w9a-' + n)).join(' '))\n",
            "run.sh": "set -e\n" + SETUP + "rm -rf node_modules package-lock.json npm-cache up\n"
            "perl gateway.pl & G=$!\ntrap 'kill $G; wait $G || :' EXIT\nwhile [ ! -e up ]; do sleep 0.02; done\n"
            'A=\n[ -z "$FIX" ] || A=--no-audit\nnpm install --cache npm-cache $A\nnode check.js\nrm -rf node_modules npm-cache\n',
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ pip asks a dead index although the wheels are here
    Plant(
        "w9a-pip-index",
        "retry",
        "pip, a dead index, back-off",
        "pip has every wheel in --find-links wheels, but asks the dead index at 127.0.0.1:18404 for each of the three packages and retries "
        "each with back-off (0.5 + 1 s): --no-index (or an index that answers, or no retries)",
        r"pip|18404|index|retr|python3? .*(sleep|back-?off)",
        {
            "mk.py": "import zipfile, os\nos.makedirs('wheels', exist_ok=True)\n"
            "for n in ('w9a_fmt', 'w9a_lint', 'w9a_run'):\n"
            "    with zipfile.ZipFile(f'wheels/{n}-1.0-py3-none-any.whl', 'w') as z:\n"
            "        d = f'{n}-1.0.dist-info/'\n"
            "        z.writestr(f'{n}.py', 'x = 1\\n')\n"
            "        z.writestr(d + 'METADATA', f'Metadata-Version: 2.1\\nName: {n}\\nVersion: 1.0\\n')\n"
            "        z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: mk\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
            "        z.writestr(d + 'RECORD', f'{n}.py,,\\n{d}METADATA,,\\n{d}WHEEL,,\\n{d}RECORD,,\\n')\n",
            "setup.sh": "set -e\n/usr/bin/python3 mk.py\ntouch .prepared\n",
            "requirements.txt": "w9a_fmt==1.0\nw9a_lint==1.0\nw9a_run==1.0\n",
            "run.sh": "set -e\n"
            + SETUP
            + "rm -rf site\nexport PIP_RETRIES=3 PIP_NO_CACHE_DIR=1 PIP_FIND_LINKS=wheels PIP_DISABLE_PIP_VERSION_CHECK=1\n"
            'I="--index-url http://127.0.0.1:18404/simple"\n[ -z "$FIX" ] || I=--no-index\n'
            "/usr/bin/python3 -m pip install $I --target site -r requirements.txt\n"
            "PYTHONPATH=site /usr/bin/python3 -c 'import w9a_fmt, w9a_lint, w9a_run'\nrm -rf site\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ all objects twice, since a header is rewritten
    Plant(
        "w9a-make-version-header",
        "twice",
        "make, gcc, work done twice",
        "each make rewrites version.h, so `make check` after `make all` compiles the same eight sources again: write version.h only if its "
        "text changed",
        r"(twice|again|repeat|2 ?[x×]|same (command|source|work|file|output)).*(gcc|cc1|make|unit|compil)|(gcc|cc1|make|unit|compil).*(twice|again|repeat|2 ?[x×]|two times|same)|version\.h",
        {
            "gen.pl": GEN,
            "setup.sh": "set -e\nperl gen.pl 8 40 version.h\ntouch .prepared\n",
            "Makefile": "OBJS = $(patsubst %.c,%.o,$(sort $(wildcard unit*.c)))\n"
            "all: libunits.a\n"
            "libunits.a: $(OBJS)\n\tar rcs $@ $(OBJS)\n"
            "%.o: %.c version.h\n\tgcc -O2 -c -o $@ $<\n"
            "version.h: FORCE\n\tsh mkversion.sh\n"
            "check: libunits.a\n\tgcc -O0 -o t_main t_main.c libunits.a\n\t./t_main\n"
            "clean:\n\trm -f unit*.o libunits.a t_main version.h\n"
            "FORCE:\n",
            "mkversion.sh": "echo '#define BUILD_REV \"r1042\"' > version.h.new\n"
            'if [ -n "$FIX" ] && cmp -s version.h version.h.new; then rm version.h.new; else mv version.h.new version.h; fi\n',
            "t_main.c": '#include <string.h>\nconst char *u1_v(void);\nint main(void) { return strcmp(u1_v(), "r1042"); }\n',
            "run.sh": "set -e\n" + SETUP + "make -s clean\nmake -j2 all\nmake -j2 check\n",
        },
        "sh setup.sh",
        # From the CPU seconds of its processes: the machine was loaded when it was written.
        quiet=(3.0, 1.6),
    ),
    # ------------------------------------------------------------------ a forgotten timer keeps node alive
    Plant(
        "w9a-node-timer",
        "timer",
        "node --test, event loop, a timer left over",
        "session.test.js passes in milliseconds, but its SessionStore's 4 s reaper timer is neither cleared nor unref'd, so the node process "
        "stays until it fires: close() the store in after() (or unref the timer)",
        r"node|session|timer|epoll|event loop",
        {
            "setup.sh": "touch .prepared\n",
            "lib/sessions.js": "exports.SessionStore = class {\n"
            "  constructor(ttl = 4000) { this.map = new Map(); this.reaper = setTimeout(() => this.map.clear(), ttl); }\n"
            "  put(k, v) { this.map.set(k, v); }\n  get(k) { return this.map.get(k); }\n"
            "  close() { clearTimeout(this.reaper); }\n};\n",
            "test/session.test.js": "const { test, after } = require('node:test');\nconst assert = require('node:assert');\n"
            "const { SessionStore } = require('../lib/sessions');\nconst store = new SessionStore();\n"
            "if (process.env.FIX) after(() => store.close());\n"
            "test('keeps a session', () => { store.put('a', 1); assert.equal(store.get('a'), 1); });\n"
            "test('knows no other', () => assert.equal(store.get('b'), undefined));\n",
            "test/hash.test.js": "const { test } = require('node:test');\nconst assert = require('node:assert');\nconst c = require('node:crypto');\n"
            "test('hash', () => assert.equal(c.pbkdf2Sync('p', 's', 300000, 32, 'sha256').length, 32));\n",
            "test/url.test.js": "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
            "test('url', () => assert.equal(new URL('http://a/b').pathname, '/b'));\n",
            "run.sh": "set -e\n" + SETUP + "node --test test/\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ http.Server.Shutdown waits for a connection that says nothing
    Plant(
        "w9a-go-shutdown",
        "timeout",
        "go test, net/http Shutdown, an open connection",
        "the test dials the server to see that it is up and never closes that connection; http.Server.Shutdown waits 5 s until it counts a "
        "connection without request as idle: close the probe's connection before Shutdown",
        r"app\.test|test app|go test|shutdown|go.*(wait|sleep|timer|poll)",
        {
            "go.mod": "module w9a/app\n\ngo 1.19\n",
            "app.go": 'package app\n\nimport (\n\t"fmt"\n\t"net/http"\n)\n\n'
            "func New(addr string) *http.Server {\n\tm := http.NewServeMux()\n"
            '\tm.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, 42) })\n'
            "\treturn &http.Server{Addr: addr, Handler: m}\n}\n",
            "app_test.go": 'package app\n\nimport (\n\t"context"\n\t"io"\n\t"net"\n\t"net/http"\n\t"os"\n\t"testing"\n\t"time"\n)\n\n'
            'const addr = "127.0.0.1:18406"\n\n'
            "func TestSum(t *testing.T) {\n\ts := New(addr)\n\tgo s.ListenAndServe()\n\tvar probe net.Conn\n\tvar err error\n"
            "\tfor i := 0; i < 200; i++ {\n"
            '\t\tif probe, err = net.Dial("tcp", addr); err == nil {\n\t\t\tbreak\n\t\t}\n\t\ttime.Sleep(10 * time.Millisecond)\n\t}\n'
            "\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n"
            '\tif os.Getenv("FIX") != "" {\n\t\tprobe.Close()\n\t}\n'
            '\tr, err := http.Get("http://" + addr + "/sum")\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n'
            '\tb, _ := io.ReadAll(r.Body)\n\tr.Body.Close()\n\tif string(b) != "42" {\n\t\tt.Fatal(string(b))\n\t}\n'
            "\tif err := s.Shutdown(context.Background()); err != nil {\n\t\tt.Fatal(err)\n\t}\n\tprobe.Close()\n}\n",
            "setup.sh": "set -e\nexport GOCACHE=$PWD/gocache GOPROXY=off GOFLAGS=-mod=mod\n"
            "go vet .\ngo test -count=1 -run NoSuchTest .\ntouch .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + "export GOCACHE=$PWD/gocache GOPROXY=off GOFLAGS=-mod=mod\ngo test -count=1 -v .\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ a compiler's JVM for each file
    Plant(
        "w9a-javac-each",
        "wrapper",
        "javac, a JVM for each file",
        "the script starts javac, a JVM that compiles itself warm, once for each of six small sources: give all of them to one javac "
        "(javac -d out src/*.java)",
        r"javac|java|JVM",
        {
            "setup.sh": "set -e\nmkdir -p src\nfor i in 1 2 3 4 5 6; do\n"
            '  echo "public class Part$i { public static String name() { return \\"part$i \\" + java.util.List.of(1, $i).stream()'
            '.map(x -> x + 1).toList(); } }" > src/Part$i.java\ndone\ntouch .prepared\n',
            "run.sh": "set -e\n" + SETUP + "rm -rf out\nmkdir out\n"
            'if [ -n "$FIX" ]; then javac -d out src/*.java\n'
            "else for f in src/*.java; do javac -d out -cp out $f; done; fi\nls out | wc -l\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ the longest job is started last
    Plant(
        "w9a-parallel-longest-last",
        "order",
        "GNU parallel, a pool of two, its tail",
        "parallel -j2 takes the suites by name, so that zz-e2e, 2.8 s of CPU, starts last and runs alone on one CPU: start the longest "
        "first (or split it)",
        r"zz-e2e|longest|started last|tail|alone",
        {
            "burn.py": BURN,
            "setup.sh": "set -e\nmkdir -p suites\n"
            'for n in auth billing cart docs export forms groups hooks; do echo "exec /usr/bin/python3 burn.py 0.4 $n" > suites/$n.sh; done\n'
            'echo "exec /usr/bin/python3 burn.py 2.8 zz-e2e" > suites/zz-e2e.sh\ntouch .prepared\n',
            "run.sh": "set -e\n" + SETUP + 'O=\n[ -z "$FIX" ] || O=-r\n'
            "export PARALLEL_HOME=$PWD/.parallel\nmkdir -p .parallel\n: > .parallel/will-cite\n"
            "ls suites | sort $O | parallel -j2 sh suites/{}\n",
        },
        "sh setup.sh",
        # From the CPU seconds of its processes: the machine was loaded when it was written.
        quiet=(4.8, 3.3),
    ),
    # ------------------------------------------------------------------ a commit, and its fsyncs, for each row
    Plant(
        "w9a-sqlite-autocommit",
        "disk",
        "sqlite3, fsync for each row",
        "fixtures.sql has no transaction, so sqlite3 commits, and syncs journal, directory and database, for each of its rows: "
        "BEGIN and COMMIT around them (or synchronous=off for a test database)",
        r"sqlite|fsync|fdatasync|disk|sync|commit",
        {
            "setup.sh": "perl mkfixtures.pl > fixtures.sql && touch .prepared\n",
            "mkfixtures.pl": 'print "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);\\n";\n'
            "print qq{INSERT INTO t VALUES ($_, 'user$_');\\n} for 1 .. 220;\n",
            "run.sh": "set -e\n" + SETUP + "rm -f test.db test.db-journal\n"
            'if [ -n "$FIX" ]; then (echo "BEGIN;"; cat fixtures.sql; echo "COMMIT;") | sqlite3 test.db\n'
            "else sqlite3 test.db < fixtures.sql; fi\n"
            "[ $(sqlite3 test.db 'SELECT count(*) FROM t') = 220 ]\n",
        },
        "sh setup.sh",
    ),
    # ------------------------------------------------------------------ a readiness poll with a long period
    Plant(
        "w9a-rake-poll",
        "poll",
        "rake (ruby), a perl service, a poll with long period",
        "the Rakefile asks every 4 s whether the service on 18407 is up; it is after 0.8 s: poll every 0.1 s",
        r"rake|ruby|poll|18407|sleep",
        {
            "setup.sh": "touch .prepared\n",
            "svc.pl": "use IO::Socket::INET;\nselect undef, undef, undef, 0.8;  # loads its tables\n"
            "my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 18407, Listen => 5, ReuseAddr => 1) or die;\n"
            'while (my $c = $l->accept) { my $q = <$c>; if (defined $q && $q =~ /^quit/) { last } print $c "pong\\n" if defined $q; close $c }\n',
            "Rakefile": "require 'socket'\n\n"
            "def ask(line)\n  s = TCPSocket.new('127.0.0.1', 18407)\n  s.puts line\n  s.gets\nrescue SystemCallError\n  nil\nensure\n  s&.close\nend\n\n"
            "task :up do\n  @pid = spawn('perl svc.pl')\n  sleep(ENV['FIX'] ? 0.1 : 4) until ask('ping')\nend\n\n"
            "task smoke: :up do\n  20.times { ask('ping') == \"pong\\n\" or abort 'bad answer' }\nend\n\n"
            "task default: :smoke do\n  ask('quit')\n  Process.wait @pid\nend\n",
            "run.sh": "set -e\n" + SETUP + "rake\n",
        },
        "sh setup.sh",
    ),
    # ================================================================== nothing to change
    Plant(
        "w9a-none-ninja-heartbeat",
        "none",
        "ninja, gcc, two CPUs, a heartbeat and a time limit beside them",
        "ninja -j2 keeps both CPUs in gcc; the perl heartbeat that prints a line each second (so that CI does not think it hangs) and "
        "`timeout 600` wait beside the work and cost nothing",
        r"(?i)nothing|no (change|advice|fault|wait)|CPUs? (are|were|is|was) (all |both |fully )?(busy|used|full)|both CPUs|CPU-bound|busy with",
        {
            "gen.pl": GEN,
            "setup.sh": "set -e\nperl gen.pl 12 55\n"
            "{ printf 'rule cc\\n command = gcc -O2 -c -o $out $in\\nrule ar\\n command = rm -f $out && ar rcs $out $in\\n'\n"
            '  for f in unit*.c; do echo "build ${f%.c}.o: cc $f"; done\n'
            "  echo build lib.a: ar $(ls unit*.c | sed 's/c$/o/'); } > build.ninja\ntouch .prepared\n",
            "run.sh": "set -e\n" + SETUP + "ninja -t clean > clean.log\n"
            "perl -e '$| = 1; while (1) { sleep 1; print \"still building\\n\" }' & H=$!\n"
            "timeout 600 ninja -j2\nkill $H\nwait $H || :\n",
        },
        "sh setup.sh",
    ),
    Plant(
        "w9a-none-go-bench",
        "none",
        "go test -bench, one CPU, a measurement with a set length",
        "the benchmark measures for -benchtime, three times, as it is told: it takes that long on any machine, and to run it beside other "
        "things, or its counts at once on both CPUs, would spoil what it measures",
        r"(?i)nothing|no (change|advice|fault|wait)|CPU-bound|bench|by design|app\.test|one CPU|busy with",
        {
            "go.mod": "module w9a/bench\n\ngo 1.19\n",
            "sum.go": "package bench\n\nfunc Sum(b []byte) (h uint32) {\n\th = 2166136261\n\tfor _, c := range b {\n\t\th = (h ^ uint32(c)) * 16777619\n\t}\n\treturn\n}\n",
            "sum_test.go": 'package bench\n\nimport "testing"\n\nvar sink uint32\n\nfunc BenchmarkSum(b *testing.B) {\n\tp := make([]byte, 4096)\n'
            "\tb.SetBytes(4096)\n\tfor i := 0; i < b.N; i++ {\n\t\tsink += Sum(p)\n\t}\n}\n",
            "setup.sh": "set -e\nexport GOCACHE=$PWD/gocache GOPROXY=off GOFLAGS=-mod=mod\ngo test -c -o bench.test .\ntouch .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + "./bench.test -test.run '^$' -test.bench . -test.benchtime 1s -test.count 3\n",
        },
        "sh setup.sh",
    ),
    Plant(
        "w9a-none-reproducible",
        "none",
        "make, gcc, the same build twice on purpose",
        "a reproducibility check: the same sources are built twice, in two directories with another TZ and locale, and the archives compared; "
        "both builds use both CPUs; that the work is done twice is the test",
        r"(?i)nothing|no (change|advice|fault|wait)|CPUs? (are|were|is|was) (all |both |fully )?(busy|used|full)|both CPUs|CPU-bound|busy with",
        {
            "gen.pl": GEN,
            "setup.sh": "set -e\nperl gen.pl 6 55\ntouch .prepared\n",
            "Makefile": "OBJS = $(patsubst ../%.c,%.o,$(sort $(wildcard ../unit*.c)))\n"
            "libunits.a: $(OBJS)\n\tar rcsD $@ $(OBJS)\n%.o: ../%.c\n\tgcc -O2 -c -o $@ $<\n",
            "run.sh": "set -e\n" + SETUP + "rm -rf first second\nmkdir first second\n"
            "TZ=UTC LC_ALL=C make -s -j2 -C first -f ../Makefile\n"
            "TZ=Asia/Tokyo LC_ALL=C.UTF-8 make -s -j2 -C second -f ../Makefile\n"
            "cmp first/libunits.a second/libunits.a\necho reproducible\nrm -rf first second\n",
        },
        "sh setup.sh",
    ),
    Plant(
        "w9a-none-java-idle-threads",
        "none",
        "java, two busy workers, idle server and scheduler threads",
        "two workers keep both CPUs busy all the time; the embedded HttpServer's accept thread, the metrics scheduler's tick each 200 ms and "
        "the main thread's awaitTermination wait beside them and must not be advised about",
        r"(?i)nothing|no (change|advice|fault|wait)|CPUs? (are|were|is|was) (all |both |fully )?(busy|used|full)|both CPUs|CPU-bound|busy with",
        {
            "Suite.java": "import com.sun.net.httpserver.HttpServer;\nimport java.net.InetSocketAddress;\nimport java.util.concurrent.*;\n"
            "import java.util.concurrent.atomic.*;\n\n"
            "public class Suite {\n  static int primes(int from, int to) { int n = 0; for (int i = from; i < to; i++) { int d = 2; "
            "while (d * d <= i && i % d != 0) d++; if (d * d > i) n++; } return n; }\n"
            "  public static void main(String[] a) throws Exception {\n"
            '    HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 18409), 0);\n    s.start();\n'
            "    AtomicInteger done = new AtomicInteger();\n"
            "    ScheduledExecutorService tick = Executors.newScheduledThreadPool(1);\n"
            '    tick.scheduleAtFixedRate(() -> System.out.println("done " + done), 200, 200, TimeUnit.MILLISECONDS);\n'
            "    ExecutorService pool = Executors.newFixedThreadPool(2);\n"
            "    LongAdder sum = new LongAdder();\n"
            '    for (int i = 0; i < 80; i++) pool.submit(() -> { sum.add(primes(2, Integer.getInteger("top", 700000))); done.incrementAndGet(); });\n'
            "    pool.shutdown();\n    pool.awaitTermination(10, TimeUnit.MINUTES);\n    tick.shutdownNow();\n    s.stop(0);\n"
            "    System.out.println(sum);\n  }\n}\n",
            "setup.sh": "set -e\nmkdir -p classes\njavac -d classes Suite.java\ntouch .prepared\n",
            "run.sh": "set -e\n" + SETUP + "java -cp classes Suite\n",
        },
        "sh setup.sh",
    ),
    Plant(
        "w9a-none-rsync-bwlimit",
        "none",
        "rsync, a rate limit that was asked for",
        "the artefact is published with --bwlimit, because others share the link: rsync sleeps between its writes to keep the rate; the time "
        "is the size divided by the rate that was asked for",
        r"(?i)nothing|no (change|advice|fault)|bwlimit|rate|by design|asked for|on purpose|rsync",
        {
            "setup.sh": "set -e\nmkdir -p dist\nopenssl rand -out dist/app.bin 4000000\ntouch .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + "rm -rf published\nrsync -a --bwlimit=1000 dist/ published/\ncmp dist/app.bin published/app.bin\n",
        },
        "sh setup.sh",
    ),
]
