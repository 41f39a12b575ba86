"""The eleventh part of the plants of failing.py: ordinary projects in miniature, written before anything of it was recorded,
by somebody who had seen neither the rules nor the parts before. setup.sh makes the files of a plant."""

from plant import Plant

ELEVENTH = {
    # ---------------------------------------------------------------- make
    "telemetryd-keep-going": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src include doc
cat > include/frame.h <<'EOF'
#ifndef FRAME_H
#define FRAME_H
#include <stddef.h>
#include <stdint.h>
struct frame { uint8_t kind; uint16_t length; uint8_t body[64]; };
uint16_t crc16(const uint8_t *p, size_t n);
int frame_pack(const struct frame *f, uint8_t *out);
int ring_push(uint8_t b);
#endif
EOF
cat > src/crc.c <<'EOF'
#include "frame.h"
uint16_t crc16(const uint8_t *p, size_t n)
{
    uint16_t c = 0xffff;
    while (n--) { c ^= *p++; for (int i = 0; i < 8; i++) c = (c & 1) ? (c >> 1) ^ 0xa001 : c >> 1; }
    return c;
}
EOF
cat > src/ring.c <<'EOF'
#include "frame.h"
static uint8_t buf[256]; static unsigned head;
int ring_push(uint8_t b) { buf[head++ % sizeof buf] = b; return buf[0]; }
EOF
cat > src/codec.c <<'EOF'
#include <string.h>
#include "frame.h"
int frame_pack(const struct frame *f, uint8_t *out)
{
    out[0] = f->kind;
    memcpy(out + 1, &f->len, sizeof f->len);
    memcpy(out + 3, f->body, f->length);
    return f->length + 3;
}
EOF
cat > src/main.c <<'EOF'
#include <stdio.h>
#include "frame.h"
int main(void)
{
    struct frame f = { 1, 3, "abc" }; uint8_t out[80];
    int n = frame_pack(&f, out);
    printf("%d %04x\n", n, crc16(out, n));
    return ring_push(out[0]) < 0;
}
EOF
cat > doc/telemetryd.1.in <<'EOF'
.TH telemetryd 1 "@VERSION@"
EOF
cat > Makefile <<'EOF'
VERSION := $(shell git describe --tags 2>/dev/null || echo 0.4-dev)
CFLAGS  ?= -O1 -Wall -Iinclude
OBJS    := build/main.o build/ring.o build/codec.o build/crc.o

all: build/telemetryd build/libcrc.a build/telemetryd.1

build/telemetryd: $(OBJS)
	$(CC) -o $@ $(OBJS)

build/libcrc.a: build/crc.o
	ar rcs $@ $<

build/telemetryd.1: doc/telemetryd.1.in | build
	sed 's/@VERSION@/$(VERSION)/' $< > $@

build/%.o: src/%.c include/frame.h | build
	$(CC) $(CFLAGS) -c -o $@ $<

build:
	mkdir -p $@

.PHONY: all
EOF
""",
            "command": "make -k -j3 all\n",
        },
        r"\bcodec\b",
        r"make",
        "sh setup.sh",
        needs="gcc",
    ),
    "bytecode-vm-recursive": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p opcodes vm
cat > Makefile <<'EOF'
SUBDIRS = opcodes vm
all: $(SUBDIRS)
$(SUBDIRS):
	$(MAKE) -C $@
vm: opcodes
.PHONY: all $(SUBDIRS)
EOF
cat > opcodes/Makefile <<'EOF'
.DELETE_ON_ERROR:
all: ops.h
mkops: mkops.c
	$(CC) -O1 -o $@ $<
ops.h: mkops instructions.def
	./mkops instructions.def > $@
EOF
cat > opcodes/mkops.c <<'EOF'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char line[128];
    FILE *in = fopen(argv[1], "r");
    if (!in) { perror(argv[1]); return 1; }
    puts("enum op {");
    while (fgets(line, sizeof line, in)) {
        char *name = strtok(line, " \n");
        char *code = strtok(NULL, " \n");
        printf("  OP_%s = %.*s,\n", name, (int)strlen(code), code);
    }
    puts("};");
    return 0;
}
EOF
cat > opcodes/instructions.def <<'EOF'
NOP 0
PUSH 1
POP 2
HALT
JMP 4
EOF
cat > vm/Makefile <<'EOF'
all: vm
vm: vm.c ../opcodes/ops.h
	$(CC) -I../opcodes -o $@ vm.c
EOF
cat > vm/vm.c <<'EOF'
#include "ops.h"
int main(void) { return OP_NOP; }
EOF
""",
            "command": "make -j2\n",
        },
        r"\bmkops\b|ops\.h",
        r"make",
        "sh setup.sh",
        needs="gcc",
    ),
    # --------------------------------------------------------------- cmake
    "beacon-configure-version": Plant(
        "cmake",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src tools
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(beacon C)
include(CheckIncludeFile)
include(CheckSymbolExists)
check_include_file(sys/epoll.h HAVE_EPOLL)
check_symbol_exists(strlcpy string.h HAVE_STRLCPY)

find_program(PYTHON NAMES python3 REQUIRED)
execute_process(
  COMMAND ${PYTHON} ${CMAKE_SOURCE_DIR}/tools/read_version.py ${CMAKE_SOURCE_DIR}/release.ini
  OUTPUT_VARIABLE BEACON_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE rc)
if(NOT rc EQUAL 0)
  message(FATAL_ERROR "cannot determine the version of beacon")
endif()

add_executable(beacon src/main.c)
target_compile_definitions(beacon PRIVATE VERSION="${BEACON_VERSION}")
EOF
cat > tools/read_version.py <<'EOF'
import configparser
import sys

ini = configparser.ConfigParser()
ini.read(sys.argv[1])
print("{major}.{minor}".format(**ini["release"]))
EOF
cat > release.ini <<'EOF'
[release]
major = 2
EOF
cat > src/main.c <<'EOF'
#include <stdio.h>
int main(void) { puts(VERSION); return 0; }
EOF
""",
            "command": "set -e\ncmake -S . -B build\ncmake --build build\n",
        },
        r"read_version",
        r"cmake",
        "sh setup.sh",
        needs="cmake",
    ),
    "lexer-keyword-table": Plant(
        "cmake",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p lex scripts
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(tinylex C)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/keywords.inc
  COMMAND perl ${CMAKE_SOURCE_DIR}/scripts/gen_keywords.pl
          ${CMAKE_SOURCE_DIR}/lex/keywords.txt ${CMAKE_BINARY_DIR}/keywords.inc
  DEPENDS scripts/gen_keywords.pl lex/keywords.txt
  COMMENT "Generating keywords.inc")
add_library(lexutil STATIC lex/util.c)
add_executable(tinylex lex/main.c ${CMAKE_BINARY_DIR}/keywords.inc)
target_include_directories(tinylex PRIVATE ${CMAKE_BINARY_DIR})
target_link_libraries(tinylex lexutil)
EOF
cat > scripts/gen_keywords.pl <<'EOF'
use strict;
my ($src, $dst) = @ARGV;
my %seen;
open my $in, '<', $src or die "$src: $!\n";
while (<$in>) {
    chomp; next if /^#/ || !length;
    die "$src:$.: keyword '$_' is listed twice (first in line $seen{$_})\n" if $seen{$_};
    $seen{$_} = $.;
}
open my $out, '>', $dst or die "$dst: $!\n";
print $out qq("$_",\n) for sort keys %seen;
EOF
printf '# reserved words\nif\nelse\nwhile\nfor\nreturn\nwhile\nswitch\n' > lex/keywords.txt
cat > lex/util.c <<'EOF'
#include <string.h>
int is_word(const char **t, int n, const char *w) { while (n--) if (!strcmp(t[n], w)) return 1; return 0; }
EOF
cat > lex/main.c <<'EOF'
int is_word(const char **t, int n, const char *w);
static const char *words[] = {
#include "keywords.inc"
};
int main(int c, char **v) { return c > 1 && is_word(words, sizeof words / sizeof *words, v[1]); }
EOF
cmake -S . -B out -DCMAKE_BUILD_TYPE=Release > configure.log
""",
            "command": "cmake --build out --parallel 2\n",
        },
        r"gen_keywords|keywords\.(inc|txt)",
        r"cmake",
        "sh setup.sh",
        needs="cmake",
    ),
    "audio-buffers-ctest": Plant(
        "cmake",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p lib t
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(audiobuf C)
enable_testing()
add_library(audiobuf STATIC lib/ringbuf.c lib/gain.c)
target_include_directories(audiobuf PUBLIC lib)
foreach(t gain ringbuf usage)
  add_executable(test_${t} t/test_${t}.c)
  target_link_libraries(test_${t} audiobuf)
  add_test(NAME ${t} COMMAND test_${t})
endforeach()
set_tests_properties(usage PROPERTIES WILL_FAIL TRUE)
EOF
cat > lib/audiobuf.h <<'EOF'
#define CAP 8
struct ringbuf { int v[CAP]; unsigned head, tail; };
int ringbuf_put(struct ringbuf *r, int x);
int ringbuf_get(struct ringbuf *r, int *x);
int gain(int sample, int percent);
EOF
cat > lib/ringbuf.c <<'EOF'
#include "audiobuf.h"
int ringbuf_put(struct ringbuf *r, int x) { r->v[r->head++ % CAP] = x; return 1; }
int ringbuf_get(struct ringbuf *r, int *x)
{ if (r->tail == r->head) return 0; *x = r->v[r->tail++ % CAP]; return 1; }
EOF
cat > lib/gain.c <<'EOF'
#include "audiobuf.h"
int gain(int sample, int percent) { return sample * percent / 100; }
EOF
cat > t/test_gain.c <<'EOF'
#include <assert.h>
#include "audiobuf.h"
int main(void) { assert(gain(200, 50) == 100); return 0; }
EOF
cat > t/test_ringbuf.c <<'EOF'
#include <assert.h>
#include "audiobuf.h"
int main(void)
{
    struct ringbuf r = {0};
    int i, x;
    for (i = 0; i < CAP; i++) assert(ringbuf_put(&r, i));
    assert(!ringbuf_put(&r, 99));
    assert(ringbuf_get(&r, &x) && x == 0);
    return 0;
}
EOF
cat > t/test_usage.c <<'EOF'
#include <stdio.h>
int main(int argc, char **argv)
{ if (argc < 2) { fprintf(stderr, "usage: %s FILE\n", argv[0]); return 2; } return 0; }
EOF
cmake -S . -B build > configure.log
cmake --build build -j 2 > build.log
""",
            "command": "set -e\ncmake --build build\ncd build\nctest --output-on-failure\n",
        },
        r"\b(test_)?ringbuf\b(?!\.c)",
        r"cmake|ctest",
        "sh setup.sh",
        needs="ctest",
    ),
    # --------------------------------------------------------------- meson
    "notifyd-werror": Plant(
        "meson",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src
cat > meson.build <<'EOF'
project('notifyd', 'c', version: '1.3', default_options: ['warning_level=2', 'werror=true'])
cc = meson.get_compiler('c')
conf = configuration_data()
conf.set('HAVE_STRLCPY', cc.has_function('strlcpy'))
conf.set('HAVE_INOTIFY', cc.has_header('sys/inotify.h'))
configure_file(output: 'config.h', configuration: conf)
executable('notifyd', 'src/main.c', 'src/queue.c', 'src/dispatch.c')
EOF
cat > src/queue.c <<'EOF'
int queue_len(void);
int queue_len(void) { return 3; }
EOF
cat > src/dispatch.c <<'EOF'
#include <unistd.h>
int dispatch(int fd, const char *msg, unsigned len);
int dispatch(int fd, const char *msg, unsigned len)
{
    int sent = write(fd, msg, len);
    if (sent < len)
        return -1;
    return 0;
}
EOF
cat > src/main.c <<'EOF'
int queue_len(void);
int dispatch(int fd, const char *msg, unsigned len);
int main(void) { return queue_len() ? dispatch(1, "hi\n", 3) : 0; }
EOF
""",
            "command": "set -e\nmeson setup build\nmeson compile -C build\n",
        },
        r"dispatch\.c|dispatch\.o",
        r"meson|ninja",
        "sh setup.sh",
        needs="meson",
    ),
    "jobqueue-test-limit": Plant(
        "meson",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p lib tests
cat > meson.build <<'EOF'
project('jobqueue', 'c', default_options: ['buildtype=debug'])
lib = static_library('jobqueue', 'lib/jobs.c')
foreach n : ['push', 'order', 'drain']
  test(n, executable('t_' + n, 'tests/t_' + n + '.c', link_with: lib, include_directories: 'lib'), timeout: 1)
endforeach
EOF
cat > lib/jobs.h <<'EOF'
int jobs_open(void);
int jobs_push(char c);
int jobs_pop(void);
void jobs_close(void);
EOF
cat > lib/jobs.c <<'EOF'
#include <unistd.h>
#include "jobs.h"
static int ends[2];
int jobs_open(void) { return pipe(ends); }
int jobs_push(char c) { return write(ends[1], &c, 1) == 1; }
int jobs_pop(void) { char c; return read(ends[0], &c, 1) == 1 ? c : -1; }
void jobs_close(void) { /* the consumer sees the end of file */ }
EOF
cat > tests/t_push.c <<'EOF'
#include "jobs.h"
int main(void) { return jobs_open() || !jobs_push('a'); }
EOF
cat > tests/t_order.c <<'EOF'
#include "jobs.h"
int main(void) { jobs_open(); jobs_push('a'); jobs_push('b'); return jobs_pop() != 'a' || jobs_pop() != 'b'; }
EOF
cat > tests/t_drain.c <<'EOF'
#include "jobs.h"
int main(void) { int n = 0; jobs_open(); jobs_push('a'); jobs_push('b'); jobs_close(); while (jobs_pop() >= 0) n++; return n != 2; }
EOF
meson setup build > setup.log
meson compile -C build > compile.log
""",
            "command": "meson test -C build --print-errorlogs\n",
        },
        r"drain",
        r"meson",
        "sh setup.sh",
        needs="meson",
    ),
    # --------------------------------------------------------------- ninja
    "imgstat-undefined-symbol": Plant(
        "ninja",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src
cat > build.ninja <<'EOF'
cflags = -O1 -Wall
rule cc
  command = gcc $cflags -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = CC $out
rule link
  command = gcc -o $out $in -lm
  description = LINK $out
rule gz
  command = gzip -9 -n -c $in > $out

build obj/main.o: cc src/main.c
build obj/reader.o: cc src/reader.c
build obj/stats.o: cc src/stats.c
build bin/imgstat: link obj/main.o obj/reader.o obj/stats.o
build share/README.gz: gz README
default bin/imgstat share/README.gz
EOF
echo 'imgstat - numbers about pictures' > README
cat > src/main.c <<'EOF'
#include <stdio.h>
int read_pixels(unsigned char *p, int n);
double stats_mean(const unsigned char *p, int n);
double histogram_peak(const unsigned char *p, int n);
int main(void)
{
    unsigned char px[64]; int n = read_pixels(px, 64);
    printf("mean %.2f peak %.2f\n", stats_mean(px, n), histogram_peak(px, n));
    return 0;
}
EOF
cat > src/reader.c <<'EOF'
int read_pixels(unsigned char *p, int n);
int read_pixels(unsigned char *p, int n) { for (int i = 0; i < n; i++) p[i] = i * 7; return n; }
EOF
cat > src/stats.c <<'EOF'
#include <math.h>
double stats_mean(const unsigned char *p, int n);
double stats_mean(const unsigned char *p, int n) { double s = 0; for (int i = 0; i < n; i++) s += p[i]; return sqrt(s * s) / n; }
EOF
cat > src/histogram.c <<'EOF'
double histogram_peak(const unsigned char *p, int n);
double histogram_peak(const unsigned char *p, int n) { double m = 0; while (n--) if (p[n] > m) m = p[n]; return m; }
EOF
""",
            "command": "ninja\n",
        },
        r"\bld\b|collect2|bin/imgstat",
        r"ninja",
        "sh setup.sh",
        needs="ninja",
    ),
    "game-atlas-assets": Plant(
        "ninja",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p art/terrain art/hud art/units tools
for n in grass rock water; do echo "PX $n" > art/terrain/$n.px; done
for n in health compass; do echo "PX $n" > art/hud/$n.px; done
for n in scout tank; do echo "PX $n" > art/units/$n.px; done
printf 'grass\nrock\nwater\n' > art/terrain.lst
printf 'health\nminimap\ncompass\n' > art/hud.lst
printf 'scout\ntank\n' > art/units.lst
cat > tools/pack.sh <<'EOF'
# pack.sh LIST OUT: one sheet from the pieces named in LIST
set -e
dir=${1%.lst}
: > "$2.tmp"
while read -r piece; do
    cat "$dir/$piece.px" >> "$2.tmp"
done < "$1"
mv "$2.tmp" "$2"
EOF
cat > build.ninja <<'EOF'
rule pack
  command = sh tools/pack.sh $in $out
  description = PACK $out
rule bundle
  command = tar -cf $out $in
  description = BUNDLE $out

build out/terrain.sheet: pack art/terrain.lst
build out/hud.sheet: pack art/hud.lst
build out/units.sheet: pack art/units.lst
build out/assets.tar: bundle out/terrain.sheet out/hud.sheet out/units.sheet
EOF
""",
            "command": "ninja -k 0 -j 2\n",
        },
        r"minimap|hud",
        r"ninja",
        "sh setup.sh",
        needs="ninja",
    ),
    # --------------------------------------------------------------- cargo
    "wire-schema-build-script": Plant(
        "cargo",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src proto
cat > Cargo.toml <<'EOF'
[package]
name = "wirefmt"
version = "0.2.0"
edition = "2021"
build = "build.rs"
EOF
cat > build.rs <<'EOF'
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=proto");
    let out = std::env::var("OUT_DIR").unwrap();
    let status = Command::new("sh")
        .args(["proto/gen_messages.sh", "proto/messages.def", &format!("{out}/messages.rs")])
        .status()
        .expect("sh starts");
    assert!(status.success(), "the message types were not generated");
}
EOF
cat > proto/gen_messages.sh <<'EOF'
set -eu
awk '
    $2 == "u8" || $2 == "u16" || $2 == "u32" { print "pub type " $1 " = " $2 ";"; next }
    { print FILENAME ":" FNR ": unknown type " $2 > "/dev/stderr"; exit 3 }
' "$1" > "$2"
EOF
printf 'Kind u8\nLength u16\nStamp u46\nBody u32\n' > proto/messages.def
cat > src/lib.rs <<'EOF'
include!(concat!(env!("OUT_DIR"), "/messages.rs"));
EOF
""",
            "command": "cargo build --offline\n",
        },
        r"\bm?awk\b|gen_messages|messages\.def",
        r"cargo",
        "sh setup.sh",
        needs="cargo",
    ),
    "bookkeeping-workspace-tests": Plant(
        "cargo",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p crates/money/src crates/ledger/src crates/report/src
cat > Cargo.toml <<'EOF'
[workspace]
members = ["crates/money", "crates/ledger", "crates/report"]
resolver = "2"
EOF
for c in money ledger report; do
    printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n' $c > crates/$c/Cargo.toml
done
echo 'money = { path = "../money" }' >> crates/ledger/Cargo.toml
echo 'money = { path = "../money" }' >> crates/report/Cargo.toml
cat > crates/money/src/lib.rs <<'EOF'
pub fn split(cents: i64, parts: i64) -> Vec<i64> {
    (0..parts).map(|_| cents / parts).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn even() { assert_eq!(super::split(90, 3), [30, 30, 30]); }
}
EOF
cat > crates/ledger/src/lib.rs <<'EOF'
pub fn post(total: i64, accounts: i64) -> i64 {
    total - money::split(total, accounts).iter().sum::<i64>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn balances_even() { assert_eq!(super::post(90, 3), 0); }
    #[test]
    fn balances_with_remainder() { assert_eq!(super::post(100, 3), 0); }
}
EOF
cat > crates/report/src/lib.rs <<'EOF'
pub fn line(cents: i64) -> String { format!("{}.{:02}", cents / 100, cents % 100) }

#[cfg(test)]
mod tests {
    #[test]
    fn pads() { assert_eq!(super::line(705), "7.05"); }
}
EOF
""",
            "command": "cargo test --offline --workspace --lib --no-fail-fast\n",
        },
        r"\bledger\b",
        r"cargo",
        "sh setup.sh",
        needs="cargo",
    ),
    "mdtoc-cli-integration": Plant(
        "cargo",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src tests samples
cat > Cargo.toml <<'EOF'
[package]
name = "mdtoc"
version = "1.0.0"
edition = "2021"
EOF
cat > src/main.rs <<'EOF'
use std::process::exit;

fn entry(line: &str) -> String {
    let text = line.trim_start_matches('#').trim();
    let first = text.chars().next().unwrap();
    format!("- {}{}", first.to_uppercase(), &text[first.len_utf8()..])
}

fn main() {
    let file = match std::env::args().nth(1) {
        Some(f) => f,
        None => {
            eprintln!("usage: mdtoc FILE");
            exit(2)
        }
    };
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| {
        eprintln!("{file}: {e}");
        exit(1)
    });
    for line in text.lines().filter(|l| l.starts_with('#')) {
        println!("{}", entry(line));
    }
}
EOF
cat > tests/cli.rs <<'EOF'
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdtoc")).args(args).output().unwrap()
}

#[test]
fn simple_document() {
    assert_eq!(run(&["samples/simple.md"]).stdout, b"- One\n- Two\n");
}

#[test]
fn untitled_section() {
    let out = run(&["samples/untitled.md"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn usage_without_file() {
    assert_eq!(run(&[]).status.code(), Some(2));
}
EOF
printf '# one\ntext\n## two\n' > samples/simple.md
printf '# one\n##\ntext\n' > samples/untitled.md
""",
            "command": "cargo test --offline --test cli -- --test-threads=1\n",
        },
        r"untitled",
        r"cargo",
        "sh setup.sh",
        needs="cargo",
    ),
    # ------------------------------------------------------------------ go
    "depot-go-build": Plant(
        "go",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p cmd/depotd cmd/depotctl internal/quota internal/names
printf 'module example.com/depot\n\ngo 1.19\n' > go.mod
cat > internal/names/names.go <<'EOF'
package names

// Key is the name under which a bucket is stored.
func Key(bucket, object string) string { return bucket + "/" + object }
EOF
cat > internal/quota/quota.go <<'EOF'
package quota

// Limit is in bytes.
type Limit int64

// Left says how much of the limit is free.
func Left(l Limit, used int64) Limit {
	if used > l {
		return 0
	}
	return l - Limit(used)
}
EOF
cat > cmd/depotd/main.go <<'EOF'
package main

import (
	"os"

	"example.com/depot/internal/names"
	"example.com/depot/internal/quota"
)

func main() {
	os.Stdout.WriteString(names.Key("a", "b") + "\n")
	os.Exit(int(quota.Left(10, 10)))
}
EOF
cat > cmd/depotctl/main.go <<'EOF'
package main

import (
	"os"

	"example.com/depot/internal/names"
)

func main() { os.Stdout.WriteString(names.Key("x", "y") + "\n") }
EOF
""",
            "command": 'export GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$PWD/.gocache"\ngo build -o bin/ ./cmd/...\n',
        },
        r"quota",
        r"\bgo\b",
        "sh setup.sh",
        needs="go",
    ),
    "markdown-wrap-go-tests": Plant(
        "go",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p fold slug
printf 'module example.com/mdkit\n\ngo 1.19\n' > go.mod
cat > fold/fold.go <<'EOF'
package fold

// Fold breaks s into pieces of at most n bytes.
func Fold(s string, n int) []string {
	var out []string
	for i := 0; i < len(s)/n; i++ {
		out = append(out, s[i*n:(i+1)*n])
	}
	return out
}
EOF
cat > fold/fold_test.go <<'EOF'
package fold

import "testing"

func TestExact(t *testing.T) {
	if got := len(Fold("abcdef", 3)); got != 2 {
		t.Errorf("got %d pieces, want 2", got)
	}
}

func TestRest(t *testing.T) {
	if got := len(Fold("abcdefg", 3)); got != 3 {
		t.Errorf("got %d pieces, want 3", got)
	}
}
EOF
cat > slug/slug.go <<'EOF'
package slug

import "strings"

// Slug makes a name for an anchor.
func Slug(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
EOF
cat > slug/slug_test.go <<'EOF'
package slug

import "testing"

func TestSlug(t *testing.T) {
	if got := Slug("Two Words"); got != "two-words" {
		t.Error(got)
	}
}
EOF
""",
            "command": 'export GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$PWD/.gocache"\ngo test -vet=off ./...\n',
        },
        r"\bfold\b",
        r"\bgo\b",
        "sh setup.sh",
        needs="go",
    ),
    # ----------------------------------------------------------------- npm
    "storefront-npm-build": Plant(
        "npm",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p src scripts design
cat > package.json <<'EOF'
{
  "name": "storefront",
  "version": "3.1.0",
  "private": true,
  "type": "module",
  "scripts": {
    "prebuild": "rm -rf dist && mkdir -p dist && node scripts/lint.js src",
    "build": "node scripts/tokens.js design/colors.json dist/colors.css && esbuild src/index.js --bundle --outfile=dist/app.js && node scripts/sizes.js dist"
  },
  "devDependencies": {
    "esbuild": "^0.19.0"
  }
}
EOF
echo '{"ink": "#222", "paper": "#fff"}' > design/colors.json
echo 'export const start = () => "shop";' > src/index.js
cat > scripts/lint.js <<'EOF'
import { readdirSync, readFileSync } from 'node:fs';
for (const f of readdirSync(process.argv[2])) {
  if (readFileSync(`${process.argv[2]}/${f}`, 'utf8').includes('\t')) { console.error(`${f}: tab`); process.exitCode = 1; }
}
EOF
cat > scripts/tokens.js <<'EOF'
import { readFileSync, writeFileSync } from 'node:fs';
const colors = JSON.parse(readFileSync(process.argv[2], 'utf8'));
writeFileSync(process.argv[3], Object.entries(colors).map(([k, v]) => `:root{--${k}:${v}}\n`).join(''));
EOF
cat > scripts/sizes.js <<'EOF'
import { readdirSync, statSync } from 'node:fs';
for (const f of readdirSync(process.argv[2])) console.log(f, statSync(`${process.argv[2]}/${f}`).size);
EOF
""",
            "command": "export npm_config_update_notifier=false\nnpm run build\n",
        },
        r"esbuild",
        r"npm",
        "sh setup.sh",
        needs="npm",
    ),
    "invoice-render-node-test": Plant(
        "npm",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p bin lib test fixtures
cat > package.json <<'EOF'
{
  "name": "invoice-tools",
  "version": "0.9.2",
  "private": true,
  "scripts": { "test": "node --test test/" }
}
EOF
cat > lib/total.js <<'EOF'
exports.total = (lines) => lines.reduce((sum, l) => sum + l.qty * l.price, 0);
EOF
cat > bin/render.js <<'EOF'
const fs = require('node:fs');
const { total } = require('../lib/total.js');
const file = process.argv[2];
if (!file || !fs.existsSync(file)) {
  console.error(`render: no such invoice: ${file}`);
  process.exit(2);
}
const inv = JSON.parse(fs.readFileSync(file, 'utf8'));
console.log(`${inv.customer.name.padEnd(20)} ${total(inv.lines).toFixed(2)}`);
EOF
cat > test/total.test.js <<'EOF'
const test = require('node:test');
const assert = require('node:assert');
const { total } = require('../lib/total.js');
test('adds the lines', () => assert.equal(total([{ qty: 2, price: 3 }]), 6));
test('empty invoice', () => assert.equal(total([]), 0));
EOF
cat > test/cli.test.js <<'EOF'
const test = require('node:test');
const assert = require('node:assert');
const { spawnSync, execFileSync } = require('node:child_process');
test('prints an invoice', () => {
  assert.match(execFileSync('node', ['bin/render.js', 'fixtures/plain.json'], { encoding: 'utf8' }), /6\.00/);
});
test('prints an anonymous invoice', () => {
  assert.match(execFileSync('node', ['bin/render.js', 'fixtures/anonymous.json'], { encoding: 'utf8' }), /4\.50/);
});
test('complains about a missing file', () => {
  assert.equal(spawnSync('node', ['bin/render.js', 'fixtures/absent.json']).status, 2);
});
EOF
echo '{"customer": {"name": "ACME"}, "lines": [{"qty": 2, "price": 3}]}' > fixtures/plain.json
echo '{"lines": [{"qty": 1, "price": 4.5}]}' > fixtures/anonymous.json
""",
            "command": "export npm_config_update_notifier=false\nnpm test\n",
        },
        r"anonymous",
        r"npm",
        "sh setup.sh",
        needs="npm",
    ),
    # -------------------------------------------------------------- pytest
    "geoconv-cli-pytest": Plant(
        "pytest",
        "sh ./command",
        {
            "setup.sh": r'''set -e
mkdir -p geoconv tests data
: > geoconv/__init__.py
cat > geoconv/convert.py <<'EOF'
def to_decimal(text):
    """52 30 36 N -> 52.51"""
    deg, minutes, sec, side = text.split()
    value = int(deg) + int(minutes) / 60 + int(sec) / 3600
    return -value if side in "SW" else value
EOF
cat > geoconv/__main__.py <<'EOF'
import sys

from .convert import to_decimal

if len(sys.argv) != 2:
    sys.exit("usage: geoconv FILE")
for row in open(sys.argv[1]):
    name, lat = row.rstrip("\n").split(",")
    print(f"{name},{to_decimal(lat):.4f}")
EOF
cat > tests/test_convert.py <<'EOF'
import pytest

from geoconv.convert import to_decimal


@pytest.mark.parametrize("text, value", [("52 30 0 N", 52.5), ("10 15 0 S", -10.25)])
def test_to_decimal(text, value):
    assert to_decimal(text) == value
EOF
cat > tests/test_cli.py <<'EOF'
import subprocess
import sys

import pytest


def geoconv(*args, **kw):
    return subprocess.run([sys.executable, "-m", "geoconv", *args], capture_output=True, text=True, **kw)


def test_usage():
    assert geoconv().returncode == 1


@pytest.mark.parametrize("name", ["cities", "peaks", "harbours"])
def test_example(name):
    assert geoconv(f"data/{name}.csv", check=True).stdout.count("\n") == 2
EOF
printf 'Berlin,52 31 12 N\nLima,12 2 36 S\n' > data/cities.csv
printf 'Zugspitze,47 25 16 N\nElbrus,43 21 18.5 N\n' > data/peaks.csv
printf 'Kiel,54 19 31 N\nCork,51 53 50 N\n' > data/harbours.csv
''',
            "command": "/usr/bin/python3 -m pytest -q tests\n",
        },
        r"peaks",
        r"pytest",
        "sh setup.sh",
        needs="pytest",
    ),
    "smtp-fixture-pytest": Plant(
        "pytest",
        "sh ./command",
        {
            "setup.sh": r'''set -e
mkdir -p stubs tests
cat > stubs/mailhub.py <<'EOF'
"""A hub for mail that answers every line with 250."""
import configparser
import socketserver
import sys

conf = configparser.ConfigParser()
conf.read(sys.argv[1])
port = conf.getint("hub", "port")
banner = conf.get("hub", "banner").encode()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 " + banner + b"\n")
        for line in self.rfile:
            self.wfile.write(b"250 ok\n")


socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", port), Handler).serve_forever()
EOF
printf '[hub]\nport = 18401\ngreeting = mailhub test\n' > stubs/hub.ini
cat > tests/conftest.py <<'EOF'
import subprocess
import sys
import time

import pytest


@pytest.fixture(scope="session")
def hub():
    with open("hub.log", "w") as log:
        proc = subprocess.Popen([sys.executable, "stubs/mailhub.py", "stubs/hub.ini"], stderr=log)
    time.sleep(0.7)
    yield ("127.0.0.1", 18401)
    proc.terminate()
    proc.wait()
EOF
cat > tests/test_addresses.py <<'EOF'
def test_domain():
    assert "a@example.com".partition("@")[2] == "example.com"
EOF
cat > tests/test_sending.py <<'EOF'
import socket


def test_greeting(hub):
    with socket.create_connection(hub, timeout=1) as s:
        assert s.makefile().readline().startswith("220")


def test_noop(hub):
    with socket.create_connection(hub, timeout=1) as s:
        f = s.makefile("rw")
        f.readline()
        f.write("NOOP\n")
        f.flush()
        assert f.readline() == "250 ok\n"
EOF
''',
            "command": "/usr/bin/python3 -m pytest -q tests\n",
        },
        r"mailhub",
        r"pytest",
        "sh setup.sh",
        needs="pytest",
    ),
    # ------------------------------------------------------------- ansible
    "edge-proxy-playbook": Plant(
        "ansible",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p files
printf '[defaults]\nretry_files_enabled = False\nlocalhost_warning = False\n\n[connection]\npipelining = True\n' > ansible.cfg
cat > site.yml <<'EOF'
- name: edge proxy
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
  tasks:
    - name: is a proxy running already
      command: test -e run/edge.pid
      register: running
      failed_when: false
      changed_when: false
    - name: check configuration
      command: sh files/check_conf.sh files/edge.conf
      changed_when: false
    - name: activate configuration
      command: cp files/edge.conf live.conf
EOF
cat > files/edge.conf <<'EOF'
listen 127.0.0.1:18402
upstream 127.0.0.1:18403
keep_alive on
EOF
cat > files/check_conf.sh <<'EOF'
bad=0
while read -r key value; do
    case $key in
    listen | upstream | keepalive | '') ;;
    *) echo "$1: unknown directive \"$key\"" >&2; bad=1 ;;
    esac
