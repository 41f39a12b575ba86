#!/usr/bin/env python3
"""Compares the CPU time that `tr` gives to the tests of a report with what these tests measured themselves.

usage: benches/validation/reporters_measured.py [--tr TR] [--path DIR]... [--keep DIR] [--csv FILE] [REPORTER...]

`reporters.py` has the runners with which the rules for places were made. The suites here were written without a look at these rules:
tests hash, parse, sleep in several calls, start programs and threads, fail, have parameters, set-ups, tear-downs and retries, and
last 2 to 400 ms. Each appends its CPU time (its process and its children, by `getrusage`) to a file. A figure is *right* within 20 %
or 20 ms of that. Without figures a test is *placed* if its place is known, else *none*. Each runner has its default configuration; a
name with a comma is a variant. Needs root and, beside those of `reporters.py`:

  pip install pytest-rerunfailures stestr python-subunit junitxml
  npm install bun deno tap@18
  apt install erlang-base erlang-eunit r-cran-testthat r-cran-xml2 libcriterion-dev qtbase5-dev
"""

import argparse
import glob
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections import Counter

import results
from reporters import PROCESSES, SUREFIRE_GOAL, TRUTH, Reporter, analyze, is_beside, record, timed

IDENTITY = re.compile(r"[tT](\d\d[a-z]?)(?![a-z0-9])")

PYTHON = """
import contextlib, hashlib, json, os, resource, select, subprocess, sys, threading, time
def used():
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + of.ru_utime + of.ru_stime
@contextlib.contextmanager
def true(name, phase='body'):
    began, before = time.monotonic(), used()
    try: yield
    finally:
        with open(os.environ['TRUTH'], 'a') as out:
            out.write(f'{name} {phase} {(time.monotonic() - began) * 1e3:.3f} {(used() - before) * 1e3:.3f} {time.time() * 1e3:.3f}\\n')
BLOCK, TEXT = bytes(65536), json.dumps([{'key': n, 'text': 'x' * 20} for n in range(3000)])
def digest(times):
    sums = hashlib.sha256()
    for _ in range(times): sums.update(BLOCK)
    return sums.hexdigest()
def parse(times):
    for _ in range(times): json.loads(TEXT)
def pipeline(megabytes): subprocess.run(['sh', '-c', f'head -c {megabytes}000000 /dev/zero | sha256sum > /dev/null'], check=True)
def interpreter(): subprocess.run([sys.executable, '-S', '-c', 'import hashlib\\nfor n in range(900): hashlib.sha256(bytes(65536)).digest()'])
def polls(seconds): select.select([], [], [], seconds)
def waits(seconds): threading.Event().wait(seconds)
def naps(times):
    for _ in range(times): time.sleep(.012)
def threads(times):
    both = [threading.Thread(target=digest, args=(times,)) for _ in range(2)]
    for one in both: one.start()
    for one in both: one.join()
"""

UNITTEST = """
import unittest
from work import *
class Plain(unittest.TestCase):
    def test_t01_digests(self):
        with true('01'): digest(1900)
    def test_t02_polls(self):
        with true('02'): polls(.22)
    def test_t03_tiny(self):
        with true('03'): digest(10)
    def test_t04_pipeline(self):
        with true('04'): pipeline(60)
    def test_t05_parses(self):
        with true('05'): parse(60)
    def test_t06_threads(self):
        with true('06'): threads(700)
    def test_t07_breaks(self):
        with true('07'):
            digest(300); self.assertEqual(1, 2)
    def test_t08_naps(self):
        with true('08'): naps(15)
    def test_t09_tiny(self):
        with true('09'): parse(1)
class Fixture(unittest.TestCase):
    def setUp(self):
        with true(self.id().split('test_t')[1][:2], 'around'): digest(400)
    def tearDown(self):
        with true(self.id().split('test_t')[1][:2], 'around'): digest(150); naps(2)
    def test_t10_inside(self):
        with true('10'): digest(350)
    def test_t11_waits(self):
        with true('11'): waits(.2)
    def test_t12_raises(self):
        with true('12'):
            interpreter(); raise KeyError('x')
class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with true('13', 'around'): naps(8); parse(20)
    def test_t13_mixed(self):
        with true('13'):
            parse(20); polls(.08); digest(250)
    @unittest.skip('not here')
    def test_t14_skipped(self): pass
    def test_t15_digests(self):
        with true('15'): digest(900)
"""

PYTEST = (
    UNITTEST.replace("import unittest", "import pytest, unittest")
    + """
@pytest.fixture(scope='module')
def shared():
    with true('16a', 'around'): parse(25)
    yield 1
    with true('16c', 'around'): naps(3)
@pytest.mark.parametrize('case, times', [('t16a', 120), ('t16b', 1200), ('t16c', 30)])
def test_sizes(shared, case, times):
    with true(case[1:]): digest(times)
@pytest.fixture
def folder(tmp_path):
    with true('17', 'around'): digest(200)
    yield tmp_path
def test_t17_files(folder):
    with true('17'):
        for n in range(200): (folder / str(n)).write_bytes(BLOCK)
        pipeline(30)
"""
)

RERUN = """
import pytest
from work import *
TRIES = []
def test_t01_digests():
    with true('01'): digest(900)
@pytest.mark.flaky(reruns=2)
def test_t02_flaky():
    TRIES.append(1)
    with true('02'):
        digest(500); polls(.05); assert len(TRIES) == 3
def test_t03_sleeps():
    with true('03'): polls(.25)
def test_t04_interpreter():
    with true('04'): interpreter()
@pytest.mark.flaky(reruns=1)
def test_t05_never():
    with true('05'):
        naps(10); assert False
def test_t06_tiny():
    with true('06'): digest(8)
def test_t07_parses():
    with true('07'): parse(80)
"""

ROBOT = """*** Settings ***
Library    Work.py
Suite Setup    Prepare
*** Test Cases ***
t01 digests
    Do    01    digest    1700
t02 polls
    Do    02    polls    0.22
t03 tiny
    Do    03    digest    10
t04 pipeline
    Do    04    pipeline    60
t05 with set-up
    [Setup]    Around    05    digest    500
    Do    05    parse    40
    [Teardown]    Around    05    naps    4
t06 breaks
    Do    06    parse    50
    Fail    x
t07 many steps
    FOR    ${n}    IN RANGE    6
        Do    07    digest    120
        Do    07    polls    0.02
    END
t08 templates
    [Template]    Do
    08    digest    300
    08    interpreter
    08    naps    5
t09 threads
    Do    09    threads    600
"""

ROBOT_LIBRARY = """
import work
class Work:
    def do(self, name, what, amount=None, phase='body'):
        call = getattr(work, what)
        with work.true(name, phase):
            call() if amount is None else call(float(amount) if what in ('polls', 'waits') else int(amount))
    def around(self, name, what, amount): self.do(name, what, amount, 'around')
    def prepare(self): work.parse(20); work.naps(5)
"""

FEATURE = """Feature: f
  Background:
    Given a prepared place
  Scenario: t01 digests
    When 01 does digest 1800
  Scenario: t02 polls
    When 02 does polls 0.2
    Then 02 does parse 15
  Scenario: t03 tiny
    When 03 does digest 10
  Scenario: t04 pipeline
    When 04 does pipeline 60
  Scenario: t05 breaks
    When 05 does parse 60
    Then it fails
  Scenario Outline: <case> sizes
    When <name> does digest <times>
    Examples:
      | case | name | times |
      | t06a | 06a  | 200   |
      | t06b | 06b  | 1300  |
  Scenario: t07 many
    When 07 does naps 6
    And 07 does threads 500
    And 07 does naps 6
"""

BEHAVE_STEPS = """
import os, sys; sys.path.insert(0, os.getcwd())
import behave
from behave import given, when
import work
@given('a prepared place')
def prepared(context):
    with work.true(context.scenario.name[1:].split()[0], 'around'): work.digest(150)
@when('{name} does {what} {amount:f}')
@when('{name} does {what} {amount:d}')
def does(context, name, what, amount):
    with work.true(name): getattr(work, what)(amount)
@behave.then('{name} does {what} {amount:d}')
def also(context, name, what, amount): does(context, name, what, amount)
@behave.then('it fails')
def fails(context): assert 1 == 2
"""

