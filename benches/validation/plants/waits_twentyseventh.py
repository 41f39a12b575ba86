"""TWENTYSEVENTH set: event loops with naps of their own, watchdogs, pollers, job runners, wrappers and well-made builds."""

from waits import Plant

PLANTS = [
    Plant(
        "w27-ccache-stamp",
        "cache",
        "C++, make with ccache as launcher, a cache that never hits, cc1plus as the work",
        "every object is compiled again by g++ (cc1plus) in spite of ccache, because the Makefile puts the time of the build into the flags of all files (-DBUILD_STAMP=...), so ccache never hits; pass the stamp to version.cpp only",
        r"(?i)ccache|BUILD_STAMP",
        {
            "Makefile": """export CCACHE_DIR := $(CURDIR)/ccache
export CCACHE_COMPILERCHECK := content
CXX = ccache g++
STAMP ?= $(shell date +%Y-%m-%dT%H:%M:%S.%N)
STAMP := $(STAMP)
FLAGS_ALL = -DBUILD_STAMP='"$(STAMP)"'
CXXFLAGS = -O0 -std=c++17 $(FLAGS_ALL)
OBJECTS = $(patsubst src/%.cpp,build/%.o,$(wildcard src/*.cpp))

sqlshell: $(OBJECTS)
	g++ -o $@ $^

build/%.o: src/%.cpp
	@mkdir -p build
	$(CXX) $(CXXFLAGS) -c -o $@ $<

clean:
	rm -rf build sqlshell
""",
            "run.sh": """#!/bin/bash
# Release build from a clean checkout; the compiler cache is restored from the last run.
set -eu
cd "$(dirname "$0")"
make -s clean
if [ "${FIX:-}" = 1 ]; then
    stamp=$(date +%Y-%m-%dT%H:%M:%S.%N)
    make -j2 FLAGS_ALL= build/parser.o build/lexer.o build/planner.o build/optimizer.o
    make STAMP="$stamp"
else
    make -j2
fi
./sqlshell
make -s clean
""",
            "setup.sh": r"""set -e
mkdir -p src ccache
cat > src/common.h <<'X'
#pragma once
#ifndef BUILD_STAMP
#define BUILD_STAMP "unknown"
#endif
static const char *const build_stamp = BUILD_STAMP;
X
for n in parser lexer planner optimizer; do
cat > src/$n.cpp <<X
#include "common.h"
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int ${n}_run(const std::string &text) {
    std::regex word("([a-z]+)_${n}");
    std::map<std::string, std::vector<int>> seen;
    std::unordered_map<std::string, std::function<int(int)>> rules{{"$n", [](int x) { return x + 1; }}};
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) seen[(*i)[1]].push_back(i->position());
    std::vector<std::string> names;
    for (auto &p : seen) names.push_back(p.first);
    std::sort(names.begin(), names.end());
    return rules["$n"](names.size());
}
X
done
cat > src/version.cpp <<'X'
#include <cstdio>
#include "common.h"
int main() { std::printf("sqlshell 2.4 built %s\n", build_stamp); return 0; }
X
# the cache as the CI restores it: one build with the stamp of yesterday, one as a developer does it
make -s clean; make -s -j2 STAMP=yesterday
make -s clean; make -s -j2 FLAGS_ALL=
make -s clean
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w27-go-ttl",
        "nap",
        "Go, time.Sleep in one slow test among twenty quick ones, two packages, go test",
        "one test, TestExpiredSessionIsEvicted in session (session.test, session_test.go), sleeps 3.5 s (time.Sleep) until a session of the default life of 3 s has expired; give the store a short life in the test (SESSION_TTL=40ms)",
        r"(?i)session(_test\.go|\.test)?\b|TestExpiredSessionIsEvicted",
        {
            "go.mod": """module shop.example/front

go 1.19
""",
            "run.sh": """#!/bin/bash
# Unit tests of the shop front.
set -eu
cd "$(dirname "$0")"
export GOCACHE="$PWD/cache" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
[ "${FIX:-}" = 1 ] && export SESSION_TTL=40ms
go test -count=1 -timeout 40s -v ./...
""",
            "setup.sh": """set -e
mkdir -p cache
export GOCACHE="$PWD/cache" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
go vet ./...
go test -count=1 ./... > /dev/null
""",
            "render/render.go": r"""// Package render makes the price tables.
package render

import "fmt"

func Table(rows int) string {
	out := ""
	for i := 0; i < rows; i++ {
		out += fmt.Sprintf("%6d %8.2f\n", i, float64(i)*1.19)
	}
	return out
}
""",
            "render/render_test.go": r"""package render

import (
	"fmt"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	for _, rows := range []int{1, 10, 100, 1000, 2000, 3000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			if got := strings.Count(Table(rows), "\n"); got != rows {
				t.Fatal(got)
			}
		})
	}
}
""",
            "session/session.go": """// Package session keeps the sessions of the shop's visitors in memory.
package session

import (
	"sync"
	"time"
)

type entry struct {
	user string
	born time.Time
}

type Store struct {
	mu      sync.Mutex
	life    time.Duration
	entries map[string]entry
	stop    chan struct{}
}

func NewStore(life time.Duration) *Store {
	s := &Store{life: life, entries: map[string]entry{}, stop: make(chan struct{})}
	go s.sweep()
	return s
}

func (s *Store) sweep() {
	ticker := time.NewTicker(s.life / 10)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			s.mu.Lock()
			for id, e := range s.entries {
				if now.Sub(e.born) > s.life {
					delete(s.entries, id)
				}
			}
			s.mu.Unlock()
		case <-s.stop:
			return
		}
	}
}

