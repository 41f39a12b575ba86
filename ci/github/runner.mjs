// The protocol between the runner and an action: inputs, state, outputs, commands in the log.
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

export const input = (name) => (process.env[`INPUT_${name.toUpperCase()}`] ?? "").trim();
export const asked = (name) => input(name) === "true";
export const state = (name) => process.env[`STATE_${name}`] ?? "";

/** Appends to one of the runner's files. A failure is a warning: it must not end the job. */
function append(file, text) {
  if (!process.env[file]) return;
  try {
    fs.appendFileSync(process.env[file], text);
  } catch (error) {
    warning(`${file}: ${error.message}`);
  }
}

/** The lines of a value. No value holds the random delimiter. */
function pair(name, value) {
  const end = `end-${randomUUID()}`;
  return `${name}<<${end}\n${value}\n${end}\n`;
}

export const output = (name, value) => append("GITHUB_OUTPUT", pair(name, value));
export const saveState = (name, value) => append("GITHUB_STATE", pair(name, value));
export const addPath = (directory) => append("GITHUB_PATH", `${directory}\n`);

/** An annotation. The runner undoes these escapes, and a line feed would begin a new command. */
function annotate(level, text) {
  const data = text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  process.stdout.write(`::${level} title=tr::${data}${os.EOL}`);
}

export const warning = (text) => annotate("warning", text);
export const failure = (text) => annotate("error", text);

/** The environment of the recorded processes: without the action's inputs, one of which is a
 * token, its state, and the runner's token for artifacts and caches. */
export function environment() {
  const own = /^(INPUT_|STATE_|GITHUB_STATE$|ACTIONS_(RUNTIME|RESULTS|CACHE)_)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}

/** A new directory that the runner removes before the next job. */
export function scratch() {
  const directory = path.join(process.env.RUNNER_TEMP || os.tmpdir(), `tr-${randomUUID()}`);
  fs.mkdirSync(directory, { mode: 0o700 });
  return directory;
}

/** The event that started the workflow. */
export function event() {
  try {
    return JSON.parse(fs.readFileSync(process.env.GITHUB_EVENT_PATH, "utf8"));
  } catch {
    return {};
  }
}

/** The name of the recording, in characters that are safe in artifacts, URLs and comments. */
export const recordingName = () =>
  input("name")
    .replace(/[^\w.-]/g, "-")
    .slice(0, 100) || "tr";

/** The first lines of a Markdown text, at most so many bytes. What the cut leaves open is closed. */
export function cut(text, limit) {
  if (Buffer.byteLength(text) <= limit) return text;
  const note = "\n(cut off here; the page has all of it)\n";
  const room = limit - Buffer.byteLength(note) - "\n```\n</details>\n".length;
  let [kept, size, open, fence] = ["", 0, 0, false];
  for (const line of text.split("\n")) {
    size += Buffer.byteLength(line) + 1;
    const details = line.split("<details>").length - line.split("</details>").length;
    // One level is enough: tr writes no details inside of details.
    if (size > room) break;
    open += details;
    if (line.startsWith("```")) fence = !fence;
    kept += `${line}\n`;
  }
  return kept + (fence ? "```\n" : "") + (open > 0 ? "\n</details>\n" : "") + note;
}

/** Appends to the job's summary, which may have 1 MiB in all. */
export function summarize(text) {
  const file = process.env.GITHUB_STEP_SUMMARY;
  if (!file) return;
  const used = fs.existsSync(file) ? fs.statSync(file).size : 0;
  const room = 1_000_000 - used;
  if (room > 1000) append("GITHUB_STEP_SUMMARY", cut(`${text}\n`, room));
}
