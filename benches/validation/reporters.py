#!/usr/bin/env python3
"""Records test runners of many languages and compares the CPU time that `tr` gives to each of their tests with what it is.

usage: benches/validation/reporters.py [--tr TR] [--path DIR]... [--load N] [--keep DIR] [--csv FILE] [REPORTER...]

Each runner has tests that compute, that sleep, that fail after a sleep and that wait for a program; a test's name has its CPU
time in ms. A figure is *right* within 20 % or 20 ms (a program's start counts to its test), else *wrong*; a test without figures
is *none*, and the reason is printed. --load runs so many busy loops beside them. Needs root. A runner that is not on PATH (or in
`--path`, which stands before it) is skipped and reported:

  pip install pytest pytest-xdist unittest-xml-reporting nose2 robotframework behave cmake
  pip install green avocado-framework meson ninja
  npm install mocha@10 mocha-junit-reporter jest jest-junit vitest jasmine jasmine-reporters @playwright/test
  apt install bats libtap-formatter-junit-perl libgtest-dev catch2 ruby-rspec-junit-formatter golang-go gotestsum phpunit
  apt install doctest-dev libboost-test-dev cpputest libcmocka-dev lua-busted ruby-minitest-reporters junit5 libsurefire-java maven default-jdk
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import results

LIMIT = 300

PYTHON = """
import subprocess, sys, time
def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def helper(seconds):
    subprocess.run([sys.executable, '-S', '-c', f'import time\\nwhile time.process_time() < {seconds}: pass'], check=True)
"""

UNITTEST = """
import time, unittest
from work import compute, helper
class T(unittest.TestCase):
    def test_a_computes_300(self): compute(.3)
    def test_b_sleeps_0(self): time.sleep(.4)
    def test_c_helper_400(self): helper(.4)
    def test_d_helper_200(self): helper(.2)
    def test_e_both_100(self): compute(.1); time.sleep(.2)
    def test_f_fails_0(self): time.sleep(.3); self.fail('x')
    def test_g_computes_500(self): compute(.5)
