"""Twenty-second set: one day of CI in a monorepo. Nine plants have one fault, five (kind "none") have nothing to change.

Each run.sh calls setup.sh if its products are missing. FIX=1 makes the repair that an engineer would make, in the same directory.
Ports 18700 to 18714 on loopback. The measured walls and the honest answers are in answers.md.
"""

from waits import Plant

SETUP = "[ -e .prepared ] || sh setup.sh\n"
# The verdict on a plant of kind "none".
NONE = r"(?i)nothing\b.*\b(change|gain|repair|fix|save|wrong|wait)|no (change|fault|advice|gain|needless|avoidable)|leave (it|this) (alone|as)|as (designed|intended)|by design"

PLANTS = []

# ---------------------------------------------------------------------------------------------------------------- faults

PLANTS.append(
    Plant(
        "w22-go-drain",
        "shutdown",
        "go, bash, curl; server; SIGTERM and waitpid; a probe's connection left open",
        "ci.sh's readiness probe opens a TCP connection to stockd on descriptor 3 and never closes it, so that stockd's graceful"
        " Shutdown takes the connection on which no request came for a busy one and waits until it is 5 s old, while ci.sh waits for"
        " stockd's end; close descriptor 3 after the probe",
        r"(?i)stockd|18700",
        {
            "stockd.go": r"""package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:18700", "")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("/stock/", func(w http.ResponseWriter, r *http.Request) {
		// The ledger's chain is verified for each answer.
		sum := sha256.Sum256([]byte(r.URL.Path))
		for i := 0; i < 400000; i++ {
			sum = sha256.Sum256(sum[:])
		}
		fmt.Fprintf(w, "%x\n", sum[:8])
	})
	srv := &http.Server{Addr: *addr, Handler: mux}
	done := make(chan struct{})
	go func() {
		sig := make(chan os.Signal, 1)
		signal.Notify(sig, syscall.SIGTERM)
		<-sig
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			log.Print(err)
		}
		close(done)
	}()
	if err := srv.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	<-done
}
""",
            "setup.sh": "set -e\ngo build -o stockd stockd.go\n: > .prepared\n",
            "ci.sh": r"""set -e
./stockd -addr 127.0.0.1:18700 & S=$!
# Ready as soon as the port takes a connection.
until { exec 3<>/dev/tcp/127.0.0.1/18700; } 2>/dev/null; do sleep 0.02; done
[ -z "$FIX" ] || exec 3>&-
for sku in bolt nut washer rivet screw nail hinge latch; do
  curl -sf "http://127.0.0.1:18700/stock/$sku" > "got.$sku"
  grep -Eq '^[0-9a-f]{16}$' "got.$sku"
done
kill -TERM $S
wait $S
echo "stock contract: 8 passed"
""",
            "run.sh": "set -e\n" + SETUP + "bash ci.sh\n",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-node-race",
        "timer",
        "node; event loop; epoll with a timer that nobody cleared",
        "smoke.mjs races each check with a deadline of 4 s (Promise.race) and does not clear the deadline's timer after the answer, so"
        " that node stays in epoll until the last timer has run out, 4 s after the report is written; clearTimeout when the check is done",
        r"(?i)smoke\.mjs|\bnode\b.*(timer|time-?out|exit|end|epoll|event loop|idle)",
        {
            "quotes.js": r"""const http = require("http"), fs = require("fs");
http.createServer((q, r) => {
  let h = 7;
  for (let i = 0; i < 30000000; i++) h = (h * 31 + i) | 0;
  r.setHeader("content-type", "application/json");
  r.end(JSON.stringify({ path: q.url, price: 100 + (h & 7) }));
}).listen(18702, "127.0.0.1", () => fs.writeFileSync("ready", ""));
""",
            "deadline_old.mjs": r"""export function within(ms, work) {
  const late = new Promise((_, no) => setTimeout(() => no(new Error("deadline")), ms));
  late.catch(() => {});
  return Promise.race([work, late]);
}
""",
            "deadline_new.mjs": r"""export function within(ms, work) {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error("deadline")), ms); });
  late.catch(() => {});
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
""",
            "smoke.mjs": r"""import fs from "fs";
import { within } from "./deadline.mjs";
const report = [];
for (const s of ["ABC", "DEF", "GHI", "JKL", "MNO", "PQR", "STU", "VWX"]) {
  const answer = await within(4000, fetch(`http://127.0.0.1:18702/q/${s}`).then(r => r.json()));
  if (answer.path !== `/q/${s}`) process.exitCode = 1;
  report.push(`ok ${report.length + 1} - ${s}`);
}
fs.writeFileSync("report.tap", report.join("\n") + "\n");
console.log(`${report.length} checks done`);
""",
            "setup.sh": ": > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""V=old; [ -z "$FIX" ] || V=new
cp deadline_$V.mjs deadline.mjs
rm -f ready report.tap
node quotes.js & S=$!
while [ ! -e ready ]; do sleep 0.02; done
node smoke.mjs
kill $S; wait $S || :
[ "$(grep -c '^ok' report.tap)" = 8 ]
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-tee-held",
        "pipe",
        "sh, python, gcc; read on a pipe; a background helper that inherited the pipe's writing end",
        "steps.sh starts the cache helper objcached.py with its own output, which is the pipe to tee; the steps are done but tee reads on"
        " until the helper gives up after 4 idle seconds and so closes the pipe; give the helper its own log and stop it at the job's end",
        r"(?i)objcached|\btee\b",
        {
            "objcached.py": r'''"""The object cache's helper: answers "have HASH" on a unix socket, leaves after some idle seconds."""
import os, socket, sys
idle = float(sys.argv[1])
if os.path.exists("cache.sock"): os.unlink("cache.sock")
s = socket.socket(socket.AF_UNIX)
s.bind("cache.sock.new"); s.listen(16); os.rename("cache.sock.new", "cache.sock")
print("objcached: ready", flush=True)
s.settimeout(idle)
asked = 0
try:
    while True:
        c, _ = s.accept()
        word = c.recv(200).decode()
        if word.startswith("stop"): c.sendall(b"bye\n"); c.close(); break
        asked += 1
        c.sendall(b"miss\n"); c.close()
except socket.timeout:
    pass
os.unlink("cache.sock")
print("objcached:", asked, "lookups", flush=True)
''',
            "ask.pl": r"""use IO::Socket::UNIX;
my $s = IO::Socket::UNIX->new(Peer => "cache.sock") or die "cache: $!";
print $s "@ARGV\n"; $s->flush; print scalar <$s>;
""",
            "setup.sh": r"""set -e
mkdir -p src obj
for u in parse emit graph alloc; do
  awk -v u=$u 'BEGIN { for (i = 0; i < 120; i++) printf "int %s_%d(int a, const int *p) { int s = a; for (int i = 0; i < %d; i++) { s += p[i] * (i ^ a); if (s > %d) s -= p[(s & 15)]; else s ^= i << 2; } return s %% %d; }\n", u, i, 20 + i, 1000 + i, 7 + i }' > src/$u.c
done
: > .prepared
""",
            "steps.sh": r"""set -e
if [ -z "$FIX" ]; then /usr/bin/python3 objcached.py 4 &
else /usr/bin/python3 objcached.py 4 > objcached.log 2>&1 &
fi
while [ ! -S cache.sock ]; do sleep 0.02; done
echo parse emit graph alloc | xargs -n 1 -P 2 sh -c 'perl ask.pl have $(sha1sum < src/$0.c) > /dev/null && gcc -O2 -c src/$0.c -o obj/$0.o && echo "CC $0"'
ar rc obj/libfront.a obj/*.o
echo "front end built"
[ -z "$FIX" ] || { perl ask.pl stop; wait; }
""",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -f obj/* cache.sock
sh steps.sh 2>&1 | tee ci.log
grep -q 'front end built' ci.log
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-backlog",
        "backlog",
        "perl, curl; server; connect whose first packet is dropped and sent again after 1 s",
        "the mock fixturesd.pl listens with a backlog of 1, so that of six connections at once some are dropped and curl's kernel sends"
        " their SYN again 1 s later, in each of four rounds, while the mock is idle; raise Listen to 128",
        r"(?i)fixturesd|\bcurl\b|18704|backlog|SYN\b",
        {
            "fixturesd.pl": r"""use strict; use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 18704, Listen => $ENV{FIX} ? 128 : 1, ReuseAddr => 1) or die $!;
$SIG{PIPE} = "IGNORE";
open my $f, ">", "ready"; close $f;
while (1) {
    my $c = $s->accept or next;
    my ($path) = (<$c> // "") =~ m{^GET (\S+)};
    while (defined(my $l = <$c>)) { last if $l =~ /^\r?$/ }
    my $body = "fixture $path\n" x 2000;
    my $n = 0; $n = ($n * 33 + ord) % 65521 for split //, $body;      # its checksum, as in production
    print $c "HTTP/1.1 200 OK\r\nETag: \"$n\"\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
    close $c;
}
""",
            "setup.sh": ": > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -rf ready got; mkdir got
perl fixturesd.pl & S=$!
while [ ! -e ready ]; do sleep 0.02; done
for lang in de en fr it; do
  curl -sf -Z --parallel-immediate --parallel-max 6 "http://127.0.0.1:18704/$lang/{users,orders,items,carts,taxes,notes}.json" -o "got/$lang-#1"
  [ "$(grep -l "fixture /$lang/" got/$lang-* | wc -l)" = 6 ]
done
kill $S; wait $S || :
echo "24 fixtures fetched"
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-expect-prompt",
        "timeout",
        "expect (tcl), perl; pty; a pattern that no longer matches, so that each time-out is waited for",
        "provision.exp waits for the prompt 'sw1# ', but the console's prompt has become 'sw1> ' since its last release, so that each of"
        " five expects runs into its time-out of 1 s and goes on; expect the prompt that comes",
        r"(?i)provision|\bexpect\b",
        {
            "console.pl": r"""# The switch's console, simulated.
$| = 1;
print "SwitchOS 9.2\r\nsw1> ";
while (my $l = <STDIN>) {
    $l =~ s/\s+$//;
    if ($l eq "exit") { print "bye\r\n"; exit 0 }
    my $x = 1; $x = ($x * 69069 + 1) & 0xffffffff for 1 .. 2_500_000;         # commits the running configuration
    print "ok: $l\r\nsw1> ";
}
""",
            "provision_old.exp": r"""set timeout 1
log_file -noappend console.log
spawn -noecho perl console.pl
set prompt "sw1# "
expect $prompt
foreach c {"vlan 10 name lab" "vlan 20 name guests" "port 1-8 vlan 10" "port 9-12 vlan 20"} {
    send "$c\r"
    expect $prompt
}
send "exit\r"
expect eof
""",
            "provision_new.exp": r"""set timeout 1
log_file -noappend console.log
spawn -noecho perl console.pl
set prompt "sw1> "
expect $prompt
foreach c {"vlan 10 name lab" "vlan 20 name guests" "port 1-8 vlan 10" "port 9-12 vlan 20"} {
    send "$c\r"
    expect $prompt
}
send "exit\r"
expect eof
""",
            "setup.sh": ": > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""V=old; [ -z "$FIX" ] || V=new
cp provision_$V.exp provision.exp
expect provision.exp
[ "$(grep -c 'ok: ' console.log)" = 4 ]
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-condvar",
        "poll",
        "c; threads; futex with a time-out; the wrong condition variable is signalled",
        "texpack's producer signals not_full where it should signal not_empty after it has put a texture into the queue, so that the"
        " packing thread finds the texture only when its pthread_cond_timedwait of 0.4 s has run out; signal not_empty",
        r"(?i)texpack",
        {
            "texpack.c": r"""#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#define N 16
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static unsigned slot; static int full;
static unsigned work(unsigned x, long rounds) { for (long i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u ^ x >> 7; return x; }
static void *decode(void *_) {
    for (unsigned i = 0; i < N; i++) {
        unsigned t = work(i, 56000000);
        pthread_mutex_lock(&m);
        while (full) pthread_cond_wait(&not_full, &m);
        slot = t; full = 1;
#ifdef REPAIRED
        pthread_cond_signal(&not_empty);
#else
        pthread_cond_signal(&not_full);
#endif
        pthread_mutex_unlock(&m);
    }
    return 0;
}
static void *pack(void *sum) {
    for (int i = 0; i < N; i++) {
        pthread_mutex_lock(&m);
        while (!full) {
            struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
            t.tv_nsec += 400000000; if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
            pthread_cond_timedwait(&not_empty, &m, &t);       /* looks again in any case */
        }
        unsigned t = slot; full = 0;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&m);
        *(unsigned *)sum ^= work(t, 18000000);
    }
    return 0;
}
int main(void) {
    pthread_t a, b; unsigned sum = 0;
    pthread_create(&a, 0, decode, 0); pthread_create(&b, 0, pack, &sum);
    pthread_join(a, 0); pthread_join(b, 0);
    printf("packed %d textures, %08x\n", N, sum);
    return 0;
}
""",
            "setup.sh": "set -e\nmkdir -p old new\ngcc -O2 -w -pthread texpack.c -o old/texpack\ngcc -O2 -w -pthread -DREPAIRED texpack.c -o new/texpack\n: > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""V=old; [ -z "$FIX" ] || V=new
$V/texpack > atlas.txt
grep -q '^packed 16' atlas.txt
""",
        },
        "sh setup.sh",
    )
)