JS = """
const { createHash, pbkdf2 } = require('crypto');
const { spawnSync, exec } = require('child_process');
const { appendFileSync } = require('fs');
let children = 0;
const used = () => { const u = process.cpuUsage(); return (u.user + u.system) / 1e3 + children; };
const note = (name, phase, wall, cpu) => appendFileSync(process.env.TRUTH, `${name} ${phase} ${wall.toFixed(3)} ${cpu.toFixed(3)} ${(performance.timeOrigin + performance.now()).toFixed(3)}\\n`);
const truly = (name, run, phase = 'body') => async () => {
  const began = performance.now(), before = used();
  try { await run(); } finally { note(name, phase, performance.now() - began, used() - before); }
};
const BLOCK = Buffer.alloc(65536), TEXT = JSON.stringify(Array.from({ length: 3000 }, (_, n) => ({ key: n, text: 'x'.repeat(20) })));
const digest = (times) => { const sums = createHash('sha256'); for (let n = 0; n < times; n++) sums.update(BLOCK); return sums.digest('hex'); };
const parse = (times) => { for (let n = 0; n < times; n++) JSON.parse(TEXT); };
const timer = (ms) => new Promise((done) => setTimeout(done, ms));
const blocks = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
// The last line of `times` has the CPU time of the shell's children, the one before that of the shell.
const cost = (said) => said.trim().split(/\\s+/).reduce((sum, one) => sum + one.split('m').reduce((m, s) => m * 60 + parseFloat(s)) * 1e3, 0);
const COMMAND = (megabytes) => `bash -c 'head -c ${megabytes}000000 /dev/zero | sha256sum > /dev/null; times'`;
const pipeline = (megabytes) => { children += cost(spawnSync('sh', ['-c', 'exec ' + COMMAND(megabytes)]).stdout.toString()); };
const pipelineLater = (megabytes) => new Promise((done) => exec('exec ' + COMMAND(megabytes), (error, said) => { children += cost(said); done(); }));
const derive = (times) => new Promise((done) => pbkdf2('a', 'b', times, 64, 'sha512', done));
"""

JS_PLAIN = """
it('t01 digests', truly('01', () => digest(1900)));
it('t02 waits on a timer', truly('02', () => timer(220)));
it('t03 tiny', truly('03', () => digest(10)));
it('t04 pipeline', truly('04', () => pipeline(60)));
it('t05 parses', truly('05', () => parse(60)));
it('t06 pipeline later', truly('06', () => pipelineLater(50)));
it('t07 breaks', truly('07', () => { digest(300); throw new Error('x'); }));
it('t08 naps', truly('08', async () => { for (let n = 0; n < 12; n++) await timer(14); }));
it('t09 blocks', truly('09', () => { blocks(180); }));
it('t10 derives', truly('10', () => derive(150000)));
it('t11 tiny', truly('11', () => timer(3)));
"""

JS_NESTED = """
describe('outer', () => {
  let now = '12';
  beforeEach(() => truly(now, () => digest(400), 'around')());
  afterEach(() => truly(now, () => timer(25), 'around')());
  it('t12 inside', truly('12', () => { now = '13'; digest(350); }));
  describe('inner', () => {
    it('t13 sleeps', truly('13', async () => { now = '14'; await timer(200); }));
    it('t14 both', truly('14', async () => { parse(20); await timer(60); digest(400); }));
  });
});
for (const [name, times] of [['15a', 150], ['15b', 1100]]) it(`t${name} sizes`, truly(name, () => digest(times)));
"""

# The set-up of a test needs its name, which is known when the one before it ended.
JS_NESTED = JS_NESTED.replace("{ now = '13'; digest(350); }", "digest(350)").replace(
    "async () => { now = '14'; await timer(200); }", "() => timer(200)"
)
JS_NESTED = JS_NESTED.replace(
    "truly(now, () => timer(25), 'around')()",
    "truly(now, () => timer(25), 'around')().then(() => { now = String(Number(now) + 1); })",
)

JS_TESTS = "describe('s', () => {" + JS_PLAIN + JS_NESTED + "});"

JS_SECOND = """describe('second', () => {
it('t21 digests', truly('21', () => digest(1500)));
it('t22 timer', truly('22', () => timer(150)));
it('t23 pipeline', truly('23', () => pipeline(40)));
it('t24 tiny', truly('24', () => parse(1)));
it('t25 breaks', truly('25', async () => { await timer(90); throw new Error('x'); }));
it('t26 parses', truly('26', () => parse(70)));
});"""

NODE = "const { it, describe, beforeEach, afterEach } = require('node:test');"
VITEST = "import { it, describe, beforeEach, afterEach } from 'vitest'; import { createRequire } from 'module'; const require = createRequire(import.meta.url);"
PLAYWRIGHT = (
    "const { test } = require('@playwright/test'); const it = (name, run) => test(name, async () => { await run(); });"
    "const describe = test.describe, beforeEach = (run) => test.beforeEach(async () => { await run(); }), afterEach = (run) => test.afterEach(async () => { await run(); });"
)
DENO = (
    "import { createRequire } from 'node:module'; import process from 'node:process'; import { Buffer } from 'node:buffer';"
    "const require = createRequire(import.meta.url); const it = (name, run) => Deno.test(name, async () => { await run(); });"
)
RETRY = """
let tries = 0;
it('t31 digests', truly('31', () => digest(900)));
it('t32 flaky', truly('32', async () => { digest(500); await timer(40); if (++tries < 3) throw new Error('x'); }));
it('t33 sleeps', truly('33', () => timer(250)));
it('t34 parses', truly('34', () => parse(70)));
"""
PACKAGE = '{"name": "x", "private": true}'

C = r"""
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static double used(void) {
  double sum = 0;
  int of[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
  for (int n = 0; n < 2; n++) {
    struct rusage u;
    getrusage((__rusage_who)of[n], &u);
    sum += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
  }
  return sum;
}
static double clocked(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
static double began, before;
static void start(void) { began = clocked(); before = used(); }
static void note(const char* name, const char* phase) {
  double wall = clocked() - began, cpu = used() - before;
  FILE* out = fopen(getenv("TRUTH"), "a");
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  fprintf(out, "%s %s %.3f %.3f %.3f\n", name, phase, wall, cpu, t.tv_sec * 1e3 + t.tv_nsec / 1e6);
  fclose(out);
}
static volatile unsigned long result;
static void digest(int times) {
  static unsigned char block[65536];
  unsigned long hash = 14695981039346656037UL;
  for (int n = 0; n < times; n++) for (int i = 0; i < 65536; i++) hash = (hash ^ block[i]) * 1099511628211UL;
  result = hash;
}
static void parse(int times) {
  for (int n = 0; n < times; n++) { char text[32]; snprintf(text, sizeof text, "%d.%d", n, n * 7); result += (unsigned long)strtod(text, 0); }
}
static void* thread(void* times) { digest(*(int*)times); return 0; }
static void threads(int times) {
  pthread_t both[2];
  for (int n = 0; n < 2; n++) pthread_create(&both[n], 0, thread, &times);
  for (int n = 0; n < 2; n++) pthread_join(both[n], 0);
}
static void polls(int ms) { poll(0, 0, ms); }
static void naps(int times) { for (int n = 0; n < times; n++) usleep(12000); }
static void pipeline(int megabytes) {
  char text[99];
  snprintf(text, sizeof text, "head -c %d000000 /dev/zero | sha256sum > /dev/null", megabytes);
  if (system(text)) abort();
}
#define DO(name, what) do { start(); what; note(name, "body"); } while (0)
#define AROUND(name, what) do { start(); what; note(name, "around"); } while (0)
"""

# Its name, its work, and whether it fails then.
C_TESTS = [
    ("t01", "digests", "digest(3000)", False),
    ("t02", "polls", "polls(220)", False),
    ("t03", "tiny", "digest(20)", False),
    ("t04", "pipeline", "pipeline(60)", False),
    ("t05", "parses", "parse(500000)", False),
    ("t06", "threads", "threads(1200)", False),
    ("t07", "breaks", "digest(700)", True),
    ("t08", "naps", "naps(15)", False),
    ("t09", "tiny", "parse(8000)", False),
    ("t10", "both", "digest(500); polls(90); parse(200000)", False),
    ("t11", "sleeps_and_breaks", "naps(10)", True),
    ("t12", "digests", "digest(1000)", False),
]


def c_tests(form, failing, tests=None, ok=""):
    return "".join(
        form.format(id=name, name=f"{name}_{title}", body=f'DO("{name[1:]}", {work});', end=failing if fails else ok)
        for name, title, work, fails in tests or C_TESTS
    )


CPP = C.replace("(__rusage_who)", "(__rusage_who_t)")

GTEST = (
    "#include <gtest/gtest.h>\n"
    + CPP
    + c_tests("TEST(Plain, {name}) {{ {body} {end} }}\n", "FAIL();")
    + """
class Fixture : public testing::Test { protected:
  static void SetUpTestSuite() { naps(6); digest(400); }
  void SetUp() override { AROUND(name().c_str(), digest(500)); }
  void TearDown() override { AROUND(name().c_str(), naps(3)); }
  std::string name() { return std::string(testing::UnitTest::GetInstance()->current_test_info()->name()).substr(1, 2); }
};
TEST_F(Fixture, t20_inside) { DO("20", digest(700)); }
TEST_F(Fixture, t21_polls) { DO("21", polls(150)); }
class Sizes : public testing::TestWithParam<int> {};
TEST_P(Sizes, digests) { DO((GetParam() == 300 ? "22a" : "22b"), digest(GetParam())); }
INSTANTIATE_TEST_SUITE_P(All, Sizes, testing::Values(300, 1500), [](const testing::TestParamInfo<int>& of) { return of.param == 300 ? "t22a" : "t22b"; });
"""
)