func (s *Store) Put(id, user string) {
	s.mu.Lock()
	s.entries[id] = entry{user, time.Now()}
	s.mu.Unlock()
}

func (s *Store) User(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[id].user
}

func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

func (s *Store) Close() { close(s.stop) }
""",
            "session/session_test.go": """package session

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func life() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SESSION_TTL")); err == nil {
		return d
	}
	return 3 * time.Second
}

func TestPutAndUser(t *testing.T) {
	for i := 0; i < 12; i++ {
		t.Run(fmt.Sprintf("visitor%d", i), func(t *testing.T) {
			s := NewStore(life())
			defer s.Close()
			s.Put("a", fmt.Sprint("user", i))
			if s.User("a") != fmt.Sprint("user", i) {
				t.Fatal("wrong user")
			}
		})
	}
}

func TestExpiredSessionIsEvicted(t *testing.T) {
	s := NewStore(life())
	defer s.Close()
	s.Put("old", "ann")
	time.Sleep(life() + life()/6)
	if n := s.Len(); n != 0 {
		t.Fatalf("%d sessions left", n)
	}
}

func TestUnknownSession(t *testing.T) {
	s := NewStore(life())
	defer s.Close()
	if s.User("nobody") != "" {
		t.Fatal("user from nowhere")
	}
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w27-node-outbox",
        "timer",
        "Node, setTimeout flush of a batching client, HTTP server in a second Node process, steps that depend on each other",
        "outbox.js holds each single event back for 450 ms (setTimeout flush of a batch) though migrate.js waits for each event before it makes the next, so nine batches of one event each wait in vain; flush at once when the caller waits (flush delay 0)",
        r"(?i)migrate\.js|outbox(\.js)?",
        {
            "audit-server.js": """const http = require('http'), fs = require('fs'), crypto = require('crypto');
let head = 'genesis';
http.createServer((request, response) => {
  let body = '';
  request.on('data', piece => { body += piece; });
  request.on('end', () => {
    const ids = JSON.parse(body).map(event => {
      head = crypto.pbkdf2Sync(head + JSON.stringify(event), 'audit', 20000, 32, 'sha256').toString('hex');
      return head;
    });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(ids));
  });
}).listen(+process.argv[2], '127.0.0.1', () => fs.writeFileSync('port.ready', ''));
setTimeout(() => process.exit(1), 60000).unref();
""",
            "migrate.js": """const { Outbox } = require('./outbox');
const assert = require('assert');
const outbox = new Outbox(+process.argv[2], +process.env.OUTBOX_DELAY_MS);
(async () => {
  let parent = null;
  for (const account of ['cash', 'bank', 'debtors', 'stock', 'tax', 'creditors', 'equity', 'sales', 'wages']) {
    parent = await outbox.add({ account, parent });   // each entry names the one before
    assert.match(parent, /^[0-9a-f]{64}$/);
    console.log(account, parent.slice(0, 12));
  }
  outbox.close();
})();
""",
            "outbox.js": """// Collects events and posts them to the audit server in one request.
const http = require('http');
class Outbox {
  constructor(port, delay) {
    this.port = port; this.delay = delay; this.waiting = []; this.timer = null;
    this.agent = new http.Agent({ keepAlive: true });
  }
  add(event) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ event, resolve, reject });
      this.timer ??= setTimeout(() => this.flush(), this.delay);
    });
  }
  flush() {
    const batch = this.waiting; this.waiting = []; this.timer = null;
    const request = http.request({ host: '127.0.0.1', port: this.port, method: 'POST', agent: this.agent }, response => {
      let body = '';
      response.on('data', piece => { body += piece; });
      response.on('end', () => JSON.parse(body).forEach((id, i) => batch[i].resolve(id)));
    });
    request.on('error', error => batch.forEach(item => item.reject(error)));
    request.end(JSON.stringify(batch.map(item => item.event)));
  }
  close() { this.agent.destroy(); }
}
module.exports = { Outbox };
""",
            "run.sh": """#!/bin/bash
# Moves the accounts of the test tenant and checks the audit trail.
set -eu
cd "$(dirname "$0")"
export OUTBOX_DELAY_MS=450
[ "${FIX:-}" = 1 ] && export OUTBOX_DELAY_MS=0
node audit-server.js 18862 &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f port.ready' EXIT
for i in $(seq 200); do [ -e port.ready ] && break; sleep 0.02; done
timeout 30 node migrate.js 18862
""",
        },
        "",
    ),
    Plant(
        "w27-none-expiry",
        "none",
        "Java, ScheduledThreadPoolExecutor and Thread.sleep in a conformance test of a protocol time-out, plain sockets",
        "nothing to change: LeaseConformance checks that the server keeps a silent connection for the protocol's fixed 3 s and closes it then, and that a connection with heartbeats survives; both cases run side by side, the time is what is tested",
        r"nothing",
        {
            "LeaseConformance.java": """import java.net.*;
import java.util.concurrent.*;

public class LeaseConformance {
    static void check(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
        System.out.println("ok " + what);
    }

    static Void silent(int port) throws Exception {
        try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
            s.setSoTimeout(8000);
            long start = System.nanoTime();
            int got = s.getInputStream().read();
            long ms = (System.nanoTime() - start) / 1_000_000;
            check(got < 0 && ms >= LeaseServer.LEASE_MS - 50 && ms < LeaseServer.LEASE_MS + 800, "silent client dropped after the lease");
        }
        return null;
    }

    static Void beating(int port) throws Exception {
        try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
            s.setSoTimeout(8000);
            for (int i = 0; i < 4; i++) {
                s.getOutputStream().write('b');
                check(s.getInputStream().read() == 'k', "heartbeat " + i);
                Thread.sleep(1000);    // past the lease in sum
            }
        }
        return null;
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        ExecutorService cases = Executors.newFixedThreadPool(2);
        try (LeaseServer server = new LeaseServer(port)) {
            Future<Void> a = cases.submit(() -> silent(port)), b = cases.submit(() -> beating(port));
            a.get();
            b.get();
        } finally {
            cases.shutdown();
        }
    }
}
""",
            "LeaseServer.java": """import java.io.*;
import java.net.*;
import java.util.concurrent.*;

/** Drops a client from which nothing came for LEASE_MS. The number is part of the protocol. */
class LeaseServer implements AutoCloseable {
    static final long LEASE_MS = 3000;
    private final ServerSocket listen;
    private final ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(1);

    LeaseServer(int port) throws IOException {
        listen = new ServerSocket(port, 10, InetAddress.getLoopbackAddress());
        timers.setRemoveOnCancelPolicy(true);
        thread(this::accept);
    }

    private static void thread(Runnable body) {
        Thread t = new Thread(body);
        t.setDaemon(true);
        t.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listen.accept();
                thread(() -> serve(client));
            }
        } catch (IOException closed) {
        }
    }

    private ScheduledFuture<?> arm(Socket client) {
        return timers.schedule(() -> { client.close(); return null; }, LEASE_MS, TimeUnit.MILLISECONDS);
    }

    private void serve(Socket client) {
        ScheduledFuture<?> lease = arm(client);
        try (client) {
            while (client.getInputStream().read() >= 0) {
                lease.cancel(false);
                lease = arm(client);
                client.getOutputStream().write('k');
            }
        } catch (IOException dropped) {
        } finally {
            lease.cancel(false);
        }
    }

    public void close() throws IOException {
        listen.close();
        timers.shutdownNow();
    }
}
""",
            "run.sh": """#!/bin/bash
# Conformance test of the lease protocol (section 4.2: a silent client is dropped after 3 s, not before).
set -eu
cd "$(dirname "$0")"
timeout 40 java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp classes LeaseConformance 18866
""",
            "setup.sh": """set -e
javac -d classes LeaseServer.java LeaseConformance.java
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w27-none-ninja",
        "none",
        "ninja -j2, gcc, a code generator at the front, even compile steps that fill both cores, ar and a link at the end",
        "nothing to change: the generator is short and needed, the eight compile steps keep both cores busy until the link; it is a clean build that is well-made",
        r"nothing",
        {
            "build.ninja": """ninja_required_version = 1.7
rule table
  command = sh tables.sh $n > $out
rule cc
  command = gcc -O2 -c -o $out $in
rule ar
  command = ar rcs $out $in
rule link
  command = gcc -o $out $in

build build/t1.c: table tables.sh
  n = 1
build build/t1.o: cc build/t1.c
build build/t2.c: table tables.sh
  n = 2
build build/t2.o: cc build/t2.c
build build/t3.c: table tables.sh
  n = 3
build build/t3.o: cc build/t3.c
build build/t4.c: table tables.sh
  n = 4
build build/t4.o: cc build/t4.c
build build/t5.c: table tables.sh
  n = 5
build build/t5.o: cc build/t5.c
build build/t6.c: table tables.sh
  n = 6
build build/t6.o: cc build/t6.c
build build/t7.c: table tables.sh
  n = 7
build build/t7.o: cc build/t7.c
build build/t8.c: table tables.sh
  n = 8
build build/t8.o: cc build/t8.c
build build/main.o: cc main.c
build build/libdecode.a: ar build/t1.o build/t2.o build/t3.o build/t4.o build/t5.o build/t6.o build/t7.o build/t8.o
build build/decode: link build/main.o build/libdecode.a
""",
            "main.c": r"""#include <stdio.h>
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
#define DECLARE(n) unsigned decode##n(unsigned);
EACH(DECLARE)
int main(void) {
    unsigned sum = 0;
#define CALL(n) sum += decode##n(n * 77u);
    EACH(CALL)
    printf("decoder %08x\n", sum);
    return 0;
}
""",
            "run.sh": """#!/bin/bash
# Clean build of the decoder library from the tables.
set -eu
cd "$(dirname "$0")"
rm -rf build .ninja_log .ninja_deps
trap 'rm -rf build .ninja_log .ninja_deps' EXIT
timeout 80 ninja -j2 -f build.ninja
./build/decode
""",
            "tables.sh": r"""# Writes the source of the decoder for one family of instructions.
n=$1
awk -v n="$n" 'BEGIN {
    for (f = 0; f < 110; f++) {
        print "static unsigned form" f "(unsigned w) {\n    unsigned r = w;"
        for (i = 0; i < 12; i++)
            printf "    if ((w >> %d & 7) == %d) r = (r << %d) ^ (r >> %d) ^ (w * %du);\n", (i + f) % 29, (i * n + f) % 8, i % 13 + 1, f % 11 + 2, i * 2 + 1
        print "    return r;\n}"
    }
    print "unsigned decode" n "(unsigned w) {\n    switch (w % 110) {"
    for (f = 0; f < 110; f++) print "    case " f ": return form" f "(w);"
    print "    }\n    return 0;\n}"
}'
""",
        },
        "",
    ),
    Plant(
        "w27-none-passes",
        "none",
        "Perl, a latexmk-like driver that runs the same command again and again until the auxiliary file is stable",
        "nothing to change: the driver must run typeset.pl until the references are stable, each pass reads what the one before wrote, and each pass changes it",
        r"nothing",
        {
            "converge.pl": r"""use strict; use warnings; use Digest::MD5 qw(md5_hex);
my $job = shift;
sub state_of { open my $f, '<', "$job.aux" or return 'none'; local $/; md5_hex(<$f>) }
my $before = state_of();
for my $pass (1 .. 9) {
    system('perl', 'typeset.pl', $job) == 0 or die "pass $pass failed\n";
    my $after = state_of();
    print "pass $pass: $after\n";
    exit 0 if $after eq $before;
    $before = $after;
}
die "not stable\n";
""",
            "run.sh": """#!/bin/bash
# Builds the handbook: passes until the cross references are stable.
set -eu
cd "$(dirname "$0")"
trap 'rm -f handbook.aux handbook.out' EXIT
rm -f handbook.aux handbook.out
timeout 60 perl converge.pl handbook
tail -1 handbook.out
""",
            "typeset.pl": r"""# Sets the chapters; the width of a page reference moves the text behind it.
use strict; use warnings;
my $job = shift;
my %page;
if (open my $aux, '<', "$job.aux") { while (<$aux>) { my ($label, $p) = split; $page{$label} = $p } }
my ($line, $badness, %new) = (0, 0);
for my $chapter (1 .. 900) {
    for my $word (1 .. 7000) {
        my $glue = ($word * 7 + $chapter * 3) % 11;
        $badness = ($badness * 31 + $glue * $glue) % 1_000_003;
    }
    my $reference = $page{'ch' . ($chapter % 900 + 1)} // '??';
    $line += 38 + ($reference eq '??' ? 0 : length($reference) + ($reference % 3));
    $new{"ch$chapter"} = int($line / 44) + 1;
}
# the references settle chapter by chapter; the index follows one pass later
my $stage = exists $page{index} ? $page{index} : 0;
$stage++ if $stage < 4;
$new{index} = $stage;
for my $chapter (1 .. 900) { $new{"ch$chapter"} = $page{"ch$chapter"} if $stage >= 3 && defined $page{"ch$chapter"} }
open my $aux, '>', "$job.aux" or die $!;
print $aux "$_ $new{$_}\n" for sort keys %new;
open my $out, '>', "$job.out" or die $!;
print $out "pages ", int($line / 44) + 1, " badness $badness\n";
""",
        },
        "",
    ),
    Plant(
        "w27-none-supervisor",
        "none",
        "Python asyncio, a supervisor that polls two busy worker processes with asyncio.sleep(0.05) and a shell watchdog beside it",
        "nothing to change: the supervisor's short naps (50 ms) only print the progress of two workers that keep both cores busy; its end follows the workers' end within 50 ms, and the watchdog is killed when the run is done",
        r"nothing",
        {
            "run.sh": """#!/bin/bash
# Load test of the matching engine: two shards, with a progress line.
set -eu
cd "$(dirname "$0")"
rm -f shard*.progress
/usr/bin/python3 supervise.py &
main=$!
(
    sleep 50 &
    trap "kill $! 2>/dev/null; exit 0" TERM
    wait
    kill $main 2>/dev/null
) &
guard=$!
status=0
wait $main || status=$?
kill $guard 2>/dev/null || true
wait $guard 2>/dev/null || true
rm -f shard*.progress
exit $status
""",
            "shard.pl": r"""# Matches random orders of one shard; every order depends on the book that the ones before left.
use strict; use warnings;
my $shard = shift;
my ($seed, %bid, %ask, $trades) = (4711 + $shard);
for my $percent (1 .. 100) {
    for (1 .. 130_000) {
        $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
        my $price = 1000 + ($seed >> 8) % 64;
        if ($seed >> 30) { if ($ask{$price}) { $ask{$price}--; $trades++ } else { $bid{$price}++ } }
        else             { if ($bid{$price}) { $bid{$price}--; $trades++ } else { $ask{$price}++ } }
    }
    open my $p, '>', "shard$shard.progress" or die $!;
    print $p $percent;
}
print "shard $shard: $trades trades\n";
""",
            "supervise.py": '''"""Starts the shards and shows how far they are."""
import asyncio
import os
import sys

SHARDS = (0, 1)


def progress(shard):
    try:
        return int(open(f"shard{shard}.progress").read() or 0)
    except FileNotFoundError:
        return 0


async def main():
    shards = [await asyncio.create_subprocess_exec("perl", "shard.pl", str(s)) for s in SHARDS]
    ends = [asyncio.create_task(s.wait()) for s in shards]
    shown = -1
    while not all(end.done() for end in ends):
        now = min(progress(s) for s in SHARDS)
        if now // 25 > shown:
            shown = now // 25
            print(f"{now} %", flush=True)
        await asyncio.sleep(0.05)
    sys.exit(max(end.result() for end in ends))


asyncio.run(main())
''',
        },
        "",
    ),
    Plant(
        "w27-perl-feed",
        "nap",
        "Perl, select() with four arguments as a nap between messages, TCP stub server in Perl beside it",
        "feed.pl naps 0.12 s by select(undef, undef, undef, ...) after each of its 36 acknowledged messages though the server answers at once; send the next message as soon as the acknowledgement is there (FEED_PACE=0)",
        r"(?i)feed\.pl",
        {
            "feed.pl": r"""use strict; use warnings; use IO::Socket::INET;
my ($port, $file) = @ARGV;
my $pace = $ENV{FEED_PACE} // 0.12;    # the production gateway allows eight orders a second
my $socket;
for (1 .. 100) {
    $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) and last;
    select undef, undef, undef, 0.02;
}
die "gateway: $!" unless $socket;
$socket->autoflush(1);
open my $orders, '<', $file or die "$file: $!";
while (my $order = <$orders>) {
    print $socket $order;
    my $ack = <$socket> // die "gateway closed\n";
    print $ack;
    select undef, undef, undef, $pace if $pace;
}
""",
            "gateway.pl": r"""use strict; use warnings; use IO::Socket::INET; use Digest::SHA qw(sha256_hex);
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => shift, Listen => 5, ReuseAddr => 1) or die "listen: $!";
$SIG{ALRM} = sub { exit 1 }; alarm 60;
while (my $client = $listen->accept) {
    while (my $order = <$client>) {
        chomp $order;
        my $sum = $order;
        $sum = sha256_hex($sum) for 1 .. 20_000;   # signature of the order
        print $client "ACK $sum\n";
    }
}
""",
            "orders.txt": """SELL 100 ISIN-4711 20.00
