// What becomes of a recording: page, artifacts, summary, comparison, comment, gate.
import fs from "node:fs";
import path from "node:path";
import * as api from "./api.mjs";
import * as runner from "./runner.mjs";
import { run } from "./tool.mjs";

/** GitHub's limit is 65,536 characters. */
const COMMENT = 60_000;
/** The least recordings of the base for a gate; with fewer, equal builds differ too often. */
const GATE = 4;
/** Limits of every command that reads a recording. */
const BOUNDS = ["--max-memory=512M", "--max-time=2m"];

/** Runs a part that the job does not depend on; its failure is a warning. */
async function attempt(part) {
  try {
    return await part();
  } catch (error) {
    problem(error.message);
    return undefined;
  }
}

let problems = 0;

/** Reports a problem of the action itself. */
export function problem(text) {
  problems += 1;
  runner.warning(text);
}

/** Whether the job must fail for the action's own problems. */
export const strictly = () => problems > 0 && runner.asked("strict");

/** The recordings of a branch, in files of a new directory. */
async function base(name, branch) {
  const count = Math.min(Math.max(Number.parseInt(runner.input("base-runs"), 10) || 1, 1), 20);
  const directory = runner.scratch();
  const files = [];
  for (const artifact of await api.recordings(name, branch, count)) {
    const file = path.join(directory, `${files.length + 1}.bin`);
    await attempt(async () => {
      fs.writeFileSync(file, await api.contents(artifact));
      files.push(file);
    });
  }
  return files;
}

/** The comparison with a branch: Markdown, and the reason why the gate fails. */
async function compare(tr, trace, name, branch) {
  const files = await base(name, branch);
  if (files.length === 0) {
    process.stdout.write("tr: no recording of the base branch to compare with\n");
    return {};
  }
  const limit = runner.input("fail-over");
  const gated = limit && files.length >= GATE;
  if (limit && !gated) {
    problem(`fail-over needs ${GATE} recordings of the base branch; there are ${files.length}`);
  }
  const gate = gated ? [`--fail-over=${limit}`, `--fail-on=${runner.input("fail-on") || "wall"}`] : [];
  const diff = (format) =>
    run(tr, ["diff", ...BOUNDS, `--format=${format}`, ...gate, "--base", ...files, "--new", trace]);
  const done = diff("markdown");
  // A command that failed fails its step, and the comment says so: it is no problem of the action.
  const problematic = done.status !== 0 && done.status !== 1 && (gated || !commandFailed(diff));
  if (problematic) problem(`tr-trace diff: ${done.stderr.replace(/^tr: /, "")}`);
  return { markdown: done.stdout, fails: gated ? gateFails(done.status, diff) : undefined };
}

/** The reason why the gate fails. What cannot be judged is no pass, unless that is allowed: then it is
 * a problem of the action alone. */
function gateFails(status, diff) {
  if (status === 0) return undefined;
  if (status === 1) return `the limit of fail-over (${runner.input("fail-over")}) is exceeded`;
  if (commandFailed(diff)) return "fail-over: the command failed";
  return runner.asked("allow-undecided") ? undefined : "fail-over cannot judge these recordings";
}

function commandFailed(diff) {
  const [run] = JSON.parse(diff("json").stdout || "{}").new ?? [];
  return Boolean(run?.exit) && run.exit.code !== 0;
}

/** The comment's text: only output of tr, which is safe in Markdown. */
async function comment(pull, name, { summary, diff }) {
  const marker = `<!-- tr: ${name} -->`;
  const body = diff.markdown ? `${diff.markdown}\n${summary}` : summary;
  await api.comment(pull, marker, `${marker}\n${runner.cut(body, COMMENT)}`);
}