CATCH = (
    "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n"
    + CPP
    + c_tests('TEST_CASE("{name}") {{ {body} {end} }}\n', "REQUIRE(1 == 2);", ok="CHECK(true);")
    + """
TEST_CASE("sections") {
  digest(200);
  SECTION("t20 first") { DO("20", digest(900)); CHECK(true); }
  SECTION("t21 second") { DO("21", polls(150)); CHECK(true); }
}
"""
)

DOCTEST = (
    "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n"
    + CPP
    + c_tests('TEST_CASE("{name}") {{ {body} {end} }}\n', "REQUIRE(1 == 2);", ok="CHECK(true);")
    + 'TEST_SUITE("other") { TEST_CASE("t20 first") { DO("20", digest(900)); } TEST_CASE("t21 second") { DO("21", polls(150)); } }\n'
)

BOOST = (
    "#define BOOST_TEST_MODULE x\n#include <boost/test/included/unit_test.hpp>\n"
    + CPP
    + c_tests("BOOST_AUTO_TEST_CASE({name}) {{ {body} {end} }}\n", "BOOST_REQUIRE(1 == 2);", ok="BOOST_CHECK(true);")
    + """
struct Prepared { Prepared() { digest(300); } ~Prepared() { naps(3); } };
BOOST_FIXTURE_TEST_SUITE(fixture, Prepared)
BOOST_AUTO_TEST_CASE(t20_inside) { DO("20", digest(900)); BOOST_CHECK(true); }
BOOST_AUTO_TEST_SUITE(nested)
BOOST_AUTO_TEST_CASE(t21_polls) { DO("21", polls(150)); BOOST_CHECK(true); }
BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE_END()
"""
)

CPPUTEST = (
    CPP
    + "#include <CppUTest/TestHarness.h>\n#include <CppUTest/CommandLineTestRunner.h>\n"
    + "TEST_GROUP(Fixture) { void setup() { digest(400); } void teardown() { naps(3); } };\n"
    + 'TEST(Fixture, t20_inside) { DO("20", digest(900)); }\nTEST(Fixture, t21_polls) { DO("21", polls(150)); }\n'
    + "TEST_GROUP(Plain) {};\n"
    + c_tests("TEST(Plain, {name}) {{ {body} {end} }}\n", 'FAIL("x");')
    + "int main(int n, char** a) { return CommandLineTestRunner::RunAllTests(n, a); }\n"
)

PLAIN_C = C.replace("(__rusage_who)", "")

CMOCKA = (
    "#define _GNU_SOURCE\n#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n"
    + PLAIN_C
    + c_tests("static void {name}(void** s) {{ {body} {end} }}\n", "fail();")
    + "static int up(void** s) { digest(500); return 0; }\nstatic int down(void** s) { naps(3); return 0; }\n"
    + 'static void t20_inside(void** s) { DO("20", digest(900)); }\n'
    + "int main(void) { const struct CMUnitTest all[] = {"
    + "".join(f"cmocka_unit_test({name}_{title}), " for name, title, _, _ in C_TESTS)
    + "cmocka_unit_test_setup_teardown(t20_inside, up, down)};\n"
    + 'cmocka_set_message_output(CM_OUTPUT_XML); return cmocka_run_group_tests_name("S", all, 0, 0); }\n'
)

CRITERION = (
    "#define _GNU_SOURCE\n#include <criterion/criterion.h>\n"
    + PLAIN_C
    + c_tests("Test(plain, {name}) {{ {body} {end} }}\n", "cr_assert(0);")
)

QTEST = (
    "#include <QtTest/QtTest>\n"
    + CPP
    + "class Plain : public QObject { Q_OBJECT\nprivate slots:\n"
    + c_tests("  void {name}() {{ {body} {end} }}\n", "QVERIFY(false);")
    + '  void t20_waits() { DO("20", QTest::qWait(150)); }\n};\nQTEST_GUILESS_MAIN(Plain)\n#include "t.moc"\n'
)

GO = """package x
import ("crypto/sha256"; "encoding/json"; "fmt"; "os"; "os/exec"; "strings"; "sync"; "syscall"; "testing"; "time")
func used() float64 {
  sum := int64(0)
  for _, of := range []int{0, -1} { var u syscall.Rusage; syscall.Getrusage(of, &u); sum += u.Utime.Nano() + u.Stime.Nano() }
  return float64(sum) / 1e6
}
func truly(name string, run func()) {
  began, before := time.Now(), used()
  defer func() {
    out, _ := os.OpenFile(os.Getenv("TRUTH"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0644)
    fmt.Fprintf(out, "%s body %.3f %.3f %.3f\\n", name, float64(time.Since(began))/1e6, used()-before, float64(time.Now().UnixMicro())/1e3)
    out.Close()
  }()
  run()
}
var block = make([]byte, 65536)
var text = "[" + strings.Repeat(`{"key": 1, "text": "xxxxxxxxxxxxxxxxxxxx"},`, 3000) + "1]"
func digest(times int) { sums := sha256.New(); for n := 0; n < times; n++ { sums.Write(block) }; sums.Sum(nil) }
func parse(times int) { for n := 0; n < times; n++ { var into interface{}; json.Unmarshal([]byte(text), &into) } }
func pipeline(megabytes int) { exec.Command("sh", "-c", fmt.Sprintf("head -c %d000000 /dev/zero | sha256sum > /dev/null", megabytes)).Run() }
func TestMain(m *testing.M) { digest(300); os.Exit(m.Run()) }
func TestT01_digests(t *testing.T) { truly("01", func() { digest(1900) }) }
func TestT02_sleeps(t *testing.T) { truly("02", func() { time.Sleep(220 * time.Millisecond) }) }
func TestT03_tiny(t *testing.T) { truly("03", func() { digest(10) }) }
func TestT04_pipeline(t *testing.T) { truly("04", func() { pipeline(60) }) }
func TestT05_parses(t *testing.T) { truly("05", func() { parse(8) }) }
func TestT06_routines(t *testing.T) {
  truly("06", func() { var all sync.WaitGroup; for n := 0; n < 4; n++ { all.Add(1); go func() { digest(400); all.Done() }() }; all.Wait() })
}
func TestT07_breaks(t *testing.T) { truly("07", func() { digest(400) }); t.Fatal("x") }
func TestT08_naps(t *testing.T) { truly("08", func() { for n := 0; n < 12; n++ { time.Sleep(14 * time.Millisecond) } }) }
func TestSizes(t *testing.T) {
  for _, one := range []struct { name string; times int }{{"09a", 200}, {"09b", 1300}} {
    t.Run("t"+one.name, func(t *testing.T) { truly(one.name, func() { digest(one.times) }) })
  }
  t.Run("t09c", func(t *testing.T) { truly("09c", func() { time.Sleep(120 * time.Millisecond) }) })
}
func TestT10_selects(t *testing.T) { truly("10", func() { select { case <-time.After(150 * time.Millisecond): } }) }
func TestT11_skipped(t *testing.T) { t.Skip("not here") }
func TestT12_parses(t *testing.T) { truly("12", func() { parse(12) }) }
"""

RUBY = """
require 'digest'
require 'json'
def used; t = Process.times; (t.cutime + t.cstime) * 1e3 + Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) * 1e3; end
def truly(name, phase = 'body')
  began, before = Process.clock_gettime(Process::CLOCK_MONOTONIC), used
  yield
ensure
  wall = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1e3
  File.write(ENV['TRUTH'], format("%s %s %.3f %.3f %.3f\\n", name, phase, wall, used - before, Time.now.to_f * 1e3), mode: 'a')
end
BLOCK, TEXT = "\\0" * 65536, JSON.generate((0...3000).map { |n| { key: n, text: 'x' * 20 } })
def digest(times); sums = Digest::SHA256.new; times.times { sums << BLOCK }; sums.hexdigest; end
def parse(times); times.times { JSON.parse(TEXT) }; end
def pipeline(megabytes); system("head -c #{megabytes}000000 /dev/zero | sha256sum > /dev/null"); end
def popen; IO.popen(['perl', '-e', 'my $n = 0; $n += $_ * 7 % 13 for 1 .. 1500000; print $n']) { |of| of.read }; end
def polls(s); IO.select(nil, nil, nil, s); end
def naps(times); times.times { sleep 0.012 }; end
def threads(times); [1, 2].map { Thread.new { digest(times) } }.each(&:join); end
"""

