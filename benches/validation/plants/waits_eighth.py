"""The eighth author's builds, test runs and CI jobs with one planted fault in how they wait, or none.

Ports 18400 to 18411 of loopback. run.sh makes its products by setup.sh where they are missing; FIX=1 runs without the fault.
"""

from waits import Plant

PYTHON = "/usr/bin/python3"
# What a verdict of "nothing to change" may be called.
NONE = r"(?i)\bnothing\b|\bno (fault|change|advice|wait|gain|saving)|\bnot? .*\b(change|gain|save|repair)|by design|as (it )?should"
SETUP = "[ -e .made ] || sh setup.sh\n"
MADE = "\n: > .made\n"
PREPARE = "[ -e .made ] || sh setup.sh"


PLANTS = []


def plant(name, kind, axes, answer, line, files, **more):
    if "setup.sh" in files:
        files["setup.sh"] = "set -e\n" + files["setup.sh"].rstrip("\n") + MADE
        files["run.sh"] = SETUP + files["run.sh"]
        more.setdefault("prepare", PREPARE)
    PLANTS.append(Plant(name, kind, axes, answer, line, files, **more))


# 1. Java: a pool that nobody shuts down.
plant(
    "java_idle_pool",
    "exit",
    "java, thread pool, keep-alive",
    "Verify has printed its result after about a second, but the JVM stays until the pool's idle workers reach their keep-alive of 4 s, as nobody calls shutdown()",
    r"(?i)\bjava\b|\bVerify\b|keep.?alive|pool|executor",
    {
        "setup.sh": "mkdir -p out\njavac -d out Verify.java\n",
        "run.sh": "set -e\njava -Xshare:auto -cp out Verify\n",
        "Verify.java": r"""
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;

public class Verify {
    static String digest(int seed) throws Exception {
        byte[] b = new byte[1 << 20];
        new Random(seed).nextBytes(b);
        MessageDigest d = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < 40; i++) d.update(b);
        return HexFormat.of().formatHex(d.digest());
    }
    public static void main(String[] a) throws Exception {
        // What Executors.newCachedThreadPool() makes, with a shorter keep-alive.
        ExecutorService pool = new ThreadPoolExecutor(0, 8, 4, TimeUnit.SECONDS, new SynchronousQueue<>());
        List<Future<String>> all = new ArrayList<>();
        for (int i = 0; i < 6; i++) { final int n = i; all.add(pool.submit(() -> digest(n))); }
        for (Future<String> f : all) System.out.println(f.get().substring(0, 16));
        System.out.println("6 artefacts verified");
        if (System.getenv("FIX") != null) pool.shutdown();
    }
}
""",
    },
)

# 2. Ruby: the absence of a text is waited for with the presence's time-out.
plant(
    "rspec_negative_wait",
    "timeout",
    "ruby, rspec, polling assertion",
    "two examples refute `has_text?`, which polls its full 2 s for a text that must never come; has_no_text?, content at once when the text is absent, takes no time",
    r"(?i)rspec|page_spec|spec[/.]|\bruby\b|has_(no_)?text",
    {
        ".rspec": "--require ./spec/support\n",
        "run.sh": "set -e\nrspec spec/page_spec.rb spec/price_spec.rb\n",
        "spec/support.rb": r"""
class Page
  WAIT = 2.0
  attr_reader :text
  def initialize; @text = "Inbox (3) Alice Bob Carol"; end
  def delete(name) = @text = @text.sub(name, "")
  def load_later(t) = Thread.new { sleep 0.15; @text += " #{t}" }
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  def polled
    limit = now + WAIT
    until (good = yield) || now > limit do sleep 0.05 end
    good
  end
  def has_text?(t) = polled { @text.include?(t) }
  def has_no_text?(t) = polled { !@text.include?(t) }
end
def assert(good) = good || raise("failed")
def assert_absent(page, t) = ENV["FIX"] ? assert(page.has_no_text?(t)) : assert(!page.has_text?(t))
""",
        "spec/page_spec.rb": r"""
RSpec.describe Page do
  let(:page) { Page.new }
  it("lists the senders") { assert page.has_text?("Alice") }
  it("loads more") { page.load_later("Dave"); assert page.has_text?("Dave") }
  it("forgets a deleted mail") { page.delete("Bob"); assert_absent page, "Bob" }
  it("shows no error") { page.delete("Carol"); assert_absent page, "Error" }
end
""",
        "spec/price_spec.rb": r"""
RSpec.describe "prices" do
  40.times { |i| it("rounds #{i}") { assert (1..20_000).sum { |n| (n * i * 1.19).round(2) } >= 0 } }
end
""",
    },
)