BUY 107 ISIN-4724 20.25
BUY 114 ISIN-4737 20.50
SELL 121 ISIN-4750 20.75
BUY 128 ISIN-4763 21.00
BUY 135 ISIN-4776 21.25
SELL 142 ISIN-4789 21.50
BUY 149 ISIN-4802 21.75
BUY 156 ISIN-4815 22.00
SELL 163 ISIN-4828 22.25
BUY 170 ISIN-4841 22.50
BUY 177 ISIN-4854 22.75
SELL 184 ISIN-4867 23.00
BUY 101 ISIN-4880 23.25
BUY 108 ISIN-4893 23.50
SELL 115 ISIN-4906 23.75
BUY 122 ISIN-4919 24.00
BUY 129 ISIN-4932 24.25
SELL 136 ISIN-4945 24.50
BUY 143 ISIN-4958 24.75
BUY 150 ISIN-4971 25.00
SELL 157 ISIN-4984 25.25
BUY 164 ISIN-4997 25.50
BUY 171 ISIN-5010 25.75
SELL 178 ISIN-5023 26.00
BUY 185 ISIN-5036 26.25
BUY 102 ISIN-5049 26.50
SELL 109 ISIN-5062 26.75
BUY 116 ISIN-5075 27.00
BUY 123 ISIN-5088 27.25
SELL 130 ISIN-5101 27.50
BUY 137 ISIN-5114 27.75
BUY 144 ISIN-5127 28.00
SELL 151 ISIN-5140 28.25
BUY 158 ISIN-5153 28.50
BUY 165 ISIN-5166 28.75
""",
            "run.sh": """#!/bin/bash
