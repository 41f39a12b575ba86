// Tests of `node --test` become steps of a recording by `tr-trace record`. It needs Node 20.16, or 22.3 and later: the hooks of
// older ones know neither the result nor the groups of a test, and nothing is marked there.
//
//     tr-trace record -- node --import ./integrations/node-marks.mjs --test
//
// Node runs each file in a process of its own. The hooks run there, so the times are those of the
// tests; a reporter gets them later, file by file. Outside of a recording this does nothing.

import { closeSync, constants, openSync, writeSync } from "node:fs";

const path = process.env.TR_MARKS;
const [major, minor] = process.versions.node.split(".").map(Number);
const recent = major > 22 || (major === 22 && minor >= 3) || (major === 20 && minor >= 16);
if (path && process.env.NODE_TEST_CONTEXT && !recent) {
  console.error(
    `node-marks: no test is marked: Node ${process.versions.node} lacks the results and groups of tests ` +
      "in hooks; 20.16, or 22.3 and later have them",
  );
} else if (path && process.env.NODE_TEST_CONTEXT) {
  const { beforeEach, afterEach } = await import("node:test");
  const write = (line) => {
    const t = Number(process.hrtime.bigint());
    try {
      const file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
      writeSync(file, JSON.stringify({ t, kind: "test", pid: process.pid, ...line }) + "\n");
      closeSync(file);
    } catch {
      // A full disk must not fail a test.
    }
  };
  beforeEach((test) => write({ ev: "begin", name: test.fullName }));
  afterEach((test) => {
    const result = test.passed ? "passed" : "failed";
    write({ ev: "end", name: test.fullName, result });
  });
}