# 3. PHP: the session's lock makes the requests of one user take turns.
plant(
    "php_session_lock",
    "lock",
    "php, web server, session file lock, curl",
    "report.php keeps the session open (and its file locked) while it waits 0.9 s for its backend, so one user's five requests take turns though six workers are there; session_write_close() before the wait",
    r"(?i)\bphp|session|sess_|report\.php",
    {
        "run.sh": r"""set -e
rm -rf sess; mkdir sess
PHP_CLI_SERVER_WORKERS=6 setsid php -d session.save_path="$PWD/sess" -S 127.0.0.1:18403 -t www >server.log 2>&1 & S=$!
trap 'kill -TERM -$S 2>/dev/null || :; wait $S 2>/dev/null || :; while pgrep -g $S -r R,S,D >/dev/null; do sleep 0.02; done' EXIT
until curl -sf -o login.txt -c jar http://127.0.0.1:18403/login.php; do sleep 0.03; done
C=
for n in 1 2 3 4 5; do curl -sf -b jar -o out.$n "http://127.0.0.1:18403/report.php?n=$n" & C="$C $!"; done
for c in $C; do wait $c; done
grep -q 'report 5 of alice' out.5
echo "5 widgets loaded"
""",
        "www/login.php": '<?php session_start(); $_SESSION["user"] = "alice"; echo "in";\n',
        "www/report.php": r"""<?php
session_start();
$user = $_SESSION["user"] ?? "nobody";
if (getenv("FIX")) session_write_close();
usleep(900000); // the reporting backend's answer
echo "report ", (int)$_GET["n"], " of $user\n";
""",
    },
)

# 4. Go: packages one after the other.
_go = {
    f"{p}/{p}.go": f"package {p}\n\nfunc Step(x uint64) uint64 {{ x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x }}\n"
    for p in ("ledger", "router", "codec", "index")
}
_go |= {
    f"{p}/{p}_test.go": f"""package {p}

import "testing"

func TestLongRun(t *testing.T) {{
	x := uint64(88172645463325252)
	for i := 0; i < 550000000; i++ {{ x = Step(x) }}
	if x == 0 {{ t.Fatal("stuck at 0") }}
}}
"""
    for p in ("ledger", "router", "codec", "index")
}
plant(
    "go_test_p1",
    "serial",
    "go, go test -p 1",
    "`go test -p 1` was left over from a debugging session: four packages are linked and tested one after the other, though they share nothing; without -p 1 two run at once",
    r"(?i)\bgo\b|-p[ =]1|\.test\b|ledger|router|codec|index",
    {
        "go.mod": "module example.test/shop\n\ngo 1.19\n",
        "setup.sh": "go vet ./...\ngo test -count=1 -run XXX ./...\n",
        "run.sh": 'set -e\nexport GOFLAGS=-mod=mod GOPROXY=off\nP="-p 1"; [ -z "$FIX" ] || P=\ngo test $P -count=1 ./...\n',
        **_go,
    },
)

# 5. Rust: two cargos share one target directory.
_build_rs = r"""
fn main() {
    println!("cargo:rerun-if-changed=tables.txt");
    let mut x: u64 = 88172645463325252;
    let mut n: u64 = 0;
    while n < 300_000_000 {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        n += 1;
    }
    let out = std::env::var("OUT_DIR").unwrap();
    std::fs::write(format!("{out}/table.rs"), format!("pub const SEED: u64 = {x};\n")).unwrap();
}
"""
_cargo = {}
for _c in ("firmware", "hosttool"):
    _cargo[f"{_c}/Cargo.toml"] = (
        f'[package]\nname = "{_c}"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n\n[workspace]\n'
    )
    _cargo[f"{_c}/build.rs"] = _build_rs
    _cargo[f"{_c}/tables.txt"] = "crc32\n"
    _cargo[f"{_c}/src/main.rs"] = (
        'include!(concat!(env!("OUT_DIR"), "/table.rs"));\nfn main() { println!("{}", SEED % 1000); }\n'
    )
plant(
    "cargo_shared_target",
    "lock",
    "rust, cargo, build directory lock",
    "both crates are built at once but share CARGO_TARGET_DIR, so the second cargo is blocked on the build directory's file lock until the first has ended; a target directory each lets them overlap",
    r"(?i)cargo|target|build directory|\block\b",
    {
        "setup.sh": "for c in firmware hosttool; do\n"
        "(cd $c; CARGO_TARGET_DIR=../target cargo build -q --offline; CARGO_TARGET_DIR=../target-$c cargo build -q --offline)\ndone\n",
        "run.sh": r"""set -e
for c in firmware hosttool; do touch $c/tables.txt; done
C=
for c in firmware hosttool; do
  T=$PWD/target; [ -z "$FIX" ] || T=$PWD/target-$c
  ( cd $c; CARGO_TARGET_DIR=$T exec cargo build --offline ) & C="$C $!"
done
for c in $C; do wait $c; done
""",
        **_cargo,
    },
)

