#!/usr/bin/env python3
"""Records test runners of many languages and compares the CPU time that `tr` gives to each of their tests with what it is.

usage: benches/validation/reporters.py [--tr TR] [--path DIR]... [--load N] [--keep DIR] [--csv FILE] [REPORTER...]

Each runner has tests that compute, that sleep, that fail after a sleep and that wait for a program; a test's name has its CPU
time in ms. A figure is *right* within 20 % or 20 ms (a program's start counts to its test), else *wrong*, and so is a place that does
not hold what the test did at the times that it noted. A test without figures is *placed* if its place is known, else *none*. --load runs so many busy loops beside them. Needs root. A runner that is not on PATH (or in
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
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import results

LIMIT = 300
# The error of the times of the day that the tests note, in ms.
CLOCKS = 5
# The file in which the tests note them.
TRUTH = "truth.txt"
# The runners of which each test is a process, which needs time to begin and to end.
PROCESSES = {"bats", "ctest", "ctest, gtest", "meson", "avocado", "nextest", "criterion", "prove"}

PYTHON = """
import contextlib, os, subprocess, sys, time
@contextlib.contextmanager
def true(what, seconds):
    began = time.time()
    yield
    with open(os.environ['TRUTH'], 'a') as out: out.write(f'{what}_{seconds * 1e3:.0f} {began * 1e3:.3f} {time.time() * 1e3:.3f}\\n')
