// Tests of `node --test` (Node 20.12 and later) become steps of a recording by `tr record`.
//
//     tr record -- node --import ./integrations/node-marks.mjs --test
//
// Node runs each file in a process of its own. The hooks run there, so the times are those of the
// tests; a reporter gets them later, file by file. Outside of a recording this does nothing.

import { closeSync, constants, openSync, writeSync } from 'node:fs';

const path = process.env.TR_MARKS;
if (path && process.env.NODE_TEST_CONTEXT) {
  const { beforeEach, afterEach } = await import('node:test');
  const write = (line) => {
    const t = Number(process.hrtime.bigint());
    try {
      const file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
      writeSync(file, JSON.stringify({ t, kind: 'test', pid: process.pid, ...line }) + '\n');
      closeSync(file);
    } catch {
      // A full disk must not fail a test.
    }
  };
  beforeEach((test) => write({ ev: 'begin', name: test.fullName ?? test.name }));
  afterEach((test) => {
    const result = test.passed ? 'passed' : 'failed';
    write({ ev: 'end', name: test.fullName ?? test.name, result });
  });
}