# 6. C++: a resource lock on tests that don't use the resource.
plant(
    "ctest_resource_lock",
    "lock",
    "c++, cmake, ctest -j2, RESOURCE_LOCK",
    "all six solver tests carry RESOURCE_LOCK board, though only flash_board uses the board: `ctest -j2` runs them one at a time; the lock belongs on that one alone",
    r"(?i)ctest|RESOURCE_LOCK|solver|\bboard\b",
    {
        "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(control CXX)
set(CMAKE_BUILD_TYPE Release)
option(LOCK_ALL "every test has the board" ON)
add_executable(solver solver.cpp)
enable_testing()
add_test(NAME flash_board COMMAND solver 1)
set_tests_properties(flash_board PROPERTIES RESOURCE_LOCK board)
foreach(n 2 3 4 5 6)
  add_test(NAME solver_${n} COMMAND solver ${n})
  if(LOCK_ALL)
    set_tests_properties(solver_${n} PROPERTIES RESOURCE_LOCK board)
  endif()
endforeach()
""",
        "solver.cpp": r"""
#include <cmath>
#include <cstdio>
#include <cstdlib>
int main(int, char **v) {
    double x = std::atoi(v[1]), y = 0;
    for (long i = 0; i < 45000000; i++) { y += std::sin(x) * 1e-3; x = std::fmod(x + y, 6.28) + 1e-6; }
    std::printf("%g\n", y);
    return std::isnan(y);
}
""",
        "setup.sh": "cmake -S . -B locked -DLOCK_ALL=ON >cmake.log\ncmake --build locked >>cmake.log\ncmake -S . -B free -DLOCK_ALL=OFF >>cmake.log\ncmake --build free >>cmake.log\n",
        "run.sh": 'set -e\nB=locked; [ -z "$FIX" ] || B=free\nctest --test-dir $B -j2 --output-on-failure\n',
    },
)

# 7. Embedded: expect waits out its time-out, as the prompt is written otherwise.
plant(
    "expect_wrong_prompt",
    "timeout",
    "embedded, expect, serial console",
    "the script expects `login as:` but the board says `login:`, so expect waits its whole time-out of 4 s and then goes on; with the right pattern it answers at once",
    r"(?i)expect|flash\.exp|login|board|time.?out",
    {
        "run.sh": "set -e\nexpect flash.exp\ngrep -q 'image ok' flash.log\necho flashed\n",
        "flash.exp": r"""
log_file -noappend flash.log
set prompt "login as:"
if {[info exists env(FIX)]} { set prompt "login:" }
set timeout 4
spawn -noecho sh board.sh
expect $prompt {} timeout {}
set timeout 10
send "root\r"
expect "# "
send "verify\r"
expect "image ok"
send "exit\r"
expect eof
""",
        "board.sh": r"""
stty -echo
for s in "U-Boot SPL" "DRAM: 512 MiB" "Loading kernel" "Starting init"; do echo "$s"; sleep 0.2; done
printf 'board login: '
read user
printf 'board# '
while read cmd; do
  case $cmd in
  verify) head -c 60000000 /dev/zero | cksum; echo "image ok"; printf 'board# ' ;;
  exit) exit 0 ;;
  esac