RSPEC = (
    RUBY
    + """
describe 'plain' do
  it('t01 digests') { truly('01') { digest(1200) } }
  it('t02 polls') { truly('02') { polls(0.22) } }
  it('t03 tiny') { truly('03') { digest(8) } }
  it('t04 pipeline') { truly('04') { pipeline(60) } }
  it('t05 parses') { truly('05') { parse(50) } }
  it('t06 threads') { truly('06') { threads(400) } }
  it('t07 breaks') { truly('07') { digest(300); expect(1).to eq 2 } }
  it('t08 naps') { truly('08') { naps(15) } }
  it('t09 reads') { truly('09') { popen } }
  context 'nested' do
    before(:all) { parse(15); naps(4) }
    before { |test| truly(test.description[1, 2], 'around') { digest(400) } }
    after { |test| truly(test.description[1, 2], 'around') { naps(3) } }
    it('t10 inside') { truly('10') { digest(350) } }
    it('t11 sleeps') { truly('11') { sleep 0.2 } }
    context 'deeper' do
      it('t12 raises') { truly('12') { parse(20); raise KeyError, 'x' } }
      it('t13 waits', skip: 'not here') { }
    end
  end
  { 'a' => 100, 'b' => 900 }.each { |name, times| it("t14#{name} sizes") { truly("14#{name}") { digest(times) } } }
end
"""
)

MINITEST = (
    """require 'minitest/autorun'
require 'minitest/reporters'
Minitest::Reporters.use! Minitest::Reporters::JUnitReporter.new('reports')
"""
    + RUBY
    + """
class Plain < Minitest::Test
  def test_t01_digests; truly('01') { digest(1200) }; end
  def test_t02_polls; truly('02') { polls(0.22) }; end
  def test_t03_tiny; truly('03') { digest(8) }; end
  def test_t04_pipeline; truly('04') { pipeline(60) }; end
  def test_t05_parses; truly('05') { parse(50) }; end
  def test_t06_threads; truly('06') { threads(400) }; end
  def test_t07_breaks; truly('07') { digest(300); assert_equal 1, 2 }; end
  def test_t08_naps; truly('08') { naps(15) }; end
end
class Fixture < Minitest::Test
  def setup; truly(name[6, 2], 'around') { digest(400) }; end
  def teardown; truly(name[6, 2], 'around') { naps(3) }; end
  def test_t10_inside; truly('10') { digest(350) }; end
  def test_t11_sleeps; truly('11') { sleep 0.2 }; end
  def test_t12_raises; truly('12') { popen; raise KeyError, 'x' }; end
end
"""
)

PHPUNIT = """<?php
function used() {
  $sum = 0;
  foreach ([0, 1] as $of) { $u = getrusage($of); $sum += ($u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec']) * 1e3 + ($u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec']) / 1e3; }
  return $sum;
}
function truly($name, $run, $phase = 'body') {
  [$began, $before] = [hrtime(true), used()];
  try { $run(); } finally {
    file_put_contents(getenv('TRUTH'), sprintf("%s %s %.3f %.3f %.3f\\n", $name, $phase, (hrtime(true) - $began) / 1e6, used() - $before, microtime(true) * 1e3), FILE_APPEND);
  }
}
function digest($times) { $sums = hash_init('sha256'); $block = str_repeat("\\0", 65536); for ($n = 0; $n < $times; $n++) hash_update($sums, $block); return hash_final($sums); }
function parse($times) { $text = json_encode(array_fill(0, 3000, ['key' => 1, 'text' => 'xxxxxxxxxxxxxxxxxxxx'])); for ($n = 0; $n < $times; $n++) json_decode($text); }
function pipeline($megabytes) { shell_exec("head -c {$megabytes}000000 /dev/zero | sha256sum"); }
function naps($times) { for ($n = 0; $n < $times; $n++) usleep(12000); }
class PlainTest extends PHPUnit\\Framework\\TestCase {
  function test_t01_digests() { truly('01', fn() => digest(1000)); $this->assertTrue(true); }
  function test_t02_sleeps() { truly('02', fn() => time_nanosleep(0, 220000000)); $this->assertTrue(true); }
  function test_t03_tiny() { truly('03', fn() => digest(6)); $this->assertTrue(true); }
  function test_t04_pipeline() { truly('04', fn() => pipeline(60)); $this->assertTrue(true); }
  function test_t05_parses() { truly('05', fn() => parse(60)); $this->assertTrue(true); }
  function test_t06_breaks() { truly('06', fn() => digest(250)); $this->assertTrue(false); }
  function test_t07_naps() { truly('07', fn() => naps(15)); $this->assertTrue(true); }
  function test_t08_opens() {
    truly('08', function() { $p = proc_open(['perl', '-e', 'my $n = 0; $n += $_ * 7 % 13 for 1 .. 1500000'], [], $pipes); proc_close($p); }); $this->assertTrue(true);
  }
  /** @dataProvider sizes */
  function test_sizes($name, $times) { truly($name, fn() => digest($times)); $this->assertTrue(true); }
  static function sizes() { return ['t09a' => ['09a', 100], 't09b' => ['09b', 700]]; }
}
class FixtureTest extends PHPUnit\\Framework\\TestCase {
  static function setUpBeforeClass(): void { parse(20); naps(4); }
  function setUp(): void { truly(substr($this->getName(), 6, 2), fn() => digest(300), 'around'); }
  function tearDown(): void { truly(substr($this->getName(), 6, 2), fn() => naps(3), 'around'); }
  function test_t10_inside() { truly('10', fn() => digest(300)); $this->assertTrue(true); }
  function test_t11_sleeps() { truly('11', fn() => usleep(200000)); $this->assertTrue(true); }
  function test_t12_raises() { truly('12', fn() => parse(30)); throw new Exception('x'); }
  function test_t13_skipped() { $this->markTestSkipped('not here'); }
}
"""
PHPUNIT_FILES = {
    "tests/PlainTest.php": PHPUNIT.split("class FixtureTest")[0],
    "tests/FixtureTest.php": "<?php\nclass FixtureTest" + PHPUNIT.split("class FixtureTest")[1],
}

BUSTED = """
local function children()
  local from = io.open('/proc/self/stat'):read('a'):gsub('^.*%) ', '')
  local words = {}
  for word in from:gmatch('%S+') do words[#words + 1] = word end
  return (words[14] + words[15]) * 10
end
local clock = require('system').monotime
local function truly(name, run, phase)
  local began, before = clock(), os.clock() * 1e3 + children()
  local ok, failed = pcall(run)
  local out = io.open(os.getenv('TRUTH'), 'a')
  out:write(string.format('%s %s %.3f %.3f %.3f\\n', name, phase or 'body', (clock() - began) * 1e3, os.clock() * 1e3 + children() - before, require('system').gettime() * 1e3)):close()
  if not ok then error(failed) end
end
local function digest(times) local hash = 7; for n = 1, times * 10000 do hash = (hash * 31 + n) % 4294967291 end return hash end
local function parse(times) local text = ('key=value;'):rep(3000); for n = 1, times do for k, v in text:gmatch('(%w+)=(%w+);') do end end end
local function pipeline(megabytes) os.execute('head -c ' .. megabytes .. '000000 /dev/zero | sha256sum > /dev/null') end
local sleep = require('system').sleep
describe('plain', function()
  it('t01 digests', function() truly('01', function() digest(900) end) end)
  it('t02 sleeps', function() truly('02', function() sleep(0.22) end) end)
  it('t03 tiny', function() truly('03', function() digest(5) end) end)
  it('t04 pipeline', function() truly('04', function() pipeline(60) end) end)
  it('t05 parses', function() truly('05', function() parse(100) end) end)
  it('t06 breaks', function() truly('06', function() digest(300); error('x') end) end)
  it('t07 naps', function() truly('07', function() for n = 1, 12 do sleep(0.014) end end) end)
  describe('nested', function()
    local now = 8
    before_each(function() truly(string.format('%02d', now), function() digest(200) end, 'around') end)
    after_each(function() truly(string.format('%02d', now), function() sleep(0.03) end, 'around'); now = now + 1 end)
    it('t08 inside', function() truly('08', function() digest(400) end) end)
    it('t09 sleeps', function() truly('09', function() sleep(0.2) end) end)
  end)
  pending('t10 not here')
  it('t11 tiny', function() truly('11', function() sleep(0.004) end) end)
end)
"""