CRATE = r"""[package]
name = "%s"
version = "0.1.0"
edition = "2021"
build = "build.rs"
"""
BUILD_RS = r"""// The tables of %s, from its specification.
use std::{env, fs, path::Path};
fn main() {
    println!("cargo:rerun-if-changed=spec.txt");
    let spec = fs::read_to_string("spec.txt").unwrap();
    let mut x: u32 = spec.len() as u32;
    let mut i: u32 = 0;
    while i < 550_000_000 {
        x = (x ^ (x << 13)) & 0x7fff_ffff;
        x ^= x >> 17;
        x = (x ^ (x << 5)) & 0x7fff_ffff;
        i += 1;
    }
    let out = Path::new(&env::var("OUT_DIR").unwrap()).join("table.rs");
    fs::write(out, format!("pub const TABLE: u32 = {x};\n")).unwrap();
}
"""
LIB_RS = r"""include!(concat!(env!("OUT_DIR"), "/table.rs"));
pub fn check(v: u32) -> bool { v ^ TABLE != 0 }
"""

PLANTS.append(
    Plant(
        "w22-cargo-lock",
        "lock",
        "rust, cargo; flock on target/; two commands that are started at once and run one after the other",
        "the job starts two cargo builds at once, but both use the same target directory, so that the second waits for cargo's lock on it"
        " until the first is done; give one its own CARGO_TARGET_DIR (or build both crates by one cargo command)",
        r"(?i)cargo.*lock|lock.*cargo|\bflock\b|target(/| dir)",
        {
            "Cargo.toml": '[workspace]\nmembers = ["wire", "ledger"]\nresolver = "2"\n',
            "wire/Cargo.toml": CRATE % "wire",
            "wire/build.rs": BUILD_RS % "wire",
            "wire/spec.txt": "frame: u32 len, u8 kind\n",
            "wire/src/lib.rs": LIB_RS,
            "ledger/Cargo.toml": CRATE % "ledger",
            "ledger/build.rs": BUILD_RS % "ledger",
            "ledger/spec.txt": "entry: u64 account, i64 cents\n",
            "ledger/src/lib.rs": LIB_RS,
            "setup.sh": "set -e\ncargo build --offline -q -p wire\ncargo build --offline -q -p ledger\n"
            "CARGO_TARGET_DIR=target-ledger cargo build --offline -q -p ledger\n: > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""T=target; [ -z "$FIX" ] || T=target-ledger
touch wire/spec.txt ledger/spec.txt
cargo build --offline -q -p wire & A=$!
CARGO_TARGET_DIR=$T cargo build --offline -q -p ledger & B=$!
wait $A
wait $B
echo "wire and ledger built"
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-go-run-loop",
        "startup",
        "go; CPU-bound; go run links the same program again for each file",
        "gen.sh calls `go run ./cmd/genenum` for each of ten schemas, and each call makes go check the packages and link the same program"
        " again; build it once and call the program",
        r"(?i)\bgo run\b|genenum|\bgo\b.*\b(link|times|again)|\blink\b|gen\.sh",
        {
            "go.mod": "module example.test/mono\n\ngo 1.19\n",
            "cmd/genenum/main.go": r"""package main

import (
	"bytes"
	"encoding/json"
	"go/format"
	"log"
	"net/http"
	"os"
	"text/template"
)

type enum struct {
	Name   string
	Values []string
}

var text = template.Must(template.New("").Parse("package enums\n\ntype {{.Name}} int\n\nconst (\n{{range $i, $v := .Values}}{{$.Name}}{{$v}} {{$.Name}} = {{$i}}\n{{end}})\n"))

func main() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var e enum
	if err := json.Unmarshal(raw, &e); err != nil {
		log.Fatal(err)
	}
	if e.Name == "" { // a schema by address
		if _, err := http.Get(os.Args[1]); err != nil {
			log.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := text.Execute(&b, e); err != nil {
		log.Fatal(err)
	}
	src, err := format.Source(b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(src)
}
""",
            "setup.sh": r"""set -e
mkdir -p schema out bin
for n in Color Shape State Role Unit Level Kind Phase Scope Mode; do
  printf '{"Name": "%s", "Values": ["Unknown", "First", "Second", "Third"]}\n' $n > schema/$n.json
done
go build -o bin/warm ./cmd/genenum
: > .prepared
""",
            "gen.sh": r"""set -e
if [ -z "$FIX" ]; then gen() { go run ./cmd/genenum "$1"; }
else go build -o bin/genenum ./cmd/genenum; gen() { bin/genenum "$1"; }
fi
for s in schema/*.json; do gen $s > out/$(basename $s .json).go; done
""",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -f out/* bin/genenum
sh gen.sh
[ "$(cat out/*.go | grep -c 'Third')" = 10 ]
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-ruby-gvl",
        "serial",
        "ruby; CPU-bound; two threads behind one interpreter lock",
        "render.rb renders the handbook's pages in two threads, but ruby's threads share the interpreter's lock and use one CPU; render"
        " them in two processes",
        r"(?i)render\.rb|\bruby\b",
        {
            "pool_threads.rb": r"""def pool(pages, n)
  queue = Queue.new
  pages.each { |p| queue << p }
  n.times.map { Thread.new { while (p = (queue.pop(true) rescue nil)) do yield(p) end } }.each(&:join)
end
""",
            "pool_forks.rb": r"""def pool(pages, n)
  n.times.map { |k| fork { pages.each_with_index { |p, i| yield(p) if i % n == k } } }.each { |pid| Process.wait(pid); exit 1 unless $?.success? }
end
""",
            "render.rb": r"""require ENV["FIX"].to_s.empty? ? "./pool_threads" : "./pool_forks"
def html(text)
  text.lines.map { |l|
    l = l.gsub("&", "&amp;").gsub(/\*(\w+)\*/) { "<b>#{$1}</b>" }.gsub(/_(\w+)_/) { "<i>#{$1}</i>" }
    l = l.split(" ").map { |w| w.length > 9 ? w.scan(/.{1,9}/).join("&shy;") : w }.join(" ")
    l.start_with?("# ") ? "<h1>#{l[2..]}</h1>" : "<p>#{l}</p>"
  }.join("\n")
end
pool(Dir["pages/*.txt"].sort, 2) { |p| File.write("html/#{File.basename(p, ".txt")}.html", html(File.read(p))) }
""",
            "setup.sh": r"""set -e
mkdir -p pages html
i=0
while [ $i -lt 40 ]; do
  awk -v i=$i 'BEGIN { for (k = 0; k < 8000; k++) printf (k % 40 ? "the *bold* words & _slanted_ words of paragraph %d on page %d are unquestionably irreproducible\n" : "# chapter %d of %d\n"), k, i }' > pages/p$i.txt
  i=$((i + 1))
done
: > .prepared
""",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -f html/*
ruby render.rb
[ "$(ls html | wc -l)" = 40 ]
""",
        },
        "sh setup.sh",
    )
)