done
""",
    },
)

# 8. C: small writes, Nagle and the delayed acknowledgement.
plant(
    "nagle_flash",
    "protocol",
    "c, tcp, Nagle with delayed ack, embedded loader",
    "flashtool writes each block's header and its data apart without TCP_NODELAY: the data wait for the acknowledgement of the header, which the loader's kernel delays by 40 ms, 95 times; TCP_NODELAY or one write ends it",
    r"(?i)flashtool|bootsim|nagle|nodelay|delayed.?ack|18408",
    {
        "setup.sh": "gcc -O2 -o bootsim bootsim.c\ngcc -O2 -o flashtool flashtool.c\n",
        "run.sh": "set -e\nrm -f ready\n./bootsim 18408 ready & S=$!\nwhile [ ! -e ready ]; do sleep 0.02; done\n./flashtool 18408 95\nwait $S\n",
        "bootsim.c": r"""
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int full(int s, unsigned char *b, int n) {
    int got = 0;
    while (got < n) { int r = read(s, b + got, n - got); if (r <= 0) return 0; got += r; }
    return 1;
}
int main(int c, char **v) {
    int l = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(v[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(l, (void *)&a, sizeof a) || listen(l, 4)) { perror("bind"); return 1; }
    close(open(v[2], O_CREAT | O_WRONLY, 0644));
    int s = accept(l, 0, 0), blocks = 0;
    unsigned char h[8], d[256], sum = 0;
    while (full(s, h, 8) && full(s, d, 256)) {
        for (int i = 0; i < 256; i++) sum += d[i];
        blocks++;
        if (write(s, &sum, 1) != 1) return 1;
    }
    printf("bootsim: %d blocks\n", blocks);
    return 0;
}
""",
        "flashtool.c": r"""
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int c, char **v) {
    int s = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(v[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(s, (void *)&a, sizeof a)) { perror("connect"); return 1; }
    if (getenv("FIX")) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    unsigned char h[8] = {0}, d[256], k;
    for (int n = 0; n < atoi(v[2]); n++) {
        h[0] = n;
        for (int i = 0; i < 256; i++) d[i] = n * i;
        if (write(s, h, 8) != 8 || write(s, d, 256) != 256 || read(s, &k, 1) != 1) { perror("block"); return 1; }
    }
    puts("flashtool: done");
    return 0;
}
""",
    },
)

# 9. R: the jobs are dealt out beforehand and the long ones fall to one core.
plant(
    "r_preschedule",
    "pool",
    "r, parallel::mclapply, data science",
    "mclapply deals the jobs out beforehand (mc.preschedule=TRUE): every odd job is a long fit, so one child gets all four while the other is soon idle; mc.preschedule=FALSE (or another order) shares them",
    r"(?i)Rscript|\bR\b|fit\.R|mclapply|preschedule",
    {
        "run.sh": "set -e\nRscript --vanilla fit.R\n",
        "fit.R": r"""
library(parallel)
set.seed(1)
fit <- function(job) {
  x <- seq_len(2000) / 2000
  s <- 0
  for (i in seq_len(job$rounds)) s <- s + sum(sort(sin(x * i)) * cos(x)) 
  s
}
jobs <- lapply(1:8, function(i) list(rounds = if (i %% 2 == 1) 8500 else 400))
r <- mclapply(jobs, fit, mc.cores = 2, mc.preschedule = Sys.getenv("FIX") == "")
stopifnot(length(r) == 8, all(is.finite(unlist(r))))
cat("fitted", length(r), "models\n")
""",
    },
)

# 10. SQLite: a transaction for each row.
plant(
    "sqlite_autocommit",
    "fsync",
    "sqlite3, database fixture, fsync",
    "the fixture's 800 inserts are each a transaction of its own with its own fsyncs of journal, database and directory; BEGIN … COMMIT around them syncs once",
    r"(?i)sqlite|f(data)?sync|fixture|journal|shop\.db",
    {
        "setup.sh": r"""awk 'BEGIN { for (i = 1; i <= 800; i++) printf "insert into orders values (%d, %d, \047item-%d\047);\n", i, (i * 7919) % 1000, i % 97 }' > fixture.sql
""",
        "run.sh": r"""set -e
rm -f shop.db shop.db-journal
sqlite3 shop.db 'create table orders (id integer primary key, cents int, item text);'
if [ -z "$FIX" ]; then cat fixture.sql; else echo 'begin;'; cat fixture.sql; echo 'commit;'; fi | sqlite3 shop.db
test "$(sqlite3 shop.db 'select count(*) from orders')" = 800
sqlite3 shop.db 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500000) select sum(i % 7) from n'
echo "orders tested"
""",
    },
)

# 11. Bats: a helper that still has bats' descriptors.
plant(
    "bats_background_helper",
    "background",
    "bats, background helper, inherited descriptor 3",
    "setup_file starts metrics-agent.pl, which lives on for 6 s unless it is killed; it has bats' output (fd 3) open, so bats waits for it after the last test; teardown_file should kill it",
    r"(?i)bats|agent|fd ?3",
    {
        "run.sh": "set -e\nbats --tap t/cli.bats\n",
        "metrics-agent.pl": "my $end = time + 6;\nwhile (time < $end) { open my $f, '>', 'metrics.txt'; print $f time, qq(\\n); close $f; sleep 1 }\n",
        "t/cli.bats": r"""
setup_file() {
  perl metrics-agent.pl &
  export AGENT=$!
}
teardown_file() {
  if [ -n "$FIX" ]; then kill $AGENT; fi
}
@test "sorts" {
  run sh -c 'seq 300000 -1 1 | sort -n | head -1'
  [ "$output" = 1 ]
}
@test "counts" {
  run sh -c 'seq 400000 | wc -l'
  [ "$output" -eq 400000 ]
}
@test "sums" {
  run sh -c 'seq 500000 | paste -sd+ | tr -dc + | wc -c'
  [ "$output" -eq 499999 ]
}
@test "metrics exist" {
  [ -s metrics.txt ]
}
""",
    },
)

# 12. Node: the losing timer of a race keeps the loop alive.
plant(
    "node_race_timer",
    "exit",
    "node, event loop, timer of Promise.race",
    "the guard of Promise.race is never cleared: the audit is done after a second, but the 5 s timer keeps node's event loop (and the process) alive; clearTimeout (or unref)",
    r"(?i)\bnode\b|audit\.js|timer|setTimeout",
    {
        "run.sh": "set -e\nnode audit.js\n",
        "audit.js": r"""
const http = require("http"), crypto = require("crypto");
const server = http.createServer((q, r) => setTimeout(() => r.end("x".repeat(200000)), 60));
function get(n) {
  return new Promise((ok, bad) => http.get({ port: 18412, host: "127.0.0.1", path: "/" + n, agent: false }, (r) => {
    let s = ""; r.on("data", (d) => (s += d)); r.on("end", () => ok(s));
  }).on("error", bad));
}
async function audit() {
  let sum = 0;
  for (let n = 0; n < 5; n++) {
    const t = await get(n);
    for (let i = 0; i < 250; i++) sum += crypto.createHash("sha256").update(t + i).digest()[0];
  }
  return sum;
}
server.listen(18412, "127.0.0.1", async () => {
  let timer;
  const guard = new Promise((_, bad) => { timer = setTimeout(() => bad(new Error("audit takes too long")), 5000); });
  guard.catch(() => {});
  const sum = await Promise.race([audit(), guard]);
  if (process.env.FIX) clearTimeout(timer);
  console.log("audited", sum);
  server.close();
});
""",
    },
)

# 13. PostgreSQL: a smart stop waits for a client that stays.
plant(
    "pg_smart_stop",
    "timeout",
    "postgres, pg_ctl, shutdown mode, database tests",
    "`pg_ctl stop -m smart -t 4` waits for the pool's idle psql to go, which it never does, until its 4 s are over and the script stops the server fast; stop it with -m fast at once",
    r"(?i)pg_ctl|postgres|postmaster|smart",
    {
        "setup.sh": r"""D=/tmp/waits8pg.$(pwd | cksum | cut -d' ' -f1)