def compute(seconds):
    with true('compute', seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
def nap(seconds):
    with true('nap', seconds): time.sleep(seconds)
def helper(seconds):
    with true('helper', seconds):
        subprocess.run([sys.executable, '-S', '-c', f'import time\\nwhile time.process_time() < {seconds}: pass'], check=True)
"""

UNITTEST = """
import unittest
from work import compute, helper, nap
class T(unittest.TestCase):
    def test_a_computes_300(self): compute(.3)
    def test_b_sleeps_0(self): nap(.4)
    def test_c_helper_400(self): helper(.4)
    def test_d_helper_200(self): helper(.2)
    def test_e_both_100(self): compute(.1); nap(.2)
    def test_f_fails_0(self): nap(.3); self.fail('x')
    def test_g_computes_500(self): compute(.5)
"""

JS = """
const now = () => performance.timeOrigin + performance.now();
const note = (what, s, began) => require('fs').appendFileSync(process.env.TRUTH, `${what}_${Math.round(s * 1e3)} ${began.toFixed(3)} ${now().toFixed(3)}\\n`);
const used = (since) => { const u = process.cpuUsage(since); return u.user + u.system; };
const compute = (s) => { const began = now(), since = process.cpuUsage(); while (used(since) < s * 1e6) ; note('compute', s, began); };
const sleep = async (s) => { const began = now(); await new Promise((r) => setTimeout(r, s * 1000)); note('nap', s, began); };
"""

JS_TESTS = """
T('a computes 300', () => compute(.3));
T('b sleeps 0', () => sleep(.4));
T('e both 100', async () => { compute(.1); await sleep(.2); });
T('f fails 0', async () => { await sleep(.3); throw new Error('x'); });
T('g computes 500', () => compute(.5));
"""

# The program notes its own life.
SHELL_HELPER = 'python3 -S -c \'import os, time\nbegan = time.time()\nwhile time.process_time() < %s: pass\nos.write(os.open(os.environ["TRUTH"], os.O_WRONLY | os.O_APPEND | os.O_CREAT), f"helper_{%s * 1e3:.0f} {began * 1e3:.3f} {time.time() * 1e3:.3f}\\n".encode())\''
# bash reads the clock without a program.
SHELL_NAP = (
    "began=${EPOCHREALTIME/./}; sleep %s; ended=${EPOCHREALTIME/./}; echo nap_%s ${began%%???} ${ended%%???} >> $TRUTH"
)


def shell_helper(seconds):
    return SHELL_HELPER % (seconds, seconds)


def shell_nap(ms):
    return SHELL_NAP % (ms / 1000, ms)


C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double clocked(clockid_t of) { struct timespec t; clock_gettime(of, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void note(const char* what, double s, double began) {
  FILE* out = fopen(getenv("TRUTH"), "a");
  fprintf(out, "%s_%.0f %.3f %.3f\n", what, s * 1e3, began * 1e3, clocked(CLOCK_REALTIME) * 1e3);
  fclose(out);
}
static void nap(double s) {
  double began = clocked(CLOCK_REALTIME);
  struct timespec t = {(time_t)s, (long)((s - (long)s) * 1e9)};
  nanosleep(&t, 0);
  note("nap", s, began);
}
static void compute(double s) {
  double began = clocked(CLOCK_REALTIME), end = clocked(CLOCK_THREAD_CPUTIME_ID) + s;
  while (clocked(CLOCK_THREAD_CPUTIME_ID) < end) ;
  note("compute", s, began);
}
"""

RUBY = """
def true_of(what, s)
  began = Time.now.to_f
  yield
  File.write(ENV['TRUTH'], format("%s_%.0f %.3f %.3f\\n", what, s * 1e3, began * 1e3, Time.now.to_f * 1e3), mode: 'a')
end
def compute(s)
  true_of('compute', s) do
    stop = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + s
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < stop
  end
end
def nap(s) = true_of('nap', s) { sleep s }
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
import work
from work import compute, helper
class Work:
    def burn(self, s): compute(float(s))
    def nap(self, s): work.nap(float(s))
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
from behave import given, then
import work
from work import compute, helper
@given('burn {s:f}')
def burn(context, s): compute(s)
@given('nap {s:f}')
def nap(context, s): work.nap(s)
@given('kid {s:f}')
def kid(context, s): helper(s)
@then('fail')
def fail(context): assert False
"""

BATS = f"""
@test "b sleeps 0" {{ {shell_nap(400)}; }}
@test "c helper 400" {{ {shell_helper(0.4)}
}}
@test "d helper 200" {{ {shell_helper(0.2)}
}}
@test "f fails 0" {{ {shell_nap(300)}; false; }}
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
import ("fmt"; "os"; "testing"; "time"; "syscall")
func note(what string, s float64, began time.Time) {
  out, _ := os.OpenFile(os.Getenv("TRUTH"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0644)
  fmt.Fprintf(out, "%s_%.0f %d %d\\n", what, s * 1e3, began.UnixMilli(), time.Now().UnixMilli())
  out.Close()
}
func nap(s float64) { began := time.Now(); time.Sleep(time.Duration(s * 1e9)); note("nap", s, began) }
func used() int64 { var u syscall.Rusage; syscall.Getrusage(1, &u); return u.Utime.Nano() + u.Stime.Nano() }
func compute(s float64) { began, end := time.Now(), used() + int64(s*1e9); for used() < end { }; note("compute", s, began) }
func TestA_computes_300(t *testing.T) { compute(.3) }
func TestB_sleeps_0(t *testing.T) { nap(.4) }
func TestE_both_100(t *testing.T) {
  t.Run("x_computes_100", func(t *testing.T) { compute(.1) })
  t.Run("y_sleeps_0", func(t *testing.T) { nap(.2) })
}
func TestF_fails_0(t *testing.T) { nap(.3); t.Fail() }
func TestG_computes_500(t *testing.T) { compute(.5) }
"""

RSPEC = (
    RUBY
    + """
describe 's' do
  it('a computes 300') { compute(0.3) }
  it('b sleeps 0') { nap 0.4 }
  it('e both 100') { compute(0.1); nap 0.2 }
  it('f fails 0') { nap 0.3; raise 'x' }
  it('g computes 500') { compute(0.5) }
end
"""
)

PHPUNIT = """<?php
function used() { $u = getrusage(); return $u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec'] + ($u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec']) / 1e6; }
function note($what, $s, $began) { file_put_contents(getenv('TRUTH'), sprintf("%s_%.0f %.3f %.3f\\n", $what, $s * 1e3, $began * 1e3, microtime(true) * 1e3), FILE_APPEND); }
function compute($s) { $began = microtime(true); $end = used() + $s; while (used() < $end) {} note('compute', $s, $began); }
function nap($s) { $began = microtime(true); usleep((int) round($s * 1e6)); note('nap', $s, $began); }
class XTest extends PHPUnit\\Framework\\TestCase {
  function test_a_computes_300() { compute(.3); $this->assertTrue(true); }
  function test_b_sleeps_0() { nap(.4); $this->assertTrue(true); }
  function test_e_both_100() { compute(.1); nap(.2); $this->assertTrue(true); }
  function test_f_fails_0() { nap(.3); $this->assertTrue(false); }
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
  def test_b_sleeps_0; nap 0.4; end
  def test_e_both_100; compute(0.1); nap 0.2; end
  def test_f_fails_0; nap 0.3; flunk 'x'; end
  def test_g_computes_500; compute(0.5); end
end
"""
)

