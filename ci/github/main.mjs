// The action's step: records the script of the input run, or starts the recording of the job.
import path from 'node:path';
import * as recorder from './recorder.mjs';
import { problem, report, reportOfRun, strictly } from './report.mjs';
import * as runner from './runner.mjs';
import { find } from './tool.mjs';

/** The path of a tr, or undefined: the job goes on without a recording. */
async function tool() {
  try {
    return await find();
  } catch (error) {
    problem(error.message);
    return undefined;
  }
}

const directory = runner.scratch();
const files = { trace: path.join(directory, 'trace.bin'), page: path.join(directory, 'report.html') };
runner.output('trace', files.trace);
runner.output('page', files.page);
const tr = await tool();
let status = 0;
let exceeded = false;
if (runner.input('of-run')) {
  if (tr) exceeded = await reportOfRun(tr).catch((error) => problem(error.message));
} else if (runner.input('run')) {
  status = await recorder.script(tr, files.trace);
  runner.output('status', status);
  if (tr) exceeded = await report(tr, files).catch((error) => problem(error.message));
} else if (tr) {
  try {
    const { pid, start } = await recorder.start(tr, files.trace);
    const values = { tr, pid, start, ...files };
    for (const [name, value] of Object.entries(values)) runner.saveState(name, value);
  } catch (error) {
    problem(`the job is not recorded: ${error.message}`);
  }
}
process.exitCode = status || (exceeded || strictly() ? 1 : 0);