rm -rf $D; mkdir -m 700 $D; chown postgres $D
cd /
setpriv --reuid postgres --regid postgres --clear-groups /usr/lib/postgresql/15/bin/initdb -D $D/data -A trust -N >/dev/null
cd "$OLDPWD"
echo $D > where
""",
        "run.sh": r"""set -e
D=$(cat where); [ -d $D/data ] || { sh setup.sh; D=$(cat where); }
here=$PWD
pg() { ( cd $D; exec setpriv --reuid postgres --regid postgres --clear-groups "$@" ); }
pg pg_ctl -D data -w -s -l log -o "-p 18413 -c listen_addresses=127.0.0.1 -c unix_socket_directories=$D -c fsync=off" start 9>&-
mkfifo $D/pool 2>/dev/null || :
psql -h 127.0.0.1 -p 18413 -U postgres -q postgres < $D/pool >/dev/null 2>&1 & POOL=$!
exec 9> $D/pool
echo 'select 1;' >&9
psql -h 127.0.0.1 -p 18413 -U postgres -qAt postgres -f tests.sql 9>&-
if [ -n "$FIX" ]; then
  pg pg_ctl -D data -s -m fast stop 9>&-
else
  pg pg_ctl -D data -s -m smart -t 4 stop 2>/dev/null 9>&- || pg pg_ctl -D data -s -m fast stop 9>&-
fi
exec 9>&-
wait $POOL || :
echo "database tests passed"
""",
        "tests.sql": r"""
drop table if exists t;
create unlogged table t as select i, md5(i::text) as h from generate_series(1, 200000) i;
create index on t (h);
select count(*) from t where h < '8';
select count(distinct substr(h, 1, 3)) from t;
""",
    },
)

# 14. Erlang: the state is polled by the second.
plant(
    "erl_long_poll",
    "poll",
    "erlang, timer:sleep, polled state",
    "pipeline.erl looks at each of its 5 stages once a second (timer:sleep(1000)) though a stage takes about 0.15 s; a message from the worker, or a short period, ends the wait with the stage",
    r"(?i)\berl|beam|pipeline|timer:sleep",
    {
        "setup.sh": "erlc pipeline.erl\n",
        "run.sh": "set -e\nerl -noshell -noinput -eval 'pipeline:main(), halt(0).'\n",
        "pipeline.erl": r"""
-module(pipeline).
-export([main/0]).
period() -> case os:getenv("FIX") of false -> 1000; _ -> 5 end.
work(0, H) -> H;
work(N, H) -> work(N - 1, erlang:phash2({H, N})).
stage(N) ->
    spawn(fun() -> ets:insert(state, {N, work(2000000, N)}) end),
    await(N).
await(N) ->
    case ets:lookup(state, N) of
        [{N, H}] -> io:format("stage ~p: ~p~n", [N, H]);
        [] -> timer:sleep(period()), await(N)
    end.
main() ->
    ets:new(state, [named_table, public]),
    [stage(N) || N <- lists:seq(1, 5)].
""",
    },
)

# 15. Shell: tail -f does not notice that grep has gone.
plant(
    "tail_follow_grep",
    "pipe",
    "shell, busybox tail -f, readiness by log",
    "`timeout 5 busybox tail -f app.log | grep -m1 ready`: grep ends with the line after 0.4 s, but tail -f would notice the closed pipe only with its next write, so the pipeline lasts until timeout's 5 s; poll the log with grep",
    r"(?i)\btail\b|busybox|\bgrep\b|app\.log|\btimeout\b",
    {
        "run.sh": r"""set -e
: > app.log
perl app.pl 18415 >> app.log 2>&1 & S=$!
trap 'kill $S 2>/dev/null || :; wait $S 2>/dev/null || :' EXIT
if [ -z "$FIX" ]; then
  timeout 5 busybox tail -f app.log | grep -m1 ready || :
else
  until grep -m1 ready app.log; do sleep 0.05; done
fi
for n in 1 2 3; do curl -sf -o page.$n http://127.0.0.1:18415/$n; done
sort -n page.1 | awk '{ s += $1 } END { print s }'
echo smoke tests passed
""",
        "app.pl": r"""