BUSTED = """
local now = require('system').gettime
local function note(what, s, began)
  local out = io.open(os.getenv('TRUTH'), 'a')
  out:write(string.format('%s_%.0f %.3f %.3f\\n', what, s * 1e3, began * 1e3, now() * 1e3))
  out:close()
end
local function compute(s) local began, stop = now(), os.clock() + s; while os.clock() < stop do end; note('compute', s, began) end
local function nap(s) local began = now(); require('system').sleep(s); note('nap', s, began) end
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
    long began = System.currentTimeMillis();
    while (bean.getCurrentThreadCpuTime() < stop) { }
    note("compute", s, began);
  }
  static void nap(double s) throws Exception {
    long began = System.currentTimeMillis();
    Thread.sleep((long)(s * 1000));
    note("nap", s, began);
  }
  static void note(String what, double s, long began) {
    try (var out = new java.io.FileWriter(System.getenv("TRUTH"), true)) {
      out.write(String.format("%s_%d %d %d\\n", what, Math.round(s * 1e3), began, System.currentTimeMillis()));
    } catch (java.io.IOException error) { throw new RuntimeException(error); }
  }
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
    "b_sleeps_0.sh": shell_nap(400) + "\n",
    "c_helper_400.sh": shell_helper(0.4) + "\n",
    "d_helper_200.sh": shell_helper(0.2) + "; sleep 0.1\n",
    "f_fails_0.sh": shell_nap(300) + "; exit 1\n",
    "g_helper_500.sh": "exec " + shell_helper(0.5) + "\n",
}

NAMES = [name.removesuffix(".sh") for name in SCRIPTS]

MESON = {
    "meson.build": "project('x')\nsh = find_program('bash')\n"
    + "".join(f"test('{name}', sh, args: [files('{name}.sh')])\n" for name in NAMES),
    **SCRIPTS,
}

AVOCADO = {name: "#!/bin/bash\n" + text for name, text in SCRIPTS.items()}

PROVE = {
    f"t/{name}.t": f'#!/usr/bin/perl\nuse Time::HiRes "time"; my $began = time; {body}; open my $out, ">>", $ENV{{TRUTH}}; '
    f'printf $out "{what} %.3f %.3f\\n", $began * 1e3, time() * 1e3; close $out; print "1..1\\n{result} 1\\n";\n'
    for name, what, body, result in [
        ("a_computes_300", "compute_300", "1 while (times)[0] + (times)[1] < .3", "ok"),
        ("b_sleeps_0", "nap_400", "select undef, undef, undef, .4", "ok"),
        ("f_fails_0", "nap_300", "select undef, undef, undef, .3", "not ok"),
        ("g_computes_500", "compute_500", "1 while (times)[0] + (times)[1] < .5", "ok"),
    ]
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
    "lib.rs": """#[cfg(test)] mod tests {
use std::{fs::OpenOptions, io::Write, process::Command, thread::sleep, time::{Duration, SystemTime, UNIX_EPOCH}};
fn now() -> f64 { SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1e3 }
fn note(what: &str, began: f64) {
  let mut out = OpenOptions::new().append(true).create(true).open(std::env::var("TRUTH").unwrap()).unwrap();
  writeln!(out, "{what} {began:.3} {:.3}", now()).unwrap();
}
fn nap(ms: u64) { let began = now(); sleep(Duration::from_millis(ms)); note(&format!("nap_{ms}"), began) }
fn helper(ms: u64) {
  let began = now();
  let s = ms as f64 / 1e3;
  Command::new("python3").args(["-S", "-c", &format!("import time\\nwhile time.process_time() < {s}: pass")]).status().unwrap();
  note(&format!("helper_{ms}"), began)
}
#[test] fn b_sleeps_0() { nap(400); }
#[test] fn c_helper_400() { helper(400); }
#[test] fn f_fails_0() { nap(300); panic!() }
#[test] fn d_helper_200() { helper(200); }
#[test] fn g_helper_500() { helper(500); }
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
    truth = os.path.join(place, TRUTH)
    reports, said = record(args, reporter, place, {"TRUTH": truth})
    if not reports:
        return None, said, 0
    if args.keep:
        shutil.copy2(os.path.join(place, "trace.bin"), os.path.join(args.keep, f"{name}.bin"))
        shutil.copy2(reports[0], os.path.join(args.keep, f"{name}.xml"))
    found, said = analyze(args, place, reports)
    return (None, said, 0) if found is None else (timed(found), said, count(reports))