JAVA = """
import java.io.*;
import java.nio.file.*;
import java.security.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
class Work {
  interface Run { void run() throws Exception; }
  static double children() throws IOException {
    String[] words = Files.readString(Path.of("/proc/self/stat")).replaceFirst("(?s)^.*\\\\) ", "").split(" ");
    return (Long.parseLong(words[13]) + Long.parseLong(words[14])) * 10;
  }
  static double used() throws IOException {
    var bean = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    return bean.getProcessCpuTime() / 1e6 + children();
  }
  static void truly(String name, Run run) throws Exception { truly(name, "body", run); }
  static void truly(String name, String phase, Run run) throws Exception {
    double before = used();
    long began = System.nanoTime();
    try { run.run(); } finally {
      String line = String.format("%s %s %.3f %.3f %d\\n", name, phase, (System.nanoTime() - began) / 1e6, used() - before, System.currentTimeMillis());
      Files.writeString(Path.of(System.getenv("TRUTH")), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
  }
  static void digest(int times) throws Exception {
    MessageDigest sums = MessageDigest.getInstance("SHA-256");
    byte[] block = new byte[65536];
    for (int n = 0; n < times; n++) sums.update(block);
    sums.digest();
  }
  static long parse(int times) {
    String text = "12.5,".repeat(3000);
    long sum = 0;
    for (int n = 0; n < times; n++) for (String word : text.split(",")) sum += (long) Double.parseDouble(word);
    return sum;
  }
  static void pipeline(int megabytes) throws Exception {
    new ProcessBuilder("sh", "-c", "head -c " + megabytes + "000000 /dev/zero | sha256sum > /dev/null").start().waitFor();
  }
  static void parks(int ms) {
    long until = System.nanoTime() + ms * 1000000L;
    for (long left; (left = until - System.nanoTime()) > 0; ) LockSupport.parkNanos(left);
  }
  static void naps(int times) throws Exception { for (int n = 0; n < times; n++) Thread.sleep(12); }
  static void threads(int times) throws Exception {
    Thread[] both = new Thread[2];
    for (int n = 0; n < 2; n++) { both[n] = new Thread(() -> { try { digest(times); } catch (Exception e) { } }); both[n].start(); }
    for (Thread one : both) one.join();
  }
}
"""

JUNIT5 = """
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.*;
import org.junit.jupiter.params.provider.*;
public class XTest {
  @Test void t01_digests() throws Exception { Work.truly("01", () -> Work.digest(1500)); }
  @Test void t02_parks() throws Exception { Work.truly("02", () -> Work.parks(220)); }
  @Test void t03_tiny() throws Exception { Work.truly("03", () -> Work.digest(10)); }
  @Test void t04_pipeline() throws Exception { Work.truly("04", () -> Work.pipeline(60)); }
  @Test void t05_parses() throws Exception { Work.truly("05", () -> Work.parse(400)); }
  @Test void t06_threads() throws Exception { Work.truly("06", () -> Work.threads(600)); }
  @Test void t07_breaks() throws Exception { Work.truly("07", () -> Work.digest(300)); Assertions.fail("x"); }
  @Test void t08_naps() throws Exception { Work.truly("08", () -> Work.naps(15)); }
  @ParameterizedTest(name = "t{0}") @CsvSource({"09a, 150", "09b, 1100"})
  void sizes(String name, int times) throws Exception { Work.truly(name, () -> Work.digest(times)); }
  @Nested class Inner {
    @BeforeEach void before(TestInfo of) throws Exception { Work.truly(of.getDisplayName().substring(1, 3), "around", () -> Work.digest(300)); }
    @Test void t10_inside() throws Exception { Work.truly("10", () -> Work.digest(400)); }
    @Test void t11_sleeps() throws Exception { Work.truly("11", () -> Work.parks(200)); }
  }
}
"""

JUNIT4 = """
import org.junit.*;
public class NAMETest {
  @Before public void before() throws Exception { Work.digest(100); }
  @Test public void t01_digests() throws Exception { Work.truly("01", () -> Work.digest(1500)); }
  @Test public void t02_parks() throws Exception { Work.truly("02", () -> Work.parks(220)); }
  @Test public void t03_tiny() throws Exception { Work.truly("03", () -> Work.digest(10)); }
  @Test public void t04_pipeline() throws Exception { Work.truly("04", () -> Work.pipeline(60)); }
  @Test public void t05_parses() throws Exception { Work.truly("05", () -> Work.parse(400)); }
  @Test public void t06_threads() throws Exception { Work.truly("06", () -> Work.threads(600)); }
  @Test public void t07_breaks() throws Exception { Work.truly("07", () -> Work.digest(300)); Assert.fail("x"); }
  @Test public void t08_naps() throws Exception { Work.truly("08", () -> Work.naps(15)); }
}
"""
SUREFIRE = {
    "PlainTest.java": JUNIT4.replace("NAME", "Plain").replace(
        "  @Before public void before() throws Exception { Work.digest(100); }\n", ""
    ),
    "OtherTest.java": """
import org.junit.*;
public class OtherTest {
  @Before public void before() throws Exception { Work.digest(200); }
  @Test public void t21_digests() throws Exception { Work.truly("21", () -> Work.digest(900)); }
  @Test public void t22_parks() throws Exception { Work.truly("22", () -> Work.parks(200)); }
  @Test public void t23_raises() throws Exception { Work.truly("23", () -> Work.parse(200)); throw new IllegalStateException("x"); }
  @Ignore @Test public void t24_skipped() { }
}
""",
    "Work.java": JAVA,
    "pom.xml": """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version></dependency></dependencies>
</project>
""",
}

# The CPU time of a shell and its children when it ends, which is that of its test.
BASH = """#!/bin/bash
began=$EPOCHREALTIME
finish() {
  local spent; spent=$(mktemp); times > "$spent"
  awk -v name=NAME -v began=$began -v ended=$EPOCHREALTIME '{ for (n = 1; n <= 2; n++) { split($n, part, "m"); sum += part[1] * 60 + part[2] } }
    END { printf "%s body %.3f %.3f %.3f\\n", name, (ended - began) * 1e3, sum * 1e3, ended * 1e3 }' "$spent" >> "$TRUTH"
}
trap finish EXIT
"""
SCRIPTS = {
    "t01_hashes.sh": "head -c 120000000 /dev/zero | sha256sum > /dev/null",
    "t02_sleeps.sh": "sleep 0.22",
    "t03_tiny.sh": ":",
    "t04_loops.sh": "for ((n = 0; n < 60000; n++)); do :; done",
    "t05_sorts.sh": "seq 1 150000 | sort -R | sort -n | tail -1 > /dev/null",
    "t06_breaks.sh": "perl -e 'my $n = 0; $n += $_ % 7 for 1 .. 2000000'; exit 3",
    "t07_reads.sh": "read -t 0.18 line < <(sleep 0.3)",
    "t08_background.sh": "(head -c 50000000 /dev/zero | md5sum > /dev/null) & head -c 50000000 /dev/zero | sha1sum > /dev/null; wait",
    "t09_compresses.sh": "seq 1 90000 | gzip -9 > /dev/null",
    "t10_python.sh": "python3 -S -c 'import hashlib; [hashlib.sha256(bytes(65536)).digest() for n in range(900)]'; sleep 0.05",
}
SCRIPTS = {name: BASH.replace("NAME", name[1:3]) + body + "\n" for name, body in SCRIPTS.items()}
NAMES = [name.removesuffix(".sh") for name in SCRIPTS]

BATS = """
setup_file() { sleep 0.05; head -c 10000000 /dev/zero | sha256sum > /dev/null; }
spent() { times | awk '{ for (n = 1; n <= 2; n++) { split($n, part, "m"); sum += part[1] * 60 + part[2] } } END { print sum * 1e3 }'; }
setup() { times > "$BATS_TEST_TMPDIR/before"; began=$EPOCHREALTIME; head -c 8000000 /dev/zero | md5sum > /dev/null; }
teardown() {
  times > "$BATS_TEST_TMPDIR/after"
  cat "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after" | awk -v name="${BATS_TEST_DESCRIPTION:1:2}" -v began=$began -v ended=$EPOCHREALTIME '
    { for (n = 1; n <= 2; n++) { split($n, part, "m"); sum += (NR <= 2 ? -1 : 1) * (part[1] * 60 + part[2]) } }
    END { printf "%s body %.3f %.3f %.3f\\n", name, (ended - began) * 1e3, sum * 1e3, ended * 1e3 }' >> "$TRUTH"
}
@test "t01 hashes" { head -c 120000000 /dev/zero | sha256sum; }
@test "t02 sleeps" { sleep 0.22; }
@test "t03 tiny" { :; }
@test "t04 sorts" { run bash -c 'seq 1 150000 | sort -R | tail -1'; [ "$status" -eq 0 ]; }
@test "t05 breaks" { perl -e 'my $n = 0; $n += $_ % 7 for 1 .. 2000000'; false; }
@test "t06 loops" { for ((n = 0; n < 3000; n++)); do :; done; }
@test "t07 skipped" { skip "not here"; }
@test "t08 compresses" { seq 1 90000 | gzip -9 > /dev/null; sleep 0.05; }
"""

