// Starts and stops recordings.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { problem } from "./report.mjs";
import { asked, environment, failure, input, recordingName } from "./runner.mjs";
import { KIT } from "./tool.mjs";

/** The options, one a line: `--name=value` or `-nvalue`. In the input a blank may stand before the value,
 * which is the rest of the line. */
function options() {
  const lines = input("options")
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const joined = lines.map((line) => line.replace(/^(--[\w-]+)\s+/, "$1=").replace(/^(-\w)\s+/, "$1"));
  return asked("sudo") ? ["--sudo", ...joined] : joined;
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Runs a command to its end. Gives its exit status. */
function run([program, ...args], cwd) {
  const child = spawn(program, args, { cwd, env: environment(), stdio: "inherit" });
  // The runner signals this process alone when the job is cancelled.
  const pass = (signal) => child.kill(signal);
  process.on("SIGINT", pass);
  process.on("SIGTERM", pass);
  return new Promise((done) => {
    child.on("error", (error) => {
      process.stderr.write(`${error.message}\n`);
      done(127);
    });
    child.on("close", (code, signal) => done(code ?? (signal === "SIGINT" ? 130 : 143)));
  });
}

/** Runs the script as the runner runs a step, recorded if tr can do so. Gives its exit status. */
export async function script(tr, trace) {
  const cwd = path.resolve(input("working-directory") || ".");
  if (!fs.statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    failure(`the working-directory ${cwd} is no directory`);
    return 127;
  }
  // As the runner runs a step that names no shell.
  const shell = spawnSync("bash", ["-c", ":"]).status === 0 ? "bash" : "sh";
  const text = `${process.env.INPUT_RUN}\n`;
  // The same name in each run, so that tr-trace diff matches the processes.
  const file = path.join(process.env.RUNNER_TEMP ?? os.tmpdir(), `${recordingName()}.sh`);
  try {
    fs.writeFileSync(file, text);
  } catch (error) {
    problem(`the script is not recorded: ${error.message}`);
    return run([shell, "-e", "-c", text], cwd);
  }
  const command = [shell, "-e", file];
  // dash drops variables whose names are no identifiers. POSIX mode reads no BASH_ENV once more.
  const kit = shell === "bash" ? ["bash", "--posix", KIT] : ["sh", KIT];
  return run(tr ? [...kit, "tr_run", trace, tr, options().join("\n"), ...command] : command, cwd);
}

/** Fields of /proc/PID/stat after the name, which may hold blanks. */
function stat(pid) {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    const end = text.lastIndexOf(")");
    const [state, parent, ...rest] = text.slice(end + 2).split(" ");
    return { name: text.slice(text.indexOf("(") + 1, end), state, parent: Number(parent), start: rest[17] };
  } catch {
    return undefined;
  }
}

/** The process that starts the steps of the job. In a job's container it is not visible. */
function worker() {
  let pid = process.ppid;
  for (let up = 0; pid > 1 && up < 5; up += 1) {
    const is = stat(pid);
    if (is?.name === "Runner.Worker") return pid;
    pid = is?.parent ?? 0;
  }
  throw new Error("the process of the runner is not visible (a job in a container?): give an input run");
}

/** Starts a recorder of the whole job. Gives its pid and start time, which identify it. */
export async function start(tr, trace) {
  const log = `${trace}.log`;
  const out = fs.openSync(log, "w", 0o600);
  const args = ["record", "-o", trace, "--pid", String(worker()), ...options()];
  const child = spawn(tr, args, { env: environment(), stdio: ["ignore", out, out], detached: true });
  child.unref();
  let ended;
  child.on("error", (error) => (ended = error.message));
  child.on("exit", (code) => (ended = `tr-trace record ended with status ${code}`));
  // The file appears when recording has begun. The last wait is part of it, so a wait is short.
  for (let waited = 0; waited < 3000 && !fs.existsSync(trace); waited += 1) {
    if (ended) throw new Error(`${ended}: ${fs.readFileSync(log, "utf8").trim()}`);
    await sleep(10);
  }
  if (!fs.existsSync(trace)) {
    child.kill("SIGINT");
    throw new Error("tr-trace record did not start within 30 s");
  }
  return { pid: child.pid, start: stat(child.pid)?.start ?? "" };
}

/** Ends the recorder of the whole job, and waits until the recording is complete. */
export async function stop(trace, pid, begun) {
  const alive = () => {
    const is = stat(pid);
    return is && is.start === begun && is.state !== "Z";
  };
  if (alive()) process.kill(pid, "SIGINT");
  for (let waited = 0; waited < 300 && alive(); waited += 1) await sleep(100);
  process.stdout.write(fs.readFileSync(`${trace}.log`, "utf8"));
  if (alive()) throw new Error("tr-trace record did not end within 30 s");
}
