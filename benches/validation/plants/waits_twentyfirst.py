"""Twelve plants of the twenty-first author: what an engineer meets in CI on one day, with its answer in answers.md.

With FIX=1 in its environment run.sh runs with the honest repair. Kinds: "wait" (somebody sleeps or waits for nothing), "cpu" (work that
one CPU does though two could), "none" (nothing to change). run.sh calls setup.sh where products are missing.
"""

from waits import Plant

PYTHON = "/usr/bin/python3"
SETUP = "sh setup.sh"
# The verdict of a plant with nothing to change.
NOTHING = r"(?i)\b(nothing|none|by design|busy|no (wait|change|advice|fault|pause|idle)|not? worth|CPU)\b"

# 1 --------------------------------------------------------------------------------------------------------------------------------
OBJCACHED = r"""use strict; use warnings;
use IO::Socket::INET; use IO::Select;
# objcached.pl PORT IDLE: a compile cache that leaves when nobody asked for IDLE seconds.
my ($port, $idle) = @ARGV;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 8, ReuseAddr => 1) or die "bind: $!";
$SIG{TERM} = sub { unlink 'cache.pid'; exit 0 };
open my $f, '>', 'cache.tmp' or die; print $f "$$\n"; close $f; rename 'cache.tmp', 'cache.pid';
my (%has, $sel);
$sel = IO::Select->new($s);
while ($sel->can_read($idle)) {
    my $c = $s->accept or next;
    my $key = <$c> // '';
    print $c $has{$key}++ ? "HIT\n" : "MISS\n";
    close $c;
}
unlink 'cache.pid';
"""
START_CACHE = r"""# prints the address of the compile cache, which it starts
rm -f cache.pid
if [ -n "$FIX" ]; then perl objcached.pl 18671 4 >/dev/null 2>&1 </dev/null &
else perl objcached.pl 18671 4 &
fi
while [ ! -s cache.pid ]; do sleep 0.02; done
echo 127.0.0.1:18671
"""
GENC = r"""awk -v n=%d 'BEGIN { for (i = 0; i < n; i++)
  printf "int %s_%%d(int *a, int n) { int s = 0, i; for (i = 0; i < n; i++) { s += a[i] * %%d; if (a[i] > %%d) s ^= a[i] << %%d; else s -= a[(i * %%d) %%%% n]; } return s; }\n", i, i + 3, i * 7, i %% 13 + 1, i %% 17 + 2 }' > %s
"""
SUBST = Plant(
    "w21-subst-pipe-held",
    "wait",
    "sh, perl, background child, pipe, command substitution, idle exit",
    "run.sh's $(sh start-cache.sh) does not end when the script ends: the cache it started in the background has the pipe as its stdout, "
    "so the shell reads until the idle cache leaves 4 s later. Start the cache with >/dev/null 2>&1 (detached).",
    r"objcached|start-cache|command substitution|\bperl\b.*(pipe|stdout|held|holds)|(pipe|stdout).*\bperl\b",
    {
        "run.sh": r"""set -e
[ -e unity.c ] || sh setup.sh
CACHE=$(sh start-cache.sh)
echo "cache at $CACHE"
perl lookup.pl "$CACHE" unity.c
cc -O2 -c unity.c -o unity.o
ar rcs libunity.a unity.o
perl lookup.pl "$CACHE" unity.c
if [ -s cache.pid ]; then
  kill "$(cat cache.pid)"
  n=0; while [ -e cache.pid ] && [ $n -lt 100 ]; do sleep 0.02; n=$((n+1)); done
fi
echo done
""",
        "setup.sh": GENC % (480, "u", "unity.c"),
        "start-cache.sh": START_CACHE,
        "objcached.pl": OBJCACHED,
        "lookup.pl": r"""use strict; use IO::Socket::INET;
my ($addr, $key) = @ARGV;
my $c = IO::Socket::INET->new(PeerAddr => $addr);
if (!$c) { print "cache: not reachable, compile without it\n"; exit 0 }
print $c "$key\n"; print "cache: ", scalar <$c>;
""",
    },
    SETUP,
)