PERL = """#!/usr/bin/perl
use strict; use warnings; use Digest::SHA; use Time::HiRes qw(time sleep usleep clock_gettime CLOCK_PROCESS_CPUTIME_ID); use Test::More;
$| = 1;
my $block = "\\0" x 65536;
sub used { my @t = times; ($t[2] + $t[3]) * 1e3 + clock_gettime(CLOCK_PROCESS_CPUTIME_ID) * 1e3 }
my ($began, $before) = (time, 0);
sub note_down { my $name = shift; open(my $out, '>>', $ENV{TRUTH}); printf $out "%s body %.3f %.3f %.3f\\n", $name, (time - $began) * 1e3, used() - $before, time * 1e3; close $out; ($began, $before) = (time, used()) }
sub digest { my $sums = Digest::SHA->new(256); $sums->add($block) for 1 .. shift; $sums->hexdigest }
"""
PROVE = {
    "t/a.t": PERL
    + "digest(800); note_down('01'); ok 1, 't01 digests'; sleep .22; note_down('02'); ok 1, 't02 sleeps'; digest(300); note_down('03'); ok 0, 't03 breaks';\ndone_testing;\n",
    "t/b.t": PERL
    + "select undef, undef, undef, .15; note_down('04'); ok 1, 't04 selects';\nsystem('head -c 60000000 /dev/zero | sha256sum > /dev/null'); note_down('05'); ok 1, 't05 pipeline';\nnote_down('06'); ok 1, 't06 tiny';\ndone_testing;\n",
    "t/c.t": PERL
    + "my $n = 0; for my $i (1 .. 2000000) { $n += $i % 7 } note_down('07'); ok 1, 't07 loops';\ndone_testing;\n",
    "t/d.t": PERL
    + "subtest 'x' => sub { usleep 90000; digest(200); ok 1, 'inner' }; note_down('08'); ok 1, 't08 after a subtest';\ndone_testing;\n",
}

MESON = {
    "meson.build": "project('x')\n" + "".join(f"test('{name}', find_program('{name}.sh'))\n" for name in NAMES),
    **SCRIPTS,
}
CTEST = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(x NONE)\nenable_testing()\n"
    + "".join(f"add_test(NAME {name} COMMAND bash ${{CMAKE_SOURCE_DIR}}/{name}.sh)\n" for name in NAMES),
    **SCRIPTS,
}
CTEST_GTEST = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(x CXX)\nenable_testing()\nfind_package(GTest REQUIRED)\n"
    + "add_executable(t t.cc)\ntarget_link_libraries(t GTest::gtest_main)\ninclude(GoogleTest)\ngtest_discover_tests(t)\n",
    "t.cc": GTEST,
}

NEXTEST = {
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[workspace]\n',
    ".config/nextest.toml": '[profile.default.junit]\npath = "out.xml"\n',
    "lib.rs": r"""#![allow(dead_code)]
use std::{hash::{Hash, Hasher}, process::Command, sync::{Condvar, Mutex}, thread, time::{Duration, Instant}};
extern "C" { fn getrusage(who: i32, usage: *mut [i64; 18]) -> i32; }
fn used() -> f64 {
    [0, -1].iter().map(|who| { let mut u = [0i64; 18]; unsafe { getrusage(*who, &mut u) }; (u[0] + u[2]) as f64 * 1e3 + (u[1] + u[3]) as f64 / 1e3 }).sum()
}
// The process of a test has no other work.
fn truly(name: &str, run: impl FnOnce()) {
    use std::io::Write;
    let began = Instant::now();
    run();
    let mut out = std::fs::OpenOptions::new().create(true).append(true).open(std::env::var("TRUTH").unwrap()).unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() * 1e3;
    writeln!(out, "{name} body {:.3} {:.3} {now:.3}", began.elapsed().as_secs_f64() * 1e3, used()).unwrap();
}
fn digest(times: usize) -> u64 {
    let mut sums = std::collections::hash_map::DefaultHasher::new();
    let block = [0u8; 4096];
    for _ in 0..times { block.hash(&mut sums); }
    sums.finish()
}
fn parse(times: usize) -> f64 { (0..times).map(|n| format!("{n}.5").parse::<f64>().unwrap()).sum() }
#[cfg(test)] mod tests {
use super::*;
#[test] fn t01_digests() { truly("01", || { assert!(digest(5000) > 0) }) }
#[test] fn t02_waits() { truly("02", || { let pair = (Mutex::new(()), Condvar::new()); let _ = pair.1.wait_timeout(pair.0.lock().unwrap(), Duration::from_millis(220)); }) }
#[test] fn t03_tiny() { truly("03", || { digest(1); }) }
#[test] fn t04_pipeline() { truly("04", || { Command::new("sh").args(["-c", "head -c 60000000 /dev/zero | sha256sum"]).output().unwrap(); }) }
#[test] fn t05_parses() { truly("05", || { assert!(parse(200000) > 0.0) }) }
#[test] fn t06_threads() { truly("06", || { let all: Vec<_> = (0..3).map(|_| thread::spawn(|| digest(1500))).collect(); for one in all { one.join().unwrap(); } }) }
#[test] fn t07_breaks() { truly("07", || { digest(2000); }); panic!() }
#[test] fn t08_naps() { truly("08", || { for _ in 0..12 { thread::sleep(Duration::from_millis(14)) } }) }
mod nested {
use super::*;
#[test] #[should_panic] fn t09_panics() { truly("09", || { digest(1500); }); panic!("as it should") }
#[test] #[ignore] fn t10_ignored() {}
}
}
""",
}

EUNIT = r"""
-module(t).
-compile([export_all, nowarn_export_all]).
main() -> R = eunit:test(t, [{report, {eunit_surefire, [{dir, "."}]}}]), halt(case R of ok -> 0; _ -> 1 end).
jiffies(From) -> {ok, B} = file:read_file("/proc/self/" ++ From), [_, R] = string:split(B, ") ", trailing), W = string:split(R, " ", all),
    lists:sum([list_to_integer(binary_to_list(lists:nth(N, W))) || N <- [12, 13, 14, 15]]) * 10.
truly(Name, Run) ->
    Began = erlang:monotonic_time(microsecond), Before = jiffies("stat"),
    try Run() after
        file:write_file(os:getenv("TRUTH"), io_lib:format("~s body ~.3f ~.3f ~.3f~n", [Name, (erlang:monotonic_time(microsecond) - Began) / 1000, float(jiffies("stat") - Before), erlang:system_time(microsecond) / 1000]), [append])
    end.
digest(Times) -> B = binary:copy(<<0>>, 65536), crypto_free(Times, B, 0).
crypto_free(0, _, S) -> S;
crypto_free(N, B, S) -> crypto_free(N - 1, B, S + erlang:crc32(B) + erlang:adler32(B)).
loops(0, S) -> S;
loops(N, S) -> loops(N - 1, (S * 31 + N) rem 4294967291).
t01_digests_test() -> truly("01", fun() -> digest(4000) end).
t02_sleeps_test() -> truly("02", fun() -> timer:sleep(220) end).
t03_tiny_test() -> truly("03", fun() -> digest(20) end).
t04_pipeline_test() -> truly("04", fun() -> os:cmd("head -c 60000000 /dev/zero | sha256sum") end).
t05_loops_test() -> truly("05", fun() -> loops(12000000, 1) end).
t06_breaks_test() -> truly("06", fun() -> digest(1500) end), error(x).
t07_receives_test() -> truly("07", fun() -> receive never -> ok after 180 -> ok end end).
t08_mixed_test() -> truly("08", fun() -> loops(5000000, 1), timer:sleep(90) end).
sizes_test_() -> [{"t09a", fun() -> truly("09a", fun() -> digest(500) end) end}, {"t09b", fun() -> truly("09b", fun() -> digest(3000) end) end}].
"""

TESTTHAT = """
used <- function() sum(proc.time()[c(1, 2, 4, 5)]) * 1e3
truly <- function(name, run) {
  began <- Sys.time(); before <- used()
  on.exit(cat(sprintf("%s body %.3f %.3f %.3f\\n", name, as.numeric(difftime(Sys.time(), began, units = "secs")) * 1e3, used() - before, as.numeric(Sys.time()) * 1e3), file = Sys.getenv("TRUTH"), append = TRUE))
  force(run)
}
loops <- function(times) { n <- 0; for (i in seq_len(times * 10000)) n <- (n * 31 + i) %% 65521; n }
sorts <- function(times) for (i in seq_len(times)) sort(runif(100000))
test_that("t01 loops", { truly("01", loops(60)); expect_true(TRUE) })
test_that("t02 sleeps", { truly("02", Sys.sleep(0.22)); expect_true(TRUE) })
test_that("t03 tiny", { truly("03", sorts(1)); expect_true(TRUE) })
test_that("t04 pipeline", { truly("04", system("head -c 60000000 /dev/zero | sha256sum", ignore.stdout = TRUE)); expect_true(TRUE) })
test_that("t05 sorts", { truly("05", sorts(8)); expect_true(TRUE) })
test_that("t06 breaks", { truly("06", loops(40)); expect_equal(1, 2) })
test_that("t07 naps", { truly("07", for (n in 1:12) Sys.sleep(0.014)); expect_true(TRUE) })
describe("nested", {
  it("t08 both", { truly("08", { loops(40); Sys.sleep(0.09) }); expect_true(TRUE) })
  it("t09 sorts", { truly("09", sorts(5)); expect_true(TRUE) })
})
"""

PY = {"work.py": PYTHON, "test_p.py": UNITTEST}

