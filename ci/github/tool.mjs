// Finds tr, or downloads a release of it, and runs it.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { download } from "./api.mjs";
import { addPath, environment, input, scratch } from "./runner.mjs";

const ARCHITECTURES = { x64: "x86_64", arm64: "aarch64" };

/** Runs tr to its end. `stdout` is null if it could not be run. */
export function run(tr, args) {
  const limits = { timeout: 600_000, maxBuffer: 64 << 20 };
  const done = spawnSync(tr, args, { ...limits, encoding: "utf8", env: environment() });
  const { status, stdout, stderr, error } = done;
  return { status, stdout: stdout ?? "", stderr: (stderr ?? "").trim() || error?.message || "" };
}

/** The functions that all kits have in common. */
export const KIT = fileURLToPath(new URL("../tr-run.sh", import.meta.url));

/** The version of a tr of ours that runs here, or an empty text. */
function version(tr) {
  return spawnSync("sh", [KIT, "tr_version", tr], { encoding: "utf8", timeout: 10_000 }).stdout?.trim();
}

function onPath() {
  const directories = (process.env.PATH ?? "").split(":").filter((place) => path.isAbsolute(place));
  return directories.map((place) => path.join(place, "tr-trace")).filter((file) => fs.existsSync(file));
}

/** The version of the checkout that this file is in. */
function ownVersion() {
  const manifest = fileURLToPath(new URL("../../Cargo.toml", import.meta.url));
  return /^version = "([^"]+)"/m.exec(fs.readFileSync(manifest, "utf8"))?.[1];
}

/** The path of a tr. */
export async function find() {
  const given = input("path");
  if (given) {
    if (!version(given)) throw new Error(`${given} (input path) is missing, is not tr or cannot run here`);
    return given.includes("/") ? path.resolve(given) : given;
  }
  const wanted = input("version").replace(/^v/, "");
  for (const file of onPath()) {
    const is = version(file);
    if (is && (!wanted || is === wanted)) return file;
  }
  return release(wanted || ownVersion());
}

async function release(wanted) {
  const architecture = ARCHITECTURES[process.arch];
  if (process.platform !== "linux" || !architecture) {
    throw new Error(`there is no tr for ${process.platform} on ${process.arch}`);
  }
  if (!/^[\w.+-]+$/.test(wanted)) throw new Error("the input version is not a version");
  const { GITHUB_SERVER_URL: server, GITHUB_ACTION_REPOSITORY: repository } = process.env;
  if (!repository) throw new Error("there is no tr on PATH, and no input path");
  const place = `${server}/${repository}/releases/download/v${wanted}`;
  const name = `tr-${wanted}-${architecture}-linux.tar.gz`;
  const archive = await download(`${place}/${name}`, { limit: 64 << 20 }).catch((error) => {
    const lacks = `there is no tr-trace on PATH, and no release ${wanted} at ${place} (${error.message})`;
    throw new Error(
      `the job runs unrecorded: ${lacks}. Install tr-trace in a step before, or name it by the input path`,
    );
  });
  const sum = createHash("sha256").update(archive).digest("hex");
  const expected = input("checksum").toLowerCase() || (await listed(`${place}/SHA256SUMS`, name));
  if (sum !== expected) {
    throw new Error(`${name} has the SHA-256 ${sum}, expected ${expected}; it was not executed`);
  }
  const directory = scratch();
  const file = path.join(directory, name);
  fs.writeFileSync(file, archive);
  const unpacked = spawnSync("tar", ["-xzf", file, "-C", directory], { encoding: "utf8" });
  const tr = path.join(directory, name.replace(/\.tar\.gz$/, ""), "bin", "tr");
  if (!version(tr)) throw new Error(`${name} holds no tr that runs here: ${unpacked.stderr}`);
  // Later steps find it as tr-trace; a tr on PATH would hide the system's.
  const link = path.join(scratch(), "tr-trace");
  fs.symlinkSync(tr, link);
  addPath(path.dirname(link));
  return link;
}

/** The checksum of a file in the release's list. */
async function listed(url, name) {
  const text = (await download(url, { limit: 1 << 20 })).toString("utf8");
  const line = text.split("\n").map((it) => it.trim().split(/\s+\*?/));
  const found = line.find(([, file]) => file === name);
  if (!found) throw new Error(`SHA256SUMS of the release does not name ${name}`);
  return found[0];
}