# 2 --------------------------------------------------------------------------------------------------------------------------------
TRAP = Plant(
    "w21-trap-behind-sleep",
    "wait",
    "bash, awk, background child, signal, teardown, waitpid",
    "At the end run.sh sends TERM to sidecar.sh and waits for it; bash runs the trap only when its foreground `sleep 6` has ended, so the "
    "teardown takes the rest of the sleep. `sleep 6 & wait $!` in the sidecar (or no wait for it) lets the trap run at once.",
    r"sidecar|sleep( 6)?\b",
    {
        "run.sh": r"""set -e
[ -e access.log ] || sh setup.sh
: > metrics.log
bash sidecar.sh & SC=$!
awk -f report.awk access.log > report.txt
tail -1 report.txt
kill -TERM $SC
wait $SC || true
grep -c flushed metrics.log
""",
        "setup.sh": r"""awk 'BEGIN { s = 7; for (i = 0; i < 300000; i++) { s = (s * 16807) % 2147483647; printf "10.0.%d.%d /p/%d %d %d\n", s % 7, s % 251, s % 997, 200 + s % 5, s % 9001 } }' > access.log
""",
        "sidecar.sh": r"""# pushes metrics every 6 s; on TERM it flushes and leaves
S=
trap 'echo flushed >> metrics.log; [ -z "$S" ] || { kill $S; wait $S; } 2>/dev/null; exit 0' TERM
while :; do
  echo "push $(date +%s)" >> metrics.log
  if [ -n "$FIX" ]; then sleep 6 & S=$!; wait $S
  else sleep 6
  fi
done
""",
        "report.awk": r"""# per path: count, mean and a rolling digest of the latencies
{ n[$2]++; t[$2] += $4; for (k = 1; k <= 50; k++) d[$2] = (d[$2] * 31 + $4 + k) % 1000003; if (match($1, /\.(1|2|3)[0-9]*$/)) near++ }
END { for (p in n) printf "%s %d %.2f %d\n", p, n[p], t[p] / n[p], d[p]; print "lines", NR, near }
""",
    },
    SETUP,
)

# 3 --------------------------------------------------------------------------------------------------------------------------------
NAGLE = Plant(
    "w21-nagle-small-writes",
    "wait",
    "java, c, server, socket, delayed acknowledgement",
    "Push.java writes each artefact's length and body in two small writes without TCP_NODELAY; the kernel holds the body until artsrv's "
    "delayed acknowledgement (40 ms) for each of the 80 artefacts. One buffered write or setTcpNoDelay(true).",
    r"(?i)\bjava\b|Push|artsrv|18673|NODELAY|nagle|delayed ack",
    {
        "run.sh": r"""set -e
[ -x artsrv ] && [ -e Push.class ] || sh setup.sh
./artsrv 18673 & S=$!
trap 'kill $S 2>/dev/null; wait $S 2>/dev/null || true' EXIT
n=0; while [ ! -e ready ] && [ $n -lt 200 ]; do sleep 0.02; n=$((n+1)); done
java -Xshare:auto -XX:TieredStopAtLevel=1 -cp . Push 18673 80
rm -f ready
""",
        "setup.sh": r"""set -e
rm -f ready
cc -O2 -o artsrv artsrv.c
javac Push.java
""",
        "artsrv.c": r"""/* artifact store: 4 bytes of length, then the body; answers the sum of the bytes */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <fcntl.h>
static int full(int c, unsigned char *b, size_t n) {
    size_t got = 0;
    while (got < n) {
        struct pollfd p = {c, POLLIN, 0};
        if (poll(&p, 1, -1) < 0) return -1;
        ssize_t r = read(c, b + got, n - got);
        if (r <= 0) return -1;
        got += r;
    }
    return 0;
}
int main(int argc, char **argv) {
    (void)argc;
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (void *)&a, sizeof a) || listen(s, 8)) { perror("artsrv"); return 1; }
    close(open("ready", O_CREAT | O_WRONLY, 0644));
    static unsigned char body[65536];
    for (;;) {
        int c = accept(s, 0, 0);
        if (c < 0) continue;
        unsigned int len;
        while (!full(c, (void *)&len, 4) && (len = ntohl(len)) <= sizeof body && !full(c, body, len)) {
            unsigned int sum = 0;
            for (unsigned int i = 0; i < len; i++) sum += body[i];
            sum = htonl(sum);
            if (write(c, &sum, 4) != 4) break;
        }
        close(c);
    }
}
""",
        "Push.java": r"""import java.io.*;
import java.net.*;
import java.security.MessageDigest;

public class Push {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[1]);
        boolean fix = System.getenv("FIX") != null && !System.getenv("FIX").isEmpty();
        MessageDigest d = MessageDigest.getInstance("SHA-256");
        byte[] art = new byte[1 << 20];
        try (Socket s = new Socket("127.0.0.1", Integer.parseInt(a[0]))) {
            s.setTcpNoDelay(fix);
            DataOutputStream out = new DataOutputStream(s.getOutputStream());
            DataInputStream in = new DataInputStream(s.getInputStream());
            long total = 0;
            for (int i = 0; i < n; i++) {
                art[i] = (byte) i;
                byte[] body = d.digest(art);
                out.writeInt(body.length);
                out.write(body);
                total += in.readInt();
            }
            System.out.println("pushed " + n + " sum " + total);
        }
    }
}
""",
    },
    SETUP,
)

