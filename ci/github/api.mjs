// Requests to GitHub: its REST interface, and the service that keeps a run's artifacts.
import { createHash } from "node:crypto";
import { input } from "./runner.mjs";

const LIMIT = { ms: 120_000, tries: 3 };

/** A request, with further tries where the server asks for them. */
async function request(url, options = {}) {
  for (let tried = 1; ; tried += 1) {
    let problem;
    try {
      const signal = AbortSignal.timeout(LIMIT.ms);
      const response = await fetch(url, { ...options, signal });
      if (response.status < 500 && response.status !== 429) return response;
      problem = new Error(`${new URL(url).host} answers ${response.status}`);
    } catch (error) {
      problem = new Error(`${new URL(url).host}: ${error.cause?.message ?? error.message}`);
    }
    if (tried === LIMIT.tries) throw problem;
    await new Promise((done) => setTimeout(done, 1000 * tried));
  }
}

/** The bytes of a file, at most `limit`. */
export async function download(url, { limit, headers }) {
  const response = await request(url, { headers });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const parts = [];
  let size = 0;
  for await (const part of response.body) {
    size += part.length;
    if (size > limit) throw new Error(`${url} has more than ${limit} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const HEADERS = () => ({
  accept: "application/vnd.github+json",
  authorization: `Bearer ${input("token")}`,
  "user-agent": "tr",
  "x-github-api-version": "2022-11-28",
});

/** The answer of the REST interface below the repository. */
async function ask(method, place, body) {
  const { GITHUB_API_URL: api, GITHUB_REPOSITORY: repository } = process.env;
  const url = place.startsWith("/") ? `${api}${place}` : `${api}/repos/${repository}/${place}`;
  const response = await request(url, { method, headers: HEADERS(), body: body && JSON.stringify(body) });
  if (!response.ok) {
    const error = new Error(`${method} ${place.split("?")[0]}: GitHub answers ${response.status}`);
    throw Object.assign(error, { status: response.status });
  }
  return response.json();
}

/** The newest recordings of a branch of this repository, of runs that succeeded. */
export async function recordings(name, branch, count) {
  const query = `branch=${encodeURIComponent(branch)}&status=success&per_page=100`;
  const { workflow_runs: runs } = await ask("GET", `actions/runs?${query}`);
  const succeeded = new Set(runs.map((run) => run.id));
  const { artifacts } = await ask("GET", `actions/artifacts?name=${name}.bin&per_page=100`);
  const usable = artifacts.filter(({ expired, workflow_run: run }) => {
    // A fork may have a branch of the same name, and its author chooses the file's contents.
    const own = run?.head_repository_id === run?.repository_id && run?.head_branch === branch;
    return own && !expired && succeeded.has(run.id) && String(run.id) !== process.env.GITHUB_RUN_ID;
  });
  return usable.sort((a, b) => b.id - a.id).slice(0, count);
}

/** The recording of a run. */
export async function recordingOf(run, name) {
  const { artifacts } = await ask("GET", `actions/runs/${run}/artifacts?name=${name}.bin&per_page=100`);
  return artifacts.filter((it) => it.name === `${name}.bin` && !it.expired).sort((a, b) => b.id - a.id)[0];
}

/** The contents of an artifact that is one file. */
export function contents(artifact) {
  const { GITHUB_API_URL: api, GITHUB_REPOSITORY: repository } = process.env;
  const url = `${api}/repos/${repository}/actions/artifacts/${Number(artifact.id)}/zip`;
  return download(url, { limit: 512 << 20, headers: HEADERS() });
}

/** The open pull request with this head. The list of a run is empty if the head is a fork's. */
export async function pullRequest(run) {
  const head = encodeURIComponent(`${run.head_repository.owner.login}:${run.head_branch}`);
  const pulls = await ask("GET", `pulls?state=open&per_page=100&head=${head}`);
  return pulls.find((pull) => pull.head.sha === run.head_sha);
}

/** Our user. GitHub does not tell it for the token of a job or an app, whose users are bots. */
async function own() {
  try {
    const { login } = await ask("GET", "/user");
    return (user) => user?.login === login;
  } catch {
    return (user) => user?.type === "Bot";
  }
}

/** Writes the comment with this marker, or updates it. Somebody else can write a marker, too, and
 * could change the comment afterwards, so comments of others do not count. */
export async function comment(pull, marker, body) {
  const ours = await own();
  for (let page = 1; page <= 30; page += 1) {
    const comments = await ask("GET", `issues/${pull}/comments?per_page=100&page=${page}`);
    const found = comments.find((it) => it.body?.startsWith(marker) && ours(it.user));
    if (found) return ask("PATCH", `issues/comments/${found.id}`, { body });
    if (comments.length < 100) break;
  }
  return ask("POST", `issues/${pull}/comments`, { body });
}

/** The run and the job in the service's terms, from the runner's token. */
function job(token) {
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
  const scopes = String(claims.scp)
    .split(" ")
    .map((it) => it.split(":"));
  const [, run, id] = scopes.find(([name]) => name === "Actions.Results") ?? [];
  if (!run || !id) throw new Error("the runner gives no right to keep artifacts");
  return { workflow_run_backend_id: run, workflow_job_run_backend_id: id };
}

/** Keeps a file as an artifact of this run, as actions/upload-artifact 7 does with archive: false,
 * so that a browser opens a page. Gives the URL. */
export async function upload(name, bytes, type) {
  const { ACTIONS_RUNTIME_TOKEN: token, ACTIONS_RESULTS_URL: service } = process.env;
  if (!token || !service) throw new Error("the runner names no service for artifacts");
  const call = async (method, body) => {
    const url = new URL(`/twirp/github.actions.results.api.v1.ArtifactService/${method}`, service);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "user-agent": "tr" };
    const response = await request(url, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok || !answer.ok) {
      throw new Error(`artifact ${name}: ${method}: ${response.status} ${answer.msg ?? ""}`);
    }
    return answer;
  };
  const artifact = { ...job(token), name };
  const days = Number.parseInt(input("retention-days"), 10);
  const expires = days > 0 ? { expires_at: new Date(Date.now() + days * 86_400_000).toISOString() } : {};
  const created = await call("CreateArtifact", { ...artifact, ...expires, version: 7, mime_type: type });
  const headers = { "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": type };
  // The service may write names in either of the two ways of JSON for protocol buffers.
  const place = created.signed_upload_url ?? created.signedUploadUrl;
  const stored = await request(place, { method: "PUT", headers, body: bytes });
  if (!stored.ok) throw new Error(`artifact ${name}: the storage answers ${stored.status}`);
  const hash = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const done = await call("FinalizeArtifact", { ...artifact, size: String(bytes.length), hash });
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: run } = process.env;
  return `${server}/${repository}/actions/runs/${run}/artifacts/${Number(done.artifact_id ?? done.artifactId)}`;
}
