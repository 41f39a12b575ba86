"""The tenth part of the plants of failing.py: written before anything of it was recorded, by somebody who had seen neither the
rules nor the parts before. setup.sh makes the files of a plant."""

from plant import Plant

TENTH = {
    # Bash set -Eeuo pipefail, function, here-doc, EXIT trap whose own commands fail.
    "bash-heredoc-trap": Plant(
        "bash",
        "sh ./command",
        {
            "setup.sh": 'cat > migrate.sh <<\'E\'\n#!/bin/bash\nset -Eeuo pipefail\ncleanup() {\n  rm work/lock 2>/dev/null || :\n  rmdir work 2>/dev/null || true\n}\ntrap cleanup EXIT\napply() {\n  python3 - "$1" work/db <<\'PY\'\nimport sqlite3, sys\nsqlite3.connect(sys.argv[2]).executescript(open(sys.argv[1]).read())\nPY\n}\nmkdir -p work\nif grep -q ROLLBACK "$1"; then echo "has rollback"; exit 3; fi\ncat "$1" | wc -l\napply "$1"\necho migrated\nE\nprintf \'create table t(a);\\ninsert into t values(1);\\ncreate table t(b);\\n\' > schema.sql\n',
            "command": "bash migrate.sh schema.sql\n",
        },
        r"python3 - schema",
        r"migrate",
        "sh setup.sh",
    ),
    # Set -e and a failing [ ] builtin; no child fails that matters.
    "bracket-builtin": Plant(
        "set",
        "sh ./command",
        {
            "setup.sh": "printf 'start\\nERROR disk\\nERROR net\\nstop\\n' > app.log\ncat > verify.sh <<'E'\nset -e\nif grep -q WARN app.log; then echo warnings; fi\ntail -n 1 app.log\nn=$(grep -c ERROR app.log)\n[ \"$n\" -eq 0 ]\necho log is clean\nE\ncat > Makefile <<'E'\nverify:\n\tsh verify.sh\nE\n",
            "command": "make -s verify\n",
        },
        r"^verify\.sh",
        r"make",
        "sh setup.sh",
    ),
    # Cargo build, build.rs needs a tool that is not installed.
    "cargo-buildrs-tool": Plant(
        "cargo",
        "sh ./command",
        {
            "setup.sh": 'mkdir -p src\nprintf \'[package]\\nname = "cfg"\\nversion = "0.1.0"\\nedition = "2021"\\nbuild = "build.rs"\\n\' > Cargo.toml\necho \'fn main() { println!("ok"); }\' > src/main.rs\ncat > build.rs <<\'E\'\nuse std::process::Command;\nfn main() {\n    let _ = Command::new("git").args(["describe", "--tags"]).output();\n    let st = Command::new("schemac").args(["--out", "schema.rs", "schema.txt"]).status()\n        .expect("run schemac");\n    assert!(st.success());\n}\nE\ntouch schema.txt\n',
            "command": "cargo build --offline --quiet\n",
        },
        r"build-script-build|schemac",
        r"cargo",
        "sh setup.sh",
        needs="cargo",
    ),
    # Cargo test, one assertion in process; another test expects a child to fail.
    "cargo-test-panic": Plant(
        "cargo",
        "sh ./command",
        {
            "setup.sh": 'mkdir -p src\nprintf \'[package]\\nname = "money"\\nversion = "0.1.0"\\nedition = "2021"\\n\' > Cargo.toml\ncat > src/lib.rs <<\'E\'\npub fn cents(s: &str) -> i64 { (s.parse::<f64>().unwrap() * 100.0) as i64 }\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test] fn whole() { assert_eq!(cents("3"), 300); }\n    #[test] fn fraction() { assert_eq!(cents("4.35"), 435); }\n    #[test] fn no_match_is_one() {\n        let st = std::process::Command::new("grep").args(["-q", "zzz", "/etc/hostname"]).status().unwrap();\n        assert_eq!(st.code(), Some(1));\n    }\n}\nE\n',
            "command": "cargo test --offline --quiet\n",
        },
        r"^test money",
        r"cargo",
        "sh setup.sh",
        needs="cargo",
    ),
    # Python check_call -> make -> sh -> cp of a missing file.
    "check-call-nested": Plant(
        "python",
        "sh ./command",
        {
            "setup.sh": "mkdir -p pkg/assets\necho x > pkg/assets/style.css\ncat > build.py <<'E'\nimport subprocess, sys\nrev = subprocess.run(['git', '--git-dir=none', 'rev-parse', 'HEAD'], capture_output=True).stdout\nsubprocess.check_call(['make', '-s', '-C', 'pkg', 'dist', 'REV=' + (rev.decode().strip() or 'dev')])\nsubprocess.check_call(['tar', 'cf', 'pkg.tar', 'pkg/dist'])\nE\ncat > pkg/Makefile <<'E'\ndist:\n\tmkdir -p dist\n\tsh pack.sh $(REV)\nE\nprintf 'set -e\\necho \"$1\" > dist/REV\\nfor f in style.css logo.svg; do\\n  cp assets/$f dist/\\ndone\\n' > pkg/pack.sh\n",
            "command": "python3 build.py --release\n",
        },
        r"^cp assets",
        r"pack|make|build",
        "sh setup.sh",
    ),
    # Cmake + ctest, one abort, one WILL_FAIL.
    "cmake-ctest-abort": Plant(
        "cmake",
        "sh ./command",
        {
            "setup.sh": "cat > CMakeLists.txt <<'E'\ncmake_minimum_required(VERSION 3.10)\nproject(demo C)\nenable_testing()\nforeach(t test_parse test_reject test_sum)\n  add_executable(${t} ${t}.c)\nendforeach()\nadd_test(NAME parse COMMAND test_parse --strict)\nadd_test(NAME reject COMMAND test_reject)\nadd_test(NAME sum COMMAND test_sum)\nset_tests_properties(reject PROPERTIES WILL_FAIL TRUE)\nE\nprintf '#include <assert.h>\\n#include <stdlib.h>\\nint main(void){ assert(atoi(\"0x1f\")==31); return 0; }\\n' > test_parse.c\necho 'int main(void){return 1;}' > test_reject.c\necho 'int main(void){return 0;}' > test_sum.c\n",
            "command": "cmake -S . -B b >/dev/null && cmake --build b >/dev/null && ctest --test-dir b --output-on-failure\n",
        },
        r"^test_parse",
        r"ctest",
        "sh setup.sh",
        needs="cmake",
    ),
    # Docker-like wrapper passes the status on; make inside; awk is the check.
    "container-wrapper-awk": Plant(
        "docker-like",
        "sh ./command",
        {
            "setup.sh": "cat > dockr <<'E'\n#!/usr/bin/env python3\nimport subprocess, sys, os\na = [x for x in sys.argv[2:] if not x.startswith('--')]\nif subprocess.call(['sh', './probe.sh']) != 0:\n    print('daemon not reachable, running on the host')\nr = subprocess.run(['env', '-i', 'PATH=' + os.environ['PATH'], 'HOME=/', 'sh', '-c', 'umask 022; ' + ' '.join(a[1:])],\n                   start_new_session=True)\nsys.exit(r.returncode)\nE\nchmod +x dockr\necho 'exec test -S ./dockr.sock' > probe.sh\necho 'print(\"3 passed\")' > unit.py\nprintf 'a.c,97\\nb.c,62\\nc.c,88\\n' > cov.csv\ncat > Makefile <<'E'\ntest: unit coverage\nunit:\n\tpython3 unit.py\ncoverage:\n\tawk -F, '$$2<80 {print $$1, $$2; bad=1} END {exit bad}' cov.csv\nE\n",
            "command": "./dockr run --rm builder make test\n",
        },
        r"^[mg]?awk",
        r"make|dockr|sh",
        "sh setup.sh",
    ),
    # Find, while-read loop keeps a flag, exits with it at the end.
    "find-loop-flag": Plant(
        "find",
        "sh ./command",
        {
            "setup.sh": 'mkdir -p conf/eu conf/us\necho \'{"a":1}\' > conf/us/db.json; echo \'{"a":2}\' > conf/us/web.json\necho \'{"a":3}\' > conf/eu/web.json; echo \'{"a":3,}\' > conf/eu/db.json\ncat > validate.sh <<\'E\'\nfail=0 n=0\ngit --git-dir=none.git ls-files "$1" >/dev/null 2>&1 || echo "not under git, using find"\nwhile IFS= read -r f; do\n  n=$((n + 1))\n  if ! jq empty "$f"; then echo "invalid: $f"; fail=1; fi\ndone < <(find "$1" -name \'*.json\' | sort)\necho "$n files"\nexit $fail\nE\n',
            "command": "bash validate.sh conf\n",
        },
        r"^jq .*eu/db\.json",
        r"validate",
        "sh setup.sh",
        needs="jq",
    ),
    # Git commit, pre-commit hook rejects because a grep matches.
    "git-hook-fixme": Plant(
        "git",
        "sh ./command",
        {
            "setup.sh": "git init -q .\necho 'x = 1' > app.py\ngit add app.py\ngit -c user.name=x -c user.email=x@example.org commit -q -m first\nprintf 'x = 2  # FIXME: magic\\n' > app.py\ngit add app.py\nmkdir -p .git/hooks\ncat > .git/hooks/pre-commit <<'E'\n#!/bin/sh\nfor f in $(git diff --cached --name-only -- '*.py'); do\n  python3 -m py_compile \"$f\" || exit 1\ndone\nif git diff --cached -U0 | grep -q DEBUG; then\n  echo 'remove DEBUG'; exit 1\nfi\nif git diff --cached -U0 | grep -q FIXME; then\n  echo 'remove FIXME before you commit'; exit 1\nfi\nE\nchmod +x .git/hooks/pre-commit\n",
            "command": "git -c user.name=x -c user.email=x@example.org commit -q -m change\n",
        },
        r"^pre-commit|grep -q FIXME",
        r"git",
        "sh setup.sh",
        needs="git",
    ),
    # Go test ./..., one package fails in process after a helper that is expected to fail.
    "go-test-helper": Plant(
        "go",
        "sh ./command",
        {
            "setup.sh": 'mkdir -p a b\nprintf \'module demo\\n\\ngo 1.19\\n\' > go.mod\nprintf \'package a\\n\\nfunc Add(x, y int) int { return x + y }\\n\' > a/a.go\nprintf \'package a\\n\\nimport "testing"\\n\\nfunc TestAdd(t *testing.T) {\\n\\tif Add(1, 2) != 3 {\\n\\t\\tt.Fatal("add")\\n\\t}\\n}\\n\' > a/a_test.go\nprintf \'package b\\n\\nfunc Last(x []int) int { return x[len(x)] }\\n\' > b/b.go\nprintf \'exit 3\\n\' > b/helper.sh\ncat > b/b_test.go <<\'E\'\npackage b\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestHelper(t *testing.T) {\n\terr := exec.Command("sh", "helper.sh").Run()\n\tif e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 3 {\n\t\tt.Fatal("want 3")\n\t}\n}\n\nfunc TestLast(t *testing.T) {\n\tif Last([]int{1, 2}) != 2 {\n\t\tt.Fatal("last")\n\t}\n}\nE\n',
            "command": "GOFLAGS=-count=1 GOCACHE=$PWD/.gocache GO111MODULE=on go test ./...\n",
        },
        r"^test b ",
        r"go test",
        "sh setup.sh",
        needs="go",
    ),
    # Make: an ignored step does not write a header, the compiler misses it later.
    "ignored-version-header": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": "echo '2.1-rc' > VERSION\ncat > mkversion.py <<'E'\nimport sys\nv = [int(x) for x in open(sys.argv[1]).read().strip().split('.')]\nopen(sys.argv[2], 'w').write('#define VERSION_MINOR %d\\n' % v[1])\nE\necho 'int util(void){return 0;}' > util.c\nprintf '#include \"version.h\"\\nint util(void);\\nint main(void){return util()+VERSION_MINOR;}\\n' > main.c\ncat > Makefile <<'E'\napp: version util.o main.o\n\tgcc -o $@ util.o main.o\nversion:\n\t-@python3 mkversion.py VERSION version.h 2>/dev/null\n%.o: %.c\n\tgcc -c $<\nE\n",
            "command": "make\n",
        },
        r"mkversion\.py",
        r"cc1 main|gcc main|make",
        "sh setup.sh",
    ),
    # Javac passes, java throws.
    "java-bad-port": Plant(
        "javac",
        "sh ./command",
        {
            "setup.sh": 'mkdir -p src conf\necho \'port=http\' > conf/app.properties\ncat > src/App.java <<\'E\'\nimport java.io.*; import java.util.*;\npublic class App {\n    public static void main(String[] a) throws Exception {\n        try { new ProcessBuilder("infocmpx", "xterm").start().waitFor(); } catch (IOException e) { }\n        new ProcessBuilder("false").start().waitFor();\n        Properties p = new Properties(); p.load(new FileReader(a[0]));\n        System.out.println(Conf.port(p));\n    }\n}\nE\necho \'class Conf { static int port(java.util.Properties p) { return Integer.parseInt(p.getProperty("port")); } }\' > src/Conf.java\n',
            "command": "javac -d out src/*.java && java -Xshare:auto -XX:+UseSerialGC -cp out App conf/app.properties\n",
        },
        r"^App ",
        r"java",
        "sh setup.sh",
        needs="javac",
    ),
    # Chain of linters; one bad result is lost by find -exec, one counts.
    "lint-chain-find": Plant(
        "chain",
        "sh ./command",
        {
            "setup.sh": "mkdir -p scripts lib\nprintf '#!/bin/sh\\ncd $1\\nrm -rf $2/*\\n' > scripts/deploy.sh\necho 'use strict; $x = 1;' > lib/Old.pl\necho 'use strict; my $x = 1;' > lib/New.pl\necho 'a = 1' > lib/a.py\necho '<?php echo 1;' > lib/a.php\ncat > lint.sh <<'E'\nrc=0\nfind lib -name '*.pl' -exec perl -c {} \\; || rc=1\npython3 -m py_compile lib/a.py || rc=1\nshellcheck scripts/deploy.sh || rc=1\nphp -l lib/a.php || rc=1\n[ $rc -eq 0 ] && echo clean\nexit $rc\nE\n",
            "command": "sh lint.sh\n",
        },
        r"^shellcheck",
        r"lint",
        "sh setup.sh",
        needs="shellcheck",
    ),
    # Bash: local v=$(cmd) hides the failure, a later check finds the gap.
    "local-mask": Plant(
        "bash",
        "sh ./command",
        {
            "setup.sh": "printf '[tool.poetry]\\nname = \"x\"\\n' > pyproject.toml\ncat > getversion.py <<'E'\nimport re, sys\nprint(re.search(r'^version = \"(.*)\"', open(sys.argv[1]).read(), re.M).group(1))\nE\ncat > stamp.sh <<'E'\nset -euo pipefail\nstamp() {\n  local v=$(python3 getversion.py pyproject.toml)\n  if grep -q dirty pyproject.toml; then v=$v+dirty; fi\n  printf 'version=%s\\ndate=%s\\n' \"$v\" \"$(date +%F)\" > build.info\n}\nstamp\ngrep -Eq '^version=[0-9]' build.info\necho stamped\nE\n",
            "command": "bash stamp.sh\n",
        },
        r"getversion\.py",
        r"^grep -Eq|stamp",
        "sh setup.sh",
    ),
    # Make -j2, one compile error, ignored step before.
    "make-j-one-bad": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": "mkdir -p src\necho 'OPT_LARGE=1' > config.in\necho 'int io(void){return 1;}' > src/io.c\necho 'int logx(void){return 1;}' > src/log.c\nprintf '#include <stdio.h>\\nint net(void){ struct sockopt o; return o.fd; }\\n' > src/net.c\necho 'int io(void),logx(void),net(void);int main(void){return io()+logx()+net();}' > src/main.c\ncat > Makefile <<'E'\nCC = gcc\nOBJ = src/main.o src/io.o src/net.o src/log.o\nall: probe app\nprobe:\n\t-@grep -q SIMD config.in\napp: $(OBJ)\n\t$(CC) -o $@ $(OBJ)\n%.o: %.c\n\t$(CC) -O1 -Wall -c $< -o $@\nE\n",
            "command": "make -j2\n",
        },
        r"cc1 net\.c",
        r"gcc|make",
        "sh setup.sh",
    ),
    # Make -k, three targets, one check fails, one ignored.
    "make-k-three-checks": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": "mkdir -p docs\necho 'see docs/a.txt' > docs/a.txt\necho 'see docs/gone.txt' > docs/b.txt\necho 'see docs/b.txt' > docs/c.txt\ncat > check_links.py <<'E'\nimport sys, os, re\nfor w in re.findall(r'docs/\\S+', open(sys.argv[1]).read()):\n    if not os.path.exists(w):\n        print(sys.argv[1], 'broken link', w)\n        sys.exit(1)\nE\ncat > Makefile <<'E'\nDOCS = docs/a.txt docs/b.txt docs/c.txt\ncheck: $(DOCS:.txt=.ok) draft\n\t@echo all fine\ndraft:\n\t@grep -q DRAFT $(DOCS) || true\n%.ok: %.txt\n\tpython3 check_links.py $<\n\ttouch $@\nE\n",
            "command": "make -k check\n",
        },
        r"check_links\.py docs/b",
        r"make",
        "sh setup.sh",
    ),
    # Make, a tool is not installed (127).
    "make-missing-tool": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": "echo '# hello' > doc.md\ncat > Makefile <<'E'\nVERSION := $(shell git --git-dir=none describe 2>/dev/null || echo 0.0)\nCCACHE := $(shell which sccache)\ndocs: out/doc.html\nout/doc.html: doc.md\n\tmkdir -p out\n\tmdrenderx -o $@ $<\nE\n",
            "command": "make -s docs\n",
        },
        r"mdrenderx",
        r"make",
        "sh setup.sh",
    ),
    # Make .ONESHELL without -e: first step fails unnoticed, last step lacks its file.
    "make-oneshell-lost": Plant(
        "make",
        "sh ./command",
        {
            "setup.sh": "mkdir -p data\nprintf 'id,amount\\n1,20\\n2,n/a\\n3,7\\n' > data/sales.csv\ncat > extract.py <<'E'\nimport csv, sys\nrows = [(int(r['amount']), r['id']) for r in csv.DictReader(open(sys.argv[1]))]\nwith open('rows.txt', 'w') as f:\n    for a, i in rows:\n        f.write(f'{a} {i}\\n')\nE\ncat > Makefile <<'E'\n.ONESHELL:\nreport:\n\tmkdir -p out\n\tpython3 extract.py data/sales.csv\n\twc -l data/sales.csv > out/count.txt\n\tsort -n rows.txt > out/report.txt\nE\n",
            "command": "make report\n",
        },
        r"extract\.py",
        r"^sort|sh|make",
        "sh setup.sh",
    ),
    # Recursive make through tee with pipefail, link error.
    "make-recursive-tee": Plant(
        "recursive",
        "sh ./command",
        {
            "setup.sh": "mkdir -p lib app\ncat > Makefile <<'E'\nCCACHE := $(shell which sccache 2>/dev/null)\nSUBDIRS = lib app\nall: $(SUBDIRS)\napp: lib\n$(SUBDIRS):\n\t$(MAKE) -C $@\n.PHONY: all $(SUBDIRS)\nE\ncat > lib/Makefile <<'E'\nlibu.a: u.o\n\tar rcs $@ $^\nu.o: u.c\n\tgcc -c u.c\nE\necho 'int u_open(void){return 0;}' > lib/u.c\ncat > app/Makefile <<'E'\ntool: main.o ../lib/libu.a\n\tgcc -o $@ main.o ../lib/libu.a\nmain.o: main.c\n\tgcc -c main.c\nE\necho 'int u_open(void),u_close(void);int main(void){u_open();return u_close();}' > app/main.c\n",
            "command": "bash -o pipefail -c 'make 2>&1 | tee build.log'\n",
        },
        r"^(ld|collect2)",
        r"gcc|make|bash",
        "sh setup.sh",
    ),
    # Seven commands fail, only the last gate counts.
    "many-fail-one-counts": Plant(
        "seven",
        "sh ./command",
        {
            "setup.sh": "printf 'A\\nB\\n' > in.txt; printf 'a\\nc\\n' > golden.txt; echo z > old.txt\necho 'raise SystemExit(1)' > telemetry.py\necho 'exit 7' > notify.sh\ncat > ci.sh <<'E'\n#!/bin/bash\nset -e\nv=$(git --git-dir=none describe 2>/dev/null || echo dev)\npython3 telemetry.py start &\nls cache/* 2>/dev/null | cat\nif grep -q deprecated in.txt; then echo \"$v uses deprecated names\"; fi\ntr A-Z a-z < in.txt > out.txt\ndiff old.txt out.txt > changes.txt || true\n! /bin/false\nsh notify.sh started || echo \"no notification\"\nwait\ncmp golden.txt out.txt\nsh notify.sh done\nE\n",
            "command": "bash ci.sh\n",
        },
        r"^cmp golden",
        r"ci\.sh",
        "sh setup.sh",
    ),
    # Ninja, code generator writes C that does not compile.
    "ninja-generated-code": Plant(
        "ninja",
        "sh ./command",
        {
            "setup.sh": "mkdir -p gen\nprintf 'red\\ngreen\\nlight-blue\\n' > colors.txt\ncat > gen.py <<'E'\nimport sys\nwith open(sys.argv[2], 'w') as f:\n    f.write('enum color {\\n')\n    for l in open(sys.argv[1]):\n        f.write('  COLOR_%s,\\n' % l.strip().upper())\n    f.write('};\\nint ncolors(void) { return sizeof(enum color); }\\n')\nE\necho 'int ncolors(void);int main(void){return ncolors()>0?0:1;}' > main.c\ncat > build.ninja <<'E'\nrule gen\n  command = python3 gen.py $in $out\nrule cc\n  command = gcc -c $in -o $out\nrule link\n  command = gcc $in -o $out\nrule stamp\n  command = /usr/bin/test -e override.h || echo none > $out\nbuild override.stamp: stamp\nbuild gen/table.c: gen colors.txt\nbuild table.o: cc gen/table.c\nbuild main.o: cc main.c\nbuild app: link main.o table.o\nbuild all: phony app override.stamp\ndefault all\nE\n",
            "command": "ninja -k 0\n",
        },
        r"^(cc1|gcc).*table\.c",
        r"ninja|sh",
        "sh setup.sh",
        needs="ninja",
    ),
    # Node --test, one file fails in process, one expects a failing child.
    "node-test-two-files": Plant(
        "node",
        "sh ./command",
        {
            "setup.sh": "mkdir -p test\ncat > test/cli.test.js <<'E'\nconst test = require('node:test'); const assert = require('assert');\nconst { spawnSync } = require('child_process');\ntest('bad file gives 2', () => assert.strictEqual(spawnSync('ls', ['no-such-file']).status, 2));\nE\ncat > test/price.test.js <<'E'\nconst test = require('node:test'); const assert = require('assert');\ntest('sum', () => assert.strictEqual(0.1 + 0.2, 0.3));\nE\ncat > test/ok.test.js <<'E'\nrequire('node:test')('ok', () => {});\nE\n",
            "command": "node --test test/\n",
        },
        r"price\.test\.js",
        r"node",
        "sh setup.sh",
        needs="node",
    ),
    # Script without execute permission (126).
    "not-executable-126": Plant(
        "script",
        "sh ./command",
        {
            "setup.sh": "mkdir -p tools\nprintf '#!/bin/sh\\necho types > types.out\\n' > tools/gen-types\nprintf '#!/bin/sh\\necho api > api.out\\n' > tools/gen-api\nchmod 755 tools/gen-types; chmod 644 tools/gen-api\ncat > build.sh <<'E'\nset -e\n./tools/gen-types\ncmp -s types.out types.old || echo \"types changed\"\n./tools/gen-api --format json\ncat types.out api.out > all.out\nE\n",
            "command": "sh build.sh\n",
        },
        r"^(build\.sh|gen-api)",
        r"build",
        "sh setup.sh",
    ),
    # Npm scripts, nested, a child of a script fails.
    "npm-chain-worker": Plant(
        "npm",
        "sh ./command",
        {
            "setup.sh": "mkdir -p scripts src\ncat > package.json <<'E'\n{ \"name\": \"web\", \"version\": \"1.0.0\", \"private\": true,\n  \"scripts\": {\n    \"lint\": \"node scripts/lint.js src\",\n    \"prebuild\": \"npm run --silent lint\",\n    \"build\": \"npm run --silent bundle && node scripts/stamp.js\",\n    \"bundle\": \"node scripts/bundle.js\" } }\nE\necho 'require(\"fs\").readdirSync(process.argv[2]).forEach(f=>console.log(\"lint\",f));' > scripts/lint.js\ncat > scripts/bundle.js <<'E'\nconst { spawnSync } = require('child_process');\nconst rev = spawnSync('git', ['--git-dir=./none', 'rev-parse', 'HEAD']);\nfor (const f of ['src/a.js', 'src/b.js']) {\n  const r = spawnSync(process.execPath, ['scripts/minify.js', f], { stdio: 'inherit' });\n  if (r.status) { console.error('bundle failed'); process.exit(r.status); }\n}\nE\ncat > scripts/minify.js <<'E'\nconst src = require('fs').readFileSync(process.argv[2], 'utf8');\nnew (require('vm').Script)(src, { filename: process.argv[2] });\nE\necho 'console.log(\"done\")' > scripts/stamp.js\necho 'const a = 1;' > src/a.js\necho 'const b = {;' > src/b.js\n",
            "command": "npm run --silent build\n",
        },
        r"minify\.js src/b",
        r"bundle|npm|sh",
        "sh setup.sh",
        needs="npm",
    ),
    # Hand-written watchdog kills the third of three jobs.
    "own-watchdog": Plant(
        "hand-written",
        "sh ./command",
        {
            "setup.sh": "cat > jobs.sh <<'E'\nguard() {\n  \"$@\" & local pid=$!\n  bash -c 'sleep 4 & s=$!; trap \"kill $s; exit 0\" TERM; wait $s; kill -TERM '$pid' 2>/dev/null' &\n  local dog=$!\n  wait $pid; local rc=$?\n  kill $dog 2>/dev/null; wait $dog 2>/dev/null\n  return $rc\n}\nfor j in a b c; do\n  guard python3 job.py $j || { rc=$?; echo \"job $j: $rc\"; exit $rc; }\ndone\nE\ncat > job.py <<'E'\nimport sys, os, time\nif sys.argv[1] == 'c':\n    r, w = os.pipe(); os.read(r, 1)   # nobody writes\ntime.sleep(0.2)\nE\n",
            "command": "bash jobs.sh\n",
        },
        r"job\.py c",
        r"jobs",
        "sh setup.sh",
    ),
    # GNU parallel, one failing job of six.
    "parallel-one-bad": Plant(
        "GNU",
        "sh ./command",
        {
            "setup.sh": "mkdir -p in\nfor i in 1 2 3 5 6; do printf 'host=h%s\\nport=80%s\\n' $i $i > in/$i.ini; done\nprintf 'host=h4\\nport=80a4\\n' > in/4.ini\ncat > check.sh <<'E'\nset -e\nif grep -q '^debug=' \"$1\"; then echo \"debug on in $1\"; fi\ngrep -Eq '^host=' \"$1\"\ngrep -Eq '^port=[0-9]+$' \"$1\"\necho \"$1 ok\"\nE\n",
            "command": "parallel --will-cite -j2 sh check.sh {} ::: in/1.ini in/2.ini in/3.ini in/4.ini in/5.ini in/6.ini\n",
        },
        r"in/4\.ini",
        r"parallel",
        "sh setup.sh",
        needs="parallel",
    ),
    # Php -l over xargs, one bad file.
    "php-lint-xargs": Plant(
        "php",
        "sh ./command",
        {
            "setup.sh": "mkdir -p src/a\necho '<?php function a() { return 1; }' > src/a/a.php\nprintf '<?php\\nfunction total($x) {\\n  return array_sum($x)\\n}\\n' > src/cart.php\nfor i in 1 2 3; do echo \"<?php echo $i;\" > src/m$i.php; done\n",
            "command": "find src -name '*.php' | sort | xargs -n1 -P2 php -l\n",
        },
        r"src/cart\.php",
        r"xargs",
        "sh setup.sh",
        needs="php",
    ),
    # Bash pipefail: the producer dies of SIGPIPE because head stops early.
    "pipefail-sigpipe": Plant(
        "bash",
        "sh ./command",
        {
            "setup.sh": "seq 1 200000 > sizes.txt\ncat > largest.sh <<'E'\nset -euo pipefail\nn=$(wc -l < sizes.txt)\nif ! grep -c '^-' sizes.txt >/dev/null; then echo \"no negatives in $n\"; fi\ntop=$(sort -rn sizes.txt | head -n 1)\necho \"largest: $top\" > report.txt\nE\n",
            "command": "bash largest.sh\n",
        },
        r"^sort -rn",
        r"largest",
        "sh setup.sh",
    ),
    # Process pool: a worker crashes, the others are terminated.
    "pool-worker-segv": Plant(
        "process",
        "sh ./command",
        {
            "setup.sh": "cat > render.py <<'E'\nimport ctypes, subprocess, sys, time\nfrom concurrent.futures import ProcessPoolExecutor\ndef render(n):\n    time.sleep(0.2)\n    if n == 5: ctypes.string_at(16)\n    return n * n\nif __name__ == '__main__':\n    subprocess.call(['which', 'convertx'])\n    with ProcessPoolExecutor(3) as ex:\n        print(sum(ex.map(render, range(8))))\nE\n",
            "command": "python3 render.py\n",
        },
        r"render\.py \(forked\)",
        r"render",
        "sh setup.sh",
    ),
    # Two services on one port: the second dies, the smoke test then fails, the first is stopped in a trap.
    "port-in-use": Plant(
        "two",
        "sh ./command",
        {
            "setup.sh": "cat > metrics.py <<'E'\nimport socket\ns = socket.create_server(('127.0.0.1', 0)); open('port', 'w').write(str(s.getsockname()[1]))\nwhile True:\n    k, _ = s.accept(); k.sendall(b'metrics 0'); k.close()\nE\ncat > api.py <<'E'\nimport socket, sys\ns = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen()\nwhile True:\n    k, _ = s.accept(); k.sendall(b'api ok'); k.close()\nE\ncat > smoke.py <<'E'\nimport socket, sys\nr = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2).recv(20)\nif r != b'api ok': print('unexpected reply', r); sys.exit(1)\nE\ncat > smoke.sh <<'E'\nset -e\npython3 metrics.py & m=$!\ntrap 'kill $m 2>/dev/null; wait 2>/dev/null' EXIT\nfor i in 1 2 3 4 5 6 7 8 9 10; do [ -s port ] && break; sleep 0.2; done\npython3 api.py \"$(cat port)\" &\nsleep 1\npython3 smoke.py \"$(cat port)\"\necho smoke passed\nE\n",
            "command": "bash smoke.sh\n",
        },
        r"api\.py",
        r"smoke",
        "sh setup.sh",
    ),
    # Prove / TAP, one script fails, one has TODO failures.
    "prove-one-bad": Plant(
        "prove",
        "sh ./command",
        {
            "setup.sh": "mkdir -p t\nprintf 'use Test::More tests => 2;\\nok(1);\\nis(system(\"perl\",\"-e\",\"exit 5\")>>8, 5, \"child code\");\\n' > t/10-load.t\ncat > t/20-date.t <<'E'\nuse strict; use warnings; use Test::More;\nsub leap { my $y = shift; return $y % 4 == 0 ? 1 : 0 }\nis(leap(2000), 1); is(leap(1900), 0); is(leap(2023), 0);\ndone_testing;\nE\ncat > t/30-todo.t <<'E'\nuse Test::More tests => 2;\nok(1);\nTODO: { local $TODO = 'later'; ok(system('false') == 0, 'not yet'); }\nE\n",
            "command": "prove -q t/\n",
        },
        r"20-date\.t",
        r"prove",
        "sh setup.sh",
        needs="prove",
    ),
    # Pytest, failing assertion in process; other tests run children that are meant to fail.
    "pytest-in-process": Plant(
        "pytest",
        "sh ./command",
        {
            "setup.sh": "mkdir -p tests\necho hello > notes.txt\ncat > tests/test_cli.py <<'E'\nimport subprocess\ndef test_grep_none(): assert subprocess.call(['grep', '-q', 'nope', 'notes.txt']) == 1\ndef test_false(): assert subprocess.call(['false']) != 0\ndef test_code(): assert subprocess.call(['sh', '-c', 'exit 4']) == 4\nE\ncat > tests/test_text.py <<'E'\nimport subprocess\ndef slug(s): return s.lower().replace(' ', '-')\ndef test_slug(): assert slug('A  b') == 'a-b'\ndef test_true(): assert subprocess.call(['true']) == 0\nE\n",
            "command": "pytest -q -p no:cacheprovider\n",
        },
        r"^pytest",
        r"",
        "sh setup.sh",
        needs="pytest",
    ),
    # Pytest, a conftest fixture starts a server, which dies at once.
    "pytest-server-fixture": Plant(
        "pytest",
        "sh ./command",
        {
            "setup.sh": "mkdir -p srv tests\nprintf '[http]\\nport = 0\\n' > srv/config.ini\ncat > srv/server.py <<'E'\nimport configparser, sys, socket\nc = configparser.ConfigParser(); c.read(sys.argv[2])\nport, root = c.getint('http', 'port'), c.get('http', 'root')\ns = socket.create_server(('127.0.0.1', port)); open('port', 'w').write(str(s.getsockname()[1]))\nwhile True:\n    k, _ = s.accept(); k.sendall(b'ok'); k.close()\nE\ncat > tests/conftest.py <<'E'\nimport pytest, subprocess, sys, time, os\n@pytest.fixture(scope='session')\ndef server():\n    p = subprocess.Popen([sys.executable, 'srv/server.py', '--config', 'srv/config.ini'], stderr=subprocess.DEVNULL)\n    end = time.time() + 2\n    while time.time() < end and not os.path.exists('port'):\n        time.sleep(0.1)\n    yield int(open('port').read()) if os.path.exists('port') else None\n    p.terminate(); p.wait()\nE\ncat > tests/test_api.py <<'E'\nimport subprocess, socket\ndef test_log_clean():\n    assert subprocess.run(['grep', '-c', 'warn', 'srv/config.ini']).returncode == 1\ndef test_hello(server):\n    assert server is not None, 'server did not come up'\n    assert socket.create_connection(('127.0.0.1', server)).recv(10) == b'ok'\nE\n",
            "command": "pytest -q -p no:cacheprovider\n",
        },
        r"server\.py",
        r"pytest",
        "sh setup.sh",
        needs="pytest",
    ),
    # Pytest, a test runs the tool under test, which fails; others expect failures.
    "pytest-tool-crash": Plant(
        "pytest",
        "sh ./command",
        {
            "setup.sh": "cat > tool.py <<'E'\nimport sys, json, os\na = sys.argv[1:]\nif a and a[0] == 'version': print('1.0'); sys.exit(0)\nif len(a) != 2 or a[0] != 'convert': print('usage'); sys.exit(2)\nif not os.path.exists(a[1]): print('no such file'); sys.exit(2)\nd = json.load(open(a[1]))\nprint(d['name'].upper())\nE\necho '{\"name\": null}' > in.json\ncat > test_tool.py <<'E'\nimport subprocess, sys\ndef run(*a): return subprocess.run([sys.executable, 'tool.py', *a], capture_output=True, text=True)\ndef test_version(): assert run('version').returncode == 0\ndef test_bogus(): assert run('--bogus').returncode == 2\ndef test_convert():\n    r = run('convert', 'in.json')\n    assert r.returncode == 0, r.stderr\ndef test_missing(): assert run('convert', 'missing.json').returncode == 2\nE\n",
            "command": "pytest -q -p no:cacheprovider test_tool.py\n",
        },
        r"tool\.py convert in\.json",
        r"pytest",
        "sh setup.sh",
        needs="pytest",
    ),
    # Retry function; one step recovers at its second try, the other never does.
    "retry-gives-up": Plant(
        "retry",
        "sh ./command",
        {
            "setup.sh": "cat > release.sh <<'E'\nretry() {\n  local n\n  for n in 1 2 3; do\n    \"$@\" && return 0\n    echo \"try $n of '$*' failed\"; sleep 0.3\n  done\n  return 1\n}\nretry python3 fetch.py deps.txt || exit 1\ntar cf dist.tar deps.txt\nretry python3 upload.py dist.tar || { echo \"giving up\"; exit 1; }\necho released\nE\ncat > fetch.py <<'E'\nimport os, sys\nif not os.path.exists('.warm'):\n    open('.warm', 'w').close(); sys.exit('503 try again')\nopen(sys.argv[1], 'w').write('dep 1\\n')\nE\ncat > upload.py <<'E'\nimport socket, sys\ns = socket.socket(); s.bind(('127.0.0.1', 0)); p = s.getsockname()[1]; s.close()\ntry: socket.create_connection(('127.0.0.1', p), 1)\nexcept OSError as e: print(e); sys.exit(75)\nE\n",
            "command": "bash release.sh\n",
        },
        r"upload\.py",
        r"release",
        "sh setup.sh",
    ),
    # Ssh-like wrapper, three hosts, one fails, script sums up.
    "ssh-like-one-host": Plant(
        "ssh-like",
        "sh ./command",
        {
            "setup.sh": 'for h in web1 web2 web3; do\n  mkdir -p hosts/$h; echo \'release 1.4\' > hosts/$h/app.bin\n  (cd hosts/$h && sha256sum app.bin > release.sum)\ndone\necho \'release 1.4 cut sho\' > hosts/web2/app.bin\ncat > rsh <<\'E\'\n#!/bin/bash\nh=$1; shift\ncd "hosts/$h" || exit 255\nexec sh -c "$*"\nE\nchmod +x rsh\ncat > deploy.sh <<\'E\'\nbad=\nfor h in web1 web2 web3; do\n  ./rsh $h "/usr/bin/test -f maintenance.on" && continue\n  ./rsh $h "sha256sum -c --quiet release.sum && echo $1 > current" || bad="$bad $h"\ndone\n[ -z "$bad" ] || { echo "failed:$bad"; exit 1; }\nE\n',
            "command": "sh deploy.sh 1.4\n",
        },
        r"sha256sum",
        r"deploy",
        "sh setup.sh",
    ),
    # Statuses are written to files through tee, a later step reads them.
    "status-file": Plant(
        "statuses",
        "sh ./command",
        {
            "setup.sh": "mkdir -p st\ncat > suite.py <<'E'\nimport sys\nn = int(sys.argv[2]); print('shard', n)\nsys.exit(4 if n == 2 else 0)\nE\ncat > ci.sh <<'E'\nfor n in 1 2 3; do\n  { python3 suite.py --shard $n; echo $? > st/shard$n; } 2>&1 | tee st/log$n\ndone\nsleep 0.3\nwc -c st/log*\nawk '$1 != 0 {print FILENAME, $1; if ($1 > m) m = $1} END {exit m}' st/shard*\nE\n",
            "command": "sh ci.sh\n",
        },
        r"suite\.py --shard 2",
        r"^awk|ci",
        "sh setup.sh",
    ),
    # Unpack several archives, one truncated; unzip no-match is tolerated.
    "tar-truncated": Plant(
        "unpack",
        "sh ./command",
        {
            "setup.sh": "mkdir -p vendor s && (cd s && seq 1 20000 > liba.txt && seq 5 30000 > libb.txt && seq 3 300 > libc.txt)\nfor l in liba libb libc; do tar czf vendor/$l.tgz -C s $l.txt; done\n(cd s && zip -q ../vendor/extra.zip libc.txt)\nhead -c 20000 vendor/libb.tgz > t && mv t vendor/libb.tgz\nrm -r s\ncat > unpack.sh <<'E'\nset -e\nmkdir -p third_party\nunzip -q -d third_party vendor/extra.zip 'doc/*' || [ $? -eq 11 ]\nfor l in liba libb libc; do\n  tar xzf vendor/$l.tgz -C third_party\ndone\nwc -l third_party/*\nE\n",
            "command": "sh unpack.sh\n",
        },
        r"^gzip|^tar",
        r"unpack",
        "sh setup.sh",
    ),
    # Timeout on a script that polls for a file; the background job that should write it has died.
    "timeout-waits-for-dead-seed": Plant(
        "timeout",
        "sh ./command",
        {
            "setup.sh": "echo '[{\"name\": \"a\", \"age\": 3}, {\"name\": \"b\"}]' > users.json\ncat > seed.py <<'E'\nimport json, sys\nrows = [(u['name'], u['age']) for u in json.load(open(sys.argv[1]))]\nopen('ready', 'w').write(str(len(rows)))\nE\necho 'print(open(\"ready\").read())' > query.py\ncat > integration.sh <<'E'\npython3 seed.py users.json &\nuntil stat ready >/dev/null 2>&1; do sleep 0.2; done\npython3 query.py\nE\n",
            "command": "timeout 5 sh integration.sh\n",
        },
        r"seed\.py",
        r"timeout|integration",
        "sh setup.sh",
    ),
    # Ulimit -v, a program that does not check malloc dies.
    "ulimit-segv": Plant(
        "ulimit",
        "sh ./command",
        {
            "setup.sh": "seq 1 5000 > words.txt\necho sse > flags.txt\ncat > mkindex.c <<'E'\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(int c, char **v) {\n    FILE *f = fopen(v[1], \"r\"); char b[99]; int n = 0;\n    while (fgets(b, sizeof b, f)) { char *p = malloc(1 << 17); strcpy(p, b); n++; }\n    printf(\"%d\\n\", n); return 0;\n}\nE\ncat > Makefile <<'E'\nindex: mkindex words.txt\n\t@if grep -q avx2 flags.txt; then echo avx2; fi\n\t@ulimit -v 200000; ./mkindex words.txt > index.tmp; rc=$$?; [ $$rc -eq 0 ] || exit $$rc; mv index.tmp index\nmkindex: mkindex.c\n\tgcc -o $@ $<\nE\n",
            "command": "make index\n",
        },
        r"mkindex",
        r"make|sh",
        "sh setup.sh",
    ),
    # Unittest, a child hangs and is killed by the test time-out.
    "unittest-child-timeout": Plant(
        "unittest",
        "sh ./command",
        {
            "setup.sh": "echo 1 > a.txt; echo 2 > b.txt\nprintf 'mkfifo queue.fifo\\nexec cat queue.fifo > export.out\\n' > export.sh\ncat > test_export.py <<'E'\nimport subprocess, unittest\nclass T(unittest.TestCase):\n    def test_diff(self):\n        self.assertEqual(subprocess.call(['diff', '-q', 'a.txt', 'b.txt'], stdout=subprocess.DEVNULL), 1)\n    def test_export(self):\n        subprocess.run(['sh', 'export.sh'], timeout=2, check=True)\nE\n",
            "command": "python3 -m unittest -q\n",
        },
        r"^cat queue|export\.sh",
        r"unittest",
        "sh setup.sh",
    ),
}