# 4 --------------------------------------------------------------------------------------------------------------------------------
TIMER = Plant(
    "w21-node-race-timer",
    "wait",
    "node, event loop, epoll, timer, exit",
    "e2e.js is done after 1.5 s, but each check's Promise.race leaves its 4-second time-out timer armed, so node's loop lives almost 4 s longer. "
    "clearTimeout when the check is settled (or unref the timer).",
    r"\bnode\b|e2e\.js|setTimeout|timer",
    {
        "run.sh": r"""set -e
node e2e.js > e2e.log
tail -1 e2e.log
gzip -9 -c e2e.log > e2e.log.gz
""",
        "e2e.js": r"""// ten end-to-end checks against a page that renders here
const http = require('http');
const crypto = require('crypto');
const LIMIT = 4000;

function withTimeout(promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(what + ': timed out')), LIMIT); });
  const first = Promise.race([promise, late]);
  return process.env.FIX ? first.finally(() => clearTimeout(timer)) : first;
}

const server = http.createServer((req, res) => {
  const page = crypto.pbkdf2Sync(req.url, 'page', 600000, 32, 'sha256').toString('hex');
  res.setHeader('Connection', 'close');
  res.end('<h1>' + page + '</h1>');
});

const get = path => new Promise((resolve, reject) => {
  http.get({ host: '127.0.0.1', port: 18674, path, agent: false }, res => {
    let text = '';
    res.on('data', c => text += c);
    res.on('end', () => resolve(text));
  }).on('error', reject);
});

server.listen(18674, '127.0.0.1', async () => {
  let passed = 0;
  for (let i = 0; i < 10; i++) {
    const text = await withTimeout(get('/page/' + i), 'page ' + i);
    if (!text.startsWith('<h1>')) throw new Error('page ' + i);
    console.log('ok ' + i + ' ' + text.length);
    passed++;
  }
  console.log(passed + ' passed');
  server.close();
});
""",
    },
)

# 5 --------------------------------------------------------------------------------------------------------------------------------
LOCK = Plant(
    "w21-lock-backoff",
    "wait",
    "perl, python, background child, lock directory, back-off",
    "publish.pl finds index.lock taken by pack.py and sleeps 0.4, 0.8, 1.6, 3.2 s; the lock is free after 3.2 s, but it wakes at 6 s. "
    "A blocking flock on the index (or a short constant retry) goes on at once. pack.py's 3.2 s are work.",
    r"publish|index\.lock|back-?off|\bperl\b",
    {
        "run.sh": r"""set -e
rm -rf index.lock index.held
"""
        + PYTHON
        + r""" pack.py & P=$!
while [ ! -e index.held ]; do sleep 0.02; done
perl publish.pl
wait $P
rm -f index.held
""",
        "pack.py": r"""# repacks the package index; nobody may publish meanwhile
import fcntl, os, time, zlib
if os.environ.get("FIX"):
    lock = open("index.lck", "a")
    fcntl.flock(lock, fcntl.LOCK_EX)
else:
    os.mkdir("index.lock")
open("index.held", "w").close()
data, n = os.urandom(1 << 15) * 8, 0
while time.process_time() < 3.2:
    n += len(zlib.compress(data, 9))
open("index.bin", "w").write(str(n))
if os.environ.get("FIX"):
    lock.close()
else:
    os.rmdir("index.lock")
""",
        "publish.pl": r"""use strict; use warnings; use Fcntl ':flock'; use Digest::SHA 'sha256_hex';
# adds one package to the index
my $lock;
if ($ENV{FIX}) {
    open $lock, '>>', 'index.lck' or die; flock $lock, LOCK_EX or die;
} else {
    my $pause = 0.4;
    until (mkdir 'index.lock') {
        print "index is locked, again in $pause s\n";
        select undef, undef, undef, $pause;
        $pause *= 2;
    }
}
my $h = 'pkg';
$h = sha256_hex($h) for 1 .. 400000;
open my $f, '>', 'index.new' or die; print $f "$h\n"; close $f;
rmdir 'index.lock';
print "published\n";
""",
    },
)

