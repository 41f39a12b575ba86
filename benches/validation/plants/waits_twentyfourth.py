"""twentyfourth set: builds of ordinary teams - make, cmake, ninja, cargo, javac, LaTeX, node, perl, ruby, go, packaging - and the order of their work."""

from waits import Plant

PLANTS = [
    Plant(
        "w24-register-map",
        "repeat",
        "perl and C, the same input parsed by four runs of a generator, make -j2",
        "make runs perl tools/regtool.pl four times one after another (header, source, doc, svd), and each run parses and checks the whole hw/soc.regs again; run it once with --emit=header,source,doc,svd",
        r"(?i)regtool\.pl|regtool|--emit",
        {
            "run.sh": r"""#!/bin/bash
# CI: the register map and the boot image of the firmware
set -e
cd "$(dirname "$0")"
make -s clean
make -j2
./build/boot
wc -l build/soc_regs.md build/soc_regs.svd | tail -1
""",
            "setup.sh": r"""set -e
mkdir -p hw build
/usr/bin/python3 - <<'P'
import random
random.seed(7)
out = []
for b in range(100):
    out.append("block BLK%03d 0x%08x" % (b, 0x40000000 + b * 0x1000))
    for r in range(190):
        out.append("  reg R%03d +0x%03x rw \"status and control word %d of unit %d\"" % (r, r * 4, r, b))
        bit = 0
        while bit < 32:
            w = random.choice((1, 1, 2, 3, 4, 8))
            w = min(w, 32 - bit)
            out.append("    field F%02d %d:%d reset=0x%x access=%s" % (bit, bit + w - 1, bit, random.randrange(1 << w), random.choice(("rw", "ro", "w1c"))))
            bit += w
open("hw/soc.regs", "w").write("\n".join(out) + "\n")
P
""",
            "Makefile": r"""CC = gcc
CFLAGS = -O2 -Wall -Ibuild
REGTOOL = perl tools/regtool.pl --out=build

all: build/boot build/soc_regs.md build/soc_regs.svd

ifdef FIX
build/regs.stamp: hw/soc.regs tools/regtool.pl
	$(REGTOOL) --emit=header,source,doc,svd $<
	touch $@
else
build/regs.stamp: hw/soc.regs tools/regtool.pl
	$(REGTOOL) --emit=header $<
	$(REGTOOL) --emit=source $<
	$(REGTOOL) --emit=doc $<
	$(REGTOOL) --emit=svd $<
	touch $@
endif
build/soc_regs.h build/soc_regs.c build/soc_regs.md build/soc_regs.svd: build/regs.stamp ;

build/soc_regs.o: build/soc_regs.c build/soc_regs.h
	$(CC) $(CFLAGS) -c -o $@ $<
build/boot.o: src/boot.c build/soc_regs.h
	$(CC) $(CFLAGS) -c -o $@ $<
build/boot: build/boot.o build/soc_regs.o
	$(CC) -o $@ $^

clean:
	rm -rf build/*
.PHONY: all clean
""",
            "src/boot.c": r"""#include <stdio.h>
#include "soc_regs.h"

int main(void)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < soc_reset_count; i++)
        sum = sum * 31 + (soc_resets[i].addr ^ soc_resets[i].value ^ soc_resets[i].ro);
    printf("%u registers, checksum %08x\n", soc_reset_count, sum);
    return sum == 0;
}
""",
            "tools/regtool.pl": r"""#!/usr/bin/perl
# regtool.pl - turns the register description of the SoC into what the firmware needs
#   regtool.pl --emit=header[,source,...] --out=DIR soc.regs
use strict;
use warnings;
use Getopt::Long;

my ($emit, $out) = ('header', '.');
GetOptions('emit=s' => \$emit, 'out=s' => \$out) or die "usage: $0 --emit=KIND[,KIND] --out=DIR file\n";
my $file = shift @ARGV or die "no register file\n";

sub parse {
    my ($name) = @_;
    open(my $in, '<', $name) or die "$name: $!\n";
    my (@blocks, $block, $reg, %seen);
    while (my $line = <$in>) {
        chomp $line;
        if ($line =~ /^block\s+(\w+)\s+(0x[0-9a-f]+)$/) {
            push @blocks, $block = { name => $1, base => hex $2, regs => [] };
        } elsif ($line =~ /^\s+reg\s+(\w+)\s+\+(0x[0-9a-f]+)\s+(\w+)\s+"([^"]*)"$/) {
            push @{ $block->{regs} }, $reg = { name => $1, off => hex $2, mode => $3, text => $4, fields => [] };
        } elsif ($line =~ /^\s+field\s+(\w+)\s+(\d+):(\d+)\s+reset=(0x[0-9a-f]+)\s+access=(\w+)$/) {
            my $f = { name => $1, hi => $2, lo => $3, reset => hex $4, access => $5 };
            push @{ $reg->{fields} }, $f;
        } else {
            die "$name:$.: cannot read '$line'\n";
        }
    }
    # overlaps, resets that do not fit, addresses used twice
    for my $b (@blocks) {
        for my $r (@{ $b->{regs} }) {
            my $addr = $b->{base} + $r->{off};
            die sprintf("0x%x used twice\n", $addr) if $seen{$addr}++;
            my @bits = (0) x 32;
            for my $f (@{ $r->{fields} }) {
                for my $bit ($f->{lo} .. $f->{hi}) {
                    die "$b->{name}.$r->{name}: bit $bit used twice\n" if $bits[$bit]++;
                }
                for my $other (@{ $r->{fields} }) {
                    next if $other == $f;
                    die "overlap in $r->{name}\n" if $other->{lo} <= $f->{hi} && $f->{lo} <= $other->{hi};
                }
                $r->{reset} = ($r->{reset} // 0) | ($f->{reset} << $f->{lo});
                $r->{mask}{ $f->{access} } |= ((1 << ($f->{hi} - $f->{lo} + 1)) - 1) << $f->{lo};
            }
        }
    }
    return \@blocks;
}

my %writer = (
    header => [ 'soc_regs.h', sub {
        my ($o, $blocks) = @_;
        print $o "#ifndef SOC_REGS_H\n#define SOC_REGS_H\n#include <stdint.h>\n";
        print $o "struct soc_reset { uint32_t addr, value, ro; };\nextern const struct soc_reset soc_resets[];\nextern const unsigned soc_reset_count;\n";
        for my $b (@$blocks) {
            printf $o "#define %s_%s 0x%08xu\n", $b->{name}, $_->{name}, $b->{base} + $_->{off} for @{ $b->{regs} };
        }
        print $o "#endif\n";
    } ],
    source => [ 'soc_regs.c', sub {
        my ($o, $blocks) = @_;
        my $n = 0;
        print $o "#include \"soc_regs.h\"\nconst struct soc_reset soc_resets[] = {\n";
        for my $b (@$blocks) {
            for my $r (@{ $b->{regs} }) {
                printf $o "  { %s_%s, 0x%08xu, 0x%08xu },\n", $b->{name}, $r->{name}, $r->{reset} & 0xffffffff, ($r->{mask}{ro} // 0) & 0xffffffff;
                $n++;
            }
        }
        print $o "};\nconst unsigned soc_reset_count = $n;\n";
    } ],
    doc => [ 'soc_regs.md', sub {
        my ($o, $blocks) = @_;
        for my $b (@$blocks) {
            printf $o "## %s at 0x%08x\n\n| register | offset | text |\n|---|---|---|\n", $b->{name}, $b->{base};
            printf $o "| %s | 0x%03x | %s |\n", $_->{name}, $_->{off}, $_->{text} for @{ $b->{regs} };
        }
    } ],
    svd => [ 'soc_regs.svd', sub {
        my ($o, $blocks) = @_;
        print $o "<device>\n";
        for my $b (@$blocks) {
            print $o "<peripheral><name>$b->{name}</name>\n";
            printf $o "<register><name>%s</name><addressOffset>0x%x</addressOffset></register>\n", $_->{name}, $_->{off} for @{ $b->{regs} };
            print $o "</peripheral>\n";
        }
        print $o "</device>\n";
    } ],
);

my $blocks = parse($file);
for my $kind (split /,/, $emit) {
    my $w = $writer{$kind} or die "unknown kind $kind\n";
    open(my $o, '>', "$out/$w->[0]") or die "$out/$w->[0]: $!\n";
    $w->[1]->($o, $blocks);
    close $o or die $!;
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-subdir-make",
        "jobs",
        "C, job server not passed to the makes of subdirectories, make",
        "the Makefile calls 'make' instead of $(MAKE) in codec and filters, so the inner makes lose the job server and compile one file at a time (-j1) while a core idles; call $(MAKE) (or a '+' before the recipe line)",
        r"(?i)(\bmake\b.*(codec|filters|job ?server|\$\(MAKE\)|-j|parallel|at a time|one after|serial|cores?|jobs))|((codec|filters|job ?server|parallel|one after|serial|cores?).*\bmake\b)",
        {
            "run.sh": r"""#!/bin/bash
# CI step "build": a clean build of the player on the two-core runner
set -e
cd "$(dirname "$0")"
make -s clean
make -j2 all
./player/player
""",
            "setup.sh": r"""set -e
mkdir -p player
/usr/bin/python3 - <<'P'
import os, random
random.seed(11)
ops = ["+", "-", "^", "|", "&"]
def unit(d, stem, n, funcs):
    for i in range(n):
        with open("%s/%s_%02d.c" % (d, stem, i), "w") as f:
            f.write("#include <stdint.h>\n#include <string.h>\n")
            for k in range(funcs):
                f.write("static uint32_t step%d(const uint8_t *p, uint32_t n, uint32_t acc)\n{\n    for (uint32_t i = 0; i < n; i++) {\n" % k)
                for _ in range(14):
                    f.write("        acc = (acc %s (p[i] * %uu)) %s (acc >> %d);\n" % (random.choice(ops), random.randrange(3, 9999), random.choice(ops), random.randrange(1, 17)))
                f.write("        if ((acc & %du) == %du) acc += i * %du;\n    }\n    return acc;\n}\n" % (random.choice((7, 15, 31)), random.randrange(7), random.randrange(3, 99)))
            f.write("uint32_t %s_%02d(const uint8_t *p, uint32_t n)\n{\n    uint32_t acc = %du;\n" % (stem, i, i + 1))
            for k in range(funcs):
                f.write("    acc = step%d(p, n, acc);\n" % k)
            f.write("    return acc;\n}\n")
unit("codec", "codec", 8, 60)
unit("filters", "filter", 8, 60)
with open("player/main.c", "w") as f:
    f.write("#include <stdint.h>\n#include <stdio.h>\n")
    calls = ["codec_%02d" % i for i in range(8)] + ["filter_%02d" % i for i in range(8)]
    for c in calls:
        f.write("uint32_t %s(const uint8_t *p, uint32_t n);\n" % c)
    f.write("int main(void)\n{\n    uint8_t frame[256];\n    uint32_t sum = 0;\n    for (int i = 0; i < 256; i++) frame[i] = (uint8_t)(i * 37);\n")
    for c in calls:
        f.write("    sum ^= %s(frame, sizeof frame);\n" % c)
    f.write("    printf(\"frame checksum %08x\\n\", sum);\n    return 0;\n}\n")
P
""",
            "Makefile": r"""# player <- libfilter.a <- libcodec.a (the filters are built with the tables of the codec)
all: player/player

ifdef FIX
codec/libcodec.a: FORCE
	cd codec && $(MAKE) libcodec.a
filters/libfilter.a: codec/libcodec.a FORCE
	cd filters && $(MAKE) libfilter.a
else
codec/libcodec.a: FORCE
	cd codec && make libcodec.a
filters/libfilter.a: codec/libcodec.a FORCE
	cd filters && make libfilter.a
endif
player/player: filters/libfilter.a codec/libcodec.a player/main.c
	$(CC) -O2 -o $@ player/main.c filters/libfilter.a codec/libcodec.a

clean:
	rm -f */*.o */*.a player/player
FORCE:
.PHONY: all clean FORCE
""",
            "codec/Makefile": r"""CFLAGS = -O2 -Wall -funroll-loops
OBJS = $(patsubst %.c,%.o,$(wildcard codec_*.c))

libcodec.a: $(OBJS)
	rm -f $@
	$(AR) rcs $@ $(OBJS)
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
""",
            "filters/Makefile": r"""CFLAGS = -O2 -Wall -funroll-loops
OBJS = $(patsubst %.c,%.o,$(wildcard filter_*.c))

libfilter.a: $(OBJS)
	rm -f $@
	$(AR) rcs $@ $(OBJS)
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-firmware-compile",
        "order",
        "C++, the longest compile starts last, xargs -P2",
        "xargs -P 2 in compile_all.sh takes the sources in the order of names, so src/statemachine.cpp, by far the longest compile, starts last and runs alone on one core; start it first (ls -S)",
        r"(?i)statemachine",
        {
            "run.sh": r"""#!/bin/bash
# nightly: the controller, built from nothing, and its self test
set -e
cd "$(dirname "$0")"
rm -rf obj controller
bash compile_all.sh
g++ -o controller obj/*.o
./controller
""",
            "setup.sh": r"""set -e
mkdir -p src
/usr/bin/python3 - <<'P'
import random
random.seed(5)
names = ["adc", "buttons", "can", "eeprom", "fan", "heater"]
def unit(name, funcs):
    with open("src/%s.cpp" % name, "w") as f:
        f.write("#include <cstdint>\n#include <map>\n#include <string>\n#include <vector>\n#include <algorithm>\n")
        for k in range(funcs):
            f.write("static int %s_state%d(std::map<std::string, std::vector<int>> &m, int x)\n{\n" % (name, k))
            for i in range(6):
                f.write("    m[\"%s.%d.%d\"].push_back(x * %d + %d);\n" % (name, k, i, random.randrange(3, 99), i))
            f.write("    std::vector<int> &v = m[\"%s.%d.0\"];\n    std::sort(v.begin(), v.end(), [](int a, int b) { return a %% %d < b %% %d; });\n    return v.empty() ? 0 : v.front();\n}\n" % (name, k, k + 3, k + 3))
        f.write("int %s_run(int x)\n{\n    std::map<std::string, std::vector<int>> m;\n    int s = 0;\n" % name)
        for k in range(funcs):
            f.write("    s += %s_state%d(m, x + %d);\n" % (name, k, k))
        f.write("    return s;\n}\n")
for n in names:
    unit(n, 2)
unit("statemachine", 40)
names.append("statemachine")
with open("src/app.cpp", "w") as f:
    f.write("#include <cstdio>\n")
    for n in names:
        f.write("int %s_run(int x);\n" % n)
    f.write("int main()\n{\n    int s = 0;\n")
    for n in names:
        f.write("    s += %s_run(%d);\n" % (n, len(n)))
    f.write("    std::printf(\"self test %d\\n\", s);\n    return 0;\n}\n")
P
""",
            "compile_all.sh": r"""#!/bin/bash
# compile_all.sh - compiles src/*.cpp into obj/ with two compilers at a time
mkdir -p obj
list_sources() {
    if [ -n "$FIX" ]; then ls -S src/*.cpp; else ls src/*.cpp; fi
}
list_sources | xargs -P 2 -I{} sh -c 'f={}; g++ -std=c++17 -O2 -c -o obj/$(basename $f .cpp).o $f && echo "  CXX $f"'
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-deb-smoke",
        "work",
        "packaging, compression of a package that is thrown away, dpkg-deb",
        "smoke.sh has dpkg-deb compress with -Zxz -z9 a package that is unpacked at once and thrown away; use -Zgzip -z1 or -Znone",
        r"(?i)dpkg-deb|-Zxz|-z9|\bxz\b.*compress|compress.*\bxz\b",
        {
            "run.sh": r"""#!/bin/bash
# merge request pipeline, job "package-smoke"
set -e
cd "$(dirname "$0")"
bash smoke.sh
""",
            "setup.sh": r"""set -e
mkdir -p payload/usr/bin payload/usr/share/geotool
/usr/bin/python3 - <<'P'
import random
random.seed(3)
words = ["".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random.randrange(3, 10))) for _ in range(6000)]
for part in range(4):
    with open("payload/usr/share/geotool/places-%d.csv" % part, "w") as f:
        for i in range(24000):
            f.write("%d;%s %s;%.5f;%.5f;%s\n" % (part * 24000 + i, random.choice(words), random.choice(words), random.uniform(-90, 90), random.uniform(-180, 180), random.choice(words)))
P
cat > payload/usr/bin/geotool <<'P'
#!/usr/bin/perl
# geotool: looks places up in the tables beside it
use strict; use warnings; use FindBin;
my ($want) = @ARGV; my $n = 0; my $hits = 0;
for my $f (glob "$FindBin::Bin/../share/geotool/places-*.csv") {
    open my $in, '<', $f or die; while (<$in>) { $n++; $hits++ if index($_, $want) >= 0 } close $in;
}
print "$hits of $n places match '$want'\n";
P
chmod 755 payload/usr/bin/geotool
""",
            "control": r"""Package: geotool
Version: 2.8.1
Architecture: all
Maintainer: Geo Team <geo@example.org>
Depends: perl
Description: look up places
 Tables of places and a small program that searches them.
""",
            "smoke.sh": r"""#!/bin/bash
# smoke.sh - packs the working tree, unpacks it into a scratch root, runs the program there.
# The package of the release is made by another job; this one is thrown away below.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/pkg/DEBIAN"
cp -r payload/usr "$work/pkg/"
cp control "$work/pkg/DEBIAN/control"
if [ -n "$FIX" ]; then level="-Zgzip -z1"; else level="-Zxz -z9"; fi
dpkg-deb $level --root-owner-group --build "$work/pkg" "$work/geotool_2.8.1_all.deb" >/dev/null
dpkg-deb --field "$work/geotool_2.8.1_all.deb" Package Version
dpkg-deb --extract "$work/geotool_2.8.1_all.deb" "$work/root"
(cd "$work/root" && find . -type f | sort)
"$work/root/usr/bin/geotool" abc
"$work/root/usr/bin/geotool" "45.1"
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-cargo-two-steps",
        "cache",
        "Rust, everything compiled twice because RUSTFLAGS differ, cargo",
        "cargo build runs with RUSTFLAGS='-D warnings' and cargo test without, so cargo test compiles wire, store and rules a second time; export the same RUSTFLAGS for all steps",
        r"(?i)(cargo|rustc|RUSTFLAGS).*(again|twice|second|rebuil|recompil|repeat|same|RUSTFLAGS|2 (times|runs)|-D warnings)|(again|twice|second|rebuil|recompil|repeat|same|2 (times|runs)).*(cargo|rustc)",
        {
            "run.sh": r"""#!/bin/bash
# CI of the gate: build, smoke test, start
set -e
cd "$(dirname "$0")"
export CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
rm -rf target
if [ -n "$FIX" ]; then export RUSTFLAGS="-D warnings"; fi

echo "== build"
RUSTFLAGS="-D warnings" cargo build --workspace
echo "== test"
cargo test -p gate --test smoke
echo "== start"
RUSTFLAGS="-D warnings" cargo run --bin gate
""",
            "setup.sh": r"""set -e
/usr/bin/python3 - <<'P'
import os, random
random.seed(2)
members = ["wire", "store", "rules"]
def write(p, t):
    os.makedirs(os.path.dirname(p) or ".", exist_ok=True)
    open(p, "w").write(t)
write("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [%s, \"gate\"]\n" % ", ".join('"%s"' % m for m in members))
prev = None
for m in members:
    dep = "%s = { path = \"../%s\" }\n" % (prev, prev) if prev else ""
    write("%s/Cargo.toml" % m, "[package]\nname = \"%s\"\nversion = \"0.3.0\"\nedition = \"2021\"\n\n[dependencies]\n%s" % (m, dep))
    src = "use std::collections::BTreeMap;\n"
    calls = []
    for k in range(17):
        fields = random.randrange(5, 9)
        src += "#[derive(Debug, Clone, PartialEq, PartialOrd, Default, Hash, Eq, Ord)]\npub struct Frame%d {\n" % k
        for i in range(fields):
            src += "    pub f%d: %s,\n" % (i, random.choice(("u32", "i64", "String", "Vec<u16>", "Option<u8>", "BTreeMap<String, u32>")))
        src += "}\npub fn check%d(n: u32) -> u32 {\n    let a = Frame%d::default();\n    let b = a.clone();\n    let text = format!(\"{:?}{}\", a, n);\n    let mut m: BTreeMap<u32, Frame%d> = BTreeMap::new();\n    m.insert(n, b);\n    let s: u32 = text.bytes().map(|c| c as u32).filter(|c| c %% %d != 0).sum();\n    s ^ (m.len() as u32) ^ ((a < m[&n]) as u32)\n}\n" % (k, k, k, random.randrange(2, 9))
        calls.append("check%d(n + %d)" % (k, k))
    src += "pub fn run(n: u32) -> u32 {\n    let mut s: u32 = %s;\n" % ("%s::run(n)" % prev if prev else "0")
    for c in calls:
        src += "    s = s.wrapping_add(%s);\n" % c
    src += "    s\n}\n"
    write("%s/src/lib.rs" % m, src)
    prev = m
write("gate/Cargo.toml", "[package]\nname = \"gate\"\nversion = \"0.3.0\"\nedition = \"2021\"\n\n[dependencies]\nrules = { path = \"../rules\" }\n")
write("gate/tests/smoke.rs", "#[test]\nfn sums_differ() {\n    assert_ne!(rules::run(1), rules::run(100));\n}\n#[test]\nfn sums_repeat() {\n    assert_eq!(rules::run(5), rules::run(5));\n}\n")
write("gate/src/main.rs", "fn main() {\n    println!(\"gate {}\", rules::run(7));\n}\n")
P
cargo generate-lockfile --offline
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-ctest-solo",
        "serial",
        "C, tests marked as exclusive although each has a file of its own, cmake ninja ctest",
        "ctest -j2 runs the tests one at a time since CMakeLists.txt gives each of them RUN_SERIAL although each writes a scratch file of its own; remove RUN_SERIAL",
        r"(?i)ctest|tiletest|RUN_SERIAL",
        {
            "run.sh": r"""#!/bin/bash
# CI: configure, build, test with as many tests at a time as there are cores
set -e
cd "$(dirname "$0")"
rm -rf build
opt=ON
[ -n "$FIX" ] && opt=OFF
cmake -G Ninja -S . -B build -DEXCLUSIVE_TESTS=$opt >build.log
ninja -C build >>build.log
cd build
ctest -j2 --output-on-failure
""",
            "CMakeLists.txt": r"""cmake_minimum_required(VERSION 3.16)
project(tilepack C)
set(CMAKE_C_FLAGS "-O1 -Wall")
option(EXCLUSIVE_TESTS "the tests share tests/scratch.db" ON)
add_executable(tiletest tests/tiletest.c)
enable_testing()
foreach(codec rle lz huffman delta plane mixed)
  add_test(NAME roundtrip.${codec} COMMAND tiletest ${codec} ${CMAKE_CURRENT_BINARY_DIR}/scratch-${codec}.bin)
  set_tests_properties(roundtrip.${codec} PROPERTIES TIMEOUT 60)
  if(EXCLUSIVE_TESTS)
    set_tests_properties(roundtrip.${codec} PROPERTIES RUN_SERIAL TRUE)
  endif()
endforeach()
""",
            "tests/tiletest.c": r"""/* tiletest CODEC FILE - writes tiles through a codec into FILE, reads them back and compares */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 4096, TILES = 520 };

static uint32_t seed;
static uint32_t next(void) { seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5; return seed; }

static size_t pack(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t o = 0;
    for (size_t i = 0; i < n;) {
        size_t best = 0, where = 0;
        size_t from = i > 255 ? i - 255 : 0;
        for (size_t k = from; k < i; k++) {
            size_t l = 0;
            while (i + l < n && l < 255 && in[k + l] == in[i + l]) l++;
            if (l > best) { best = l; where = i - k; }
        }
        if (best > 3) { out[o++] = 1; out[o++] = (uint8_t)where; out[o++] = (uint8_t)best; i += best; }
        else { out[o++] = 0; out[o++] = in[i++]; }
    }
    return o;
}

static size_t unpack(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t o = 0;
    for (size_t i = 0; i < n;) {
        if (in[i] == 1) { for (int l = in[i + 2], d = in[i + 1]; l > 0; l--, o++) out[o] = out[o - d]; i += 3; }
        else { out[o++] = in[i + 1]; i += 2; }
    }
    return o;
}

int main(int argc, char **argv)
{
    static uint8_t tile[TILE], packed[2 * TILE + 16], back[TILE + 256];
    if (argc != 3) return 2;
    for (const char *p = argv[1]; *p; p++) seed = seed * 131 + (uint8_t)*p + 1;
    FILE *f = fopen(argv[2], "wb");
    if (!f) { perror(argv[2]); return 1; }
    size_t total = 0;
    for (int t = 0; t < TILES; t++) {
        for (int i = 0; i < TILE; i++) tile[i] = (uint8_t)(next() % (3 + t % 9));
        size_t n = pack(tile, TILE, packed);
        if (unpack(packed, n, back) != TILE || memcmp(tile, back, TILE)) { fprintf(stderr, "tile %d differs\n", t); return 1; }
        fwrite(packed, 1, n, f);
        total += n;
    }
    fclose(f);
    remove(argv[2]);
    printf("%s: %d tiles, %zu bytes\n", argv[1], TILES, total);
    return 0;
}
""",
        },
        "",
    ),
    Plant(
        "w24-release-lock",
        "lock",
        "bash, a flock held over the packing, make -j2 tar xz",
        "scripts/pack.sh takes the flock on dist/.lock before it packs, so the second of the two jobs of make -j2 waits in flock until the tar and xz of the first are done; take the lock only around register (the change of INDEX)",
        r"(?i)flock|pack\.sh|dist/\.lock|\.lock\b",
        {
            "run.sh": r"""#!/bin/bash
# release job: the archives of all editions
set -e
cd "$(dirname "$0")"
make -s clean
make -j2
cat dist/INDEX
""",
            "setup.sh": r"""set -e
/usr/bin/python3 - <<'P'
import os, random
for n, edition in enumerate(("core", "extras")):
    r = random.Random(n)
    words = ["".join(r.choice("abcdefghijklmnop") for _ in range(r.randrange(2, 9))) for _ in range(4000)]
    os.makedirs("tree/" + edition, exist_ok=True)
    for i in range(14):
        with open("tree/%s/page%02d.html" % (edition, i), "w") as f:
            for _ in range(5000):
                f.write("<p>" + " ".join(r.choice(words) for _ in range(7)) + "</p>\n")
P
""",
            "Makefile": r"""# one archive per edition, and dist/INDEX with a line for each of them
EDITIONS = core extras
DIST = dist

all: $(EDITIONS:%=$(DIST)/%.tar.xz)

$(DIST)/%.tar.xz: | $(DIST)
	bash scripts/pack.sh $* $(DIST)
$(DIST):
	mkdir -p $@
clean:
	rm -rf $(DIST)
.PHONY: all clean
""",
            "scripts/pack.sh": r"""#!/bin/bash
# pack.sh EDITION DIST - packs tree/EDITION and notes the archive in DIST/INDEX
set -e
edition=$1 dist=$2
export LC_ALL=C
pack() {
    tar --sort=name --owner=0 --group=0 --mtime=@1700000000 -C tree -cf - "$edition" | xz -T1 -6 > "$dist/$edition.tar.xz"
    xz -t "$dist/$edition.tar.xz"
}
register() {
    sum=$(sha256sum < "$dist/$edition.tar.xz" | cut -d' ' -f1)
    { grep -v " $edition$" "$dist/INDEX" 2>/dev/null || true; echo "$sum $edition"; } | sort -k2 > "$dist/INDEX.new"
    mv "$dist/INDEX.new" "$dist/INDEX"
}
exec 9> "$dist/.lock"
if [ -n "$FIX" ]; then
    pack
    flock -w 120 9
    register
else
    flock -w 120 9
    pack
    register
fi
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-java-report",
        "shutdown",
        "Java, a thread pool that is never shut down, javac and java",
        "java report.CoverageReport is done after half a second but its pool is never shut down, so the JVM stays until the idle pool threads end after their keep-alive of 4 s; call shutdown() on the pool",
        r"(?i)\bjava\b|CoverageReport|pool-1-thread",
        {
            "run.sh": r"""#!/bin/bash
# coverage gate: summary of all modules, then the threshold
set -e
cd "$(dirname "$0")"
rm -rf classes summary.txt
mkdir classes
javac -d classes src/report/*.java
java -cp classes report.CoverageReport cov summary.txt
awk '{ split($2, n, "/"); hit += n[1]; all += n[2] } END { p = 100 * hit / all; printf "%.1f%%\n", p; exit p < 50 }' summary.txt
""",
            "setup.sh": r"""set -e
mkdir -p cov
/usr/bin/python3 - <<'P'
import random
r = random.Random(9)
for m in range(24):
    with open("cov/module%02d.cov" % m, "w") as f:
        for i in range(16000):
            f.write("src/File%d.java:%d:%d\n" % (i // 200, i % 200, max(0, r.randrange(-3, 9))))
P
""",
            "src/report/CoverageReport.java": r"""package report;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

/** Reads the raw coverage files of all modules and writes the summary the gate looks at. */
public final class CoverageReport {
    private final ExecutorService readers = Readers.create();
    private final Path dir;

    CoverageReport(Path dir) { this.dir = dir; }

    private static long[] read(Path file) throws IOException {
        long lines = 0, hit = 0;
        for (String line : Files.readAllLines(file)) {
            String[] part = line.split(":");
            lines++;
            if (Integer.parseInt(part[2]) > 0) hit++;
        }
        return new long[] { lines, hit };
    }

    SortedMap<String, long[]> collect() throws Exception {
        SortedMap<String, Future<long[]>> open = new TreeMap<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(dir, "*.cov")) {
            for (Path file : files)
                open.put(file.getFileName().toString(), readers.submit(() -> read(file)));
        }
        SortedMap<String, long[]> result = new TreeMap<>();
        for (Map.Entry<String, Future<long[]>> e : open.entrySet())
            result.put(e.getKey(), e.getValue().get(60, TimeUnit.SECONDS));
        return result;
    }

    public static void main(String[] args) throws Exception {
        CoverageReport report = new CoverageReport(Path.of(args[0]));
        long lines = 0, hit = 0;
        try (PrintWriter out = new PrintWriter(args[1])) {
            for (Map.Entry<String, long[]> e : report.collect().entrySet()) {
                out.printf("%s %d/%d%n", e.getKey(), e.getValue()[1], e.getValue()[0]);
                lines += e.getValue()[0];
                hit += e.getValue()[1];
            }
        }
        System.out.printf("covered %d of %d lines%n", hit, lines);
        if (System.getenv("FIX") != null) report.readers.shutdown();
    }
}
""",
            "src/report/Readers.java": r"""package report;

import java.util.concurrent.*;

/** The pool all reports share. */
final class Readers {
    private static final int CORES = 2;

    private Readers() {}

    static ExecutorService create() {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(CORES, CORES, 4, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-docs-preview",
        "pipe",
        "ruby and bash, a daemon keeps the pipe of a command substitution open, static site",
        "the command substitution around check_site.sh in run.sh waits for the end of the pipe, which the preview server (ruby site/preview.rb) holds open until its idle time of 4 s is over; stop the server when the links are checked (or send its output elsewhere)",
        r"(?i)preview(\.rb)?\b",
        {
            "run.sh": r"""#!/bin/bash
# docs pipeline: build the site, search it for broken links, pack it
set -e
cd "$(dirname "$0")"
export PREVIEW_PORT=18801
ruby site/build.rb public
verdict=$(bash check_site.sh public)
echo "links: $verdict"
tar -czf public.tar.gz public
tar -tzf public.tar.gz | wc -l
rm -rf public public.tar.gz
""",
            "setup.sh": r"""set -e
mkdir -p content
/usr/bin/python3 - <<'P'
import random
r = random.Random(4)
for i in range(40):
    with open("content/guide-%02d.md" % i, "w") as f:
        f.write("# Guide %d\n\n" % i)
        for _ in range(40):
            f.write(" ".join(r.choice(("install", "*configure*", "deploy", "the", "server", "*node*", "and")) for _ in range(60)) + "\n\n")
P
""",
            "check_site.sh": r"""#!/bin/bash
# check_site.sh DIR - serves DIR with the preview server, asks for every page, prints the verdict
dir=$1 port=${PREVIEW_PORT:-18801}
ruby site/preview.rb "$dir" "$port" || exit 1
ruby site/check_links.rb "http://127.0.0.1:$port/"
rc=$?
if [ -n "$FIX" ]; then curl -s --max-time 5 "http://127.0.0.1:$port/-/quit" >/dev/null; fi
exit $rc
""",
            "site/build.rb": r"""#!/usr/bin/env ruby
# build.rb OUT - a page for every text in content/, and the index
require 'fileutils'
require 'erb'
out = ARGV[0]
FileUtils.rm_rf(out)
FileUtils.mkdir_p(out)
layout = ERB.new("<!doctype html><title><%= title %></title><nav><%= nav %></nav><main><%= main %></main>\n")
pages = Dir['content/*.md'].sort.map do |f|
  text = File.read(f)
  { name: File.basename(f, '.md'), title: text[/^# (.*)/, 1], text: text }
end
nav = pages.map { |p| "<a href=\"/#{p[:name]}.html\">#{p[:title]}</a>" }.join(' ')
pages.each do |p|
  main = p[:text].split(/\n\n+/).map { |b| b.start_with?('# ') ? "<h1>#{b[2..]}</h1>" : "<p>#{b.gsub(/\*(\w+)\*/, '<em>\1</em>')}</p>" }.join("\n")
  title = p[:title]
  File.write("#{out}/#{p[:name]}.html", layout.result(binding))
end
title, main = 'Index', nav
File.write("#{out}/index.html", layout.result(binding))
puts "#{pages.size} pages"
""",
            "site/check_links.rb": r"""#!/usr/bin/env ruby
# check_links.rb URL - asks for every page the site links to
require 'net/http'
base = URI(ARGV[0])
seen = {}
queue = ['/']
while (path = queue.shift)
  next if seen[path]
  res = Net::HTTP.get_response(base.host, path, base.port)
  seen[path] = res.code
  queue.concat(res.body.scan(/href="([^"]+)"/).flatten) if res.code == '200'
end
bad = seen.reject { |_, c| c == '200' }
bad.each { |p, c| puts "#{c} #{p}" }
puts "#{seen.size} links asked, #{bad.size} broken"
exit bad.empty?
""",
            "site/preview.rb": r"""#!/usr/bin/env ruby
# preview.rb DIR PORT - serves the generated site; goes away by itself when nobody asks any more
require 'socket'
dir, port = ARGV[0], ARGV[1].to_i
idle = (ENV['PREVIEW_IDLE'] || '4').to_f
server = TCPServer.new('127.0.0.1', port)
exit!(0) if fork
Process.setsid
limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit
  break unless IO.select([server], nil, nil, idle)
  client = server.accept
  path = client.gets.to_s.split[1].to_s
  nil while (line = client.gets) && line != "\r\n"
  break client.write("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbye\n") && client.close if path == '/-/quit'
  file = File.join(dir, path == '/' ? 'index.html' : path)
  if path.index('..').nil? && File.file?(file)
    body = File.binread(file)
    client.write("HTTP/1.0 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
  else
    client.write("HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")
  end
  client.close
end
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-handbook-pdf",
        "none",
        "LaTeX, three passes that depend on each other, pdflatex and makeindex",
        "nothing: the three passes of pdflatex need the numbers of the pass before, only the last one writes the PDF",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# the handbook as PDF, from a clean checkout
set -e
cd "$(dirname "$0")"
rm -f handbook.{aux,toc,lot,idx,ind,ilg,log,pdf}
bash build_pdf.sh handbook
sed -n 's/^Output written on .*(\(.*\)).*/\1/p' handbook.log
rm -f handbook.{aux,toc,lot,idx,ind,ilg,log,pdf}
""",
            "setup.sh": r"""set -e
/usr/bin/python3 - <<'P'
import random
r = random.Random(6)
words = "valve pump sensor loop setpoint alarm trend archive operator station panel relay fuse network gateway frame".split()
with open("handbook.tex", "w") as f:
    f.write("\\documentclass[a4paper,10pt]{report}\n\\usepackage{makeidx}\n\\makeindex\n\\begin{document}\n\\title{Operator Handbook}\\author{Plant Team}\\date{2024}\\maketitle\n\\tableofcontents\n\\listoftables\n")
    for c in range(90):
        f.write("\\chapter{Unit %d}\\label{ch:%d}\n" % (c, c))
        for s in range(12):
            f.write("\\section{%s %s}\\label{s:%d:%d}\\index{%s}\n" % (r.choice(words).title(), r.choice(words), c, s, r.choice(words)))
            for _ in range(2):
                f.write("See section~\\ref{s:%d:%d} on page~\\pageref{s:%d:%d}. " % (r.randrange(90), r.randrange(12), r.randrange(90), r.randrange(12)))
                f.write(" ".join(r.choice(words) for _ in range(110)) + ".\n\n")
            f.write("\\begin{table}[h]\\begin{tabular}{lrr}\n")
            for row in range(6):
                f.write("%s & %d & $x_{%d}^2+\\frac{1}{%d}$\\\\\n" % (r.choice(words), r.randrange(999), row, row + 2))
            f.write("\\end{tabular}\\caption{Limits of %s}\\label{t:%d:%d}\\end{table}\n" % (r.choice(words), c, s))
    f.write("\\printindex\n\\end{document}\n")
P
""",
            "build_pdf.sh": r"""#!/bin/bash
# build_pdf.sh NAME - contents, references and index need the numbers of the pass before:
#   pass 1 finds the sections, pass 2 the pages behind the table of contents, pass 3 sets and writes the book.
# If the numbers were still moving in pass 3, the book is not good.
set -e
name=$1
tex() { pdflatex "$@" -interaction=batchmode -halt-on-error "$name.tex" >/dev/null; }
state() { cat "$name.aux" "$name.toc" "$name.lot" "$name.idx" | sha256sum | cut -c1-12; }
tex -draftmode
echo "pass 1: $(state)"
makeindex -q "$name.idx"
tex -draftmode
two=$(state)
echo "pass 2: $two"
makeindex -q "$name.idx"
tex
three=$(state)
echo "pass 3: $three"
[ "$two" = "$three" ] || { echo "the numbers are still moving"; exit 1; }
if grep -q 'undefined references' "$name.log"; then echo "undefined references"; exit 1; fi
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w24-go-reproducible",
        "none",
        "Go, two builds from nothing that are compared, go build",
        "nothing: the check of reproducibility is two complete builds with caches of their own",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# release gate "reproducible"
set -e
cd "$(dirname "$0")"
bash reproduce.sh
""",
            "cmd/agent/main.go": r"""package main

var banner = "agent 2.4.0 (reproducible)"

func sum(b string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(b); i++ {
		h = (h ^ uint32(b[i])) * 16777619
	}
	return h
}

func main() {
	if sum(banner) == 0 {
		panic("checksum")
	}
	println(banner, sum(banner))
}
""",
            "go.mod": r"""module example.org/agent

go 1.18
""",
            "reproduce.sh": r"""#!/bin/bash
# reproduce.sh - the promise of the release notes: whoever builds the tag gets the same bytes.
# Two builds from nothing, in directories of different names, with caches of their own.
set -e
top=$(mktemp -d)
trap 'chmod -R u+w "$top"; rm -rf "$top"' EXIT
export GOPATH="$top/gopath"
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0
for who in builder auditor; do
    mkdir -p "$top/$who"
    cp -r go.mod cmd "$top/$who/"
    (cd "$top/$who" && GOCACHE="$top/cache-$who" go build -p 2 -trimpath -ldflags=-buildid= -o "$top/agent-$who" ./cmd/agent)
done
sha256sum < "$top/agent-builder"
cmp "$top/agent-builder" "$top/agent-auditor"
"$top/agent-auditor"
""",
        },
        "",
    ),
    Plant(
        "w24-watch-debounce",
        "none",
        "node, the settle time of a watcher under test, node:test",
        "nothing: the test writes a burst with pauses of a second and waits for the settle time of 1.5 s that the contract promises",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# unit tests of the watch mode, with the default settings
set -e
cd "$(dirname "$0")"
node test/watcher.test.js | grep -E '^# (tests|pass|fail)|^(not )?ok'
exit ${PIPESTATUS[0]}
""",
            "lib/watcher.js": r"""'use strict';
// Watches a directory and calls build() once when a burst of changes is over.
const fs = require('fs');
const { EventEmitter } = require('events');

class Watcher extends EventEmitter {
  constructor(dir, build, { settle = 1500, ceiling = 60000 } = {}) {
    super();
    this.build = build;
    this.settle = settle;
    this.ceiling = ceiling;
    this.changed = new Set();
    this.fsw = fs.watch(dir, (event, name) => this.note(name));
  }
  note(name) {
    this.changed.add(name);
    this.first ??= Date.now();
    clearTimeout(this.timer);
    const left = this.first + this.ceiling - Date.now();
    this.timer = setTimeout(() => this.flush(), Math.min(this.settle, Math.max(0, left)));
  }
  flush() {
    const files = [...this.changed].sort();
    this.changed.clear();
    this.first = undefined;
    this.emit('built', this.build(files));
  }
  close() {
    clearTimeout(this.timer);
    this.fsw.close();
  }
}
module.exports = { Watcher };
""",
            "test/watcher.test.js": r"""'use strict';
// The contract in docs/watch.md: editors and git write in bursts with pauses of up to a second,
// a burst ends when nothing was written for 1.5 s, and it makes exactly one build.
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { once } = require('events');
const { setTimeout: pause } = require('timers/promises');
const { Watcher } = require('../lib/watcher');

function scratch(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'watch-'));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test('a burst with pauses of a second is one build', { timeout: 20000 }, async (t) => {
  const dir = scratch(t);
  const builds = [];
  const w = new Watcher(dir, (files) => builds.push(files));
  t.after(() => w.close());
  for (const name of ['a.css', 'b.css', 'c.css']) {
    fs.writeFileSync(path.join(dir, name), 'x');
    await pause(1000);
    assert.strictEqual(builds.length, 0);
  }
  await once(w, 'built');
  assert.deepStrictEqual(builds, [['a.css', 'b.css', 'c.css']]);
});

test('a change after the burst is a build of its own', { timeout: 20000 }, async (t) => {
  const dir = scratch(t);
  const builds = [];
  const w = new Watcher(dir, (files) => builds.push(files));
  t.after(() => w.close());
  fs.writeFileSync(path.join(dir, 'a.css'), 'x');
  await once(w, 'built');
  fs.writeFileSync(path.join(dir, 'a.css'), 'y');
  await once(w, 'built');
  assert.deepStrictEqual(builds, [['a.css'], ['a.css']]);
});
""",
        },
        "",
    ),
    Plant(
        "w24-hook-timeout",
        "none",
        "perl and bash, test of a time limit, prove -j2",
        "nothing: the test checks that a hanging hook is ended at its limit of 3 s, the smallest that is allowed",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# tests of the hook runner
set -e
cd "$(dirname "$0")"
prove -j2 t
""",
            "hookrun.pl": r"""#!/usr/bin/perl
# hookrun.pl LIMIT COMMAND... - runs a build hook; ends it (and its children) when LIMIT seconds are over
use strict;
use warnings;
use POSIX ();
my ($limit, @cmd) = @ARGV;
my $pid = fork // die "fork: $!\n";
if (!$pid) { setpgrp(0, 0); exec @cmd or POSIX::_exit(127) }
local $SIG{ALRM} = sub { print "hook over its limit of $limit s\n"; kill 'TERM', -$pid; };
alarm $limit;
my $got;
do { $got = waitpid($pid, 0) } while ($got == -1 && $!{EINTR});
alarm 0;
my $sig = $? & 127;
exit($sig ? 124 : $? >> 8);
""",
            "hooks/strip-symbols.sh": r"""#!/bin/bash
# a hook that has work to do: digests every file it is given
for f in "$@"; do sha256sum "$f" >/dev/null; done
""",
            "hooks/waits-for-agent.sh": r"""#!/bin/bash
# a hook as users write them: reads an answer that never comes
mkfifo "$1/answer"
echo "waiting for the agent"
read -r line < "$1/answer"
""",
            "t/exit.t": r"""use strict;
use warnings;
use Test::More tests => 3;
for my $code (0, 3, 77) {
    is(system($^X, 'hookrun.pl', 5, 'sh', '-c', "exit $code") >> 8, $code, "exit $code comes through");
}
""",
            "t/limit.t": r"""use strict;
use warnings;
use Test::More tests => 5;
use File::Temp qw(tempdir);
use Time::HiRes qw(time);

my $dir = tempdir(CLEANUP => 1);
my @run = ($^X, 'hookrun.pl');

is(system(@run, 2, 'bash', 'hooks/strip-symbols.sh', 'hookrun.pl'), 0, 'a hook that ends is not touched');

my $start = time;
my $out = `$^X hookrun.pl 3 bash hooks/waits-for-agent.sh $dir`;
my $took = time - $start;
is($? >> 8, 124, 'a hook that hangs is ended');
like($out, qr/limit of 3 s/, 'and it is said');
cmp_ok($took, '>=', 2.9, 'not before its limit (three seconds is the smallest the settings allow)');
cmp_ok($took, '<', 10, 'and not much later');
""",
        },
        "",
    ),
]
