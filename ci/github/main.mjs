// The action's step: records the script of the input run, or starts the recording of the job.
import path from "node:path";
import * as recorder from "./recorder.mjs";
import { problem, report, reportOfRun, strictly } from "./report.mjs";
import * as runner from "./runner.mjs";
import { find } from "./tool.mjs";

const files = {};
let tr;
try {
  const directory = runner.scratch();
  files.trace = path.join(directory, "trace.bin");
  files.page = path.join(directory, "report.html");
  for (const [name, file] of Object.entries(files)) runner.output(name, file);
  tr = await find();
} catch (error) {
  // The job goes on without a recording.
  problem(error.message);
}
let status = 0;
let exceeded = false;
if (runner.input("of-run")) {
  if (tr) exceeded = await reportOfRun(tr).catch((error) => problem(error.message));
} else if (runner.input("run")) {
  status = await recorder.script(tr, files.trace);
  runner.output("status", status);
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