REPORTERS = {
    "pytest": Reporter(["pytest"], {"work.py": PYTHON, "test_p.py": PYTEST}, "pytest --junitxml=out.xml", "out.xml"),
    "pytest, reruns": Reporter(
        ["pytest"], {"work.py": PYTHON, "test_r.py": RERUN}, "pytest --junitxml=out.xml", "out.xml"
    ),
    "pytest, xdist": Reporter(
        ["pytest"], {"work.py": PYTHON, "test_p.py": PYTEST}, "pytest -n 2 --junitxml=out.xml", "out.xml"
    ),
    "unittest-xml-reporting": Reporter(["nose2"], PY, "python3 -m xmlrunner test_p", "TEST-*.xml"),
    "nose2": Reporter(["nose2"], PY, "nose2 --plugin nose2.plugins.junitxml --junit-xml", "nose2-junit.xml"),
    "green": Reporter(["green"], PY, "green --junit-report out.xml", "out.xml"),
    "stestr": Reporter(
        ["stestr"],
        {**PY, ".stestr.conf": "[DEFAULT]\ntest_path=.\n"},
        "sh -c 'stestr run; stestr last --subunit | subunit2junitxml -o out.xml'",
        "out.xml",
    ),
    "robot": Reporter(
        ["robot"],
        {"work.py": PYTHON, "Work.py": ROBOT_LIBRARY, "t.robot": ROBOT},
        "robot --xunit out.xml t.robot",
        "out.xml",
    ),
    "behave": Reporter(
        ["behave"],
        {"work.py": PYTHON, "features/t.feature": FEATURE, "features/steps/s.py": BEHAVE_STEPS},
        "behave --junit",
        "reports/*.xml",
    ),
    "node": Reporter(
        ["node"],
        {"t.test.cjs": NODE + JS + JS_TESTS},
        "node --test --test-reporter=junit --test-reporter-destination=out.xml",
        "out.xml",
    ),
    "node, two files": Reporter(
        ["node"],
        {"t.test.cjs": NODE + JS + JS_TESTS, "u.test.cjs": NODE + JS + JS_SECOND},
        "node --test --test-reporter=junit --test-reporter-destination=out.xml",
        "out.xml",
    ),
    "mocha": Reporter(
        ["mocha"],
        {"test/t.cjs": JS + JS_TESTS, "test/u.cjs": JS + JS_SECOND},
        "mocha --reporter mocha-junit-reporter",
        "test-results.xml",
    ),
    "mocha, xunit": Reporter(
        ["mocha"], {"test/t.cjs": JS + JS_TESTS}, "mocha --reporter xunit --reporter-option output=out.xml", "out.xml"
    ),
    "mocha, retries": Reporter(
        ["mocha"], {"test/t.cjs": JS + RETRY}, "mocha --retries 3 --reporter mocha-junit-reporter", "test-results.xml"
    ),
    "jest": Reporter(
        ["jest"], {"t.test.js": JS + JS_TESTS, "package.json": PACKAGE}, "jest --reporters=jest-junit", "junit.xml"
    ),
    "jest, two files": Reporter(
        ["jest"],
        {"t.test.js": JS + JS_TESTS, "u.test.js": JS + JS_SECOND, "package.json": PACKAGE},
        "jest --reporters=jest-junit",
        "junit.xml",
    ),
    "vitest": Reporter(
        ["vitest"],
        {"t.test.mjs": VITEST + JS + JS_TESTS, "u.test.mjs": VITEST + JS + JS_SECOND, "package.json": PACKAGE},
        "vitest run --reporter=junit --outputFile=out.xml",
        "out.xml",
    ),
    "jasmine": Reporter(
        ["jasmine"],
        {
            "spec/t.spec.js": JS + JS_TESTS,
            "spec/support/jasmine.json": '{"spec_dir": "spec", "spec_files": ["**/*.spec.js"], "helpers": ["r.js"]}',
            "spec/r.js": "const r = require('jasmine-reporters'); jasmine.getEnv().addReporter(new r.JUnitXmlReporter({savePath: 'out'}));",
        },
        "jasmine",
        "out/*.xml",
    ),
    "playwright": Reporter(
        ["playwright"],
        {"t.spec.js": PLAYWRIGHT + JS + JS_TESTS, "package.json": PACKAGE},
        "playwright test --reporter=junit",
        "out.xml",
        environment={"PLAYWRIGHT_JUNIT_OUTPUT_NAME": "out.xml"},
    ),
    "tap": Reporter(
        ["tap"],
        {
            "test/t.cjs": "const t = require('tap'); const it = (name, run) => t.test(name, async () => { await run(); });"
            + JS
            + JS_PLAIN,
            "package.json": PACKAGE,
        },
        "tap --reporter=junit --reporter-file=out.xml",
        "out.xml",
    ),
    "bun": Reporter(
        ["bun"],
        {"t.test.js": JS + JS_TESTS, "package.json": PACKAGE},
        "bun test --reporter=junit --reporter-outfile=out.xml",
        "out.xml",
    ),
    "deno": Reporter(
        ["deno"], {"t_test.mjs": DENO + JS + JS_PLAIN}, "deno test -A --no-check --junit-path=out.xml", "out.xml"
    ),
    "bats": Reporter(["bats"], {"t.bats": BATS}, "bats --report-formatter junit t.bats", "report.xml"),
    "prove": Reporter(["prove"], PROVE, "sh -c 'prove --formatter TAP::Formatter::JUnit > out.xml'", "out.xml"),
    "gtest": Reporter(
        ["g++"],
        {"t.cc": GTEST},
        "./t --gtest_output=xml",
        "test_detail.xml",
        before="g++ -O1 t.cc -o t -lgtest -lgtest_main -pthread",
    ),
    "catch2": Reporter(
        ["g++"], {"t.cc": CATCH}, "./t -r junit -o out.xml", "out.xml", before="g++ -O1 t.cc -o t -pthread"
    ),
    "doctest": Reporter(
        ["g++"], {"t.cc": DOCTEST}, "./t -r=junit -o=out.xml", "out.xml", before="g++ -O1 t.cc -o t -pthread"
    ),
    "boost": Reporter(
        ["g++"], {"t.cc": BOOST}, "./t --logger=JUNIT,all,out.xml", "out.xml", before="g++ -O1 t.cc -o t -pthread"
    ),
    "cpputest": Reporter(
        ["g++"], {"t.cc": CPPUTEST}, "./t -ojunit", "cpputest_*.xml", before="g++ -O1 t.cc -o t -lCppUTest -pthread"
    ),
    "cmocka": Reporter(
        ["gcc"],
        {"t.c": CMOCKA},
        "./t",
        "out.xml",
        before="gcc -O1 t.c -o t -lcmocka -pthread",
        environment={"CMOCKA_XML_FILE": "out.xml"},
    ),
    "criterion": Reporter(
        ["gcc"], {"t.c": CRITERION}, "./t --xml=out.xml", "out.xml", before="gcc -O1 t.c -o t -lcriterion -pthread"
    ),
    "qtest": Reporter(
        ["moc"],
        {"t.cc": QTEST},
        "./t -o out.xml,junitxml",
        "out.xml",
        before="moc t.cc -o t.moc; g++ -O1 -fPIC t.cc -o t -pthread $(pkg-config --cflags --libs Qt5Test Qt5Core)",
    ),
    "ctest": Reporter(
        ["ctest"], CTEST, "ctest --test-dir b --output-junit ../out.xml", "out.xml", before="cmake -S . -B b"
    ),
    "ctest, gtest": Reporter(
        ["ctest", "g++"],
        CTEST_GTEST,
        "ctest --test-dir b --output-junit ../out.xml",
        "out.xml",
        before="cmake -S . -B b && cmake --build b",
    ),
    "gotestsum": Reporter(
        ["go", "gotestsum"],
        {"x_test.go": GO, "go.mod": "module x\ngo 1.19\n"},
        "gotestsum --junitfile out.xml",
        "out.xml",
        before="go test -count=1 -run NONE .",
        environment={"GOFLAGS": "-mod=mod -count=1", "HOME": "/tmp"},
    ),
    "rspec": Reporter(
        ["rspec"],
        {"spec/t_spec.rb": RSPEC},
        "rspec -r rspec_junit_formatter -f RspecJunitFormatter -o out.xml",
        "out.xml",
    ),
    "minitest": Reporter(["ruby"], {"t.rb": MINITEST}, "ruby t.rb", "reports/*.xml"),
    "phpunit": Reporter(["phpunit"], PHPUNIT_FILES, "phpunit --log-junit out.xml tests", "out.xml"),
    "busted": Reporter(["busted"], {"spec/t_spec.lua": BUSTED}, "sh -c 'busted -o junit > out.xml'", "out.xml"),
    "junit5": Reporter(
        ["javac"],
        {"XTest.java": JUNIT5, "Work.java": JAVA},
        "java -cp '.:/usr/share/java/*' org.junit.platform.console.ConsoleLauncher --scan-classpath . --reports-dir reports",
        "reports/TEST-junit-jupiter.xml",
        before="javac -cp '/usr/share/java/*' *.java",
    ),
    "surefire": Reporter(
        ["mvn", "javac"],
        SUREFIRE,
        f"mvn -o -q -Dmaven.repo.local=/usr/share/maven-repo {SUREFIRE_GOAL}",
        "target/surefire-reports/*.xml",
        before="javac -d target/test-classes -cp /usr/share/java/junit4.jar *.java",
    ),
    "avocado": Reporter(
        ["avocado"], SCRIPTS, "avocado run --xunit out.xml " + " ".join(SCRIPTS), "out.xml", before="chmod +x *.sh"
    ),
    "meson": Reporter(
        ["meson"], MESON, "meson test -C b", "b/meson-logs/testlog.junit.xml", before="chmod +x *.sh; meson setup b"
    ),
    "nextest": Reporter(
        ["cargo-nextest"],
        NEXTEST,
        "cargo nextest run --offline",
        "target/nextest/default/out.xml",
        before="cargo nextest run --offline --no-run",
        # A panic would look up its stack after it measured.
        environment={"RUST_BACKTRACE": "0"},
    ),
    "eunit": Reporter(["erl"], {"t.erl": EUNIT}, "erl -noshell -s t main", "TEST-*.xml", before="erlc t.erl"),
    "testthat": Reporter(
        ["Rscript"],
        {"test-t.R": TESTTHAT},
        'Rscript -e \'library(testthat); test_file("test-t.R", reporter = JunitReporter$new(file = "out.xml"))\'',
        "out.xml",
    ),
}


