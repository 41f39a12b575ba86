"""The suites of benches/validation/verdicts.py: four small tests and one, `subject`, each in the words of its runner.

A suite is made once in its directory; each function returns the command, and the report that `tr` gets by `--with`, if any.
"""

import os
import subprocess
import sys

from results import lay_out

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PYTHON = sys.executable
# Not one of the tests' names begins with another's.
TESTS = ["one", "two", "three", "four", "subject"]


def words(name):
    return "subject" if name == "subject" else "small"


def each(text):
    """A text for each test: NAME, WORD and PYTHON stand for its name, op.py's argument and the interpreter."""
    one = [text.replace("NAME", name).replace("WORD", words(name)).replace("PYTHON", PYTHON) for name in TESTS]
    return "".join(one)


def build(place, *command):
    subprocess.run(command, cwd=place, check=True, capture_output=True)


def pytest(place, _):
    lay_out(place, {"test_x.py": "from op import run\n" + each('def test_NAME(): assert run(["WORD"]) == 0\n')})
    return [
        "env",
        f"PYTHONPATH={HERE}/integrations",
        PYTHON,
        "-m",
        "pytest",
        "-q",
        "-p",
        "pytest_tr_marks",
        "-p",
        "no:cacheprovider",
        "test_x.py",
    ], None


def prove(place, _):
    for name in TESTS:
        lay_out(
            place,
            {
                f"t/{name}.t": f"#!/bin/sh\necho 1..1\n{PYTHON} op.py {words(name)} && echo ok 1 || {{ echo not ok 1; exit 1; }}\n"
            },
        )
    return ["prove", "-e", "sh", "t"], None


def bats(place, _):
    lay_out(place, {"x.bats": each('@test "NAME" {\n PYTHON op.py WORD\n}\n')})
    return ["bats", "x.bats"], None


def ctest(place, _):
    lay_out(place, {"CTestTestfile.cmake": each(f"add_test(NAME PYTHON {place}/op.py WORD)\n")})
    return ["ctest"], None


def node(place, _):
    one = "test('NAME', () => { const r = spawnSync('PYTHON', ['op.py', 'WORD'], { stdio: 'inherit' }); if (r.status !== 0) throw new Error('failed'); });\n"
    lay_out(
        place,
        {"x.test.mjs": "import test from 'node:test';\nimport { spawnSync } from 'node:child_process';\n" + each(one)},
    )
    return ["node", "--import", f"{HERE}/integrations/node-marks.mjs", "--test", "x.test.mjs"], None


def cargo(place, _):
    one = '#[test]\nfn NAME() { assert!(std::process::Command::new("PYTHON").args(["op.py", "WORD"]).status().unwrap().success()); }\n'
    lay_out(
        place,
        {
            "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n',
            "src/lib.rs": each(one),
        },
    )
    build(place, "cargo", "test", "--offline", "--no-run", "-q")
    return ["cargo", "test", "--offline", "-q", "--", "--test-threads=1"], None


# The rules were not made with these. None has marks: some write a report, of the others the suite is the step.


def unittest(place, _):
    lay_out(
        place,
        {
            "test_x.py": "import unittest\nfrom op import run\nclass X(unittest.TestCase):\n"
            + each(' def test_NAME(self): self.assertEqual(run(["WORD"]), 0)\n')
        },
    )
    return [PYTHON, "-m", "unittest", "-q", "test_x"], None


def go(place, _):
    one = 'func Test_NAME(t *testing.T) { if exec.Command("PYTHON", "op.py", "WORD").Run() != nil { t.Fail() } }\n'
    lay_out(
        place, {"go.mod": "module x\ngo 1.18\n", "x_test.go": 'package x\nimport ("os/exec"; "testing")\n' + each(one)}
    )
    build(place, "go", "test", "-count=1", "-run", "nothing", ".")
    return ["go", "test", "-count=1", "."], None


def gtest(place, _):
    one = 'TEST(X, NAME) { EXPECT_EQ(0, system("PYTHON op.py WORD")); }\n'
    lay_out(place, {"x_test.cc": "#include <gtest/gtest.h>\n#include <stdlib.h>\n" + each(one)})
    build(place, "g++", "-o", "x_test", "x_test.cc", "-lgtest", "-lgtest_main", "-lpthread")
    return ["./x_test", "--gtest_output=xml:junit.xml"], "junit.xml"