# 6 --------------------------------------------------------------------------------------------------------------------------------
GOMAX = Plant(
    "w21-gomaxprocs-leftover",
    "cpu",
    "go, cpu, threads, environment",
    "ci.env exports GOMAXPROCS=1 (a leftover against a flaky test), so vetall's two workers share one CPU and the other is idle. "
    "Remove it: both CPUs work and the step takes half.",
    r"vetall|GOMAXPROCS",
    {
        "run.sh": r"""set -e
[ -x vetall ] || sh setup.sh
. ./ci.env
[ -z "$FIX" ] || unset GOMAXPROCS
./vetall 40
""",
        "setup.sh": r"""set -e
GO111MODULE=off GOFLAGS= go build -o vetall vetall.go
""",
        "ci.env": r"""export CI=true
# the race detector run was flaky with more
export GOMAXPROCS=1
""",
        "vetall.go": r"""package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

// vet walks the facts of one package.
func vet(p int) uint64 {
	x := uint64(p)*2654435761 + 1
	for i := 0; i < 60000000; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	jobs := make(chan int)
	sums := make([]uint64, n)
	var all sync.WaitGroup
	for w := 0; w < runtime.NumCPU(); w++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for p := range jobs {
				sums[p] = vet(p)
			}
		}()
	}
	for p := 0; p < n; p++ {
		jobs <- p
	}
	close(jobs)
	all.Wait()
	var sum uint64
	for _, s := range sums {
		sum ^= s
	}
	fmt.Printf("%d packages, facts %x\n", n, sum)
}
""",
    },
    SETUP,
    quiet=(4.12, 2.09),
)

# 7 --------------------------------------------------------------------------------------------------------------------------------
SENDER = Plant(
    "w21-rust-sender-kept",
    "wait",
    "rust, threads, channel, futex, time-out",
    "lintd's main thread keeps its own Sender, so the channel never closes when the two workers are done, and the end is a "
    "recv_timeout of 3 s that is waited for. drop(tx) before the loop ends it at once.",
    r"lintd|recv_timeout|[Ss]ender|channel",
    {
        "run.sh": r"""set -e
[ -x lintd ] || sh setup.sh
./lintd 24 > lint.txt
tail -1 lint.txt
""",
        "setup.sh": r"""set -e
rustc -O -o lintd lintd.rs
""",
        "lintd.rs": r"""use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

/// The findings in one file.
fn lint(file: usize) -> u64 {
    let mut x = file as u64 * 0x9E37_79B9 + 1;
    for _ in 0..90_000_000u32 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x) % 5
}

fn main() {
    let files: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = mpsc::channel();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (tx, next) = (tx.clone(), next.clone());
            std::thread::spawn(move || loop {
                let file = next.fetch_add(1, Ordering::Relaxed);
                if file >= files {
                    break;
                }
                tx.send((file, lint(file))).unwrap();
            })
        })
        .collect();
    let kept = if std::env::var("FIX").map_or(false, |f| !f.is_empty()) { drop(tx); None } else { Some(tx) };
    let mut total = 0;
    // Workers do not say that they are done: three seconds without a result is the end.
    while let Ok((file, found)) = rx.recv_timeout(Duration::from_secs(3)) {
        println!("file{file}: {found}");
        total += found;
    }
    for w in workers {
        w.join().unwrap();
    }
    drop(kept);
    println!("{files} files, {total} findings");
}
""",
    },
    SETUP,
)

# 8 --------------------------------------------------------------------------------------------------------------------------------
CONSOLE = Plant(
    "w21-ninja-console-pool",
    "cpu",
    "ninja, c, cpu, serial steps, pool",
    "The compile rule has `pool = console` (for coloured output); that pool has depth 1, so ninja runs the eight compilations one after "
    "the other though it has two CPUs. Without the pool (-fdiagnostics-color=always) they run two at once.",
    r"(?i)ninja|console|\bpool\b|(g?cc1?|compil\w+)\b.*(one after|at once|at a time|one by one|parallel|serial|-j)",
    {
        "run.sh": r"""set -e
[ -e m8.c ] || sh setup.sh
F=build.ninja
if [ -n "$FIX" ]; then F=fixed.ninja; sed '/pool = console/d' build.ninja > $F; fi
rm -rf out .ninja_log .ninja_deps
mkdir out
ninja -f $F > ninja.log 2>&1 || { cat ninja.log; exit 1; }
ls -l out/libm.a | awk '{ print ($5 > 0 ? "built" : "empty") }'
""",
        "setup.sh": "for i in 1 2 3 4 5 6 7 8; do\n" + (GENC % (120, "m'$i'", "m$i.c")) + "done\n",
        "build.ninja": r"""rule cc
  command = gcc -O2 -fdiagnostics-color=always -c $in -o $out
  description = CC $in
  pool = console
rule ar
  command = rm -f $out && ar rcs $out $in
"""
        + "".join(f"build out/m{i}.o: cc m{i}.c\n" for i in range(1, 9))
        + "build out/libm.a: ar "
        + " ".join(f"out/m{i}.o" for i in range(1, 9))
        + "\ndefault out/libm.a\n",
    },
    SETUP,
    quiet=(4.36, 2.39),
)