# ------------------------------------------------------------------------------------------------------ nothing to change

PLANTS.append(
    Plant(
        "w22-pgo",
        "none",
        "c, make -j2; CPU-bound; the same files are compiled twice, with a training run between, by design",
        "nothing to change: a profile-guided build compiles each file twice by design, each step needs the one before, and the compilers"
        " use both CPUs",
        NONE,
        {
            "Makefile": r"""vm: ops0.o ops1.o vm.o
	gcc $(PGO) -o $@ ops0.o ops1.o vm.o
%.o: %.c
	gcc -O2 -w $(PGO) -c $< -o $@
""",
            "vm.c": r"""#include <stdio.h>
#include <stdlib.h>
extern int (*ops0[])(int, const int *), (*ops1[])(int, const int *);
int main(int n, char **v) {
    int rounds = atoi(v[1]), p[256], s = 1;
    for (int i = 0; i < 256; i++) p[i] = i * 7;
    for (int r = 0; r < rounds; r++) { s ^= ops0[(s + r) & 127](r & 63, p); s ^= ops1[(s ^ r) & 127](r & 31, p); }
    printf("%d\n", s);
    return 0;
}
""",
            "setup.sh": r"""set -e
for u in 0 1; do
  awk -v u=$u 'BEGIN {
    for (i = 0; i < 200; i++) printf "static int op%d_%d(int a, const int *p) { int s = a; for (int i = 0; i < %d; i++) { s += p[i] * (i ^ a); if (s > %d) s -= p[s & 15]; else s ^= i << 2; switch (s & 7) { case 0: s += 3; break; case 1: s ^= a; break; case 2: s -= i; break; case 5: s *= 3; } } return s %% %d; }\n", u, i, 20 + i % 90, 1000 + i, 7 + i
    printf "int (*ops%d[])(int, const int *) = {", u
    for (i = 0; i < 200; i++) printf "op%d_%d,", u, i
    print "0};" }' > ops$u.c
done
: > .prepared
""",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -f *.o *.gcda vm
make -s -j2 PGO=-fprofile-generate
./vm 300000 > trained
rm -f *.o vm
make -s -j2 PGO="-fprofile-use -fprofile-correction"
./vm 300000 | cmp - trained
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-java-full",
        "none",
        "java; CPU-bound; a main thread in Future.get, idle pool threads and a metrics tick beside two full CPUs",
        "nothing to change: the scan's two threads use both CPUs to the end; the main thread waits for them, and the idle threads and the"
        " metrics tick every 0.2 s cost nothing",
        NONE,
        {
            "Scan.java": r"""import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

public class Scan {
    static long score(int seed, int rounds) {
        long x = seed * 2654435761L + 1, hits = 0;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13; x ^= x >>> 7; x ^= x << 17;
            if (x % 1009 == 0) hits++;
        }
        return hits;
    }
    public static void main(String[] a) throws Exception {
        int tasks = 120, rounds = Integer.parseInt(a[0]);
        AtomicLong done = new AtomicLong();
        ScheduledExecutorService metrics = Executors.newSingleThreadScheduledExecutor(r -> { Thread t = new Thread(r, "metrics"); t.setDaemon(true); return t; });
        metrics.scheduleAtFixedRate(() -> done.get(), 200, 200, TimeUnit.MILLISECONDS);
        BlockingQueue<String> audit = new LinkedBlockingQueue<>();
        for (int i = 0; i < 4; i++) {
            Thread t = new Thread(() -> { try { while (true) audit.take(); } catch (InterruptedException e) { } }, "audit-" + i);
            t.setDaemon(true); t.start();
        }
        ExecutorService pool = Executors.newFixedThreadPool(2, r -> new Thread(r, "scan"));
        List<Future<Long>> out = new ArrayList<>();
        for (int i = 0; i < tasks; i++) { int s = i; out.add(pool.submit(() -> { long h = score(s, rounds); done.incrementAndGet(); return h; })); }
        long sum = 0;
        for (Future<Long> f : out) sum += f.get();
        pool.shutdown();
        System.out.println(done.get() + " shards, " + sum + " hits");
    }
}
""",
            "setup.sh": "set -e\njavac Scan.java\n: > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + "java -XX:+UseSerialGC Scan 22000000 > scan.txt\ngrep -q '^120 shards' scan.txt\n",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-slo-gate",
        "none",
        "python asyncio, node; event loops; a load of a fixed rate for a fixed time is the command's purpose",
        "nothing to change: slo_gate.py sends 25 requests a second for 4 s, which is what it was asked to measure; it waits for its next"
        " tick and the server for the next request",
        NONE,
        {
            "catalog.js": r"""const http = require("http"), fs = require("fs");
const items = Array.from({ length: 2000 }, (_, i) => ({ id: i, name: "item " + i }));
http.createServer((q, r) => r.end(JSON.stringify(items.filter(i => i.name.includes(q.url.slice(-1))))))
  .listen(18710, "127.0.0.1", () => fs.writeFileSync("ready", ""));
""",
            "slo_gate.py": r'''"""Sends requests at a fixed rate for some seconds and fails if the 95th percentile of the answers is above the objective."""
import argparse, asyncio, time
p = argparse.ArgumentParser()
p.add_argument("--rate", type=float); p.add_argument("--seconds", type=float); p.add_argument("--p95-ms", type=float)
a = p.parse_args()
async def one(k, took):
    t = time.monotonic()
    r, w = await asyncio.open_connection("127.0.0.1", 18710)
    w.write(f"GET /items?q={k % 10} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    body = await r.read()
    while not r.at_eof(): body += await r.read()
    w.close()
    assert body.startswith(b"HTTP/1.1 200")
    took.append(time.monotonic() - t)
async def main():
    took, tasks, start = [], [], time.monotonic()
    for k in range(int(a.rate * a.seconds)):
        await asyncio.sleep(max(0, start + k / a.rate - time.monotonic()))
        tasks.append(asyncio.create_task(one(k, took)))
    await asyncio.gather(*tasks)
    sent = len(took) / (time.monotonic() - start)
    p95 = sorted(took)[int(len(took) * 0.95)] * 1000
    print(f"{len(took)} requests, {sent:.1f}/s, p95 {p95:.1f} ms")
    assert p95 < a.p95_ms and abs(sent - a.rate) < a.rate * 0.1
asyncio.run(main())
''',
            "setup.sh": ": > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -f ready
node catalog.js & S=$!
while [ ! -e ready ]; do sleep 0.02; done
/usr/bin/python3 slo_gate.py --rate 25 --seconds 4 --p95-ms 150
kill $S; wait $S || :
""",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-killer-test",
        "none",
        "c, perl, python; sigtimedwait, waitpid; a test that measures time",
        "nothing to change: the test measures that reaper sends SIGTERM after exactly 2 s and SIGKILL exactly 1 s later to a program that"
        " does not listen; the 3 s are the measured thing",
        NONE,
        {
            "reaper.c": r"""/* reaper SOFT GRACE COMMAND...: SIGTERM after SOFT seconds, SIGKILL after GRACE more. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int over(sigset_t *s, pid_t pid, double t, int *st) {
    struct timespec now, end, left; clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (long)t; end.tv_nsec += (t - (long)t) * 1e9; if (end.tv_nsec >= 1000000000) { end.tv_nsec -= 1000000000; end.tv_sec++; }
    for (;;) {
        if (waitpid(pid, st, WNOHANG) == pid) return 1;
        clock_gettime(CLOCK_MONOTONIC, &now);
        left.tv_sec = end.tv_sec - now.tv_sec; left.tv_nsec = end.tv_nsec - now.tv_nsec;
        if (left.tv_nsec < 0) { left.tv_nsec += 1000000000; left.tv_sec--; }
        if (left.tv_sec < 0) return 0;
        sigtimedwait(s, 0, &left);
    }
}
int main(int n, char **v) {
    sigset_t s; int st; sigemptyset(&s); sigaddset(&s, SIGCHLD); sigprocmask(SIG_BLOCK, &s, 0);
    pid_t pid = fork();
    if (!pid) { sigprocmask(SIG_UNBLOCK, &s, 0); execvp(v[3], v + 3); _exit(127); }
    if (!over(&s, pid, atof(v[1]), &st)) {
        kill(pid, SIGTERM);
        if (!over(&s, pid, atof(v[2]), &st)) { kill(pid, SIGKILL); waitpid(pid, &st, 0); }
    }
    return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}
""",
            "deaf.pl": '$SIG{TERM} = sub { print time, " TERM ignored\\n" };\nsleep 1 while 1;\n',
            "test_reaper.py": r"""import subprocess, time, unittest
class Reaper(unittest.TestCase):
    def test_quick_child_passes_its_status(self):
        t = time.monotonic()
        self.assertEqual(subprocess.call(["./reaper", "2", "1", "sh", "-c", "exit 7"]), 7)
        self.assertLess(time.monotonic() - t, 0.5)
    def test_deaf_child_is_killed_after_soft_and_grace(self):
        t = time.monotonic()
        self.assertEqual(subprocess.call(["./reaper", "2", "1", "perl", "deaf.pl"], stdout=subprocess.DEVNULL), 137)
        took = time.monotonic() - t
        self.assertGreater(took, 2.98)
        self.assertLess(took, 3.4)
unittest.main()
""",
            "setup.sh": "set -e\ngcc -O2 -w reaper.c -o reaper\n: > .prepared\n",
            "run.sh": "set -e\n" + SETUP + "/usr/bin/python3 test_reaper.py\n",
        },
        "sh setup.sh",
    )
)

PLANTS.append(
    Plant(
        "w22-restore",
        "none",
        "sh, gzip, sqlite3, perl, php; write on a full pipe, a sidecar's poll and an idle server beside one busy process",
        "nothing to change: sqlite3 loads the dump in one transaction and is busy from end to end; zcat waits for it at the full pipe, the"
        " perl sidecar looks at the size every 0.25 s and the php status server idles beside it",
        NONE,
        {
            "mkdump.py": r"""import random
r = random.Random(22)
print("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;")
print("CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, note TEXT, cents INT);")
for b in range(2600):
    print("INSERT INTO orders VALUES", ",".join("(%d,'c%06d','%s',%d)" % (b * 500 + i, r.randrange(200000), "%x" % r.getrandbits(120), r.randrange(10**6)) for i in range(500)), ";", sep="")
print("CREATE INDEX by_customer ON orders(customer, cents);")
print("COMMIT;")
""",
            "lag.pl": 'while (1) { open my $f, ">>", "lag.log"; print $f time, " ", -s "shop.db", "\\n"; close $f; select undef, undef, undef, 0.25 }\n',
            "www/index.php": '<?php echo "restoring ", filesize(__DIR__ . "/../shop.db") > 0 ? "ok" : "empty", "\\n";\n',
            "setup.sh": "set -e\n/usr/bin/python3 mkdump.py | gzip -6 > dump.sql.gz\n: > .prepared\n",
            "run.sh": "set -e\n"
            + SETUP
            + r"""rm -f shop.db lag.log
php -q -S 127.0.0.1:18714 -t www > php.log 2>&1 & P=$!
perl lag.pl & L=$!
zcat dump.sql.gz | sqlite3 shop.db > load.log
curl -sf http://127.0.0.1:18714/ | grep -q 'restoring ok'
kill $P $L; wait $P || :; wait $L || :
[ "$(sqlite3 shop.db 'select count(*) from orders')" = 1300000 ]
""",
        },
        "sh setup.sh",
    )
)
