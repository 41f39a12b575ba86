"""Twelve systems-world builds (C, C++, Rust, Go, Perl, shell), eight with one planted fault in how they wait and four with nothing to change.

run.sh compiles what is missing by setup.sh; with FIX=1 it runs without the fault. See answers.md for what an honest line must name.
"""

from waits import Plant

# The verdict that there is nothing to change.
NOTHING = r"(?i)\bnothing\b|\bno (change|fault|advice|waste|wait)|\bnot? .{0,30}to (change|fix|repair|gain|save)|leave (it|this) (alone|as)"

BURN = r"""#include <time.h>
static volatile unsigned long burn_sink;
static void burn(double s) {
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    do {
        for (int i = 0; i < 20000; i++) burn_sink = burn_sink * 2862933555777941757UL + 3037000493UL;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    } while ((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9 < s);
}
"""

# A C++ unit that takes about half a second of CPU to compile.
UNIT = r"""#include <map>
#include <string>
#include <vector>
std::map<std::string, std::vector<int>> table_@N@;
bool lex_@N@(const std::string &s) {
    std::string word;
    for (char c : s)
        if (c != ' ') word += c;
        else if (!word.empty()) { table_@N@[word].push_back(@N@); word.clear(); }
    return !table_@N@.empty();
}
"""


def units(folder, count):
    return {f"{folder}u{n}.cc": UNIT.replace("@N@", str(n)) for n in range(1, count + 1)}