# 9 --------------------------------------------------------------------------------------------------------------------------------
WATCHDOG = Plant(
    "w21-none-keepalive-beside",
    "none",
    "php, tcl, perl, watchdog, server, tick, xargs, both CPUs busy",
    "Nothing: xargs -P2 keeps both CPUs busy with php. The keep-alive watchdog's sleeps of 1 s, the config server's tick of 0.2 s and "
    "xargs' waitpid run beside the work.",
    NOTHING,
    {
        "run.sh": r"""set -e
rm -f ready page*.html
tclsh confd.tcl 18679 & S=$!
perl keepalive.pl & W=$!
trap 'kill $S $W 2>/dev/null; wait $S $W 2>/dev/null || true' EXIT
n=0; while [ ! -e ready ] && [ $n -lt 200 ]; do sleep 0.02; n=$((n+1)); done
seq 1 8 | xargs -P2 -n1 php render.php
ls page*.html | wc -l
""",
        "confd.tcl": r"""# serves the site's configuration; looks each 0.2 s whether it changed
proc answer {c} {
    if {[gets $c line] >= 0 && $line ne "\r" && $line ne ""} return
    if {[eof $c]} { close $c; return }
    puts -nonewline $c "HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\ntitle=w21"
    close $c
}
proc come {c host port} { fconfigure $c -blocking 0 -translation binary; fileevent $c readable [list answer $c] }
proc tick {} { catch {file mtime site.conf}; after 200 tick }
socket -server come -myaddr 127.0.0.1 [lindex $argv 0]
close [open ready w]
tick
vwait forever
""",
        "keepalive.pl": r"""# says each second that the job lives, and ends it after 90 s
my $job = getppid;
$SIG{TERM} = sub { exit 0 };
for (1 .. 90) { select undef, undef, undef, 1; print STDERR "still rendering ($_ s)\n" }
kill 'TERM', $job;
""",
        "render.php": r"""<?php
$conf = file_get_contents('http://127.0.0.1:18679/site');
$n = (int)$argv[1];
$x = 'page' . $n;
for ($i = 0; $i < 4500000; $i++) $x = md5($x . $n);
file_put_contents("page$n.html", "<title>$conf</title><p>$x</p>\n");
""",
    },
)

# 10 -------------------------------------------------------------------------------------------------------------------------------
CHAIN = Plant(
    "w21-none-hash-chain",
    "none",
    "node, event loop, thread pool, cpu, dependent steps",
    "Nothing: each link of the audit chain is keyed with the one before, so one libuv worker computes and the main thread waits for it in "
    "epoll_wait. More workers, -j or a second process cannot help.",
    NOTHING,
    {
        "run.sh": r"""set -e
node seal.js 64
""",
        "seal.js": r"""// seals the audit log: the key of each link is the seal of the one before
const { promisify } = require('util');
const pbkdf2 = promisify(require('crypto').pbkdf2);
(async () => {
  const n = Number(process.argv[2]);
  let seal = Buffer.from('genesis');
  for (let i = 0; i < n; i++) seal = await pbkdf2(seal, 'entry ' + i, 180000, 32, 'sha256');
  console.log(n + ' entries sealed ' + seal.toString('hex').slice(0, 16));
})();
""",
    },
)