/** Ten lines of Markdown. */
function summary(tr, trace, links) {
  const options = Object.entries(links)
    .filter(([, url]) => url)
    .map(([name, url]) => `--${name}=${url}`);
  if (runner.input("limit")) options.push(`--limit=${runner.input("limit")}`);
  const done = run(tr, ["summary", ...BOUNDS, "--format=markdown", "--chart", ...options, trace]);
  if (done.status !== 0) problem(`tr-trace summary: ${done.stderr}`);
  return done.stdout;
}

/** Warnings at the files of tests that failed or were slow while something held them back. */
function annotate(tr, trace) {
  const done = run(tr, ["summary", ...BOUNDS, "--format=github", trace]);
  if (done.status === 0) process.stdout.write(done.stdout);
}

async function artifacts(name, trace, page) {
  if (!runner.asked("upload")) return {};
  const keep = (file, ending, type) => attempt(() => api.upload(`${name}.${ending}`, fs.readFileSync(file), type));
  return {
    artifact: await keep(trace, "bin", "application/octet-stream"),
    page: fs.existsSync(page) ? await keep(page, "html", "text/html") : undefined,
  };
}

function outputs(tr, trace) {
  const done = run(tr, ["info", ...BOUNDS, "--format=json", trace]);
  if (done.status !== 0) return problem(`tr-trace info: ${done.stderr}`);
  const info = JSON.parse(done.stdout);
  if (info.not_traced) problem(`not traced: ${info.not_traced}`);
  runner.output("wall", Math.round(info.duration_ns / 1e6));
  runner.output("method", info.method ?? "none");
  return undefined;
}

/** All that follows a recording. Gives whether the gate fails. */
export async function report(tr, { trace, page }) {
  if (!fs.existsSync(trace)) {
    problem("there is no recording");
    return false;
  }
  outputs(tr, trace);
  const drawn = run(tr, ["report", ...BOUNDS, "-o", page, trace]);
  if (drawn.status !== 0) problem(`tr-trace report: ${drawn.stderr}`);
  const name = runner.recordingName();
  const links = await artifacts(name, trace, page);
  const text = summary(tr, trace, links);
  if (runner.asked("annotations")) annotate(tr, trace);
  const pull = runner.event().pull_request;
  const branch = runner.input("base") || pull?.base?.ref;
  const diff = (branch && (await attempt(() => compare(tr, trace, name, branch)))) || {};
  if (runner.asked("summary")) runner.summarize(diff.markdown ? `${text}\n${diff.markdown}` : text);
  if (runner.asked("comment") && pull) {
    await attempt(() => comment(pull.number, name, { summary: text, diff }));
  }
  if (diff.fails) runner.failure(diff.fails);
  return diff.fails !== undefined;
}

/** In a workflow_run: compares the recording of another run, whose author may be a stranger. The
 * pull request is the one that GitHub names; nothing in the artifact chooses it. */
export async function reportOfRun(tr) {
  const { workflow_run: of } = runner.event();
  if (String(of?.id) !== runner.input("of-run")) {
    throw new Error("of-run must be ${{ github.event.workflow_run.id }} in a workflow_run");
  }
  const name = runner.recordingName();
  const pull = await api.pullRequest(of);
  const artifact = await api.recordingOf(of.id, name);
  if (!pull || !artifact) {
    process.stdout.write(`tr: this run has no ${pull ? `recording ${name}` : "open pull request"}\n`);
    return false;
  }
  const trace = path.join(runner.scratch(), "trace.bin");
  fs.writeFileSync(trace, await api.contents(artifact));
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  const url = `${server}/${repository}/actions/runs/${Number(of.id)}/artifacts/${Number(artifact.id)}`;
  const text = summary(tr, trace, { artifact: url });
  const diff = (await compare(tr, trace, name, runner.input("base") || pull.base.ref)) ?? {};
  if (runner.asked("summary")) runner.summarize(diff.markdown ? `${text}\n${diff.markdown}` : text);
  if (runner.asked("comment")) await comment(pull.number, name, { summary: text, diff });
  if (diff.fails) runner.failure(diff.fails);
  return diff.fails !== undefined;
}