PLANTS = [
    Plant(
        "w16-probe-slow",
        "timeout",
        "c, configure, poll, own write end",
        "The configure probe conftest polls a FIFO whose write end it holds itself, so the hang-up never comes and each probe waits out "
        "its 3.5 s time-out; close the write end before the poll.",
        r"(?i)conftest|poll.{0,40}(fifo|hang|hup)|(fifo|hang-?up|hup).{0,40}poll|configure.{0,60}(time-?out|poll|fifo)",
        {
            "run.sh": "set -e\nsh setup.sh\nrm -rf build; mkdir build; cd build\nsh ../configure\ncc -O2 -I. -o evtool ../evtool.c\n./evtool\n",
            "setup.sh": "command -v cc >/dev/null\n",
            "configure": r"""# Hand-written probes in the manner of autoconf.
set -e
CPPFLAGS=
[ -z "$FIX" ] || CPPFLAGS=-DCLOSE_WRITER
: > config.h
probe() { # name, words, source
    printf 'checking %s... ' "$2"
    cp "$3" conftest.c
    if cc $CPPFLAGS -o conftest conftest.c 2>conftest.log && ./conftest; then echo yes; echo "#define HAVE_$1 1" >> config.h
    else echo no; echo "#define HAVE_$1 0" >> config.h; fi
    rm -f conftest conftest.c conftest.log
}
probe LP64 "for 64-bit long" ../p-lp64.c
probe EVENTFD "for eventfd" ../p-eventfd.c
probe POLL_FIFO_HUP "whether poll reports a hang-up on a FIFO" ../p-hup.c
probe MEMFD "for memfd_create" ../p-memfd.c
probe PIPE2 "for pipe2" ../p-pipe2.c
""",
            "p-lp64.c": "int main(void) { return sizeof(long) != 8; }\n",
            "p-eventfd.c": "#include <sys/eventfd.h>\nint main(void) { return eventfd(0, 0) < 0; }\n",
            "p-memfd.c": '#define _GNU_SOURCE\n#include <sys/mman.h>\nint main(void) { return memfd_create("x", 0) < 0; }\n',
            "p-pipe2.c": "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <unistd.h>\nint main(void) { int p[2]; return pipe2(p, O_CLOEXEC); }\n",
            "p-hup.c": r"""#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
    unlink("conftest.fifo");
    if (mkfifo("conftest.fifo", 0600)) return 2;
    int r = open("conftest.fifo", O_RDONLY | O_NONBLOCK), w = open("conftest.fifo", O_WRONLY);
    unlink("conftest.fifo");
    if (r < 0 || w < 0 || write(w, "x", 1) != 1) return 2;
    char c;
    if (read(r, &c, 1) != 1) return 2;
#ifdef CLOSE_WRITER
    close(w);
#endif
    struct pollfd p = {r, POLLIN, 0};
    return !(poll(&p, 1, 3500) == 1 && (p.revents & POLLHUP));
}
""",
            "evtool.c": '#include "config.h"\n#include <stdio.h>\nint main(void) { printf("evtool: lp64 %d, fifo hang-up %d\\n", HAVE_LP64, HAVE_POLL_FIFO_HUP); return 0; }\n',
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-go-scriptlets",
        "pipe",
        "go, exec output pipe, daemon that inherited it",
        "The scriptlet of package 2 starts metricsd.pl with the driver's output pipe still open, so the Go driver's CombinedOutput waits "
        "for end of file until metricsd.pl leaves after its idle time; redirect the daemon's output.",
        r"(?i)metricsd|pkgtest.{0,80}(pipe|output|end of file|eof)|postinst",
        {
            "run.sh": "set -e\nsh setup.sh\nrm -f metricsd.pid root-*.gz\n./pkgtest 1 2 3\n"
            "[ ! -s metricsd.pid ] || { P=$(cat metricsd.pid); kill $P 2>/dev/null || :; while kill -0 $P 2>/dev/null; do sleep 0.02; done; }\n",
            "setup.sh": "[ -x pkgtest ] || go build -o pkgtest pkgtest.go\n[ -e payload ] || seq 1 900000 > payload\n",
            "go.mod": "module pkgtest\n\ngo 1.19\n",
            "pkgtest.go": r"""package main

import (
	"fmt"
	"os"
	"os/exec"
)

// Installs each package by its scriptlet and checks what it printed.
func main() {
	for _, n := range os.Args[1:] {
		out, err := exec.Command("sh", "postinst.sh", n).CombinedOutput()
		if err != nil || string(out) != "installed "+n+"\n" {
			fmt.Printf("package %s: %v: %s", n, err, out)
			os.Exit(1)
		}
		fmt.Printf("ok package %s\n", n)
	}
}
""",
            "postinst.sh": r"""set -e
gzip -7 -c payload > root-$1.gz
if [ $1 = 2 ]; then
    if [ -n "$FIX" ]; then perl metricsd.pl >/dev/null 2>&1 & else perl metricsd.pl & fi
    echo $! > metricsd.pid
fi
echo installed $1
""",
            "metricsd.pl": r"""use strict;
use IO::Select;
use IO::Socket::INET;
# Collects counters; leaves when nobody has sent one for a while.
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1:18501', Listen => 5, ReuseAddr => 1) or die "metricsd: $!";
my $set = IO::Select->new($s);
while (my @r = $set->can_read(3.5)) {
    my $c = $s->accept or next;
    1 while <$c>;
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-prove-two",
        "lock",
        "perl, prove -j2, flock, handle kept until exit",
        "Each test keeps the fixture's lock db.lock until it exits because Fixture.pm stores the handle in a global, so prove -j2 runs one "
        "test at a time; release the lock when the fixture is made.",
        r"(?i)db\.lock|\bflock\b|\block\b.{0,80}(\.t\b|prove|fixture|perl)|(\.t\b|\bprove\b|fixture|perl).{0,80}\block(s|ed)?\b",
        {
            "run.sh": "set -e\nsh setup.sh\nrm -rf db; mkdir db\nprove -j2 -Ilib t\n",
            "setup.sh": "perl -MTest::More -e1\n",
            "lib/Fixture.pm": r"""package Fixture;
use strict;
use Fcntl ':flock';
our $lock;
# Makes the schema once, whichever test comes first.
sub make {
    open $lock, '>>', 'db/db.lock' or die;
    flock $lock, LOCK_EX or die;
    if (!-e 'db/schema') {
        open my $f, '>', 'db/schema' or die;
        print $f "table $_\n" for 1 .. 2000;
        close $f;
    }
    close $lock if $ENV{FIX};
}
sub plan_queries {
    my ($seed, $n) = @_;
    my $h = $seed;
    $h = ($h * 1103515245 + 12345) & 0x7fffffff for 1 .. $n;
    return $h;
}
1;
""",
            **{
                f"t/{n:02}-{word}.t": "use strict;\nuse Test::More tests => 3;\nuse Fixture;\nFixture::make();\nok(-s 'db/schema', 'schema');\n"
                f"my $a = Fixture::plan_queries({n}, 11_000_000);\nok($a >= 0, 'planned');\nok($a <= 0x7fffffff, 'in range');\n"
                for n, word in enumerate(("select", "join", "window", "upsert", "vacuum", "explain"), 1)
            },
        },
        "sh setup.sh",
        quiet=(3.6, 1.9),
    ),
    Plant(
        "w16-make-inner",
        "serial",
        "make, jobserver not handed on, c++",
        "make -j2 starts each.sh without '+', so the inner make finds no jobserver and compiles its C++ files one at a time; mark the "
        "recipe with '+' (or call $(MAKE) in it).",
        r"(?i)jobserver|-j ?(1|2|n\b|\$\(nproc|[\"'`])|\bmake\b.{0,80}(one at a time|one by one|serial|in parallel|at once|-j|second cpu|other cpu|both cpus)"
        r"|(one at a time|one by one|serial|in parallel|at once).{0,80}(\bmake\b|each\.sh|cc1plus|g\+\+)",
        {
            "run.sh": 'set -e\nsh setup.sh\nrm -f core/*.o core/*.a\nif [ -n "$FIX" ]; then MARK=+; else MARK=; fi\nmake -j2 MARK=$MARK\n',
            "setup.sh": "command -v g++ >/dev/null\n",
            "Makefile": "all:\n\t$(MARK)@sh each.sh\n",
            "each.sh": "# Builds every part that has a Makefile.\nset -e\nfor d in */; do\n    [ -e $d/Makefile ] || continue\n    make -C $d all\ndone\n",
            "core/Makefile": "OBJ = u1.o u2.o u3.o u4.o u5.o u6.o u7.o u8.o\nall: libcore.a\nlibcore.a: $(OBJ)\n\tar rcs $@ $(OBJ)\n%.o: %.cc\n\tg++ -O2 -c -o $@ $<\n",
            **units("core/", 8),
        },
        "sh setup.sh",
        quiet=(3.1, 1.7),
    ),
    Plant(
        "w16-dep-fetch-names",
        "timeout",
        "c, udp resolver, first nameserver silent",
        "depfetch asks a nameserver (127.0.0.1:18504) that never answers first for every name and waits 0.9 s each time before it asks the "
        "second; take the dead one off resolv.txt or put it last.",
        r"(?i)\bdepfetch\b|18504|nameserver|resolv",
        {
            "run.sh": "set -e\nsh setup.sh\nrm -f ready dep-*\nperl registry.pl & S=$!\ntrap 'kill $S 2>/dev/null || :; wait $S 2>/dev/null || :' EXIT\n"
            "while [ ! -e ready ]; do sleep 0.02; done\n"
            "if [ -n \"$FIX\" ]; then printf '18505\\n18504\\n'; else printf '18504\\n18505\\n'; fi > resolv.txt\n"
            "./depfetch zlib expat pcre libuv\nfor d in dep-*; do gzip -6 -c $d > $d.gz; done\nls dep-*.gz | wc -l\n",
            "setup.sh": "[ -x depfetch ] || cc -O2 -o depfetch depfetch.c\n",
            "registry.pl": r"""use strict;
use IO::Select;
use IO::Socket::INET;
# A nameserver on 18505, a registry on 18506, and on 18504 a nameserver that went away behind a firewall: what is sent there is dropped.
my %any = (LocalAddr => '127.0.0.1', ReuseAddr => 1);
my $gone = IO::Socket::INET->new(%any, LocalPort => 18504, Proto => 'udp') or die;
my $ns = IO::Socket::INET->new(%any, LocalPort => 18505, Proto => 'udp') or die;
my $web = IO::Socket::INET->new(%any, LocalPort => 18506, Listen => 5) or die;
open my $f, '>', 'ready'; close $f;
my $set = IO::Select->new($ns, $web);
while (1) {
    for my $s ($set->can_read) {
        if ($s == $ns) { $ns->recv(my $q, 512); $ns->send("$q 18506"); next }
        my $c = $s->accept or next;
        my $name = <$c>;
        chomp $name;
        print $c "$name line $_\n" for 1 .. 60000;
        close $c;
    }
}
""",
            "depfetch.c": r"""#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static int servers[4], count;
static struct sockaddr_in at(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}
static int resolve(const char *name) {
    for (int i = 0; i < count; i++) {
        int s = socket(AF_INET, SOCK_DGRAM, 0);
        struct sockaddr_in a = at(servers[i]);
        char answer[600];
        connect(s, (void *)&a, sizeof a);
        send(s, name, strlen(name), 0);
        struct pollfd p = {s, POLLIN, 0};
        ssize_t n = poll(&p, 1, 900) == 1 ? recv(s, answer, sizeof answer - 1, 0) : -1;
        close(s);
        if (n > 0) { answer[n] = 0; return atoi(strchr(answer, ' ') + 1); }
    }
    fprintf(stderr, "depfetch: cannot resolve %s\n", name);
    exit(1);
}
int main(int argc, char **argv) {
    FILE *f = fopen("resolv.txt", "r");
    while (count < 4 && fscanf(f, "%d", &servers[count]) == 1) count++;
    fclose(f);
    for (int i = 1; i < argc; i++) {
        struct sockaddr_in a = at(resolve(argv[i]));
        int s = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(s, (void *)&a, sizeof a)) { perror("depfetch"); return 1; }
        dprintf(s, "%s\n", argv[i]);
        char name[99], b[65536];
        snprintf(name, sizeof name, "dep-%s", argv[i]);
        FILE *o = fopen(name, "w");
        long total = 0;
        for (ssize_t n; (n = read(s, b, sizeof b)) > 0; total += n) fwrite(b, 1, n, o);
        fclose(o);
        close(s);
        printf("%s: %ld bytes\n", argv[i], total);
    }
    return 0;
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-rust-pool",
        "pool",
        "rust, two workers, longest job last",
        "The Rust driver simdrive starts the simulations in alphabetical order, so the longest, zeta-turbulence, starts last and runs "
        "alone on one CPU; start the longest first.",
        r"(?i)zeta|turbulence|(longest|last|long).{0,60}(simdrive|\bsim\b)|(simdrive|\bsim\b).{0,80}(longest|last|alone|first)",
        {
            "run.sh": 'set -e\nsh setup.sh\nrm -f *.out\nif [ -n "$FIX" ]; then sort -k2,2nr regress.list; else sort regress.list; fi > order.list\n'
            "./simdrive order.list\n",
            "setup.sh": "[ -x sim ] || cc -O2 -o sim sim.c\n[ -x simdrive ] || rustc -O -o simdrive simdrive.rs\n",
            "regress.list": "alpha-laminar 40\nbeta-shear 45\ndelta-vortex 40\nepsilon-jet 35\neta-wake 45\ngamma-mixing 40\niota-plume 40\n"
            "kappa-cavity 40\nzeta-turbulence 280\n",
            "burn.h": BURN,
            "sim.c": '#include <stdio.h>\n#include <stdlib.h>\n#include "burn.h"\nint main(int c, char **v) {\n    char n[99];\n'
            '    snprintf(n, sizeof n, "%s.out", v[1]);\n    burn(atoi(v[2]) / 100.0);\n    FILE *f = fopen(n, "w");\n'
            '    fprintf(f, "%s done\\n", v[1]);\n    return fclose(f);\n}\n',
            "simdrive.rs": r"""use std::process::{exit, Command};
use std::sync::{Arc, Mutex};
use std::{collections::VecDeque, env, fs, thread};

// Runs the listed simulations on two workers, in the list's order.
fn main() {
    let list = fs::read_to_string(env::args().nth(1).unwrap()).unwrap();
    let jobs: VecDeque<Vec<String>> = list.lines().map(|l| l.split(' ').map(String::from).collect()).collect();
    let jobs = Arc::new(Mutex::new(jobs));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let jobs = jobs.clone();
            thread::spawn(move || loop {
                let job = match jobs.lock().unwrap().pop_front() {
                    Some(j) => j,
                    None => return true,
                };
                if !Command::new("./sim").args(&job).status().unwrap().success() {
                    return false;
                }
                println!("ok {}", job[0]);
            })
        })
        .collect();
    if !workers.into_iter().all(|w| w.join().unwrap()) {
        exit(1);
    }
}
""",
        },
        "sh setup.sh",
        quiet=(4.5, 3.1),
    ),
    Plant(
        "w16-log-pipe",
        "pipe",
        "c++, slow reader of a pipe, a date per line",
        "The log of docgen goes through stamp.sh, which starts a date for every line, and docgen stands still at the full pipe; stamp with "
        "one process.",
        r"(?i)stamp|\bdate\b",
        {
            "run.sh": 'set -e\nsh setup.sh\nrm -f build.log\nif [ -n "$FIX" ]; then ./docgen 2500 | perl stamp.pl; else ./docgen 2500 | sh stamp.sh; fi > build.log\n'
            "[ $(wc -l < build.log) = 2500 ]\ntail -n 1 build.log\n",
            "setup.sh": "[ -x docgen ] || g++ -O2 -o docgen docgen.cc\n",
            "stamp.sh": 'while read -r line; do\n    echo "$(date +%H:%M:%S) $line"\ndone\n',
            "stamp.pl": "use POSIX 'strftime';\n$| = 1;\nprint strftime('%H:%M:%S ', localtime), $_ while <STDIN>;\n",
            "docgen.cc": r"""#include <cstdlib>
#include <iostream>
#include <string>
// Renders pages: each costs a little work, each is logged at once.
int main(int, char **v) {
    unsigned long h = 1;
    for (int page = 1; page <= std::atoi(v[1]); page++) {
        for (int i = 0; i < 300000; i++) h = (h ^ i) * 1099511628211UL;
        std::cout << "rendered page " << page << " of the reference manual, digest " << h << std::endl;
    }
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-schema-watch",
        "settle",
        "c++, inotify daemon with a quiet time, shell that reads a fifo",
        "After each schema build.sh waits for the watcher watchgen, which lets 0.8 s without events pass before it generates; run the "
        "generator directly (watchgen --once) in the build.",
        r"(?i)watchgen|settle|debounce|quiet (time|period)|inotify|done\.fifo|\bfifo\b",
        {
            "run.sh": "set -e\nsh setup.sh\nsh build.sh\n",
            "setup.sh": "[ -x watchgen ] || g++ -O1 -o watchgen watchgen.cc\n",
            "build.sh": r"""# Each schema may include the header that the one before has made, so they go in order.
set -e
rm -rf in out done.fifo; mkdir in out
if [ -z "$FIX" ]; then
    mkfifo done.fifo
    exec 3<> done.fifo
    ./watchgen in out done.fifo 3>&- & W=$!
    trap 'kill $W; wait $W 2>/dev/null || :' EXIT
    read -r hello <&3
fi
for s in header body index footer; do
    echo "record $s" > in/$s.def.new
    mv in/$s.def.new in/$s.def
    if [ -n "$FIX" ]; then ./watchgen --once in/$s.def out; else read -r made <&3; fi
    cc -O2 -c -o out/$s.o out/$s.c
done
ar rcs out/librecords.a out/*.o
ls out/*.o | wc -l
""",
            "watchgen.cc": r"""#include <fstream>
#include <poll.h>
#include <set>
#include <string>
#include <sys/inotify.h>
#include <unistd.h>
static void generate(const std::string &path, const std::string &out) {
    std::string word, name;
    std::ifstream(path) >> word >> name;
    std::ofstream o(out + "/" + name + ".c");
    for (int i = 0; i < 150; i++) o << "int get_" << name << i << "(const int *r) { return r[" << i << "] ^ " << i << "; }\n";
}
static void tell(const char *fifo, const std::string &what) { std::ofstream(fifo) << what << std::endl; }
int main(int c, char **v) {
    if (c == 4 && std::string(v[1]) == "--once") { generate(v[2], v[3]); return 0; }
    std::string in = v[1];
    int fd = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(fd, v[1], IN_MOVED_TO);
    tell(v[3], "ready");
    std::set<std::string> changed;
    for (;;) {
        pollfd p = {fd, POLLIN, 0};
        // Editors save in bursts: generate when nothing has come for a while.
        if (poll(&p, 1, changed.empty() ? -1 : 800) > 0) {
            alignas(inotify_event) char b[4096];
            for (ssize_t n = read(fd, b, sizeof b), i = 0; i < n;) {
                inotify_event *e = reinterpret_cast<inotify_event *>(b + i);
                changed.insert(e->name);
                i += sizeof *e + e->len;
            }
            continue;
        }
        for (const std::string &name : changed) generate(in + "/" + name, v[2]);
        changed.clear();
        tell(v[3], "made");
    }
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-none-bootstrap",
        "none",
        "c, compiler bootstrap in stages, one CPU",
        "The stages need one another, and that stage 3 equals stage 2 is the test: nothing to change.",
        NOTHING,
        {
            "run.sh": "set -e\nsh setup.sh\nsh bootstrap.sh\n",
            "setup.sh": "command -v cc >/dev/null && command -v perl >/dev/null\n",
            "bootstrap.sh": r"""# The seed translates the compiler, which then translates itself until it reproduces itself.
set -e
rm -rf stage; mkdir stage
perl seed.pl < mcc.m > stage/mcc1.c
cc -O2 -o stage/mcc1 stage/mcc1.c
stage/mcc1 < mcc.m > stage/mcc2.c
cc -O2 -o stage/mcc2 stage/mcc2.c
stage/mcc2 < mcc.m > stage/mcc3.c
cmp stage/mcc2.c stage/mcc3.c
echo "bootstrap: stage 3 equals stage 2"
""",
            "seed.pl": "while (<STDIN>) { s/\\belif /else if /g; s/\\buntil (\\((?:[^()]++|(?1))*\\))/while (!$1)/g; print }\n",
            "mcc.m": r"""#include <stdio.h>
#include <string.h>
static const char *words[] = {"elif", "until", "fn", "let", "match", "loop", "break", "return", "module", "import", "struct", "enum"};
static unsigned best, best_seed;
/* Looks for the seed that spreads the keywords widest, as gperf does. Each round starts from the last one's find. */
static void keywords(void) {
    unsigned seed = 1, round = 0;
    until (round == 35000000) {
        unsigned used = 0, n = 0;
        for (int i = 0; i < 12; i++) {
            unsigned h = seed;
            for (const char *p = words[i]; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
            used |= 1u << (h >> 27);
        }
        n = __builtin_popcount(used);
        if (n > best) { best = n; best_seed = seed; }
        elif (n == best && seed < best_seed) { best_seed = seed; }
        seed = seed * 1664525u + 1013904223u + n;
        round++;
    }
}
int main(void) {
    char line[500];
    keywords();
    until (!fgets(line, sizeof line, stdin)) {
        char *p = line;
        until (*p == 0) {
            if (!strncmp(p, "eli" "f ", 5)) { printf("else if "); p += 5; }
            elif (!strncmp(p, "unti" "l (", 7)) {
                int depth = 0;
                char *q = p + 6;
                do { depth += *q == '('; depth -= *q == ')'; q++; } while (depth);
                printf("while (!%.*s)", (int)(q - p - 6), p + 6);
                p = q;
            }
            else { putchar(*p); p++; }
        }
    }
    printf("/* keyword seed %u, %u slots */\n", best_seed, best);
    return 0;
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-none-cosimulation",
        "none",
        "c, two processes in lockstep over fifos",
        "Model and core each need the other's state for their next step: they take turns by design, nothing to change.",
        NOTHING,
        {
            "run.sh": "set -e\nsh setup.sh\nrm -f to-core to-model; mkfifo to-core to-model\n"
            "./cosim core 1800 < to-core > to-model & C=$!\n./cosim model 1800 > to-core < to-model\nwait $C\nrm -f to-core to-model\n",
            "setup.sh": "[ -x cosim ] || cc -O2 -o cosim cosim.c\n",
            "cosim.c": r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* One clock cycle: the next state is a function of the other side's last one. */
static unsigned long step(unsigned long s) {
    for (int i = 0; i < 500000; i++) s = (s ^ (s >> 7)) * 6364136223846793005UL + i;
    return s;
}
int main(int argc, char **argv) {
    int model = !strcmp(argv[1], "model"), cycles = atoi(argv[2]);
    unsigned long s = 42;
    for (int i = 0; i < cycles; i++) {
        if (model) { s = step(s); if (write(1, &s, sizeof s) != sizeof s) return 1; }
        if (read(0, &s, sizeof s) != sizeof s) return 1;
        if (!model) { s = step(s); if (write(1, &s, sizeof s) != sizeof s) return 1; }
    }
    fprintf(stderr, "%s: state %lx after %d cycles\n", argv[1], s, cycles);
    return 0;
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-none-wakeup-latency",
        "none",
        "c, threads, timer latency measured for 3.5 s",
        "The program measures how late timers wake its two threads for the time that its command line asks for: nothing to change.",
        NOTHING,
        {
            "run.sh": "set -e\nsh setup.sh\n./wakelat --interval-us 2000 --seconds 3.5 > latency.txt\nperl report.pl < latency.txt\n",
            "setup.sh": "[ -x wakelat ] || cc -O2 -pthread -o wakelat wakelat.c\n",
            "wakelat.c": r"""#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long interval;
static double seconds;
static long late[2][100000];
static int rounds;
static void *measure(void *arg) {
    long me = (long)arg;
    struct timespec next, now;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = 0; i < rounds; i++) {
        next.tv_nsec += interval * 1000;
        if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        late[me][i] = (now.tv_sec - next.tv_sec) * 1000000L + (now.tv_nsec - next.tv_nsec) / 1000;
    }
    return NULL;
}
int main(int argc, char **argv) {
    interval = atol(argv[2]);
    seconds = atof(argv[4]);
    rounds = seconds * 1e6 / interval;
    if (rounds > 100000) return 2;
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], NULL, measure, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < rounds; i++) printf("%ld\n%ld\n", late[0][i], late[1][i]);
    return 0;
}
""",
            "report.pl": 'my @l = sort { $a <=> $b } map { $_ + 0 } <STDIN>;\nprintf "%d wake-ups, median %d us, worst %d us late\\n", scalar @l, $l[@l / 2], $l[-1];\n',
        },
        "sh setup.sh",
    ),
    Plant(
        "w16-none-heartbeat",
        "none",
        "c++, make -j2 on both CPUs beside a heartbeat and a watchdog",
        "Both CPUs compile all the time; the heartbeat's and the watchdog's sleeps are beside the work: nothing to change.",
        NOTHING,
        {
            "run.sh": r"""set -e
sh setup.sh
rm -f obj/*.o; mkdir -p obj
# The CI kills jobs that are silent for long, and a hung compiler must not hold the runner.
perl -e '$| = 1; while (1) { select undef, undef, undef, 0.5; print "still building\n" }' & BEAT=$!
perl -e 'sleep 60; kill "TERM", shift' $$ & DOG=$!
trap 'kill $BEAT $DOG; wait $BEAT $DOG 2>/dev/null || :' EXIT
make -j2
""",
            "setup.sh": "command -v g++ >/dev/null\n",
            "Makefile": "OBJ = $(patsubst %,obj/u%.o,1 2 3 4 5 6 7 8 9 10 11 12)\nall: $(OBJ)\nobj/%.o: %.cc\n\tg++ -O2 -c -o $@ $<\n",
            **units("", 12),
        },
        "sh setup.sh",
    ),
]