"""

JS = """
const { spawnSync } = require('child_process');
const used = (since) => { const u = process.cpuUsage(since); return u.user + u.system; };
const compute = (s) => { const since = process.cpuUsage(); while (used(since) < s * 1e6) ; };
const sleep = (s) => new Promise((r) => setTimeout(r, s * 1000));
const helper = (s) => { spawnSync('sh', ['-c', `i=0; while [ $i -lt ${s} ]; do i=$((i+1)); done`]); };
"""

JS_TESTS = """
T('a computes 300', () => compute(.3));
T('b sleeps 0', () => sleep(.4));
T('e both 100', async () => { compute(.1); await sleep(.2); });
T('f fails 0', async () => { await sleep(.3); throw new Error('x'); });
T('g computes 500', () => compute(.5));
"""

SHELL_HELPER = "python3 -S -c 'import time\nwhile time.process_time() < %s: pass'"

C = r"""
#include <time.h>
static void nap(double s) { struct timespec t = {(time_t)s, (long)((s - (long)s) * 1e9)}; nanosleep(&t, 0); }
static double used(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void compute(double s) { double end = used() + s; while (used() < end) ; }
"""

RUBY = """
def compute(s)
  stop = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + s
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < stop
end
"""


@dataclass
class Reporter:
    """A runner: what it needs on PATH, its files, its command and its report."""

    needs: list
    files: dict
    command: str
    report: str
    before: str = ""
    environment: dict = field(default_factory=dict)


def js(form, name="t.test.js"):
    return {name: JS + form.replace("TESTS", JS_TESTS), "package.json": '{"name": "x", "private": true}'}


DESCRIBE = "describe('s', () => { const T = (name, test) => it(name, test); TESTS });"
VITEST = (
    "import { it, describe } from 'vitest'; import { createRequire } from 'module'; const require = createRequire(import.meta.url);"
    + JS
    + DESCRIBE.replace("TESTS", JS_TESTS)
)
PLAYWRIGHT = "const { test } = require('@playwright/test'); const T = (name, run) => test(name, async () => { await run(); }); TESTS"

ROBOT = """*** Settings ***
Library    Work.py
*** Test Cases ***
a computes 300
    Burn    0.3
b sleeps 0
    Nap    0.4
c helper 400
    Kid    0.4
f fails 0
    Nap    0.3
    Fail    x
g computes 500
    Burn    0.5
"""

ROBOT_LIBRARY = """
import time
from work import compute, helper
class Work:
    def burn(self, s): compute(float(s))
    def nap(self, s): time.sleep(float(s))
    def kid(self, s): helper(float(s))
"""

FEATURE = """Feature: f
  Scenario: a computes 300
    Given burn 0.3
  Scenario: b sleeps 0
    Given nap 0.4
  Scenario: c helper 400
    Given kid 0.4
  Scenario: f fails 0
    Given nap 0.3
    Then fail
  Scenario: g computes 500
    Given burn 0.5
"""

BEHAVE_STEPS = """
import sys, os; sys.path.insert(0, os.getcwd())
import time
from behave import given, then
from work import compute, helper
@given('burn {s:f}')
def burn(context, s): compute(s)
@given('nap {s:f}')
def nap(context, s): time.sleep(s)
@given('kid {s:f}')
def kid(context, s): helper(s)
@then('fail')
def fail(context): assert False
"""

BATS = f"""
@test "b sleeps 0" {{ sleep 0.4; }}
@test "c helper 400" {{ {SHELL_HELPER % "0.4"}
}}
@test "d helper 200" {{ {SHELL_HELPER % "0.2"}
}}
@test "f fails 0" {{ sleep 0.3; false; }}
"""

GTEST = (
    "#include <gtest/gtest.h>\n"
    + C
    + "TEST(S, a_computes_300) { compute(.3); }\nTEST(S, b_sleeps_0) { nap(.4); }\nTEST(S, e_both_100) { compute(.1); nap(.2); }\n"
    + "TEST(S, f_fails_0) { nap(.3); FAIL(); }\nTEST(S, g_computes_500) { compute(.5); }\n"
)

CATCH = (
    "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n"
    + C
    + 'TEST_CASE("a computes 300") { compute(.3); CHECK(true); }\nTEST_CASE("b sleeps 0") { nap(.4); CHECK(true); }\n'
    + 'TEST_CASE("e both 100") { compute(.1); nap(.2); CHECK(true); }\nTEST_CASE("f fails 0") { nap(.3); CHECK(false); }\n'
    + 'TEST_CASE("g computes 500") { compute(.5); CHECK(true); }\n'
)

GO = """package x
import ("testing"; "time"; "syscall")
func used() int64 { var u syscall.Rusage; syscall.Getrusage(1, &u); return u.Utime.Nano() + u.Stime.Nano() }
func compute(s float64) { end := used() + int64(s*1e9); for used() < end { } }
func TestA_computes_300(t *testing.T) { compute(.3) }
func TestB_sleeps_0(t *testing.T) { time.Sleep(400 * time.Millisecond) }
func TestE_both_100(t *testing.T) {
  t.Run("x_computes_100", func(t *testing.T) { compute(.1) })
  t.Run("y_sleeps_0", func(t *testing.T) { time.Sleep(200 * time.Millisecond) })
}
func TestF_fails_0(t *testing.T) { time.Sleep(300 * time.Millisecond); t.Fail() }
func TestG_computes_500(t *testing.T) { compute(.5) }
"""

RSPEC = (
    RUBY
    + """
describe 's' do
  it('a computes 300') { compute(0.3) }
  it('b sleeps 0') { sleep 0.4 }
  it('e both 100') { compute(0.1); sleep 0.2 }
  it('f fails 0') { sleep 0.3; raise 'x' }
  it('g computes 500') { compute(0.5) }
end
"""
)

PHPUNIT = """<?php
function used() { $u = getrusage(); return $u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec'] + ($u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec']) / 1e6; }
function compute($s) { $end = used() + $s; while (used() < $end) {} }
class XTest extends PHPUnit\\Framework\\TestCase {
  function test_a_computes_300() { compute(.3); $this->assertTrue(true); }
  function test_b_sleeps_0() { usleep(400000); $this->assertTrue(true); }
  function test_e_both_100() { compute(.1); usleep(200000); $this->assertTrue(true); }
  function test_f_fails_0() { usleep(300000); $this->assertTrue(false); }
  function test_g_computes_500() { compute(.5); $this->assertTrue(true); }
}
"""

DOCTEST = (
    "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n"
    + C
    + 'TEST_CASE("a computes 300") { compute(.3); CHECK(true); }\nTEST_CASE("b sleeps 0") { nap(.4); CHECK(true); }\n'
    + 'TEST_CASE("e both 100") { compute(.1); nap(.2); CHECK(true); }\nTEST_CASE("f fails 0") { nap(.3); CHECK(false); }\n'
    + 'TEST_CASE("g computes 500") { compute(.5); CHECK(true); }\n'
)

BOOST = (
    "#define BOOST_TEST_MODULE x\n#include <boost/test/included/unit_test.hpp>\n"
    + C
    + "BOOST_AUTO_TEST_CASE(a_computes_300) { compute(.3); BOOST_CHECK(true); }\n"
    + "BOOST_AUTO_TEST_CASE(b_sleeps_0) { nap(.4); BOOST_CHECK(true); }\n"
    + "BOOST_AUTO_TEST_CASE(e_both_100) { compute(.1); nap(.2); BOOST_CHECK(true); }\n"
    + "BOOST_AUTO_TEST_CASE(f_fails_0) { nap(.3); BOOST_CHECK(false); }\n"
    + "BOOST_AUTO_TEST_CASE(g_computes_500) { compute(.5); BOOST_CHECK(true); }\n"
)

CPPUTEST = (
    C
    + "#include <CppUTest/TestHarness.h>\n#include <CppUTest/CommandLineTestRunner.h>\nTEST_GROUP(S) {};\n"
    # The last one of the file runs first.
    + 'TEST(S, g_computes_500) { compute(.5); }\nTEST(S, f_fails_0) { nap(.3); FAIL("x"); }\n'
    + "TEST(S, e_both_100) { compute(.1); nap(.2); }\nTEST(S, b_sleeps_0) { nap(.4); }\nTEST(S, a_computes_300) { compute(.3); }\n"
    + "int main(int n, char** a) { return CommandLineTestRunner::RunAllTests(n, a); }\n"
)

CMOCKA = (
    "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n"
    + C
    + "static void a_computes_300(void** s) { compute(.3); }\nstatic void b_sleeps_0(void** s) { nap(.4); }\n"
    + "static void e_both_100(void** s) { compute(.1); nap(.2); }\nstatic void f_fails_0(void** s) { nap(.3); fail(); }\n"
    + "static void g_computes_500(void** s) { compute(.5); }\n#define T(x) cmocka_unit_test(x)\n"
    + "int main(void) { const struct CMUnitTest all[] = {T(a_computes_300), T(b_sleeps_0), T(e_both_100), T(f_fails_0),"
    + " T(g_computes_500)};\n"
    + 'cmocka_set_message_output(CM_OUTPUT_XML); return cmocka_run_group_tests_name("S", all, 0, 0); }\n'
)

MINITEST = (
    """require 'minitest/autorun'