def run(args, reporter, place):
    """The steps of a recorded run, what was said, and the paths of its reports and of what the tests measured."""
    truth = os.path.join(place, TRUTH)
    reports, said = record(args, reporter, place, {"TRUTH": truth})
    return steps_of(args, place, reports) if reports else (None, said, [], truth)


def steps_of(args, place, reports):
    """The steps of the recording in `place` with its reports, what was said, and the paths of the reports and of what the tests
    measured."""
    found, said = analyze(args, place, reports)
    return found and timed(found), said, reports, os.path.join(place, TRUTH)


def identity(*names):
    """The identity of a test, from its name or that of its class."""
    for name in names:
        if found := IDENTITY.search(name):
            return found[1]
    return None


def lengths(reports):
    """The length in ms of each test of the reports that has an identity and was not skipped."""
    found = {}
    for report in reports:
        for case in xml.parse(report).iter("testcase"):
            one = identity(case.get("name", ""), case.get("classname", ""))
            if one and case.find("skipped") is None and case.get("status") not in ("skipped", "notrun"):
                # A test around others is no test of its own.
                found[one] = max(found.get(one, 0), float((case.get("time") or "0").replace(",", "")) * 1e3)
    return found


def measured(path):
    """What each test measured: (wall, CPU) of each of its bodies, and of its set-up and tear-down."""
    found = {}
    with open(path) as lines:
        for line in lines:
            one, phase, wall, cpu, ended = line.split()
            found.setdefault(one, {"body": [], "around": []})[phase].append((float(wall), float(cpu), float(ended)))
    return found


def runs(of):
    """The beginning and the end of each body of a test, in ms since 1970."""
    return [(ended - wall, ended) for wall, _, ended in of["body"]]


def candidates(of):
    """The CPU time of a test, with and without its set-up and tear-down, for one try and for all."""
    body, around = of["body"], of["around"]
    choices = [body, body + around, body[-1:], body[:1]]
    choices += [body + around[:1], body + around[1:]] if len(around) > 1 else []
    return [tuple(sum(part[at] for part in choice) for at in (0, 1)) for choice in choices]


def judge(name, steps, reports, truth):
    """How many tests are right, wrong, placed and without a place; and a line for each that is not right."""
    wanted, spent = lengths(reports), measured(truth)
    counts, lines, seen = Counter(right=0, wrong=0, placed=0, none=0), [], set()
    for step in steps:
        one = identity(step["name"].rsplit("/", 1)[-1], step["name"])
        if step["kind"] != "test" or step["result"] is None or one not in wanted or one in seen:
            continue
        seen.add(one)
        # A body goes on after its test, if that had a limit of time.
        has_body = one in spent and spent[one]["body"][-1][0] < wanted[one] * 1.2 + 20
        if (
            step["place_error_ns"] is not None
            and has_body
            and is_beside(step, runs(spent[one]), wanted[one], name in PROCESSES)
        ):
            counts["wrong"] += 1
            lines.append(
                f"    t{one} ({wanted[one]:.0f} ms): MISPLACED by more than {step['place_error_ns'] / 1e6:.1f} ms"
            )
            continue
        if step["verdict"] and step["on_cpu_ns"] is None:
            counts["wrong"] += 1
            lines.append(f"    t{one}: VERDICT without figures")
            continue
        if step["on_cpu_ns"] is None:
            placed = step.get("place_error_ns") is not None
            counts["placed" if placed else "none"] += 1
            lines.append(
                f"    t{one} ({wanted[one]:.0f} ms): {'placed, ' if placed else ''}{step['no_figures'] or 'no reason'}"
            )
            continue
        cpu = step["on_cpu_ns"] / 1e6
        if one not in spent:
            counts["wrong"] += 1
            lines.append(f"    t{one}: {cpu:.0f} ms of CPU, of a test that measured nothing")
            continue
        start = 60 if name in PROCESSES else 0
        # What the report's length has, by the nearest of the walls.
        choices = candidates(spent[one])
        nearest = min(abs(wall - wanted[one]) for wall, _ in choices)
        fits = [cpu_true for wall, cpu_true in choices if abs(wall - wanted[one]) <= nearest + 2]
        right = any(true - max(20, true * 0.2) <= cpu <= true + max(20, true * 0.2) + start for true in fits)
        counts["right" if right else "wrong"] += 1
        if not right:
            true = ", ".join(f"{of:.0f}" for of in fits)
            lines.append(f"    t{one} ({wanted[one]:.0f} ms): WRONG {cpu:.0f} ms of CPU, {true} measured")
    for one in sorted(set(wanted) - seen):
        counts["none"] += 1
        lines.append(f"    t{one} ({wanted[one]:.0f} ms): no step")
    return counts, lines


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tr", default="target/release/tr")
    options.add_argument("--path", action="append", default=[])
    options.add_argument("--keep")
    options.add_argument("--again", action="store_true", help="judge what is in --keep instead of recording")
    options.add_argument("--csv")
    options.add_argument("reporters", nargs="*")
    args = options.parse_args()
    args.tr = os.path.realpath(args.tr)
    args.path = [os.path.realpath(path) for path in args.path]
    os.environ["PATH"] = os.pathsep.join([*args.path, os.environ["PATH"]])
    rows, sums = [], Counter()
    for name in args.reporters or REPORTERS:
        reporter = REPORTERS[name]
        kept = os.path.join(args.keep, name.replace(", ", "-").replace(" ", "-")) if args.keep else None
        if args.again:
            reports = sorted(glob.glob(os.path.join(kept, "report*")))
            if not reports:
                continue
            found = steps_of(args, kept, reports)
            line = account(name, *found)
        else:
            absent = [program for program in reporter.needs if not shutil.which(program)]
            if absent:
                print(f"{name}: skipped, {', '.join(absent)} is not on PATH")
                continue
            with tempfile.TemporaryDirectory() as place:
                found = run(args, reporter, place)
                if kept and found[2]:
                    keep(kept, place, found)
                line = account(name, *found)
        if line:
            rows.append(line)
            sums.update({key: value for key, value in line.items() if key != "reporter"})
    print("all:", ", ".join(f"{value} {key}" for key, value in sums.items()))
    if args.csv and rows:
        results.write(args.csv, list(rows[0]), rows)
    sys.exit(sums["wrong"] > 0)


def keep(kept, place, found):
    """Copies a recording, its reports with their times of writing, and what the tests measured."""
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(kept)
    shutil.copy2(os.path.join(place, "trace.bin"), kept)
    if os.path.exists(found[3]):
        shutil.copy2(found[3], kept)
    for number, report in enumerate(sorted(found[2])):
        shutil.copy2(report, os.path.join(kept, f"report{number}.xml"))


def account(name, steps, said, reports, truth):
    """The row of a reporter, after it was printed with its reasons."""
    if steps is None or not os.path.exists(truth):
        print(f"{name}: {said or 'nothing measured'}", flush=True)
        return None
    counts, lines = judge(name, steps, reports, truth)
    print(f"{name}: " + ", ".join(f"{value} {key}" for key, value in counts.items()))
    print("\n".join([*lines, *([f"    {said}"] if counts["none"] else [])]), flush=True)
    return {"reporter": name, "tests": counts.total(), **counts}


if __name__ == "__main__":
    main()