def timed(found):
    """The steps of a report, each with the beginning of its recording in ms since 1970."""
    steps = found["steps"]["steps"]
    for step in steps:
        step["began_ms"] = found["trace"]["start_unix_ns"] / 1e6
    return steps


def count(reports):
    """The number of tests of the reports."""
    return sum(len(re.findall(r"<testcase\b", open(report, encoding="utf-8").read())) for report in reports)


# What a test does, by the letter of its name, as the suites note it.
PARTS = {
    "a": [{"compute_300"}],
    "b": [{"nap_400"}],
    "c": [{"helper_400"}],
    "d": [{"helper_200"}],
    "e": [{"compute_100"}, {"nap_200"}],
    "f": [{"nap_300"}],
    "g": [{"compute_500", "helper_500"}],
    "x": [{"compute_100"}],
    "y": [{"nap_200"}],
}


def bodies(truth):
    """For each letter of a test, the beginning and the end of each of its runs, in ms since 1970."""
    with open(truth) as lines:
        noted = [line.split() for line in lines]
    noted = [(what, float(began), float(ended)) for what, began, ended in noted]
    found = {}
    for letter, parts in PARTS.items():
        firsts = [(began, ended) for what, began, ended in noted if what in parts[0]]
        for began, ended in firsts:
            if len(parts) > 1:
                ends = [last for what, first, last in noted if what in parts[1] and first >= ended - 1]
                if not ends:
                    continue
                ended = min(ends)
            found.setdefault(letter, []).append((began, ended))
    return found


def is_beside(step, bodies, length, is_process):
    """Whether no run of a test lies where `tr` shows it, with the error that `tr` gives. `bodies` has the beginning and the end of what
    each run did, in ms since 1970. It is inside the run, which has no more than its length in the report before and after it. A process
    that is one test prepares it for a time that nobody measured."""
    error = step["place_error_ns"] / 1e6 + CLOCKS
    begin, end = step["start_ns"] / 1e6 + step["began_ms"], step["end_ns"] / 1e6 + step["began_ms"]

    def fits(first, last):
        longest = math.inf if is_process else max(length, last - first)
        is_begin = last - longest - error <= begin <= first + error
        return is_begin and last - error <= end <= first + longest + error

    return not any(fits(first, last) for first, last in bodies)


def judge(name, steps, truth):
    """The tests that are right, wrong, placed with an error that is too large for figures, and without a place; and the lines for those
    that are not right."""
    counts, lines = {"right": 0, "wrong": 0, "placed": 0, "none": 0}, []
    seen, runs = set(), bodies(truth)
    runner = name
    for step in steps:
        name = step["name"].rsplit("/", 1)[-1]
        found = re.search(r"(computes|sleeps|helper|both|fails)[_ ](\d+)", name)
        # A step that `tr` itself knows has no result.
        if step["kind"] != "test" or step["result"] is None or not found:
            continue
        wanted = int(found[2])
        letter = name[: found.start()].strip(" _")[-1:].lower()
        has_place = step["place_error_ns"] is not None
        length = (step["end_ns"] - step["start_ns"]) / 1e6
        if has_place and is_beside(step, runs.get(letter, []), length, runner in PROCESSES):
            counts["wrong"] += 1
            lines.append(f"    {name}: MISPLACED by more than {step['place_error_ns'] / 1e6:.1f} ms")
            continue
        if step["on_cpu_ns"] is None:
            counts["placed" if has_place else "none"] += 1
            place = "placed, " if has_place else ""
            lines.append(
                f"    {name}: {'VERDICT, ' if step['verdict'] else ''}{place}{step['no_figures'] or 'no figures'}"
            )
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
    rows, sums = [], {"right": 0, "wrong": 0, "placed": 0, "none": 0}
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
                counts, lines = judge(name, steps, os.path.join(place, TRUTH))
            # A test around others and one without a place are no steps here.
            counts["none"] = max(tests - counts["right"] - counts["wrong"] - counts["placed"], counts["none"])
            print(f"{name}: " + ", ".join(f"{value} {key}" for key, value in counts.items()))
            print("\n".join([*lines, *([f"    {said}"] if counts["none"] or not counts["right"] else [])]), flush=True)
            rows.append({"reporter": name, "load": args.load, **counts})
            for key, value in counts.items():
                sums[key] += value
    finally:
        for loop in loops:
            loop.kill()
    print("all: " + ", ".join(f"{value} {key}" for key, value in sums.items()))
    if args.csv and rows:
        results.write(args.csv, list(rows[0]), rows)
    sys.exit(sums["wrong"] > 0)


if __name__ == "__main__":
    main()