require 'minitest/reporters'
Minitest::Reporters.use! Minitest::Reporters::JUnitReporter.new('reports')
"""
    + RUBY
    + """
class T < Minitest::Test
  i_suck_and_my_tests_are_order_dependent!
  def test_a_computes_300; compute(0.3); end
  def test_b_sleeps_0; sleep 0.4; end
  def test_e_both_100; compute(0.1); sleep 0.2; end
  def test_f_fails_0; sleep 0.3; flunk 'x'; end
  def test_g_computes_500; compute(0.5); end
end
"""
)

BUSTED = """
local function compute(s) local stop = os.clock() + s; while os.clock() < stop do end end
local function nap(s) require('system').sleep(s) end
describe('s', function()
  it('a computes 300', function() compute(0.3) end)
  it('b sleeps 0', function() nap(0.4) end)
  it('e both 100', function() compute(0.1); nap(0.2) end)
  it('f fails 0', function() nap(0.3); error('x') end)
  it('g computes 500', function() compute(0.5) end)
end)
"""

JAVA = """
class Work {
  static void compute(double s) {
    var bean = java.lang.management.ManagementFactory.getThreadMXBean();
    long stop = bean.getCurrentThreadCpuTime() + (long)(s * 1e9);
    while (bean.getCurrentThreadCpuTime() < stop) { }
  }
  static void nap(double s) throws Exception { Thread.sleep((long)(s * 1000)); }
}
"""

JUNIT = """
import org.junit.jupiter.api.*;
@TestMethodOrder(MethodOrderer.MethodName.class)
public class XTest {
  // The classes of a failure are loaded once.
  static { try { Assertions.fail("x"); } catch (AssertionError error) { } }
  @Test void a_computes_300() { Work.compute(.3); }
  @Test void b_sleeps_0() throws Exception { Work.nap(.4); }
  @Test void e_both_100() throws Exception { Work.compute(.1); Work.nap(.2); }
  @Test void f_fails_0() throws Exception { Work.nap(.3); Assertions.fail("x"); }
  @Test void g_computes_500() { Work.compute(.5); }
}
"""

SUREFIRE = {
    "XTest.java": JUNIT.replace("org.junit.jupiter.api.*", "org.junit.*;\nimport org.junit.runners.MethodSorters")
    .replace("@TestMethodOrder(MethodOrderer.MethodName.class)", "@FixMethodOrder(MethodSorters.NAME_ASCENDING)")
    .replace("@Test void", "@Test public void")
    .replace("Assertions", "Assert"),
    "Work.java": JAVA,
    "pom.xml": """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version></dependency></dependencies>