# 11 -------------------------------------------------------------------------------------------------------------------------------
CONVERGE = Plant(
    "w21-none-converging-manual",
    "none",
    "sh, perl, cpu, convergence, same command again",
    "Nothing: typeset.pl runs with the same arguments until manual.aux (the page numbers of the references) does not change, as latex does; "
    "each pass reads what the one before wrote. Neither a pass less nor two at once.",
    NOTHING,
    {
        "run.sh": r"""set -e
[ -e manual.src ] || sh setup.sh
rm -f manual.aux; : > manual.aux
n=0
while [ $n -lt 8 ]; do
  cp manual.aux before.aux
  perl typeset.pl manual.src
  n=$((n+1))
  if cmp -s before.aux manual.aux; then echo "stable after $n passes"; exit 0; fi
done
echo "not stable"; exit 1
""",
        "setup.sh": r"""awk 'BEGIN { s = 11; for (p = 0; p < 1500; p++) { printf "@L%d ", p; for (w = 0; w < 150; w++) { s = (s * 16807) % 2147483647; if (s % 40 == 3) printf "@R%d ", s % 1500; else printf "%s ", substr("abcdefghijklmnop", 1, 2 + s % 9) } print "" } }' > manual.src
""",
        "typeset.pl": r"""use strict; use warnings;
# breaks each paragraph into lines with the least raggedness, and notes on which page each label is
my (%page, @aux, @out);
open my $a, '<', 'manual.aux' or die; while (<$a>) { my ($l, $p) = split; $page{$l} = $p } close $a;
my ($lines, $wide) = (0, 72);
open my $in, '<', $ARGV[0] or die;
while (my $par = <$in>) {
    my (@w, $label);
    for my $t (split ' ', $par) {
        if ($t =~ /^\@L(\d+)/) { $label = $1 }
        elsif ($t =~ /^\@R(\d+)/) { push @w, defined $page{$1} ? ('section', $1, 'on', 'page', $page{$1}) : '??' }
        else { push @w, $t }
    }
    push @aux, "$label " . (1 + int($lines / 40)) . "\n";
    my (@best, @from); $best[0] = 0;
    for my $j (1 .. @w) {
        my $len = -1;
        for (my $i = $j; $i >= 1; $i--) {
            $len += 1 + length $w[$i - 1];
            last if $len > $wide;
            my $c = $best[$i - 1] + ($j == @w ? 0 : ($wide - $len) ** 2);
            if (!defined $best[$j] || $c < $best[$j]) { $best[$j] = $c; $from[$j] = $i - 1 }
        }
    }
    my (@l, $j); $j = @w;
    while ($j > 0) { unshift @l, join ' ', @w[$from[$j] .. $j - 1]; $j = $from[$j] }
    $lines += @l + 1;
    push @out, @l, '';
}
open my $o, '>', 'manual.txt' or die; print $o "$_\n" for @out; close $o;
open $a, '>', 'manual.aux' or die; print $a @aux; close $a;
""",
    },
    SETUP,
)

# 12 -------------------------------------------------------------------------------------------------------------------------------
THROTTLE = Plant(
    "w21-none-throttle-test",
    "none",
    "python, asyncio, epoll, test that measures time, rate limit by design",
    "Nothing: test_throttle.py measures that 65 calls through a bucket of 20 a second take 3 s; the waits are what it tests.",
    NOTHING,
    {
        "run.sh": r"""set -e
"""
        + PYTHON
        + r""" -m unittest -v test_throttle 2>&1
""",
        "throttle.py": r"""import asyncio


class Bucket:
    '''At most `rate` calls a second, after a burst of `burst`.'''

    def __init__(self, rate, burst):
        self.rate, self.burst, self.tokens, self.last = rate, burst, burst, None

    async def take(self):
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            if self.last is not None:
                self.tokens = min(self.burst, self.tokens + (now - self.last) * self.rate)
            self.last = now
            if self.tokens >= 1:
                self.tokens -= 1
                return
            await asyncio.sleep((1 - self.tokens) / self.rate)
""",
        "test_throttle.py": r"""import time
import unittest

from throttle import Bucket


class Throttle(unittest.IsolatedAsyncioTestCase):
    async def test_rate_is_kept(self):
        bucket, start = Bucket(rate=20, burst=5), time.monotonic()
        for _ in range(65):
            await bucket.take()
        took = time.monotonic() - start
        self.assertGreaterEqual(took, 2.95)
        self.assertLess(took, 4)

    async def test_burst_is_free(self):
        bucket, start = Bucket(rate=20, burst=5), time.monotonic()
        for _ in range(5):
            await bucket.take()
        self.assertLess(time.monotonic() - start, 0.05)
""",
    },
)

PLANTS = [SUBST, TRAP, NAGLE, TIMER, LOCK, GOMAX, SENDER, CONSOLE, WATCHDOG, CHAIN, CONVERGE, THROTTLE]