done < "$1"
exit $bad
EOF
""",
            "command": 'export LC_ALL=C.UTF-8 ANSIBLE_HOME="$PWD/.ansible" ANSIBLE_NOCOWS=1\nansible-playbook -i localhost, site.yml\n',
        },
        r"check_conf",
        r"ansible",
        "sh setup.sh",
        needs="ansible-playbook",
    ),
    "relay-rollout-playbook": Plant(
        "ansible",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p files
printf '[defaults]\nretry_files_enabled = False\nlocalhost_warning = False\n\n[connection]\npipelining = True\n' > ansible.cfg
cat > rollout.yml <<'EOF'
- name: roll out the relay
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: /usr/bin/python3
  tasks:
    - name: start
      shell: nohup /usr/bin/python3 files/relayd.py files/relay.json > relayd.log 2>&1 &
      args:
        chdir: "{{ playbook_dir }}"
    - name: answers
      wait_for:
        host: 127.0.0.1
        port: 18404
        timeout: 1
EOF
echo '{"port": 18404, "upstream": {"host": "127.0.0.1"}}' > files/relay.json
cat > files/relayd.py <<'EOF'
import json
import socket
import sys

conf = json.load(open(sys.argv[1]))
upstream = (conf["upstream"]["host"], conf["upstream"]["port"])
srv = socket.create_server(("127.0.0.1", conf["port"]))
while True:
    conn, _ = srv.accept()
    with conn, socket.create_connection(upstream) as up:
        up.sendall(conn.recv(4096))
EOF
""",
            "command": 'export LC_ALL=C.UTF-8 ANSIBLE_HOME="$PWD/.ansible" ANSIBLE_NOCOWS=1\nansible-playbook -i localhost, rollout.yml\n',
        },
        r"relayd",
        r"ansible",
        "sh setup.sh",
        needs="ansible-playbook",
    ),
    # --------------------------------------------------------------- shell
    "vendor-checksum-release": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p vendor src ci