</project>
""",
}

SUREFIRE_GOAL = "org.apache.maven.plugins:maven-surefire-plugin:2.22.3:test"

SCRIPTS = {
    "b_sleeps_0.sh": "sleep 0.4\n",
    "c_helper_400.sh": SHELL_HELPER % "0.4" + "\n",
    "d_helper_200.sh": SHELL_HELPER % "0.2" + "; sleep 0.1\n",
    "f_fails_0.sh": "sleep 0.3; exit 1\n",
    "g_helper_500.sh": "exec " + SHELL_HELPER % "0.5" + "\n",
}

NAMES = [name.removesuffix(".sh") for name in SCRIPTS]

MESON = {
    "meson.build": "project('x')\nsh = find_program('sh')\n"
    + "".join(f"test('{name}', sh, args: [files('{name}.sh')])\n" for name in NAMES),
    **SCRIPTS,
}

AVOCADO = {name: "#!/bin/sh\n" + text for name, text in SCRIPTS.items()}

PROVE = {
    f"t/{name}.t": f'#!/usr/bin/perl\n{body}; print "1..1\\n{result} 1\\n";\n'
    for name, body, result in [
        ("a_computes_300", "1 while (times)[0] + (times)[1] < .3", "ok"),
        ("b_sleeps_0", "select undef, undef, undef, .4", "ok"),
        ("f_fails_0", "select undef, undef, undef, .3", "not ok"),
        ("g_computes_500", "1 while (times)[0] + (times)[1] < .5", "ok"),
    ]
}

CTEST = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(x NONE)\nenable_testing()\n"
    + "".join(f"add_test(NAME {name} COMMAND sh ${{CMAKE_SOURCE_DIR}}/{name}.sh)\n" for name in NAMES),
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
    "lib.rs": """#[cfg(test)] mod tests {