use IO::Socket::INET;
$| = 1;
print "starting\n";
select undef, undef, undef, 0.4;
my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => shift, Listen => 5, ReuseAddr => 1) or die $!;
print "ready\n";
while (my $c = $l->accept) {
  while (<$c>) { last if /^\r?$/ }
  my $b = join "", map { (($_ * 7919) % 100003) . "\n" } 1 .. 100000;
  print $c "HTTP/1.0 200 OK\r\nContent-Length: " . length($b) . "\r\n\r\n$b";
  close $c;
}
""",
    },
)

# 16. DevOps: the entry script does not pass the signal on.
plant(
    "sigterm_grace",
    "timeout",
    "devops, entry script without exec, grace period, lua worker",
    "entry.sh traps TERM but has its worker in the foreground, so the trap would run only after the worker: the job waits its grace of 4 s (as docker stop does) and then kills; `exec` the worker in entry.sh (or forward the signal)",
    r"(?i)entry|worker|grace|\blua\b|SIGTERM|\bTERM\b|ci\.sh|stop",
    {
        "run.sh": "exec sh ci.sh\n",
        "ci.sh": r"""set -e
rm -f up queue; mkfifo queue
setsid sh entry.sh & S=$!
while [ ! -e up ]; do sleep 0.02; done
/usr/bin/python3 -c "
import hashlib
h = b''
for i in range(900000): h = hashlib.sha256(h).digest()
print('integration test', h.hex()[:8])"
kill -TERM $S
n=0
while kill -0 $S 2>/dev/null && [ $n -lt 40 ]; do sleep 0.1; n=$((n + 1)); done
kill -KILL -$S 2>/dev/null && echo "not ended in its grace: killed" || :
wait $S 2>/dev/null || :
rm -f up queue
""",
        "entry.sh": r"""if [ -n "$FIX" ]; then exec lua worker.lua; fi
trap 'echo entry: bye; exit 0' TERM
lua worker.lua
""",
        "worker.lua": r"""io.open("up", "w"):close()
-- The queue stays empty: this blocks until the worker is ended.
local q = io.open("queue")
for job in q:lines() do print(job) end
""",
    },
)

# 17. Perl: the first name server of the list does not answer.
plant(
    "perl_dead_nameserver",
    "timeout",
    "perl, udp resolver, dead first server",
    "each of the three look-ups asks 127.0.0.1:18416 first, which never answers, and waits 1.3 s before it asks the second server; take the dead server out of (or put it last in) resolv.conf",
    r"(?i)lookup|\bperl\b|resolv|name ?server|18416|\bdns\b",
    {
        "run.sh": r"""set -e
rm -f ready
/usr/bin/python3 named.py 18416 18417 & S=$!
trap 'kill $S 2>/dev/null || :; wait $S 2>/dev/null || :' EXIT
while [ ! -e ready ]; do sleep 0.02; done
if [ -z "$FIX" ]; then printf '18416\n18417\n'; else printf '18417\n18416\n'; fi > resolv.conf
perl lookup.pl db.test cache.test queue.test
""",
        "named.py": r"""
import socket, sys
dead, live = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "12")
dead.bind(("127.0.0.1", int(sys.argv[1])))
live.bind(("127.0.0.1", int(sys.argv[2])))
open("ready", "w").close()
while True:
    q, a = live.recvfrom(512)
    live.sendto(q + b" 127.0.0.9", a)
""",
        "lookup.pl": r"""
use IO::Socket::INET; use IO::Select; use Digest::SHA qw(sha256_hex);
open my $f, "<", "resolv.conf" or die; chomp(my @servers = <$f>);
my $bad = 0;
for my $name (@ARGV) {
  my $answer;
  for my $port (@servers) {
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port, Proto => "udp") or die $!;
    $s->send($name);
    if (IO::Select->new($s)->can_read(1.3)) { $s->recv($answer, 512); last }
  }
  $bad++ unless $answer;
  my $h = $name; $h = sha256_hex($h) for 1 .. 250000;
  print "$answer $h\n";
}
exit $bad;
""",
    },
)

# 18. Java: an interpreter for each file.
plant(
    "java_per_file",
    "wrapper",
    "java, code generator started once a file",
    "gen.sh starts a JVM for each of 30 schema files; the generator takes any number of files, so one JVM for all saves 29 starts",
    r"(?i)\bjava\b|\bGen\b|gen\.sh|JVM",
    {
        "setup.sh": r"""mkdir -p out schema
for n in $(seq -w 30); do
  awk -v n=$n 'BEGIN { for (i = 0; i < 300; i++) printf "field_%s_%d:int\n", n, i }' > schema/t$n.txt
done
javac -d out Gen.java
""",
        "run.sh": "set -e\nrm -rf gen; mkdir gen\nsh gen.sh\ntest $(ls gen | wc -l) = 30\n",
        "gen.sh": 'set -e\nif [ -n "$FIX" ]; then java -cp out Gen schema/*.txt; else for f in schema/*.txt; do java -cp out Gen $f; done; fi\n',
        "Gen.java": r"""
import java.nio.file.*;
import java.util.regex.*;
import java.util.stream.*;