for n in zstream utf8proc linenoise; do seq 1 200 | sed "s/^/$n /" > vendor/$n.src; done
(cd vendor && sha256sum *.src > SHA256SUMS)
echo 'local patch' >> vendor/utf8proc.src
echo 'int main(void){return 0;}' > src/main.c
cat > ci/release.sh <<'EOF'
#!/bin/sh
set -eu
log() { echo "== $*"; }

rev=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
log "release of $rev"
rm -rf stage && mkdir stage

log "vendored sources"
(cd vendor && sha256sum --quiet -c SHA256SUMS)

log "compile"
cc -o stage/app src/main.c

log "archive"
tar -czf "app-$rev.tar.gz" -C stage .
EOF
""",
            "command": "sh ci/release.sh\n",
        },
        r"sha256sum",
        r"release\.sh",
        "sh setup.sh",
    ),
    "parallel-ci-steps": Plant(
        "shell",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p ci/steps db app
cat > ci/run.sh <<'EOF'
#!/bin/sh
# all steps side by side; red if one is red
pids=
for step in style migrations units; do
    sh ci/steps/$step.sh > ci/$step.log 2>&1 &
    pids="$pids $!"
done
red=0
for pid in $pids; do
    wait "$pid" || red=$((red + 1))
done
for step in style migrations units; do
    echo "--- $step"; cat ci/$step.log
done
echo "$red step(s) red"
[ "$red" -eq 0 ]
EOF
cat > ci/steps/style.sh <<'EOF'
if grep -rn --include='*.py' '[[:space:]]$' app; then
    echo 'white space at the end of a line'; exit 1
fi
sleep 0.6
EOF
cat > ci/steps/migrations.sh <<'EOF'
set -e
cat db/0*.sql > db/schema.new
sleep 0.3
diff -u db/schema.sql db/schema.new
rm db/schema.new
EOF
cat > ci/steps/units.sh <<'EOF'
set -e
python3 -m unittest -q app/test_cart.py
sleep 0.5
EOF
cat > app/test_cart.py <<'EOF'
import unittest


class Cart(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sum([1, 2]), 3)
EOF
echo 'create table cart (id integer);' > db/001_cart.sql
echo 'alter table cart add owner text;' > db/002_owner.sql
echo 'create table cart (id integer);' > db/schema.sql
""",
            "command": "sh ci/run.sh\n",
        },
        r"\bdiff\b|migrations",
        r"run\.sh",
        "sh setup.sh",
    ),
    # ---------------------------------------------------------------- pipe
    "access-log-summary": Plant(
        "pipe",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p logs bin
seq 1 4000 | awk '{ print "10.0." $1 % 7 "." $1 % 13, 200 + ($1 % 3) * 100, $1 * 37 % 1009 }' > access.log
gzip -n -c access.log > access.full.gz
head -c 9000 access.full.gz > logs/access.log.1.gz
rm access.log access.full.gz
cat > bin/summary.sh <<'EOF'
#!/bin/bash
set -euo pipefail
mkdir -p out
gzip -dc logs/access.log.1.gz |
    awk '$2 < 400 { print $1 }' |
    sort |
    uniq -c |
    sort -rn > out/hosts.txt
sed -n 1,10p out/hosts.txt > out/top10.txt
echo "summary written"
EOF
""",
            "command": "bash bin/summary.sh\n",
        },
        r"\bgzip\b|access\.log\.1\.gz",
        r"summary\.sh",
        "sh setup.sh",
        needs="bash",
    ),
    "orders-import": Plant(
        "pipe",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p export import data
cat > data/orders.tsv <<'EOF'
1001	2024-03-01	17.50
1002	2024-03-01	8.00
1003	01.03.2024	3.20
1004	2024-03-02	99.00
1005	2024-03-02	12.00
EOF
cat > export/orders.pl <<'EOF'
use strict;
open my $in, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
my $n = 0;
while (<$in>) {
    chomp;
    my ($id, $day, $sum) = split /\t/;
    $day =~ /^(\d{4})-(\d\d)-(\d\d)$/ or die "$ARGV[0]:$.: not a date: $day\n";
    print "order;$id;$1$2$3;$sum\n";
    $n++;
}
print "end;$n\n";
EOF
cat > import/load.py <<'EOF'
import sys

rows = [line.rstrip("\n").split(";") for line in sys.stdin]
if not rows or rows[-1][0] != "end":
    sys.exit("load: no end record, nothing imported")
if int(rows[-1][1]) != len(rows) - 1:
    sys.exit("load: wrong number of records")
print(f"{len(rows) - 1} orders imported")
EOF
cat > nightly.sh <<'EOF'
set -e
echo "nightly import"
perl export/orders.pl data/orders.tsv | sed 's/;0*/;/' | python3 import/load.py
echo "done"
EOF
""",
            "command": "sh nightly.sh\n",
        },
        r"orders\.pl",
        r"nightly\.sh",
        "sh setup.sh",
    ),
    # ---------------------------------------------------------------- pool
    "region-config-check": Plant(
        "pool",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p conf bin
for r in ap-east ap-south ca-west eu-north eu-west sa-east us-east us-west; do
    printf 'region=%s\nreplicas=3\nzone=a\n' $r > conf/$r.ini
done
printf 'replicas=2\nzone=b\n' > conf/eu-west.ini
echo 'proxy=10.0.0.1' >> conf/ap-south.ini
cat > bin/check_one.sh <<'EOF'
set -e
grep -q '^region=[a-z-]*$' "$1"
grep -q '^replicas=[1-9]$' "$1"
if grep -q '^proxy=' "$1"; then
    echo "$1: goes through a proxy"
fi
sleep 0.1
echo "$1: ok"
EOF
""",
            "command": "set -e\nfind conf -name '*.ini' | sort | xargs -P 3 -n 1 sh bin/check_one.sh\necho all regions are ok\n",
        },
        r"eu-west",
        r"xargs",
        "sh setup.sh",
    ),
    "map-tiles-pool": Plant(
        "pool",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p tiles
for n in 01 02 03 04 05 06 07 08; do echo "TILE 16 $n" > tiles/z3-$n.tile; done
echo "TILE 0 05" > tiles/z3-05.tile
cat > tilepack.c <<'EOF'
#include <stdio.h>
int main(int argc, char **argv)
{
    int width, id;
    FILE *f = fopen(argv[1], "r");
    if (!f || fscanf(f, "TILE %d %d", &width, &id) != 2) return 3;
    printf("%s rows=%d\n", argv[1], 4096 / width);
    return 0;
}
EOF
gcc -O0 -o tilepack tilepack.c
cat > render_map.py <<'EOF'
import glob
import multiprocessing
import subprocess
import time


def pack(tile):
    time.sleep(0.1)
    return subprocess.run(["./tilepack", tile], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        for text in pool.map(pack, sorted(glob.glob("tiles/*.tile")), chunksize=1):
            print(text, end="")
EOF
""",
            "command": "python3 render_map.py\n",
        },
        r"z3-05",
        r"render_map\.py",
        "sh setup.sh",
        needs="gcc",
    ),
    # -------------------------------------------------------------- server
    "items-api-smoke": Plant(
        "server",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p svc
cat > svc/metrics.py <<'EOF'
import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"up 1\n"
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.HTTPServer(("127.0.0.1", int(os.environ["METRICS_PORT"])), Handler).serve_forever()
EOF
cat > svc/api.py <<'EOF'
import http.server
import json
import os


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps([{"id": 1, "name": "lamp"}]).encode()
        self.send_response(200 if self.path == "/items" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.HTTPServer(("127.0.0.1", int(os.environ["API_PORT"])), Handler).serve_forever()
EOF
printf 'METRICS_PORT=18410\nAPI_PORT=18410\n' > test.env
cat > smoke.sh <<'EOF'
set -eu
set -a; . ./test.env; set +a
/usr/bin/python3 svc/metrics.py 2> metrics.log & metrics=$!
trap 'kill $metrics $api 2>/dev/null || true; wait' EXIT
api=
curl -fsS --noproxy '*' --retry 20 --retry-connrefused --retry-delay 1 --retry-max-time 4 -o /dev/null "http://127.0.0.1:$METRICS_PORT/metrics"
/usr/bin/python3 svc/api.py 2> api.log & api=$!
sleep 1
curl -fsS --noproxy '*' "http://127.0.0.1:$API_PORT/items" | grep -q lamp
echo "smoke test ok"
EOF
""",
            "command": "sh smoke.sh\n",
        },
        r"\bapi\.py",
        r"smoke\.sh",
        "sh setup.sh",
        needs="curl",
    ),
    "monthly-report-gateway": Plant(
        "server",
        "sh ./command",
        {
            "setup.sh": r'''set -e
mkdir -p bin data
printf 'b;3\na;4\n' > data/2024-01.csv
printf 'd;1\nc;2\n' > data/2024-03.csv
cat > bin/report.sh <<'EOF'
set -eu
sort -t ';' -k 2n "data/$1.csv"
EOF
cat > gateway.py <<'EOF'
"""GET /report?month=2024-01"""
import http.server
import subprocess
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        month = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("month")
        if month is None:
            code, body = 204, b""
        else:
            run = subprocess.run(["sh", "bin/report.sh", month[0]], capture_output=True)
            code, body = (500, run.stderr) if run.returncode else (200, run.stdout)
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body)


http.server.HTTPServer(("127.0.0.1", 18412), Handler).serve_forever()
EOF
cat > check_reports.sh <<'EOF'
set -eu
/usr/bin/python3 gateway.py 2> gateway.log &
gw=$!
trap 'kill $gw; wait $gw || true' EXIT
base=http://127.0.0.1:18412
i=0
until curl -fs --noproxy '*' "$base/"; do
    i=$((i + 1)); [ $i -lt 30 ]; sleep 0.1
done
for month in 2024-01 2024-02 2024-03; do
    curl -fsS --noproxy '*' -o "got-$month.txt" "$base/report?month=$month"
done
EOF
''',
            "command": "sh check_reports.sh\n",
        },
        r"report\.sh|\bsort\b|data/2024-02",
        r"check_reports\.sh",
        "sh setup.sh",
        needs="curl",
    ),
    # ------------------------------------------------------------- timeout
    "search-index-ready": Plant(
        "timeout",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p run corpus search
echo '{"id": 1, "text": "first words"}' > corpus/a.jsonl
printf '{"id": 2, "text": "second words"}\n{"id": 3, "text": "third\n' > corpus/b.jsonl
cat > search/indexer.py <<'EOF'
import glob
import json
import time

index = {}
for name in sorted(glob.glob("corpus/*.jsonl")):
    for line in open(name):
        doc = json.loads(line)
        for word in doc["text"].split():
            index.setdefault(word, []).append(doc["id"])
json.dump(index, open("run/index.json", "w"))
open("run/ready", "w").close()
time.sleep(60)
EOF
cat > search/query.py <<'EOF'
import json
import sys

print(json.load(open("run/index.json"))[sys.argv[1]])
EOF
cat > e2e.sh <<'EOF'
set -e
/usr/bin/python3 search/indexer.py 2> run/indexer.log &
pid=$!
trap 'kill $pid 2>/dev/null || true' EXIT
timeout 3 sh -c 'until [ -e run/ready ]; do sleep 0.2; done'
python3 search/query.py words | grep -q 2
EOF
""",
            "command": "sh e2e.sh\n",
        },
        r"indexer\.py",
        r"e2e\.sh",
        "sh setup.sh",
    ),
    "puzzle-time-limit": Plant(
        "timeout",
        "sh ./command",
        {
            "setup.sh": r"""set -e
mkdir -p tests puzzles
echo '8 2' > puzzles/easy.txt
echo '81 3' > puzzles/medium.txt
echo '10 4' > puzzles/hard.txt
cat > solver.c <<'EOF'
/* how often does the second number go into the first until 1 is left */
#include <stdio.h>
int main(int argc, char **argv)
{
    volatile int n, d; int a, b, steps = 0;
    FILE *f = fopen(argv[1], "r");
    if (!f || fscanf(f, "%d %d", &a, &b) != 2) return 2;
    for (n = a, d = b; n != 1; steps++)
        n = n / d;
    printf("%d\n", steps);
    return 0;
}
EOF
cat > Makefile <<'EOF'
check: solver
	python3 -m unittest discover -s tests
solver: solver.c
	$(CC) -O1 -o $@ $<
.PHONY: check
EOF
cat > tests/test_puzzles.py <<'EOF'
import subprocess
import unittest


class Puzzles(unittest.TestCase):
    def solve(self, name):
        return subprocess.run(["./solver", f"puzzles/{name}.txt"], stdout=subprocess.PIPE, timeout=1.5, check=True).stdout

    def test_easy(self):
        self.assertEqual(self.solve("easy"), b"3\n")

    def test_hard(self):
        self.assertEqual(self.solve("hard"), b"2\n")

    def test_medium(self):
        self.assertEqual(self.solve("medium"), b"4\n")
EOF
""",
            "command": "make check\n",
        },
        r"hard\.txt|\bsolver\b(?!.*(easy|medium|\.c\b))",
        r"make",
        "sh setup.sh",
        needs="gcc",
    ),
}
