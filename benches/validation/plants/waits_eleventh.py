"""Twenty builds, test runs and CI jobs, fourteen with one planted fault in how they wait or use two CPUs, six with none."""

from waits import Plant

# Waits until the server in $S has made the file ready.
UP = "while [ ! -e ready ]; do kill -0 $S || exit 1; sleep 0.02; done\n"
# What a verdict that there is nothing to change may be called.
NOTHING = (
    r"(?i)\bnothing\b|\bno (?:change|advice|fault|gain|wait|waste)|\bnone\b|by design|on purpose|(?:as|what) (?:it|they) should"
    r"|CPU[- ]bound|\bbusy\b|CPU work|comput(?:es|ing)\b|in order\b|is fine|well used"
)

PLANTS = [
    Plant(
        "w11-ctest-lock",
        "lock",
        "ctest, sqlite3; a resource lock that all tests name; CPU",
        "ctest is given two jobs, but all six tests name the same RESOURCE_LOCK though each has a database of its own in memory, so one runs at a time",
        r"(?i)RESOURCE_LOCK|ctest|one (?:test|sqlite3?|process|job|at a time)|sqlite3.*(?:one after|at once|parallel|serial)|(?:one after|at once|parallel|serial).*sqlite3",
        {
            "CMakeLists.txt": """cmake_minimum_required(VERSION 3.13)
project(store NONE)
enable_testing()
foreach(t accounts audit billing export import search)
  add_test(NAME ${t} COMMAND sh ${CMAKE_SOURCE_DIR}/test.sh ${t})
  if("$ENV{FIX}" STREQUAL "")
    set_tests_properties(${t} PROPERTIES RESOURCE_LOCK database)
  endif()
endforeach()
""",
            "test.sh": """# A report on a store of its own, in memory.
n=$(sqlite3 :memory: "create table t(x);
with recursive c(x) as (values(1) union all select x+1 from c where x<1500000) insert into t select x*7919%1000003 from c;
select count(distinct x%5000) from t;")
[ "$n" = 5000 ]
""",
            "run.sh": """set -e
rm -rf build
cmake -S . -B build >/dev/null
cd build
ctest -j2 --output-on-failure
""",
        },
        quiet=(4.0, 2.2),
    ),
    Plant(
        "w11-ninja-pool",
        "pool",
        "ninja, g++; a pool of depth 1 for compiles; CPU",
        "build.ninja puts each compile into a pool of depth 1, so ninja compiles one file at a time on two CPUs",
        r"(?i)pool|depth|ninja|cc1plus|g\+\+|compil",
        {
            "build.ninja.in": """pool heavy
  depth = @D@
rule cxx
  command = g++ -O1 -c $in -o $out
  pool = heavy
rule ar
  command = ar rc $out $in
build out/a.o: cxx a.cc
build out/b.o: cxx b.cc
build out/c.o: cxx c.cc
build out/d.o: cxx d.cc
build out/e.o: cxx e.cc
build out/f.o: cxx f.cc
build out/lib.a: ar out/a.o out/b.o out/c.o out/d.o out/e.o out/f.o
default out/lib.a
""",
            **{
                f"{c}.cc": f"""#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
int count_{c}(const std::vector<std::string> &v) {{
    std::map<std::string, int> m;
    for (auto &s : v) m[s + "{c}"]++;
    std::vector<std::pair<int, std::string>> w;
    for (auto &[s, n] : m) w.push_back({{n, s}});
    std::stable_sort(w.begin(), w.end());
    for (auto &[n, s] : w) std::cout << n << s;
    return w.size();
}}
"""
                for c in "abcdef"
            },
            "run.sh": """set -e
D=1; [ -z "$FIX" ] || D=2
sed "s/@D@/$D/" build.ninja.in >build.ninja
rm -rf out .ninja_log .ninja_deps
ninja -j2
""",
        },
        quiet=(4.0, 2.1),
    ),
    Plant(
        "w11-node-agent",
        "pool",
        "node, http agent; one socket for all requests; waits on loopback",
        "the crawler's http.Agent has maxSockets 1, so 30 requests to a server that takes 0.13 s for each go one after another",
        r"(?i)maxSockets|agent|crawl|18401|\bserver\.js|one (?:request|connection|socket|at a time)|node.*(?:server|request|socket|connection)|requests?.*(?:one after|serial|at once)",
        {
            "server.js": """// The page store: other machines need 130 ms for a page.
const http = require('http'), fs = require('fs');
http.createServer((q, r) => setTimeout(() => r.end('page ' + q.url), 130)).listen(18401, '127.0.0.1', () => fs.writeFileSync('ready', ''));
""",
            "crawl.js": """const http = require('http');
const agent = new http.Agent({ keepAlive: true, maxSockets: process.env.FIX ? 10 : 1 });
const get = n => new Promise((ok, bad) => http.get({ host: '127.0.0.1', port: 18401, path: '/' + n, agent }, r => {
  let s = ''; r.on('data', d => s += d); r.on('end', () => ok(s));
}).on('error', bad));
Promise.all(Array.from({ length: 30 }, (_, n) => get(n))).then(all => {
  agent.destroy();
  if (all.some((s, n) => s !== 'page /' + n)) process.exit(1);
  console.log(all.length + ' pages, links checked');
});
""",
            "run.sh": f"""set -e
rm -f ready
node server.js & S=$!
trap 'kill $S; wait $S || :' EXIT
{UP}node crawl.js
""",
        },
    ),
    Plant(
        "w11-java-linger",
        "timeout",
        "java, cached thread pool that is not shut down; JVM lives on idle",
        "main is done, but its cached thread pool was never shut down, so the JVM lives until the idle threads' keep-alive of 4 s is over",
        r"(?i)keep-?alive|shut ?down|executor|thread ?pool|\bpool\b|idle thread|\bjava\b|JVM|Suite",
        {
            "Suite.java": """import java.util.*;
import java.util.concurrent.*;

public class Suite {
    static long primes(int n) {
        long c = 0;
        for (int i = 2; i < n; i++) { boolean p = true; for (int j = 2; (long) j * j <= i; j++) if (i % j == 0) { p = false; break; } if (p) c++; }
        return c;
    }
    public static void main(String[] a) throws Exception {
        ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newCachedThreadPool();
        pool.setKeepAliveTime(4, TimeUnit.SECONDS);
        List<Future<Long>> l = new ArrayList<>();
        for (int i = 0; i < 2; i++) l.add(pool.submit(() -> primes(2500000)));
        for (Future<Long> f : l) if (f.get() != 183072) System.exit(1);
        System.out.println("2 tests passed");
        if (System.getenv("FIX") != null) pool.shutdown();
    }
}
""",
            "setup.sh": "[ -e Suite.class ] || javac Suite.java\n",
            "run.sh": "set -e\nsh setup.sh\njava -XX:+UseSerialGC Suite\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w11-go-mutex",
        "lock",
        "go, a mutex held over a request; waits on loopback",
        "eight goroutines fill a cache, but the cache's mutex is held over the HTTP request to a server that takes 0.15 s, so one request is under way at a time",
        r"(?i)mutex|\block|18402|cachetest|goroutine|one (?:request|at a time)|requests?.*(?:one after|serial|at once)|\bserve",
        {
            "go.mod": "module cachetest\n\ngo 1.19\n",
            "main.go": """package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const addr = "127.0.0.1:18402"

type cache struct {
	mu sync.Mutex
	m  map[string]string
}

func fetch(k string) string {
	r, err := http.Get("http://" + addr + "/" + k)
	if err != nil {
		panic(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

func (c *cache) get(k string) string {
	c.mu.Lock()
	v, ok := c.m[k]
	if !ok {
		if os.Getenv("FIX") != "" {
			c.mu.Unlock()
			v = fetch(k)
			c.mu.Lock()
		} else {
			v = fetch(k)
		}
		c.m[k] = v
	}
	c.mu.Unlock()
	return v
}

func serve() {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		panic(err)
	}
	os.WriteFile("ready", nil, 0o644)
	http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(150 * time.Millisecond)
		fmt.Fprint(w, "v"+r.URL.Path)
	}))
}

func main() {
	if len(os.Args) > 1 {
		serve()
		return
	}
	c := &cache{m: map[string]string{}}
	var wg sync.WaitGroup
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			for i := 0; i < 4; i++ {
				k := fmt.Sprintf("k%d", g*4+i)
				if c.get(k) != "v/"+k || c.get(k) != "v/"+k {
					panic(k)
				}
			}
		}(g)
	}
	wg.Wait()
	fmt.Println("ok", len(c.m), "keys")
}
""",
            "setup.sh": '[ -n "$HOME" ] || export GOCACHE=$PWD/.gocache\n[ -x cachetest ] || GOFLAGS=-mod=mod GOPROXY=off go build -o cachetest .\n',
            "run.sh": f"""set -e
sh setup.sh
rm -f ready
./cachetest serve & S=$!
trap 'kill $S; wait $S || :' EXIT
{UP}./cachetest
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w11-git-fetch",
        "jobs",
        "git over HTTP, eight remotes; waits on loopback",
        "git fetch --all asks eight remotes one after another, each with several slow requests to the server; --jobs=8 asks them at once",
        r"(?i)git(?!hub)|fetch|remotes?\b|18403|--jobs|\bhttpd\.py",
        {
            "httpd.py": """import http.server, socketserver, time
class H(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.06)
        super().do_GET()
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
s = S(("127.0.0.1", 18403), H)
open("ready", "w").close()
s.serve_forever()
""",
            "setup.sh": """[ -e repos/done ] && exit 0
set -e
rm -rf repos; mkdir repos
for i in 1 2 3 4 5 6 7 8; do
    git init -q --bare repos/r$i.git
    t=$(git -C repos/r$i.git mktree </dev/null)
    c=$(echo "part $i" | git -C repos/r$i.git -c user.name=ci -c user.email=ci@localhost commit-tree $t)
    git -C repos/r$i.git update-ref refs/heads/main $c
    git -C repos/r$i.git repack -q -a -d
    git -C repos/r$i.git update-server-info
done
touch repos/done
""",
            "run.sh": f"""set -e
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 no_proxy=127.0.0.1
sh setup.sh
rm -rf ready work
/usr/bin/python3 httpd.py & S=$!
trap 'kill $S; wait $S || :' EXIT
{UP}git init -q work
for i in 1 2 3 4 5 6 7 8; do git -C work remote add r$i http://127.0.0.1:18403/repos/r$i.git; done
J=1; [ -z "$FIX" ] || J=8
git -C work -c gc.auto=0 fetch -q --all --jobs=$J
[ "$(git -C work branch -r | wc -l)" = 8 ]
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w11-curl-backoff",
        "retry",
        "curl, perl; retries with back-off until a server listens",
        "curl --retry doubles its pause (1, 2, 4 s): the server listens after 3.3 s of building its index, but curl asks again only at 7 s",
        r"(?i)\bcurl\b|retr(?:y|ies)|back-?off|18404|refused",
        {
            "indexd.pl": """# Builds its index, then listens.
use strict; use warnings; use IO::Socket::INET; use Time::HiRes 'time';
my ($n, $t0, %h) = (0, time);
while (time - $t0 < 3.3) { for (1..2000) { $h{++$n % 5000} .= '' } }
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1:18404', Listen => 5, ReuseAddr => 1) or die $!;
while (my $c = $s->accept) {
    while (<$c>) { last if /^\\r?$/ }
    print $c "HTTP/1.0 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\nok\\n";
    close $c;
}
""",
            "run.sh": """set -e
perl indexd.pl & S=$!
trap 'kill $S; wait $S || :' EXIT
U=http://127.0.0.1:18404/health
if [ -z "$FIX" ]; then
    curl -sf --noproxy '*' --retry 6 --retry-connrefused $U
else
    until curl -sf --noproxy '*' $U; do kill -0 $S; sleep 0.1; done
fi
""",
        },
    ),
    Plant(
        "w11-erl-shutdown",
        "timeout",
        "erlang, supervisor's shutdown time-out; beam idle",
        "at the end of each of two suites the supervisor waits its whole shutdown time-out of 2 s for a worker that traps exits and ignores the exit message",
        r"(?i)shut ?down|supervisor|time-?out|terminat|\bbeam|\berl\b|erlang|erts|suite|worker",
        {
            "worker.erl": """-module(worker).
-export([start_link/0, init/1]).

start_link() -> proc_lib:start_link(?MODULE, init, [self()]).

init(Parent) ->
    process_flag(trap_exit, true),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop(Parent, os:getenv("FIX") =/= false).

loop(Parent, Fixed) ->
    receive
        {sum, From, N} -> From ! {sum, sum(N, 0)}, loop(Parent, Fixed);
        {'EXIT', Parent, Why} when Fixed -> exit(Why);
        _ -> loop(Parent, Fixed)
    end.

sum(0, S) -> S;
sum(N, S) -> sum(N - 1, (S * 31 + N) rem 1000003).
""",
            "suite.erl": """-module(suite).
-behaviour(supervisor).
-export([main/0, init/1]).

init([]) ->
    {ok, {#{}, [#{id => worker, start => {worker, start_link, []}, shutdown => 2000}]}}.

suite(Name) ->
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(?MODULE, []),
    [{_, Pid, _, _}] = supervisor:which_children(Sup),
    Pid ! {sum, self(), 60000000},
    receive {sum, _} -> ok end,
    exit(Sup, shutdown),
    receive {'EXIT', Sup, _} -> ok end,
    io:format("~s passed~n", [Name]).

main() -> suite("parser"), suite("store"), halt(0).
""",
            "setup.sh": "[ -e suite.beam ] || erlc worker.erl suite.erl\n",
            "run.sh": "set -e\nsh setup.sh\nerl -noshell -pa . -s suite main\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w11-ruby-poll",
        "poll",
        "ruby, waitpid with WNOHANG; a poll with a long period",
        "the ruby runner asks every 1.5 s whether its step has ended (three steps of 0.6 s, each needing the one before); Process.wait returns at once",
        r"(?i)\bruby|pipeline\.rb|sleep|poll|waitpid",
        {
            "pipeline.rb": """# Runs the steps, each on the output of the one before.
STEPS = [%w[extract 1], %w[transform 2], %w[load 3]]
STEPS.each do |name, n|
  pid = Process.spawn('awk', '-f', 'step.awk', "out/#{n.to_i - 1}", out: "out/#{n}")
  if ENV['FIX']
    Process.wait(pid)
  else
    sleep 1.5 until Process.waitpid(pid, Process::WNOHANG)
  end
  abort "#{name} failed" unless $?.success?
  puts "#{name} done"
end
""",
            "step.awk": """{ s = $1 }
END { for (i = 0; i < 4500000; i++) s = (s * 69069 + i) % 1000003; print s }
""",
            "run.sh": "set -e\nrm -rf out; mkdir out; echo 17 >out/0\nruby pipeline.rb\n[ -s out/3 ]\n",
        },
    ),
    Plant(
        "w11-r-longest-last",
        "pool",
        "R, mclapply; the longest task is last in the pool; CPU",
        "mclapply on two cores takes eight models of 0.5 s first and starts the one of 3.4 s last, so one CPU idles while it runs; started first it runs beside the others",
        r"(?i)longest|\blast\b|alone|one (?:CPU|core|process)|mclapply|Rscript|fit\.R|exec/R\b|(?-i:\bR\b)",
        {
            "fit.R": """library(parallel)
# The seconds that each model took at its last fit.
cost <- c(rep(0.5, 8), 3.4)
if (Sys.getenv("FIX") != "") cost <- sort(cost, decreasing = TRUE)
fit <- function(s) {
  t0 <- proc.time()[["user.self"]]
  k <- 0
  while (proc.time()[["user.self"]] - t0 < s) k <- k + sum(solve(matrix(c(2, 1, 1, 3), 2)))
  k > 0
}
r <- mclapply(cost, fit, mc.cores = 2, mc.preschedule = FALSE)
stopifnot(length(r) == 9, all(unlist(r)))
cat("9 models fitted\\n")
""",
            "run.sh": "set -e\nexport OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1\nRscript --vanilla fit.R\n",
        },
        quiet=(5.8, 4.2),
    ),
    Plant(
        "w11-javac-each",
        "wrapper",
        "javac, sh; a compiler started for each file; CPU",
        "the script starts javac (a JVM and a cold compiler) for each of seven sources that one javac would compile together",
        r"(?i)javac|\bjava\b|JVM|compiler.*start|start.*compiler",
        {
            "setup.sh": """[ -e src/P7.java ] && exit 0
mkdir -p src
for i in 1 2 3 4 5 6 7; do
    cat >src/P$i.java <<E
import java.util.*;
import java.util.stream.*;
public class P$i {
    public static Map<Integer, List<String>> by(List<String> l) { return l.stream().filter(s -> s.length() > $i).collect(Collectors.groupingBy(String::length)); }
    public static void main(String[] a) { System.out.println(by(Arrays.asList(a))); }
}
E
done
""",
            "run.sh": """set -e
sh setup.sh
rm -rf out; mkdir out
if [ -z "$FIX" ]; then
    for f in src/*.java; do javac -d out "$f"; done
else
    javac -d out src/*.java
fi
[ "$(ls out | wc -l)" = 7 ]
""",
        },
        prepare="sh setup.sh",
        quiet=(4.2, 0.7),
    ),
    Plant(
        "w11-tmux-sleep",
        "sleep",
        "tmux; a fixed pause after each key in place of a signal",
        "the terminal test sleeps 1 s after each of four commands that it types into tmux though each is done in 0.1 s; tmux wait-for tells when it is",
        r"(?i)\bsleeps?\b|paus|tmux|screen\.sh",
        {
            "screen.sh": """# A test of the program's terminal output.
T="tmux -L w11-$$ -f /dev/null"
trap '$T kill-server' EXIT
$T new-session -d -x 80 -y 24 'exec sh'
for n in 3 5 7 9; do
    if [ -z "$FIX" ]; then
        $T send-keys "awk -f table.awk n=$n" Enter
        sleep 1
    else
        $T send-keys "awk -f table.awk n=$n; $T wait-for -S t$n" Enter
        $T wait-for t$n
    fi
    $T capture-pane -p | grep -q "sum of $n: $((n * (n + 1) / 2))" || { echo "no sum of $n"; exit 1; }
    echo "ok $n"
done
""",
            "table.awk": 'BEGIN { n = substr(ARGV[1], 3) + 0; for (i = 1; i <= n; i++) s += i; for (i = 0; i < 500000; i++) x += i % 7; print "sum of " n ": " s }\n',
            "run.sh": 'unset TMUX\nexport LC_ALL=C.UTF-8 TERM=xterm TMUX_TMPDIR=$(mktemp -d)\nsh screen.sh\nR=$?\nrm -rf "$TMUX_TMPDIR"\nexit $R\n',
        },
    ),
    Plant(
        "w11-tcl-eof",
        "server",
        "tclsh, node; a client that reads to the end of a kept-alive connection",
        "the Tcl client reads until the server closes, but asks with HTTP/1.1 and no 'Connection: close', so each of three reads lasts until node's keep-alive time-out (0.7 s and the second that node adds)",
        r"(?i)tclsh|probe\.tcl|keep-?alive|18405|connection|close|api\.js|node",
        {
            "api.js": """const http = require('http'), fs = require('fs');
const s = http.createServer((q, r) => r.end(JSON.stringify({ path: q.url, ok: true })));
s.keepAliveTimeout = 700;
s.listen(18405, '127.0.0.1', () => fs.writeFileSync('ready', ''));
""",
            "probe.tcl": """proc get {path} {
    set s [socket 127.0.0.1 18405]
    fconfigure $s -translation crlf
    puts $s "GET $path HTTP/1.1\\nHost: localhost"
    if {[info exists ::env(FIX)]} { puts $s "Connection: close" }
    puts $s ""
    flush $s
    set all [read $s]
    close $s
    return $all
}
foreach p {/health /version /metrics} {
    if {![string match "*\\"path\\":\\"$p\\",\\"ok\\":true*" [get $p]]} { puts "bad $p"; exit 1 }
    puts "ok $p"
}
""",
            "run.sh": f"""set -e
rm -f ready
node api.js & S=$!
trap 'kill $S; wait $S || :' EXIT
{UP}tclsh probe.tcl
""",
        },
    ),
    Plant(
        "w11-make-loop",
        "serial",
        "make, rustc; a shell loop in a recipe; CPU",
        "make -j2 has one target whose recipe loops over five independent crates in the shell, so rustc runs once at a time; a target for each crate uses both CPUs",
        r"(?i)rustc|crates?\b|\bmake\b|one (?:after|at a time)|recipe|shell loop",
        {
            "Makefile": """CRATES = ast lexer parser types emit
RUSTC = MAKEFLAGS= rustc --edition 2021 --crate-type rlib -O -C codegen-units=1
ifdef FIX
all: $(CRATES:%=out/lib%.rlib)
out/lib%.rlib: src/%.rs
	$(RUSTC) -o $@ $<
else
all:
	for c in $(CRATES); do $(RUSTC) -o out/lib$$c.rlib src/$$c.rs || exit 1; done
endif
""",
            "setup.sh": """[ -e src/emit.rs ] && exit 0
mkdir -p src
for c in ast lexer parser types emit; do
    {
        echo "use std::collections::{BTreeMap, HashMap};"
        for i in $(seq 1 2); do
            echo "pub fn ${c}_$i(v: &[String]) -> Vec<(String, usize)> {
    let mut h: HashMap<(String, [u8; $i]), usize> = HashMap::new();
    for s in v { *h.entry((s.to_lowercase(), [s.len() as u8; $i])).or_insert(0) += $i; }
    let b: BTreeMap<(usize, [u8; $i]), String> = h.iter().map(|((s, k), n)| ((*n, *k), format!(\\"{s:>5}{n}\\"))).collect();
    let mut r: Vec<(String, usize)> = b.into_iter().map(|((n, _), s)| (s, n)).collect();
    r.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    r
}"
        done
    } >src/$c.rs
done
""",
            "run.sh": 'set -e\nsh setup.sh\nrm -rf out; mkdir out\nmake -j2 ${FIX:+FIX=1}\n[ "$(ls out/*.rlib | wc -l)" = 5 ]\n',
        },
        prepare="sh setup.sh",
        quiet=(4.2, 2.5),
    ),
    Plant(
        "w11-pgo",
        "none",
        "gcc; one file compiled twice by design; CPU",
        "nothing: a profile-guided build compiles the file, trains it and compiles it again with the profile, each step needing the one before",
        NOTHING,
        {
            "setup.sh": """[ -e vm.c ] && exit 0
{
    echo '#include <stdio.h>'
    echo '#include <stdlib.h>'
    for i in $(seq 1 120); do
        echo "static unsigned f$i(unsigned x) { unsigned a[16], s = x; for (int i = 0; i < 16; i++) a[i] = x * (i + $i) ^ (s >> 3); for (int i = 1; i < 16; i++) { if (a[i] % $((i + 2)) == 1) s += a[i - 1]; else s ^= a[i] << (i & 7); } switch (s % 5) { case 0: return s + $i; case 1: return s * 3; case 2: return s ^ x; default: return s - a[s % 16]; } }"
    done
    echo 'typedef unsigned (*op)(unsigned);'
    echo 'static op ops[] = {'
    for i in $(seq 1 120); do echo "f$i,"; done
    echo '};'
    echo 'int main(int n, char **v) { unsigned x = 1; long k = atol(v[1]); for (long i = 0; i < k; i++) x = ops[x % 120](x + i); printf("%u\\\\n", x); return n != 2; }'
} >vm.c
""",
            "run.sh": """set -e
sh setup.sh
rm -rf out; mkdir out
gcc -O2 -fprofile-generate -fprofile-update=single -o out/vm-train vm.c
(cd out && ./vm-train 6000000 >want)
for f in out/*.gcda; do cp "$f" out/vm.gcda; done
gcc -O2 -fprofile-use=out/vm.gcda -Wno-missing-profile -o out/vm vm.c
./out/vm 6000000 | cmp - out/want
""",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w11-load-rate",
        "none",
        "node; a load test of fixed rate and length",
        "nothing: the load test sends 25 requests per second for 4 s and measures the latency, so its length and its pauses are what it is for",
        NOTHING,
        {
            "server.js": """const http = require('http'), fs = require('fs');
http.createServer((q, r) => { let x = 0; for (let i = 0; i < 300000; i++) x += i % 7; r.end('' + x); }).listen(18406, '127.0.0.1', () => fs.writeFileSync('ready', ''));
""",
            "load.js": """// node load.js RATE SECONDS: requests at a fixed rate whether or not the last was answered; prints and checks the latency.
const http = require('http');
const [rate, seconds] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });
const took = [];
let sent = 0;
const tick = setInterval(() => {
  const t = process.hrtime.bigint();
  http.get({ host: '127.0.0.1', port: 18406, agent }, r => r.resume().on('end', () => {
    took.push(Number(process.hrtime.bigint() - t) / 1e6);
    if (took.length === rate * seconds) report();
  }));
  if (++sent === rate * seconds) clearInterval(tick);
}, 1000 / rate);
function report() {
  agent.destroy();
  took.sort((a, b) => a - b);
  const p = q => took[Math.floor(q * (took.length - 1))];
  console.log(`${rate}/s for ${seconds} s: p50 ${p(.5).toFixed(1)} ms, p95 ${p(.95).toFixed(1)} ms`);
  process.exit(p(.5) < 250 ? 0 : 1);
}
""",
            "run.sh": f"""set -e
rm -f ready
node server.js & S=$!
trap 'kill $S; wait $S || :' EXIT
{UP}node load.js 25 4
""",
        },
    ),
    Plant(
        "w11-heartbeat",
        "none",
        "make -j2, clang, perl; a heartbeat beside the work; both CPUs busy",
        "nothing: clang is busy on both CPUs; the heartbeat that sleeps beside it keeps the CI's silence watchdog quiet and holds nobody up",
        NOTHING,
        {
            "heartbeat.pl": '# The CI kills jobs that are silent for long.\n$| = 1;\nwhile (1) { sleep 1; print "still building\\n" }\n',
            "Makefile": "all: out/a.o out/b.o out/c.o out/d.o out/e.o out/f.o out/g.o out/h.o\nout/%.o: %.cpp\n\tclang++ -std=c++17 -O2 -c $< -o $@\n",
            **{
                f"{c}.cpp": f"""#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
void tally_{c}(const std::vector<std::string> &v) {{
    std::map<std::string, int> m;
    for (auto &s : v) m[s.substr(0, 4) + "{c}"]++;
    std::vector<std::pair<int, std::string>> w;
    for (auto &[s, n] : m) w.push_back({{n, s}});
    std::sort(w.begin(), w.end());
    for (auto &[n, s] : w) std::cout << n << s;
}}
"""
                for c in "abcdefgh"
            },
            "run.sh": """set -e
rm -rf out; mkdir out
perl heartbeat.pl & H=$!
trap 'kill $H; wait $H || :' EXIT
timeout 300 make -j2
""",
        },
    ),
    Plant(
        "w11-go-fuzz",
        "none",
        "go test -fuzz; a budget of time; both CPUs busy",
        "nothing: the fuzzing has a budget of 4 s that it uses with two busy workers; what it finds is bought with that time",
        NOTHING,
        {
            "go.mod": "module roman\n\ngo 1.19\n",
            "roman.go": """package roman

var digits = []struct {
	n int
	s string
}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}}

// Format writes n in Roman digits.
func Format(n int) (s string) {
	for _, d := range digits {
		for n >= d.n {
			n -= d.n
			s += d.s
		}
	}
	return s
}

// Parse reads Roman digits.
func Parse(s string) (n int) {
	for _, d := range digits {
		for len(s) >= len(d.s) && s[:len(d.s)] == d.s {
			n += d.n
			s = s[len(d.s):]
		}
	}
	return n
}
""",
            "roman_test.go": """package roman

import "testing"

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint16(1994))
	f.Fuzz(func(t *testing.T, n uint16) {
		if got := Parse(Format(int(n))); got != int(n) {
			t.Fatalf("%d became %d", n, got)
		}
	})
}
""",
            "setup.sh": '[ -n "$HOME" ] || export GOCACHE=$PWD/.gocache\n[ -x roman.test ] || GOFLAGS=-mod=mod GOPROXY=off go test -c -fuzz=Fuzz -vet=off -o roman.test .\n',
            "run.sh": "set -e\nsh setup.sh\nrm -rf corpus; mkdir corpus\n./roman.test -test.run='^$' -test.fuzz=FuzzRoundTrip -test.fuzztime=4s -test.parallel=2 -test.fuzzcachedir=$PWD/corpus\n",
        },
        prepare="sh setup.sh",
    ),
    Plant(
        "w11-chain",
        "none",
        "make -j2, perl; a chain of true dependences; one CPU",
        "nothing: each of five migrations reads what the one before wrote, so one CPU must idle; more jobs gain nothing",
        NOTHING,
        {
            "Makefile": "all: out/5.db\n"
            + "".join(f"out/{i}.db: out/{i - 1}.db\n\tperl migrate.pl $< $@\n" for i in range(1, 6)),
            "migrate.pl": """# Rewrites a ledger: each row's seal covers all the rows before it and the old seal.
use strict; use warnings;
my ($in, $out) = @ARGV;
open my $i, '<', $in or die; my @rows = <$i>; close $i;
my $seal = @rows;
for my $round (1 .. 450) { for (@rows) { chomp; my ($n, $s) = split / /; $seal = ($seal * 69069 + $s + $n) % 2147483647; $_ = "$n $seal" } }
open my $o, '>', $out or die; print $o "$_\\n" for @rows; close $o or die;
""",
            "run.sh": """set -e
rm -rf out; mkdir out
seq 1 8000 | sed 's/$/ 1/' >out/0.db
make -j2
[ "$(wc -l <out/5.db)" = 8000 ]
""",
        },
    ),
    Plant(
        "w11-bats-flock",
        "none",
        "bats, flock; a test that measures a time-out",
        "nothing: the test checks that the deploy lock gives up after the promised 3 s and not sooner, so it has to wait for them",
        NOTHING,
        {
            "deploy.sh": """# Runs its command under the deploy lock; gives up after 3 s, as the manual promises.
exec flock -w 3 -E 75 deploy.lock "$@"
""",
            "deploy.bats": """setup() { rm -f deploy.lock; }

@test "runs when nobody holds the lock" {
    run sh deploy.sh echo done
    [ "$output" = done ]
}

@test "gives up after 3 seconds and not sooner" {
    exec 8>deploy.lock
    flock 8
    t0=$(date +%s%N)
    run sh deploy.sh true 8>&-
    ms=$((($(date +%s%N) - t0) / 1000000))
    [ "$status" = 75 ]
    [ "$ms" -ge 2990 ]
    [ "$ms" -lt 4500 ]
}

@test "passes the command's status on" {
    run sh deploy.sh sh -c 'exit 9'
    [ "$status" = 9 ]
}
""",
            "run.sh": "bats deploy.bats\n",
        },
    ),
]
