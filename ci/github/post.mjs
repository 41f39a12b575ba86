// Runs after the last step, also of a failed job: ends the recording of the job, and reports.
import * as recorder from "./recorder.mjs";
import { problem, report, strictly } from "./report.mjs";
import { state } from "./runner.mjs";

if (state("pid")) {
  let exceeded = false;
  try {
    await recorder.stop(state("trace"), Number(state("pid")), state("start"));
    exceeded = await report(state("tr"), { trace: state("trace"), page: state("page") });
  } catch (error) {
    problem(error.message);
  }
  process.exitCode = exceeded || strictly() ? 1 : 0;
}