def mocha(place, modules):
    one = "it('NAME', function () { this.timeout(30000); assert.equal(spawnSync('PYTHON', ['op.py', 'WORD']).status, 0); });\n"
    lay_out(
        place,
        {"test.js": "const assert = require('assert'); const { spawnSync } = require('child_process');\n" + each(one)},
    )
    return [
        "node",
        f"{modules}/mocha/bin/mocha.js",
        "--reporter",
        "xunit",
        "--reporter-option",
        "output=junit.xml",
        "test.js",
    ], "junit.xml"


def jest(place, modules):
    one = "test('NAME', () => expect(spawnSync('PYTHON', ['op.py', 'WORD']).status).toBe(0), 30000);\n"
    lay_out(place, {"package.json": "{}", "x.test.js": "const { spawnSync } = require('child_process');\n" + each(one)})
    return ["node", f"{modules}/jest/bin/jest.js", "--ci"], None


def vitest(place, modules):
    one = "test('NAME', () => expect(spawnSync('PYTHON', ['op.py', 'WORD']).status).toBe(0), 30000);\n"
    lay_out(
        place,
        {
            "package.json": "{}",
            "x.test.js": "import { spawnSync } from 'child_process';\nimport { test, expect } from 'vitest';\n"
            + each(one),
        },
    )
    if not os.path.exists(f"{place}/node_modules"):
        os.symlink(modules, f"{place}/node_modules")
    return ["node", f"{modules}/vitest/vitest.mjs", "run"], None


def rspec(place, _):
    lay_out(
        place,
        {
            "x_spec.rb": "RSpec.describe 'X' do\n"
            + each(' it("NAME") { expect(system("PYTHON", "op.py", "WORD")).to be(true) }\n')
            + "end\n"
        },
    )
    return ["rspec", "--order", "defined", "x_spec.rb"], None


def minitest(place, _):
    lay_out(
        place,
        {
            "test_x.rb": "require 'minitest/autorun'\nclass X < Minitest::Test\n"
            + each(' def test_NAME; assert system("PYTHON", "op.py", "WORD"); end\n')
            + "end\n"
        },
    )
    return ["ruby", "test_x.rb"], None


def phpunit(place, _):
    one = ' public function testNAME(): void { exec("PYTHON op.py WORD", $out, $status); $this->assertSame(0, $status); }\n'
    lay_out(
        place,
        {
            "XTest.php": "<?php\nuse PHPUnit\\Framework\\TestCase;\nfinal class XTest extends TestCase {\n"
            + each(one)
            + "}\n"
        },
    )
    return ["phpunit", "--log-junit", "junit.xml", "XTest.php"], "junit.xml"


def junit(place, _):
    one = ' @Test public void NAME() throws Exception { Assert.assertEquals(0, new ProcessBuilder("PYTHON", "op.py", "WORD").start().waitFor()); }\n'
    lay_out(place, {"XTest.java": "import org.junit.*;\npublic class XTest {\n" + each(one) + "}\n"})
    path = "/usr/share/java/junit4.jar:/usr/share/java/hamcrest-core.jar:/usr/share/java/hamcrest.jar:."
    build(place, "javac", "-cp", path, "XTest.java")
    return ["java", "-cp", path, "org.junit.runner.JUnitCore", "XTest"], None


MADE_WITH = {"pytest": pytest, "prove": prove, "bats": bats, "ctest": ctest, "node": node, "cargo": cargo}
HELD = {
    "unittest": unittest,
    "go": go,
    "gtest": gtest,
    "mocha": mocha,
    "jest": jest,
    "vitest": vitest,
    "rspec": rspec,
    "minitest": minitest,
    "phpunit": phpunit,
    "junit": junit,
}
SUITES = {**MADE_WITH, **HELD}
# What the runner itself takes of memory, in MiB.
MEMORY = {
    "node": 60,
    "mocha": 80,
    "jest": 260,
    "vitest": 300,
    "junit": 160,
    "phpunit": 30,
    "rspec": 30,
    "cargo": 40,
    "go": 120,
}