use std::{process::Command, thread::sleep, time::Duration};
#[test] fn b_sleeps_0() { sleep(Duration::from_millis(400)); }
#[test] fn c_helper_400() { Command::new("python3").args(["-S", "-c", "import time\\nwhile time.process_time() < 0.4: pass"]).status().unwrap(); }
#[test] fn f_fails_0() { sleep(Duration::from_millis(300)); panic!() }
#[test] fn d_helper_200() { Command::new("python3").args(["-S", "-c", "import time\nwhile time.process_time() < 0.2: pass"]).status().unwrap(); }
#[test] fn g_helper_500() { Command::new("python3").args(["-S", "-c", "import time\nwhile time.process_time() < 0.5: pass"]).status().unwrap(); }
}
""",
}

PY = {"work.py": PYTHON, "test_p.py": UNITTEST}

REPORTERS = {
    "pytest": Reporter(["pytest"], PY, "pytest -q --junitxml=out.xml test_p.py", "out.xml"),
    "pytest-xdist": Reporter(["pytest"], PY, "pytest -q -n 2 --junitxml=out.xml test_p.py", "out.xml"),
    "unittest-xml-reporting": Reporter(["nose2"], PY, "python3 -m xmlrunner --output-file out.xml test_p", "out.xml"),
    "nose2": Reporter(["nose2"], PY, "nose2 --plugin nose2.plugins.junitxml --junit-xml test_p", "nose2-junit.xml"),
    "robot": Reporter(
        ["robot"],
        {"work.py": PYTHON, "Work.py": ROBOT_LIBRARY, "t.robot": ROBOT},
        "robot --output NONE --log NONE --report NONE --xunit out.xml --pythonpath . t.robot",
        "out.xml",
    ),
    "behave": Reporter(
        ["behave"],
        {"work.py": PYTHON, "features/t.feature": FEATURE, "features/steps/s.py": BEHAVE_STEPS},
        "behave --junit --no-capture",
        "reports/*.xml",
    ),
    "node": Reporter(
        ["node"],
        js("const { test } = require('node:test'); const T = (name, run) => test(name, run); TESTS", "t.test.cjs"),
        "node --test --test-reporter=junit --test-reporter-destination=out.xml t.test.cjs",
        "out.xml",
    ),
    "mocha": Reporter(
        ["mocha"],
        js(DESCRIBE, "t.cjs"),
        "mocha --reporter mocha-junit-reporter t.cjs",
        "out.xml",
        environment={"MOCHA_FILE": "out.xml"},
    ),
    "jest": Reporter(
        ["jest"],
        js(DESCRIBE),
        "jest --reporters=jest-junit",
        "out.xml",
        environment={"JEST_JUNIT_OUTPUT_FILE": "out.xml"},
    ),
    "jest, two files": Reporter(
        ["jest"],
        {**js(DESCRIBE), **js(DESCRIBE, "u.test.js")},
        "npx jest --reporters=jest-junit",
        "out.xml",
        environment={"JEST_JUNIT_OUTPUT_FILE": "out.xml"},
    ),
    "vitest": Reporter(
        ["vitest"],
        {"a.test.mjs": VITEST, "b.test.mjs": VITEST, "package.json": '{"name": "x"}'},
        "npx vitest run --reporter=junit --outputFile=out.xml",
        "out.xml",
    ),
    "jasmine": Reporter(
        ["jasmine"],
        {
            **js(DESCRIBE, "t.cjs"),
            "r.cjs": "const r = require('jasmine-reporters'); jasmine.getEnv().addReporter(new r.JUnitXmlReporter({filePrefix: 'out'}));",
        },
        "jasmine --helper=r.cjs t.cjs",
        "out*.xml",
    ),
    "playwright": Reporter(
        ["playwright"],
        js(PLAYWRIGHT, "t.spec.js"),
        "playwright test --reporter=junit --workers=2",
        "out.xml",
        environment={"PLAYWRIGHT_JUNIT_OUTPUT_NAME": "out.xml"},
    ),
    "bats": Reporter(["bats"], {"t.bats": BATS}, "bats --report-formatter junit -o . t.bats", "report.xml"),
    "prove": Reporter(["prove"], PROVE, "sh -c 'prove --formatter TAP::Formatter::JUnit t > out.xml'", "out.xml"),
    "gtest": Reporter(
        ["g++"],
        {"t.cc": GTEST},
        "./t --gtest_output=xml:out.xml",
        "out.xml",
        before="g++ -O1 t.cc -o t -lgtest -lgtest_main -pthread",
    ),
    "catch2": Reporter(["g++"], {"t.cc": CATCH}, "./t -r junit -o out.xml", "out.xml", before="g++ -O0 t.cc -o t"),
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
        {"t_spec.rb": RSPEC},
        "rspec -r rspec_junit_formatter -f RspecJunitFormatter -o out.xml t_spec.rb",
        "out.xml",
    ),
    "phpunit": Reporter(["phpunit"], {"XTest.php": PHPUNIT}, "phpunit --log-junit out.xml XTest.php", "out.xml"),
    "mocha xunit": Reporter(
        ["mocha"], js(DESCRIBE, "t.cjs"), "mocha --reporter xunit --reporter-option output=out.xml t.cjs", "out.xml"
    ),
    "doctest": Reporter(["g++"], {"t.cc": DOCTEST}, "./t -r=junit -o=out.xml", "out.xml", before="g++ -O0 t.cc -o t"),
    "boost": Reporter(
        ["g++"],
        {"t.cc": BOOST},
        "./t --log_format=JUNIT --log_level=test_suite --log_sink=out.xml",
        "out.xml",
        before="g++ -O0 t.cc -o t",
    ),
    "cpputest": Reporter(
        ["g++"], {"t.cc": CPPUTEST}, "./t -ojunit", "cpputest_S.xml", before="g++ -O0 t.cc -o t -lCppUTest"
    ),
    "cmocka": Reporter(
        ["gcc"],
        {"t.c": CMOCKA},
        "./t",
        "out.xml",
        before="gcc -O0 t.c -o t -lcmocka",
        environment={"CMOCKA_XML_FILE": "out.xml"},
    ),
    "minitest": Reporter(["ruby"], {"t.rb": MINITEST}, "ruby t.rb", "reports/*.xml"),
    "busted": Reporter(["busted"], {"t_spec.lua": BUSTED}, "sh -c 'busted -o junit t_spec.lua > out.xml'", "out.xml"),
    "junit5 console": Reporter(
        ["javac"],
        {"XTest.java": JUNIT, "Work.java": JAVA},
        "java -cp '.:/usr/share/java/*' org.junit.platform.console.ConsoleLauncher -c XTest --reports-dir reports",
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
    "green": Reporter(["green"], PY, "green -s 1 --junit-report out.xml test_p.py", "out.xml"),
    "avocado": Reporter(
        ["avocado"],
        AVOCADO,
        "avocado run --max-parallel-tasks=1 --xunit out.xml " + " ".join(SCRIPTS),
        "out.xml",
        before="chmod +x *.sh",
    ),
    "meson": Reporter(["meson"], MESON, "meson test -C b", "b/meson-logs/testlog.junit.xml", before="meson setup b"),
    "nextest": Reporter(
        ["cargo-nextest"],
        NEXTEST,
        "cargo nextest run --offline",
        "target/nextest/default/out.xml",
        before="cargo nextest run --offline --no-run",
        environment={"RUST_BACKTRACE": "0"},
    ),
}


def record(args, reporter, place, more=None):
    """Records a runner with the environment `more`: its reports, and what it said if there is none."""
    results.lay_out(reporter.files, place)
    for path in args.path:
        modules = os.path.join(place, "node_modules")
        if os.path.basename(os.path.dirname(path)) == "node_modules" and not os.path.exists(modules):
            os.symlink(os.path.dirname(path), modules)
    # Go ignores a go.mod that lies in TMPDIR itself.
    temporary = os.path.join(place, "tmp")
    os.makedirs(temporary)
    quiet = {
        "cwd": place,
        "env": {**os.environ, **reporter.environment, "TMPDIR": temporary, **(more or {})},
        "stdin": subprocess.DEVNULL,
        "timeout": LIMIT,
        "text": True,
        "capture_output": True,
    }
    if reporter.before:
        done = subprocess.run(["sh", "-c", reporter.before], **quiet)
        if done.returncode:
            return [], f"not built: {done.stderr[-500:]}"
    trace = os.path.join(place, "trace.bin")
    done = subprocess.run([args.tr, "record", "-q", "-o", trace, "--", "sh", "-c", f"exec {reporter.command}"], **quiet)
    reports = glob.glob(os.path.join(place, reporter.report))
    return reports, "" if reports else f"no report: {(done.stderr + done.stdout).strip()[-800:]}"


def analyze(args, place, reports):
    """The report on the steps of the recording in `place` with these reports, None if it fails; and what was said."""
    withs = [word for report in reports for word in ("--with", report)]
    command = [args.tr, "analyze", os.path.join(place, "trace.bin"), *withs, "--report", "steps", "--format", "json"]
    out = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=LIMIT)
    said = out.stderr.strip().replace(place + "/", "")
    return None if out.returncode else json.loads(out.stdout), said


def run(args, name, reporter, place):
    """The steps of a recorded run with its report, what was said, and the number of tests in the report."""
    reports, said = record(args, reporter, place)
    if not reports:
        return None, said, 0
    if args.keep:
        shutil.copy2(os.path.join(place, "trace.bin"), os.path.join(args.keep, f"{name}.bin"))
        shutil.copy2(reports[0], os.path.join(args.keep, f"{name}.xml"))
    found, said = analyze(args, place, reports)
    return (None, said, 0) if found is None else (found["steps"]["steps"], said, count(reports))


def count(reports):
    """The number of tests of the reports."""
    return sum(len(re.findall(r"<testcase\b", open(report, encoding="utf-8").read())) for report in reports)


def judge(steps):
    """The tests that are right, wrong and without figures, and the lines for those that are not right."""
    counts, lines = {"right": 0, "wrong": 0, "none": 0}, []
    seen = set()
    for step in steps:
        name = step["name"].rsplit("/", 1)[-1]
        found = re.search(r"(computes|sleeps|helper|both|fails)[_ ](\d+)", name)
        # A step that `tr` itself knows has no result.
        if step["kind"] != "test" or step["result"] is None or not found:
            continue
        wanted = int(found[2])
        if step["on_cpu_ns"] is None:
            counts["none"] += 1
            lines.append(f"    {name}: {step['no_figures'] or 'no figures'}")
            continue
        if (step["pid"], step["start_ns"]) in seen:
            continue
        seen.add((step["pid"], step["start_ns"]))
        cpu = step["on_cpu_ns"] / 1e6
        start = 60 if found[1] == "helper" else 0  # of the program
        right = wanted - max(20, wanted * 0.2) <= cpu <= wanted + max(20, wanted * 0.2) + start
        counts["right" if right else "wrong"] += 1
        if not right:
            lines.append(f"    {name}: {cpu:.0f} ms of CPU, {wanted} wanted")
    return counts, lines


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tr", default="target/release/tr")
    options.add_argument("--path", action="append", default=[])
    options.add_argument("--load", type=int, default=0)
    options.add_argument("--keep")
    options.add_argument("--csv")
    options.add_argument("reporters", nargs="*")
    args = options.parse_args()
    args.tr = os.path.realpath(args.tr)
    args.path = [os.path.realpath(path) for path in args.path]
    os.environ["PATH"] = os.pathsep.join([*args.path, os.environ["PATH"]])
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(args.load)]
    rows, sums = [], {"right": 0, "wrong": 0, "none": 0}
    try:
        for name in args.reporters or REPORTERS:
            reporter = REPORTERS[name]
            absent = [program for program in reporter.needs if not shutil.which(program)]
            if absent:
                print(f"{name}: skipped, {', '.join(absent)} is not on PATH")
                continue
            with tempfile.TemporaryDirectory() as place:
                steps, said, tests = run(args, name, reporter, place)
            if steps is None:
                print(f"{name}: {said}")
                continue
            counts, lines = judge(steps)
            # A test around others and one without a place are no steps here.
            counts["none"] = max(tests - counts["right"] - counts["wrong"], counts["none"])
            print(f"{name}: {counts['right']} right, {counts['wrong']} wrong, {counts['none']} none")
            print("\n".join([*lines, *([f"    {said}"] if counts["none"] or not counts["right"] else [])]), flush=True)
            rows.append({"reporter": name, "load": args.load, **counts})
            for key, value in counts.items():
                sums[key] += value
    finally:
        for loop in loops:
            loop.kill()
    print(f"all: {sums['right']} right, {sums['wrong']} wrong, {sums['none']} none")
    if args.csv and rows:
        results.write(args.csv, list(rows[0]), rows)
    sys.exit(sums["wrong"] > 0)


if __name__ == "__main__":
    main()