public class Gen {
    public static void main(String[] a) throws Exception {
        Pattern p = Pattern.compile("(\\w+):(\\w+)");
        for (String f : a) {
            String name = Path.of(f).getFileName().toString().replace(".txt", "");
            String body = Files.lines(Path.of(f)).map(l -> { Matcher m = p.matcher(l); m.matches(); return String.format("  public %s %s;", m.group(2), m.group(1)); })
                .collect(Collectors.joining("\n"));
            Files.writeString(Path.of("gen/" + name + ".java"), "class " + name + " {\n" + body + "\n}\n");
        }
    }
}
""",
    },
)

# 19. Rake: the data set is made twice.
plant(
    "rake_twice",
    "twice",
    "ruby, rake, clean between two jobs",
    "the job calls `rake test` and then `rake package`, both depend on clean, so the data set (about 1.6 s of work) is made twice; one `rake clean test package`, or no clean in the second, makes it once",
    r"(?i)\brake\b|dataset|\bclean\b|make_dataset|\bruby\b",
    {
        "run.sh": "set -e\nrake -q test\nrake -q package\necho packaged\n",
        "Rakefile": r"""
task(:clean) { rm_rf %w[dataset.csv dataset.tar.gz], verbose: false }
file("dataset.csv") { ruby "make_dataset.rb", verbose: false }
fresh = [:clean, "dataset.csv"]
task(test: fresh) { ruby "check.rb", verbose: false }
task(package: ENV["FIX"] ? ["dataset.csv"] : fresh) { sh "tar czf dataset.tar.gz dataset.csv", verbose: false }
""",
        "make_dataset.rb": r"""
require "digest"
h = "seed"
File.open("dataset.csv", "w") do |f|
  30_000.times { |i| 100.times { h = Digest::MD5.digest(h) }; f.puts "#{i},#{h.unpack1('H*')}" }
end
""",
        "check.rb": 'abort "short" unless File.foreach("dataset.csv").count == 30_000\nputs "30000 rows checked"\n',
    },
)

# 20. None: runs until the references stand still.
plant(
    "none_convergence",
    "none",
    "perl, document, passes until the references are stable",
    "nothing: three passes are needed until the page numbers stand still, each depends on the one before, and all is work",
    NONE,
    {
        "run.sh": r"""set -e
rm -f doc.aux doc.out
for pass in 1 2 3 4 5; do
  cp doc.aux doc.aux.old 2>/dev/null || : > doc.aux.old
  perl typeset.pl
  echo "pass $pass"
  if cmp -s doc.aux doc.aux.old; then break; fi
done
test -s doc.out
""",
        "typeset.pl": r"""
use Digest::MD5 qw(md5_hex);
my %page; if (open my $a, "<", "doc.aux.old") { while (<$a>) { $page{$1} = $2 if /(\d+) (\d+)/ } }
my ($col, $pg, @aux) = (0, 1); my $x = "line";
open my $o, ">", "doc.out" or die;
for my $s (1 .. 400) {
  push @aux, "$s $pg";
  for my $l (1 .. 60) { $x = md5_hex($x) for 1 .. 190; $col += 3 + (ord($x) & 1); if ($col > 190) { $col = 0; $pg++ } }
  # A reference that is not known yet takes the room of "??".
  $col += length($page{401 - $s} // "??") ; $x = "sec$s";
  print $o "section $s, see page ", $page{401 - $s} // "??", "\n";
}
open my $w, ">", "doc.aux" or die; print $w "$_\n" for @aux;
""",
    },
)

# 21. None: a test that measures time.
plant(
    "none_throttle_test",
    "none",
    "c++, token bucket, a test that measures time",
    "nothing: the test asks whether the token bucket hands out 40 permits at 12 a second in the right time; the wait is what it tests",
    NONE,
    {
        "setup.sh": "g++ -O2 -pthread -o throttle_test throttle_test.cpp\n",
        "run.sh": "set -e\n./throttle_test\n",
        "throttle_test.cpp": r"""
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
using Clock = std::chrono::steady_clock;
class Bucket {
    double rate, tokens, burst; Clock::time_point last = Clock::now(); std::mutex m;
public:
    Bucket(double r, double b) : rate(r), tokens(b), burst(b) {}
    void take() {
        std::unique_lock<std::mutex> l(m);
        auto now = Clock::now();
        tokens = std::min(burst, tokens + rate * std::chrono::duration<double>(now - last).count());
        last = now; tokens -= 1;
        double wait = tokens < 0 ? -tokens / rate : 0;
        l.unlock();
        if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
};
int main() {
    Bucket b(12, 4);
    auto t = Clock::now();
    for (int i = 0; i < 44; i++) b.take();
    double s = std::chrono::duration<double>(Clock::now() - t).count();
    std::printf("44 permits at 12/s with a burst of 4: %.2f s\n", s);
    return s < 3.2 || s > 4.6;
}
""",
    },
    spare=0.5,
)

# 22. None: a watchdog and a heart-beat beside full CPUs.
plant(
    "none_watchdog_dots",
    "none",
    "bash, watchdog and travis-like dots beside two full CPUs",
    "nothing: the sleeps belong to a watchdog (60 s, ended early) and to the dots that keep a CI from ending a silent job; two equal simulations have both CPUs all the time",
    NONE,
    {
        "setup.sh": "gcc -O2 -o simulate simulate.c -lm\n",
        "run.sh": "exec bash ci.sh\n",
        "ci.sh": r"""set -e
( exec sleep 60 ) & W=$!
( trap 'kill $!; exit' TERM; while :; do sleep 1 & wait $!; printf .; done ) & DOTS=$!
./simulate 3 > a.txt & A=$!
./simulate 5 > b.txt & B=$!
wait $A; wait $B
kill $DOTS $W
wait $DOTS $W 2>/dev/null || :
echo; cat a.txt b.txt
""",
        "simulate.c": r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v) {
    double x = atof(v[1]), y = 0.3;
    for (long i = 0; i < 125000000; i++) { double n = sin(x + y) * 0.7; y = y * 0.99 + n * 0.2; x = n + 1.1; }
    printf("%g %g\n", x, y);
    return 0;
}
""",
    },
)