# Replays the morning's order messages against the gateway stub.
set -eu
cd "$(dirname "$0")"
export FEED_PACE=0.12
[ "${FIX:-}" = 1 ] && export FEED_PACE=0
perl gateway.pl 18860 > gateway.log &
gateway=$!
trap 'kill $gateway 2>/dev/null || true; rm -f gateway.log acks.txt' EXIT
timeout 30 perl feed.pl 18860 orders.txt > acks.txt
kill $gateway
wait $gateway 2>/dev/null || true
test "$(grep -c '^ACK' acks.txt)" = 36
echo "36 orders acknowledged"
""",
        },
        "",
    ),
    Plant(
        "w27-ruby-lock",
        "lock",
        "Ruby, thread per connection with one Mutex held over a child process, curl clients in parallel",
        "the preview server preview.rb holds its one Mutex while it waits for the converter (a child by Open3), so eight parallel requests are served one after the other; hold the lock only for the cache's table and convert outside of it",
        r"(?i)preview\.rb|ruby|Mutex",
        {
            "convert.py": '''"""Asks the device (a printer's driver in the field) for the label's picture and packs it."""
import sys
import time
import zlib

label = sys.argv[1]
time.sleep(0.45)    # the driver settles
data = bytes(range(256)) * 4000
print(f"preview of {label} {len(zlib.compress(data, 6))}")
''',
            "preview.rb": r"""require 'socket'
require 'open3'
require 'rbconfig'

LOCK = Mutex.new
CACHE = {}
WIDE = ENV['FIX'] != '1'

def convert(label)
  out, status = Open3.capture2('/usr/bin/python3', 'convert.py', label)
  raise 'converter failed' unless status.success?
  out
end

def preview(label)
  if WIDE
    LOCK.synchronize { CACHE[label] ||= convert(label) }
  else
    LOCK.synchronize { CACHE[label] } || convert(label).tap { |out| LOCK.synchronize { CACHE[label] = out } }
  end
end

server = TCPServer.new('127.0.0.1', ARGV.fetch(0).to_i)
Thread.new { sleep 60; exit! 1 }
loop do
  Thread.new(server.accept) do |client|
    path = client.gets.to_s.split[1].to_s
    nil while (line = client.gets) && line != "\r\n"
    body = path == '/health' ? "ok\n" : preview(File.basename(path))
    client.write "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}"
  ensure
    client.close
  end
end
""",
            "run.sh": """#!/bin/bash
# Fetches the previews of the eight label templates as the printing service does: all at once.
set -eu
cd "$(dirname "$0")"
rm -rf got; mkdir got
ruby preview.rb 18864 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf got' EXIT
for i in $(seq 200); do curl -sf -o /dev/null http://127.0.0.1:18864/health && break; sleep 0.03; done
clients=()
for label in box pallet envelope shelf badge pouch crate tube; do
    curl -sf --max-time 30 -o got/$label http://127.0.0.1:18864/preview/$label &
    clients+=($!)
done
wait "${clients[@]}"
test "$(cat got/* | grep -c '^preview of')" = 8
""",
        },
        "",
    ),
    Plant(
        "w27-taskset",
        "wrapper",
        "a wrapper script with taskset and nice around GNU parallel, Python children, one core left idle",
        "tools/quiet starts everything by taskset -c on a single CPU, so the two jobs of GNU parallel share one core and the other stays idle; drop the pinning (keep nice)",
        r"(?i)taskset|tools/quiet|affinity|pinned",
        {
            "run.sh": """#!/bin/bash
# Simulates the eight scenarios of the capacity plan.
set -eu
cd "$(dirname "$0")"
export HOME="$PWD/home"; mkdir -p "$HOME/.parallel"; touch "$HOME/.parallel/will-cite"
trap 'rm -rf home' EXIT
timeout 60 sh tools/quiet parallel --will-cite -j 2 -k /usr/bin/python3 scenario.py ::: base peak night holiday outage growth merge leap
""",
            "scenario.py": '''"""Queue model of the warehouse: arrivals, two docks, a day in steps of a tenth of a second."""
import random
import sys

name = sys.argv[1]
source = random.Random(name)
docks = [0.0, 0.0]
now = late = 0.0
for _ in range(1_150_000):
    now += source.expovariate(1.0)
    dock = 0 if docks[0] <= docks[1] else 1
    start = max(now, docks[dock])
    late += start - now
    docks[dock] = start + source.random() * 3
print(f"{name}: mean wait {late / 1_150_000:.3f}")
''',
            "tools/quiet": """# Runs a command so that the desktop stays usable.
first=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
if [ "${FIX:-}" = 1 ]; then
    exec nice -n 5 "$@"
fi
exec nice -n 5 taskset -c "$first" "$@"
""",
        },
        "",
    ),
    Plant(
        "w27-tcl-bench",
        "poll",
        "Tcl, event loop with `after` looking for a done file, child processes beside it",
        "regress.tcl starts each of its six simulations in the background and looks for the simulation's .done file only every 900 ms (after), so each step waits up to 0.9 s after its child has ended; wait for the child's end (fileevent on the pipe) instead",
        r"(?i)regress\.tcl|tclsh",
        {
            "regress.tcl": """# Runs the simulations one after the other; each one reads the coverage of the one before.
set watch $env(WATCH)
proc look {name} {
    if {[file exists out/$name.done]} {
        set ::finished $name
    } else {
        after 900 [list look $name]
    }
}
proc ended {name channel} {
    if {[gets $channel line] < 0 && [eof $channel]} {
        close $channel
        set ::finished $name
    }
}
set before none
foreach name $argv {
    if {$watch eq "pipe"} {
        set channel [open [list | /usr/bin/python3 sim.py $name $before] r]
        fileevent $channel readable [list ended $name $channel]
    } else {
        exec /usr/bin/python3 sim.py $name $before > out/$name.log &
        look $name
    }
    vwait finished
    set before $name
    set f [open out/$name.done]; puts "$name: [gets $f]"; close $f
}
""",
            "run.sh": """#!/bin/bash
# Nightly regression of the bus model.
set -eu
cd "$(dirname "$0")"
rm -rf out; mkdir out
trap 'rm -rf out' EXIT
export WATCH=file
[ "${FIX:-}" = 1 ] && export WATCH=pipe
timeout 40 tclsh regress.tcl arbiter fifo uart dma bridge irq
test "$(cat out/*.done | wc -l)" = 6
""",
            "sim.py": r'''"""Cycle model of one block of the bus."""
import os
import sys

name, before = sys.argv[1:]
state = len(name)
if before != "none":
    state += int(open(f"out/{before}.done").read().split()[1])
cycles = 1_100_000 + 60_000 * len(name)
for _ in range(cycles):
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
with open(f"out/{name}.part", "w") as f:
    f.write(f"coverage {state}\n")
os.rename(f"out/{name}.part", f"out/{name}.done")
''',
        },
        "",
    ),
    Plant(
        "w27-watchdog",
        "shutdown",
        "bash, a watchdog in the background that is waited for, sqlite3 and gzip as the work",
        "checks.sh starts a watchdog (sleep 6 in the background, then kill) and ends with a bare `wait`, which waits for the watchdog's sleep though all checks ended long before; end the watchdog when the checks are done, or wait for the checks' own ids",
        r"(?i)checks\.sh|watchdog|\bsleep\b",
        {
            "checks.sh": """# Each check writes a line into its log; a check that hangs must not block the release.
set -eu
rm -rf work; mkdir work
trap 'rm -rf work' EXIT
LIMIT=5
pids=()

check() {
    local name=$1; shift
    "$@" > "work/$name.log" 2>&1 &
    pids+=($!)
}

ledger() {
    sqlite3 work/ledger.db "create table e(id integer primary key, account int, amount int);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
        insert into e select i, i % 97, (i * 7919) % 1000 - 500 from n;
        create index a on e(account, amount);
        select count(*), sum(amount) from e where account < 50;"
}

archive() {
    seq 1 1500000 | gzip -6 > work/seq.gz
    gzip -t work/seq.gz
    zcat work/seq.gz | sha256sum
}

check ledger ledger
check archive archive

(
    sleep $LIMIT
    kill "${pids[@]}" 2>/dev/null
) &
guard=$!

if [ "${FIX:-}" = 1 ]; then
    wait "${pids[@]}"
    pkill -P $guard sleep || true
    wait $guard || true
else
    wait
fi
cat work/ledger.log work/archive.log
""",
            "run.sh": """#!/bin/bash
# Checks of the data directory before the release.
set -eu
cd "$(dirname "$0")"
timeout 40 bash checks.sh
""",
        },
        "",
    ),
    Plant(
        "w27-xargs-pages",
        "serial",
        "xargs -n 1 in a shell script, one Perl child at a time, two cores",
        "xargs -n 1 in pages.sh runs the twelve independent render.pl one after another on one of two cores; run two at a time (xargs -P 2)",
        r"(?i)xargs|render\.pl|pages\.sh",
        {
            "pages.sh": """set -eu
jobs=1
[ "${FIX:-}" = 1 ] && jobs=2
seq -w 1 12 | xargs -n 1 -P $jobs perl render.pl
""",
            "render.pl": r"""use strict; use warnings;
my $month = shift;
my (%hits, $seed);
$seed = $month * 7919;
for (1 .. 1_700_000) {
    $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
    $hits{'/page/' . ($seed % 5003)}++;
}
open my $page, '>', "site/$month.html" or die $!;
print $page "<h1>Month $month</h1><table>\n";
print $page "<tr><td>$_<td>$hits{$_}\n" for (sort { $hits{$b} <=> $hits{$a} || $a cmp $b } keys %hits)[0 .. 49];
print $page "</table>\n";
""",
            "run.sh": """#!/bin/bash
# Renders the twelve monthly pages of the statistics site.
set -eu
cd "$(dirname "$0")"
rm -rf site; mkdir site
trap 'rm -rf site' EXIT
timeout 60 bash pages.sh
ls site/*.html | wc -l
""",
        },
        "",
    ),
]