# 23. None: a soak whose length is its purpose.
plant(
    "none_soak",
    "none",
    "stress-ng, soak for a set time",
    "nothing: the soak's 4 s are what was ordered, with a stressor on each CPU",
    NONE,
    {
        "run.sh": "set -e\nstress-ng --cpu 2 --cpu-method matrixprod --timeout 4s --metrics-brief\necho soak passed\n",
    },
)

# 24. None: make -j2 with equal files.
_cpp = {
    f"part{n}.cpp": f"""#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
int part{n}(const std::string &s) {{
    std::regex r("([a-z]+)-({n}[0-9]*)");
    std::smatch m;
    std::map<std::string, std::vector<int>> t;
    if (std::regex_search(s, m, r)) t[m[1]].push_back(std::stoi(m[2]));
    for (auto &p : t) std::sort(p.second.begin(), p.second.end());
    return (int)t.size();
}}
"""
    for n in (1, 2, 3, 4)
}
plant(
    "none_make_j2",
    "none",
    "c++, make -j2, jobserver, equal files",
    "nothing: make waits for compilers that keep both CPUs busy, and the link needs all of them",
    NONE,
    {
        "Makefile": "O = part1.o part2.o part3.o part4.o\napp: $(O) main.o\n\tg++ -o $@ $^\n%.o: %.cpp\n\tg++ -O0 -c -o $@ $<\n",
        "main.cpp": "#include <string>\n"
        + "".join(f"int part{n}(const std::string &);\n" for n in (1, 2, 3, 4))
        + 'int main() { return part1("ab-12") + part2("ab-21") + part3("x") + part4("y") != 2; }\n',
        **_cpp,
        "run.sh": "set -e\nrm -f *.o app\nmake -s -j2 app\n./app\necho built\n",
    },
)

# 25. None: a chain that feeds a database by a pipe.
plant(
    "none_chain_pipe",
    "none",
    "php, sqlite3, pipe from a dependent chain",
    "nothing: sqlite3 waits on its pipe for a hash chain of which each row needs the one before; the chain is work for one CPU, the import goes on beside it",
    NONE,
    {
        "run.sh": r"""set -e
rm -f chain.db
sqlite3 chain.db 'create table block (n int, h text);'
php chain.php | sqlite3 -csv chain.db '.import /dev/stdin block'
test $(sqlite3 chain.db 'select count(*) from block') = 3000
echo 3000 blocks
""",
        "chain.php": r"""<?php
$h = "genesis";
for ($n = 0; $n < 3000; $n++) {
  for ($i = 0; $i < 4000; $i++) $h = hash("sha256", $h, true);
  echo "$n,", bin2hex($h), "\n";
}
""",
    },
)

# 26. None: a server with a tick beside tests that use both CPUs.
plant(
    "none_server_tick",
    "none",
    "node server with a tick, perl, prove -j2",
    "nothing: the node server only ticks while it is not asked; prove -j2 has two equal tests on both CPUs",
    NONE,
    {
        "run.sh": r"""set -e
rm -f ready
node server.js 18426 & S=$!
trap 'kill $S 2>/dev/null || :; wait $S 2>/dev/null || :' EXIT
while [ ! -e ready ]; do sleep 0.02; done
prove -j2 t
""",
        "server.js": r"""
const http = require("http"), fs = require("fs");
let beats = 0;
setInterval(() => beats++, 250);
http.createServer((q, r) => r.end("ok")).listen(+process.argv[2], "127.0.0.1", () => fs.writeFileSync("ready", ""));
""",
        **{
            f"t/{n}.t": f'''use Test::More tests => 2;
use HTTP::Tiny; use Digest::SHA qw(sha256);
is(HTTP::Tiny->new->get("http://127.0.0.1:18426/{n}")->{{content}}, "ok");
my $h = "{n}"; $h = sha256($h) for 1 .. 5_500_000;
is(length $h, 32);
'''
            for n in ("encode", "decode")
        },
    },
)
