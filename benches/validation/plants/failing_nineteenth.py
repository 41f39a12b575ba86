"""The nineteenth part of the failing builds: projects of mixed languages, their
releases, deployments, servers under test, generated code and packages."""

from plant import Plant

NINETEENTH = {
    # ---------------------------------------------------------------- cargo
    "cargo-workspace-caret-range-assertion": Plant(
        "cargo",
        "bash ci.sh",
        {
            "ci.sh": r"""#!/bin/bash
set -euo pipefail
version=$(git describe --tags 2>/dev/null || echo 0.0.0-dev)
echo "testing depsolve $version"
if grep -rn 'dbg!(' crates/*/src; then
    echo "leftover dbg!() calls" >&2
    exit 1
fi
cargo test --offline --workspace --no-fail-fast
""",
            "Cargo.toml": r"""[workspace]
members = ["crates/cli", "crates/semver-range"]
resolver = "2"
""",
            "crates/cli/Cargo.toml": r"""[package]
name = "depsolve"
version = "0.4.0"
edition = "2021"

[[bin]]
name = "depsolve"
path = "src/main.rs"

[dependencies]
semver-range = { path = "../semver-range" }
""",
            "crates/cli/src/main.rs": r"""use std::process::exit;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.len() != 2 {
        eprintln!("usage: depsolve RANGE VERSION");
        exit(2);
    }
    if !semver_range::matches(&args[0], &args[1]) {
        eprintln!("{} does not satisfy {}", args[1], args[0]);
        exit(1);
    }
    println!("ok");
}
""",
            "crates/cli/tests/usage.rs": r"""use std::process::Command;

#[test]
fn no_arguments_is_a_usage_error() {
    let out = Command::new(env!("CARGO_BIN_EXE_depsolve")).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("usage:"));
}

#[test]
fn other_major_is_refused() {
    let out = Command::new(env!("CARGO_BIN_EXE_depsolve"))
        .args(["^1.2.0", "2.0.0"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
}
""",
            "crates/semver-range/Cargo.toml": r"""[package]
name = "semver-range"
version = "0.2.1"
edition = "2021"
""",
            "crates/semver-range/src/lib.rs": r"""fn parse(v: &str) -> (u64, u64, u64) {
    let mut it = v.split('.').map(|p| p.parse().unwrap_or(0));
    (it.next().unwrap_or(0), it.next().unwrap_or(0), it.next().unwrap_or(0))
}

/// Does `version` satisfy the caret range `range`?
pub fn matches(range: &str, version: &str) -> bool {
    let want = parse(range.trim_start_matches('^'));
    let have = parse(version);
    have.0 == want.0 && have >= want
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn same_major() {
        assert!(matches("^1.2.0", "1.9.3"));
    }

    #[test]
    fn zero_major_is_locked_to_its_minor() {
        assert!(matches("^0.3.1", "0.3.7"));
        assert!(!matches("^0.3.1", "0.4.0"), "0.4.0 must not satisfy ^0.3.1");
    }
}
""",
        },
        r"semver_range-[0-9a-f]{8,}|test semver_range",
        also=r"cargo test",
        needs="cargo",
    ),
    "cargo-build-script-schema-generator": Plant(
        "cargo",
        "cargo build --offline",
        {
            "Cargo.toml": r"""[package]
name = "tlv-codec"
version = "1.1.0"
edition = "2021"
build = "build.rs"
""",
            "build.rs": r"""use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=schema");

    // the system's library if there is one, else the bundled code
    let system = Command::new("pkg-config")
        .args(["--exists", "libtlvcodec >= 2"])
        .status()
        .map(|s| s.success())
        .unwrap_or(false);
    if system {
        println!("cargo:rustc-link-lib=tlvcodec");
    }

    let rev = Command::new("git")
        .args(["describe", "--exact-match", "--tags"])
        .output()
        .ok()
        .filter(|o| o.status.success())
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string())
        .unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=TLV_REV={}", rev);

    let out = Path::new(&env::var("OUT_DIR").unwrap()).join("messages.rs");
    let status = Command::new("python3")
        .args(["schema/gen_messages.py", "schema/messages.json"])
        .arg(&out)
        .status()
        .expect("python3 is needed to generate the messages");
    assert!(status.success(), "schema/gen_messages.py failed: {}", status);
}
""",
            "src/lib.rs": r"""include!(concat!(env!("OUT_DIR"), "/messages.rs"));

pub const REVISION: &str = env!("TLV_REV");
""",
            "schema/gen_messages.py": r"""import json
import sys

WIDTH = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


def main(source, target):
    with open(source) as f:
        messages = json.load(f)
    lines = []
    for message in messages:
        lines.append("pub struct %s {" % message["name"])
        for field in message["fields"]:
            if field["type"] not in WIDTH:
                sys.exit("%s: %s.%s: unknown type '%s'" % (
                    source, message["name"], field["name"], field["type"]))
            lines.append("    pub %s: %s," % (field["name"], field["type"]))
        lines.append("}")
    with open(target, "w") as f:
        f.write("\n".join(lines) + "\n")


main(sys.argv[1], sys.argv[2])
""",
            "schema/messages.json": r"""[
  {"name": "Hello", "fields": [{"name": "version", "type": "u8"}, {"name": "flags", "type": "u16"}]},
  {"name": "Sample", "fields": [{"name": "stamp", "type": "u64"}, {"name": "value", "type": "u24"}]}
]
""",
        },
        r"gen_messages\.py",
        also=r"build-script-build|build_script_build",
        needs="cargo",
    ),
    "cargo-feature-matrix-no-default": Plant(
        "cargo",
        "bash ci/features.sh",
        {
            "ci/features.sh": r"""#!/bin/bash
# Every supported combination of features must build.
set -u
failed=()
for features in std std,json json; do
    echo "== --no-default-features --features $features"
    cargo check --quiet --offline --no-default-features --features "$features" \
        || failed+=("$features")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "does not build with: ${failed[*]}" >&2
    exit 1
fi
""",
            "Cargo.toml": r"""[package]
name = "ringlog"
version = "0.9.2"
edition = "2021"
build = "build.rs"

[features]
default = ["std"]
std = []
json = []
""",
            "build.rs": r"""use std::env;
use std::process::Command;

// Is the unstable `portable_simd` there? (stable compilers say no)
fn main() {
    println!("cargo:rustc-check-cfg=cfg(has_simd)");
    println!("cargo:rerun-if-changed=build/probe.rs");
    let ok = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args(["--emit=metadata", "--crate-type=lib", "--crate-name=probe"])
        .arg("build/probe.rs")
        .arg("--out-dir")
        .arg(env::var("OUT_DIR").unwrap())
        .output()
        .map(|o| o.status.success())
        .unwrap_or(false);
    if ok {
        println!("cargo:rustc-cfg=has_simd");
    }
}
""",
            "build/probe.rs": r"""#![feature(portable_simd)]
pub fn lanes() -> usize { core::simd::u8x16::LEN }
""",
            "src/lib.rs": r"""#![cfg_attr(not(feature = "std"), no_std)]

/// A ring of the last `N` levels.
pub struct Ring<const N: usize> {
    slots: [u8; N],
    next: usize,
}

impl<const N: usize> Ring<N> {
    pub const fn new() -> Self {
        Ring { slots: [0; N], next: 0 }
    }

    pub fn push(&mut self, level: u8) {
        self.slots[self.next % N] = level;
        self.next = self.next.wrapping_add(1);
    }
}

#[cfg(feature = "json")]
mod json {
    use super::Ring;

    impl<const N: usize> Ring<N> {
        pub fn to_json(&self) -> String {
            let items: Vec<String> = self.slots.iter().map(|s| s.to_string()).collect();
            format!("[{}]", items.join(","))
        }
    }
}
""",
        },
        r"crate-name[ =]ringlog\b|rustc ringlog|rustc.*src/lib\.rs|cargo check",
        needs="cargo",
    ),
    "cargo-package-of-a-dirty-tree": Plant(
        "cargo",
        "bash scripts/release.sh 0.6.0",
        {
            "scripts/setup.sh": r"""set -e
printf 'target\n' > .gitignore
git init -q .
git add .
git -c user.name=ci -c user.email=ci@example.test commit -q -m 'Import'
""",
            "scripts/release.sh": r"""#!/bin/bash
set -euo pipefail
new=$1
if git rev-parse -q --verify "refs/tags/v$new" >/dev/null; then
    echo "v$new is already released" >&2
    exit 1
fi
last=$(git describe --tags --abbrev=0 2>/dev/null || echo "(none)")
echo "last release: $last, new release: $new"

sed -i "s/^version = .*/version = \"$new\"/" Cargo.toml
cargo update --quiet --offline --workspace
if ! git diff --quiet; then
    echo "version changed:"
    git --no-pager diff --stat
fi
cargo package --offline --no-verify
echo "crate:" target/package/*.crate
git -c user.name=ci -c user.email=ci@example.test commit -q -am "Release $new"
git tag "v$new"
""",
            "Cargo.toml": r"""[package]
name = "hexline"
version = "0.5.3"
edition = "2021"
license = "MIT"
description = "Prints lines of hexadecimal digits"
repository = "https://example.test/hexline"
""",
            "Cargo.lock": r"""# This file is automatically @generated by Cargo.
# It is not intended for manual editing.
version = 3

[[package]]
name = "hexline"
version = "0.5.3"
""",
            "src/main.rs": r"""fn main() {
    for arg in std::env::args().skip(1) {
        for b in arg.bytes() {
            print!("{:02x} ", b);
        }
        println!();
    }
}
""",
        },
        r"cargo package",
        before="sh scripts/setup.sh",
        needs="cargo",
    ),
    # ----------------------------------------------------------------- node
    "npm-prepack-without-typescript": Plant(
        "npm",
        "bash release.sh",
        {
            "release.sh": r"""#!/bin/bash
set -eu
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
tag=$(git describe --tags --exact-match 2>/dev/null || true)
echo "packing ${tag:-an untagged revision}"
if grep -q '"private": *true' package.json; then
    echo "a private package is not released" >&2
    exit 1
fi
mkdir -p out
npm pack --pack-destination out
ls -l out
""",
            "package.json": r"""{
  "name": "pathglob",
  "version": "3.0.2",
  "main": "dist/index.js",
  "files": ["dist"],
  "scripts": {
    "build": "tsc -p tsconfig.json",
    "prepack": "npm run build"
  },
  "devDependencies": {
    "typescript": "^5.4.0"
  }
}
""",
            "tsconfig.json": r"""{"compilerOptions": {"outDir": "dist", "strict": true}, "include": ["src"]}
""",
            "src/index.ts": r"""export function isGlob(path: string): boolean {
  return /[*?[\]]/.test(path);
}
""",
        },
        r"\btsc\b",
        also=r"npm",
        needs="npm",
    ),
    "npm-packed-files-lack-lib": Plant(
        "npm",
        "make package-check",
        {
            "Makefile": r"""export npm_config_update_notifier = false

package-check: test
	rm -rf out && mkdir -p out/node_modules
	npm pack --silent --pack-destination out
	tar -xzf out/slugline-1.8.0.tgz -C out/node_modules
	mv out/node_modules/package out/node_modules/slugline
	cp ci/smoke.js out/smoke.js
	cd out && node smoke.js

test:
	node --test test/

.PHONY: package-check test
""",
            "package.json": r"""{
  "name": "slugline",
  "version": "1.8.0",
  "main": "index.js",
  "bin": {"slugline": "bin/slugline.js"},
  "files": ["index.js", "bin"]
}
""",
            "index.js": r"""const { fold } = require('./lib/fold');

module.exports = function slug(text) {
  return fold(text).toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
};
""",
            "lib/fold.js": r"""exports.fold = (text) => text.normalize('NFKD').replace(/[\u0300-\u036f]/g, '');
""",
            "bin/slugline.js": r"""#!/usr/bin/env node
const slug = require('..');
const text = process.argv.slice(2).join(' ');
if (!text) {
  console.error('usage: slugline TEXT');
  process.exit(64);
}
console.log(slug(text));
""",
            "test/cli.test.js": r"""const test = require('node:test');
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const path = require('node:path');

const bin = path.join(__dirname, '..', 'bin', 'slugline.js');

test('prints a slug', () => {
  const r = spawnSync(process.execPath, [bin, 'Crème brûlée'], { encoding: 'utf8' });
  assert.equal(r.stdout.trim(), 'creme-brulee');
});

test('usage error without text', () => {
  const r = spawnSync(process.execPath, [bin], { encoding: 'utf8' });
  assert.equal(r.status, 64);
});
""",
            "ci/smoke.js": r"""const slug = require('slugline');
if (slug('Hello, World') !== 'hello-world') {
  throw new Error('the packed slugline does not work');
}
console.log('packed slugline works');
""",
        },
        r"smoke\.js",
        needs="npm",
    ),
    "npm-test-binary-prefix-rounding": Plant(
        "npm",
        "npm test",
        {
            ".npmrc": "update-notifier=false\nfund=false\naudit=false\n",
            "package.json": r"""{
  "name": "bytefmt",
  "version": "0.3.0",
  "type": "module",
  "scripts": {
    "pretest": "node scripts/check-node.js",
    "test": "node --test test/"
  }
}
""",
            "scripts/check-node.js": r"""import { spawnSync } from 'node:child_process';

if (Number(process.versions.node.split('.')[0]) < 18) {
  console.error('node 18 or newer is needed');
  process.exit(1);
}
const git = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
console.log('revision', git.status === 0 ? git.stdout.trim() : '(no repository)');
""",
            "src/bytes.js": r"""const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(n) {
  if (!Number.isFinite(n) || n < 0) throw new RangeError(`not a size: ${n}`);
  let unit = 0;
  while (n > 1024 && unit < UNITS.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${Math.round(n * 10) / 10} ${UNITS[unit]}`;
}
""",
            "src/cli.js": r"""import { bytes } from './bytes.js';

try {
  console.log(bytes(Number(process.argv[2])));
} catch (e) {
  console.error(`bytefmt: ${e.message}`);
  process.exit(1);
}
""",
            "test/cli.test.js": r"""import test from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

test('refuses a negative size', () => {
  const r = spawnSync(process.execPath, ['src/cli.js', '-5'], { encoding: 'utf8' });
  assert.equal(r.status, 1);
  assert.match(r.stderr, /not a size/);
});

test('refuses words', () => {
  const r = spawnSync(process.execPath, ['src/cli.js', 'many'], { encoding: 'utf8' });
  assert.equal(r.status, 1);
});
""",
            "test/format.test.js": r"""import test from 'node:test';
import assert from 'node:assert/strict';
import { bytes } from '../src/bytes.js';

test('small sizes', () => {
  assert.equal(bytes(0), '0 B');
  assert.equal(bytes(512), '512 B');
});

test('whole units', () => {
  assert.equal(bytes(1024), '1 KiB');
  assert.equal(bytes(1536), '1.5 KiB');
});
""",
        },
        r"format\.test",
        also=r"npm|node --test",
        needs="npm",
    ),
    "node-site-pool-bad-front-matter": Plant(
        "node",
        "make -C site publish",
        {
            "site/Makefile": r"""publish: build
	tar -czf site.tar.gz public

build:
	@grep -rln 'DRAFT' pages || echo 'no drafts'
	node build.mjs pages/about.md pages/download.md pages/pricing.md pages/team.md

.PHONY: publish build
""",
            "site/build.mjs": r"""// Renders each page in a worker; the first failure stops the others.
import { fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';

mkdirSync('public', { recursive: true });
const running = new Set();
let failed = false;

for (const page of process.argv.slice(2)) {
  const child = fork('render-page.mjs', [page]);
  running.add(child);
  child.on('exit', (code, signal) => {
    running.delete(child);
    if (code !== 0 && !failed) {
      failed = true;
      console.error(`build: ${page}: renderer ended with ${signal ?? code}`);
      for (const other of running) other.kill('SIGTERM');
      process.exitCode = 1;
    }
  });
}
""",
            "site/render-page.mjs": r"""import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const page = process.argv[2];
const [, head, body] = readFileSync(page, 'utf8').split(/^---$/m);
const meta = Object.fromEntries(
  head.trim().split('\n').map((line) => line.split(/:\s*/, 2)));
const date = new Date(meta.date).toISOString().slice(0, 10);

// the picture pipeline
await sleep(2500);

const html = body.trim().split(/\n\n+/).map((p) => `<p>${p}</p>`).join('\n');
writeFileSync(`public/${basename(page, '.md')}.html`,
  `<h1>${meta.title}</h1>\n<time>${date}</time>\n${html}\n`);
console.log(`rendered ${page}`);
process.disconnect?.();
""",
            "site/pages/about.md": "---\ntitle: About\ndate: 2024-02-01\n---\n\nWhat we do.\n",
            "site/pages/download.md": "---\ntitle: Download\ndate: 2024-03-11\n---\n\nGet it.\n",
            "site/pages/pricing.md": "---\ntitle: Pricing\ndate: 2024-13-01\n---\n\nIt is free.\n",
            "site/pages/team.md": "---\ntitle: Team\ndate: 2023-11-30\n---\n\nWho we are.\n",
        },
        r"render-page\.mjs.*pricing",
        also=r"build\.mjs",
        needs="node",
    ),
    # -------------------------------------------------- servers under test
    "gateway-takes-the-port-of-the-mock": Plant(
        "shell",
        "bash smoke/run.sh",
        {
            "smoke/run.sh": r"""#!/bin/bash
# The gateway before a mock of the billing service.
set -eu
export PORT=47613
pids=()
cleanup() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    wait || true
}
trap cleanup EXIT

wait_for() {
    for _ in $(seq 1 15); do
        if curl -sf -o /dev/null "http://127.0.0.1:$PORT$1"; then return 0; fi
        sleep 0.2
    done
    echo "smoke: $1 did not answer" >&2
    return 1
}

python3 mock/billing.py & pids+=($!)
wait_for /invoices
export BILLING_URL=http://127.0.0.1:$PORT
node gateway/gateway.js & pids+=($!)
wait_for /gateway/health
curl -sf "http://127.0.0.1:${GATEWAY_PORT:-$PORT}/gateway/invoices" | grep -q '"total"'
echo "smoke test passed"
""",
            "mock/billing.py": r"""import http.server
import os


class Billing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/invoices":
            self.send_error(404)
            return
        body = b'{"total": 3}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


address = ("127.0.0.1", int(os.environ.get("MOCK_PORT") or os.environ["PORT"]))
http.server.ThreadingHTTPServer(address, Billing).serve_forever()
""",
            "gateway/gateway.js": r"""const http = require('node:http');

const upstream = process.env.BILLING_URL;

const server = http.createServer((req, res) => {
  if (req.url === '/gateway/health') return res.end('ok');
  http.get(upstream + req.url.replace('/gateway', ''), (r) => r.pipe(res))
    .on('error', () => { res.statusCode = 502; res.end(); });
});
server.listen(Number(process.env.PORT), '127.0.0.1', () => {
  console.log('gateway listens on', server.address().port);
});
""",
        },
        r"gateway\.js",
        also=r"curl",
        needs="node",
    ),
    "api-server-config-trailing-comma": Plant(
        "make",
        "make e2e",
        {
            "Makefile": r"""e2e:
	mkdir -p run
	bash e2e/with-api.sh python3 -m unittest -v e2e.test_orders

.PHONY: e2e
""",
            "e2e/with-api.sh": r"""#!/bin/bash
# Runs a command while the API listens on run/api.sock.
set -u
rm -f run/api.sock
node src/api.js config/test.json > run/api.log 2>&1 &
api=$!
trap 'kill $api 2>/dev/null; wait $api 2>/dev/null' EXIT

tries=0
until curl -s -o /dev/null --unix-socket run/api.sock http://api/health; do
    tries=$((tries + 1))
    if [ $tries -ge 12 ]; then
        echo "with-api: not ready after $tries tries; run/api.log:" >&2
        cat run/api.log >&2
        exit 1
    fi
    sleep 0.25
done
"$@"
""",
            "src/api.js": r"""const fs = require('node:fs');
const http = require('node:http');

const config = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));

http.createServer((req, res) => {
  res.setHeader('content-type', 'application/json');
  if (req.url === '/health') return res.end('{"ok":true}');
  if (req.url === '/orders') return res.end(JSON.stringify({ currency: config.currency, orders: [] }));
  res.statusCode = 404;
  res.end('{}');
}).listen(config.socket);
""",
            "config/test.json": r"""{
  "socket": "run/api.sock",
  "currency": "EUR",
  "rateLimit": 0,
}
""",
            "e2e/__init__.py": "",
            "e2e/test_orders.py": r"""import json
import subprocess
import unittest


def get(path):
    out = subprocess.run(
        ["curl", "-sf", "--unix-socket", "run/api.sock", "http://api" + path],
        stdout=subprocess.PIPE)
    return out.returncode, out.stdout


class Orders(unittest.TestCase):
    def test_currency(self):
        code, body = get("/orders")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(body)["currency"], "EUR")

    def test_unknown_path_is_404(self):
        self.assertEqual(get("/nothing")[0], 22)
""",
        },
        r"api\.js",
        also=r"with-api\.sh",
        needs="node",
    ),
    "tls-smoke-certificate-for-another-host": Plant(
        "shell",
        "bash deploy/tls-smoke.sh",
        {
            "deploy/tls-smoke.sh": r"""#!/bin/bash
set -euo pipefail
mkdir -p tls run
rm -f run/port
openssl req -x509 -newkey rsa:2048 -nodes -days 2 \
    -keyout tls/key.pem -out tls/cert.pem -config deploy/openssl.cnf 2>/dev/null

node deploy/edge.js &
edge=$!
trap 'kill $edge 2>/dev/null || true' EXIT

for _ in $(seq 1 50); do [ -s run/port ] && break; sleep 0.1; done
url=https://localhost:$(cat run/port)

# the edge is warm when it has loaded its routes (503 before)
for _ in $(seq 1 20); do
    curl -ksf -o /dev/null "$url/ready" && break
    sleep 0.2
done

echo "version behind the edge:"
curl --cacert tls/cert.pem -sSf "$url/version"
echo
echo "TLS smoke test passed"
""",
            "deploy/openssl.cnf": r"""[req]
distinguished_name = dn
x509_extensions = ext
prompt = no

[dn]
CN = staging.example.test

[ext]
basicConstraints = critical,CA:true
subjectAltName = DNS:staging.example.test
""",
            "deploy/edge.js": r"""const fs = require('node:fs');
const https = require('node:https');

const started = Date.now();
const options = { key: fs.readFileSync('tls/key.pem'), cert: fs.readFileSync('tls/cert.pem') };
const server = https.createServer(options, (req, res) => {
  if (req.url === '/ready') {
    res.statusCode = Date.now() - started > 500 ? 200 : 503;
    return res.end();
  }
  res.end('{"version":"5.1.0"}');
});
server.listen(0, 'localhost', () => {
  fs.writeFileSync('run/port', String(server.address().port));
});
""",
        },
        r"curl.*--cacert",
        needs="openssl",
    ),
    "unittest-server-import-error": Plant(
        "unittest",
        "python3 -m unittest discover -v -s tests -t .",
        {
            "inventory/__init__.py": "",
            "inventory/store.py": r'''import sqlite3


def open_database(path):
    """Opens the store (was: open_store) and creates its table."""
    db = sqlite3.connect(path, check_same_thread=False)
    db.execute("CREATE TABLE IF NOT EXISTS items (name TEXT PRIMARY KEY, n INTEGER)")
    return db
''',
            "inventory/server.py": r"""import http.server
import sys

from inventory.store import open_store


def main(port_file):
    db = open_store(":memory:")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            n = db.execute("SELECT count(*) FROM items").fetchone()[0]
            body = str(n).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with open(port_file, "w") as f:
        f.write("%d\n" % server.server_port)
    server.serve_forever()


main(sys.argv[1])
""",
            "inventory/count.py": r"""import sys

if len(sys.argv) < 2:
    sys.exit("usage: count FILE")
print(sum(1 for _ in open(sys.argv[1])))
""",
            "tests/__init__.py": "",
            "tests/test_count.py": r"""import subprocess
import sys
import unittest


class Count(unittest.TestCase):
    def run_count(self, *args):
        return subprocess.run([sys.executable, "-m", "inventory.count", *args],
                              capture_output=True, text=True)

    def test_usage(self):
        self.assertEqual(self.run_count().returncode, 1)

    def test_missing_file(self):
        r = self.run_count("no-such-file")
        self.assertEqual(r.returncode, 1)
        self.assertIn("FileNotFoundError", r.stderr)
""",
            "tests/test_server.py": r"""import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        port_file = os.path.join(cls.dir.name, "port")
        cls.server = subprocess.Popen(
            [sys.executable, "-m", "inventory.server", port_file])
        deadline = time.time() + 4
        while time.time() < deadline:
            try:
                with open(port_file) as f:
                    cls.port = int(f.read())
                    return
            except (OSError, ValueError):
                time.sleep(0.1)
        cls.server.kill()
        cls.server.wait()
        raise RuntimeError("the server did not start within 4 s")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.dir.cleanup()

    def test_empty(self):
        with urllib.request.urlopen("http://127.0.0.1:%d/" % self.port) as r:
            self.assertEqual(r.read(), b"0")
""",
        },
        r"inventory\.server|inventory/server",
        also=r"unittest|itself",
        needs="python3",
    ),
    # --------------------------------------------------------------- python
    "unittest-queue-join-never-returns": Plant(
        "unittest",
        "make check",
        {
            "Makefile": r"""PYTHON ?= python3

check: lint
	timeout 6 $(PYTHON) -m unittest discover -v -s tests -t .

lint:
	@! grep -rn 'import pdb' spool tests
	$(PYTHON) -m compileall -q spool tests

.PHONY: check lint
""",
            "spool/__init__.py": "",
            "spool/pool.py": r'''import queue
import threading


class Pool:
    """Threads that handle jobs; a job that raises is counted and dropped."""

    def __init__(self, handle, size=2):
        self.jobs = queue.Queue()
        self.handle = handle
        self.errors = 0
        for _ in range(size):
            threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            job = self.jobs.get()
            try:
                self.handle(job)
            except Exception:
                self.errors += 1
                continue
            self.jobs.task_done()

    def drain(self):
        self.jobs.join()
''',
            "spool/convert.py": r"""import sys

for name in sys.argv[1:]:
    if not name.endswith(".txt"):
        sys.exit("convert: %s: not a text" % name)
""",
            "tests/__init__.py": "",
            "tests/test_convert.py": r"""import subprocess
import sys
import unittest


class Convert(unittest.TestCase):
    def test_refuses_pictures(self):
        r = subprocess.run([sys.executable, "-m", "spool.convert", "a.png"],
                           stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 1)
""",
            "tests/test_pool.py": r"""import unittest

from spool.pool import Pool


class PoolTest(unittest.TestCase):
    def test_all_jobs_done(self):
        done = []
        pool = Pool(done.append)
        for n in range(10):
            pool.jobs.put(n)
        pool.drain()
        self.assertEqual(sorted(done), list(range(10)))

    def test_failing_job_is_counted(self):
        pool = Pool(lambda n: 1 // n)
        for n in (1, 0, 2):
            pool.jobs.put(n)
        pool.drain()
        self.assertEqual(pool.errors, 1)
""",
        },
        r"unittest",
        needs="python3",
    ),
    "pip-no-index-lacks-pinned-wheel": Plant(
        "shell",
        "bash packaging/bundle.sh",
        {
            "packaging/make_wheels.py": r'''"""Writes the wheels that are vendored in this repository."""
import os
import zipfile

os.makedirs("vendor/wheels", exist_ok=True)
for name, version in (("rotorlog", "1.4.0"), ("tinyfsm", "0.9.1")):
    info = "%s-%s.dist-info/" % (name, version)
    path = "vendor/wheels/%s-%s-py3-none-any.whl" % (name, version)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(name + ".py", "VERSION = %r\n" % version)
        z.writestr(info + "METADATA",
                   "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
        z.writestr(info + "WHEEL",
                   "Wheel-Version: 1.0\nGenerator: vendor\n"
                   "Root-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")
''',
            "packaging/bundle.sh": r"""#!/bin/bash
# An archive of the application with all it needs; nothing is downloaded.
set -euo pipefail
rm -rf build && mkdir -p build/app
version=$(git describe --tags 2>/dev/null || cat VERSION)
if ! python3 -c 'import shiv' 2>/dev/null; then
    echo "shiv is not there, making a plain archive"
fi
python3 -m pip install --quiet --root-user-action=ignore --no-index \
    --find-links vendor/wheels --target build/app -r requirements.txt
cp -r valve build/app/
tar -czf "build/valve-$version.tar.gz" -C build app
echo "build/valve-$version.tar.gz"
""",
            "VERSION": "2.7.0\n",
            "requirements.txt": "tinyfsm==0.9.1\nrotorlog==1.5.0\n",
            "valve/__init__.py": "",
            "valve/__main__.py": "import rotorlog, tinyfsm\nprint('valve')\n",
        },
        r"pip install",
        before="python3 packaging/make_wheels.py",
        needs="python3",
    ),
    "setup-py-extension-header-not-shipped": Plant(
        "python",
        "python3 setup.py build_ext --inplace",
        {
            "setup.py": r"""import subprocess

from setuptools import Extension, setup


def version():
    try:
        out = subprocess.check_output(["git", "describe", "--tags"],
                                      stderr=subprocess.DEVNULL, text=True)
        return out.strip().lstrip("v")
    except (OSError, subprocess.CalledProcessError):
        return "0.0.0"


setup(
    name="kdgrid",
    version=version(),
    packages=["kdgrid"],
    ext_modules=[
        # faster, where the vendor's SDK is installed
        Extension("kdgrid._simd", ["src/_simd.c"], optional=True),
        Extension("kdgrid._core", ["src/_core.c"]),
    ],
)
""",
            "kdgrid/__init__.py": "from ._core import cells\n",
            "src/_simd.c": r"""#include <Python.h>
#include <hexasimd/vec.h>

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_simd", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__simd(void)
{
    hexasimd_init();
    return PyModule_Create(&module);
}
""",
            "src/_core.c": r"""#include <Python.h>
#include "kdgrid_limits.h"

static PyObject *cells(PyObject *self, PyObject *args)
{
    long w, h;
    if (!PyArg_ParseTuple(args, "ll", &w, &h))
        return NULL;
    if (w * h > KDGRID_MAX_CELLS)
        return PyErr_Format(PyExc_ValueError, "too many cells");
    return PyLong_FromLong(w * h);
}

static PyMethodDef methods[] = {{"cells", cells, METH_VARARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", NULL, -1, methods};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModule_Create(&module);
}
""",
        },
        r"_core\.c",
        also=r"setup\.py",
        needs="gcc",
    ),
    "release-tag-differs-from-package-version": Plant(
        "shell",
        "env RELEASE_TAG=v2.4.0 bash ci/release.sh",
        {
            "ci/release.sh": r"""#!/bin/bash
set -euo pipefail
: "${RELEASE_TAG:?}"
sha=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
echo "release $RELEASE_TAG of $sha"

# release candidates go to the test index
if printf '%s\n' "$RELEASE_TAG" | grep -Eq -- '-?rc[0-9]+$'; then
    index=test
else
    index=main
fi
python3 ci/check_version.py "$RELEASE_TAG"

mkdir -p dist
tar -czf "dist/courier-${RELEASE_TAG#v}.tar.gz" courier pyproject.toml
echo "dist/courier-${RELEASE_TAG#v}.tar.gz is ready for the $index index"
""",
            "ci/check_version.py": r'''"""The tag, pyproject.toml and the package must agree on the version."""
import re
import sys

tag = sys.argv[1].lstrip("v")
bad = 0
for path, pattern in (
    ("pyproject.toml", r'^version = "(.+)"'),
    ("courier/__init__.py", r'^__version__ = "(.+)"'),
):
    found = re.search(pattern, open(path).read(), re.M).group(1)
    if found != tag:
        print("%s: version is %s, the tag says %s" % (path, found, tag), file=sys.stderr)
        bad = 1
sys.exit(bad)
''',
            "pyproject.toml": '[project]\nname = "courier"\nversion = "2.4.0"\n',
            "courier/__init__.py": '__version__ = "2.3.1"\n',
        },
        r"check_version\.py",
        needs="python3",
    ),
    # ------------------------------------------------- release and deploy
    "deploy-migration-duplicate-column": Plant(
        "shell",
        "bash deploy/deploy.sh v42",
        {
            "deploy/deploy.sh": r"""#!/bin/bash
# releases/NAME, then the link `current`; the old release comes back on a failure
set -eu
name=$1
mkdir -p releases shared
previous=$(readlink current || true)

rollback() {
    status=$?
    if [ $status -ne 0 ]; then
        echo "deploy: $name failed with $status, back to ${previous:-nothing}" >&2
        rm -rf "releases/$name"
        if [ -n "$previous" ]; then ln -sfn "$previous" current; fi
    fi
}
trap rollback EXIT

mkdir -p "releases/$name"
tar -cf - app | tar -xf - -C "releases/$name"
if ! cmp -s app/settings.ini shared/settings.ini; then
    cp app/settings.ini shared/settings.ini
fi
sh deploy/migrate.sh shared/app.db "releases/$name/app/migrations"
ln -sfn "releases/$name" current
echo "deploy: $name is current"
""",
            "deploy/migrate.sh": r"""# usage: migrate.sh DATABASE DIRECTORY
set -eu
done=$(sqlite3 -readonly "$1" 'SELECT max(name) FROM schema_migrations' 2>/dev/null || true)
if [ -z "$done" ]; then
    sqlite3 "$1" 'CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY)'
fi
for file in "$2"/*.sql; do
    echo "migrate: $(basename "$file")"
    sqlite3 -bail "$1" ".read $file"
    sqlite3 "$1" "INSERT INTO schema_migrations VALUES ('$(basename "$file")')"
done
""",
            "app/settings.ini": "[app]\nworkers = 2\n",
            "app/migrations/001_users.sql": "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT, locale TEXT);\n",
            "app/migrations/002_orders.sql": "CREATE TABLE orders (id INTEGER PRIMARY KEY, user INTEGER REFERENCES users(id));\n",
            "app/migrations/003_locale.sql": "ALTER TABLE users ADD COLUMN locale TEXT;\n",
        },
        r"sqlite3.*-bail|003_locale",
        also=r"migrate\.sh",
        needs="sqlite3",
    ),
    "push-of-a-tag-refused-by-the-server": Plant(
        "shell",
        "bash publish.sh 0.9.0",
        {
            "setup.sh": r"""set -e
git init -q --bare origin.git
cp server-hook.sh origin.git/hooks/pre-receive
chmod +x origin.git/hooks/pre-receive
git init -q work
cd work
printf '# Changes\n\n## 0.8.1\n\n- fixes\n' > CHANGELOG.md
printf '0.8.1\n' > VERSION
git add .
git -c user.name=ci -c user.email=ci@example.test commit -q -m 'Import'
git branch -M main
git remote add origin ../origin.git
git push -q origin main
""",
            "server-hook.sh": r"""#!/bin/sh
# A release's tag needs an entry in the change log.
while read -r old new ref; do
    case $ref in
    refs/tags/v*)
        version=${ref#refs/tags/v}
        if ! git show "$new:CHANGELOG.md" | grep -q "^## $version"; then
            echo "CHANGELOG.md has no entry for $version" >&2
            exit 1
        fi
        ;;
    esac
done
""",
            "publish.sh": r"""#!/bin/bash
set -euo pipefail
version=$1
cd work
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then
    echo "v$version exists" >&2
    exit 1
fi
echo "$version" > VERSION
git diff --quiet || git -c user.name=ci -c user.email=ci@example.test commit -q -am "Release $version"
git -c user.name=ci -c user.email=ci@example.test tag -a -m "Release $version" "v$version"
git push -q origin main "v$version"
echo "published $version"
""",
        },
        r"pre-receive|grep.*0\.9\.0",
        also=r"git.*(push|receive-pack|send-pack)",
        before="sh setup.sh",
        needs="git",
    ),
    "release-signing-key-lost-its-newlines": Plant(
        "make",
        "make release VERSION=3.2.0",
        {
            "ci/secret.sh": r"""# How the CI's secret store hands out the key.
set -e
mkdir -p keys
openssl genrsa 2048 2>/dev/null | tr '\n' ' ' > keys/release.pem
""",
            "Makefile": r"""VERSION ?= 0.0.0
NAME := lantern-$(VERSION)

release: dist/$(NAME).tar.gz dist/$(NAME).tar.gz.sig
	cd dist && sha256sum $(NAME).tar.gz > SHA256SUMS

dist/$(NAME).tar.gz: src/lantern.sh CHANGELOG.md
	mkdir -p dist
	@grep -q '^## $(VERSION)' CHANGELOG.md || echo 'warning: no entry for $(VERSION) in CHANGELOG.md'
	-git archive --format=tar HEAD 2>/dev/null > dist/source.tar
	tar -czf $@ src CHANGELOG.md

dist/$(NAME).tar.gz.sig: dist/$(NAME).tar.gz
	openssl dgst -sha256 -sign keys/release.pem -out $@ $<

.PHONY: release
""",
            "src/lantern.sh": "#!/bin/sh\necho lantern\n",
            "CHANGELOG.md": "# Changes\n\n## 3.1.0\n\n- colours\n",
        },
        r"openssl dgst",
        before="sh ci/secret.sh",
        needs="openssl",
    ),
    "deb-version-starts-with-v": Plant(
        "make",
        "make -C packaging deb",
        {
            "packaging/Makefile": r"""deb:
	bash build-deb.sh

.PHONY: deb
""",
            "packaging/build-deb.sh": r"""#!/bin/bash
set -euo pipefail
version=$(git describe --tags 2>/dev/null || cat ../VERSION)
root=root
rm -rf $root && mkdir -p $root/DEBIAN $root/usr/bin
install -m 755 ../bin/logcrate $root/usr/bin/logcrate
# scripts have nothing to strip
for f in $root/usr/bin/*; do
    strip --strip-unneeded "$f" 2>/dev/null || true
done
sed "s/@VERSION@/$version/" control.in > $root/DEBIAN/control
dpkg-deb --root-owner-group --build $root "logcrate_${version}_all.deb"
dpkg-deb --info "logcrate_${version}_all.deb"
""",
            "packaging/control.in": r"""Package: logcrate
Version: @VERSION@
Architecture: all
Maintainer: Logcrate developers <dev@logcrate.example>
Depends: perl
Description: packs logs into crates
""",
            "VERSION": "v1.4.0\n",
            "bin/logcrate": '#!/usr/bin/perl\nprint "logcrate\\n";\n',
        },
        r"dpkg-deb",
        also=r"build-deb\.sh",
        needs="dpkg-deb",
    ),
    "fonts-moved-on-the-mirror": Plant(
        "shell",
        "bash ci/fetch-assets.sh",
        {
            "ci/fetch-assets.sh": r"""#!/bin/bash
set -u
rm -rf run assets && mkdir -p run assets
python3 ci/mirror.py mirror run/port &
mirror=$!
trap 'kill $mirror 2>/dev/null; wait $mirror 2>/dev/null' EXIT
for _ in $(seq 1 50); do [ -s run/port ] && break; sleep 0.1; done
base=http://127.0.0.1:$(cat run/port)

retry() {
    for n in 1 2 3; do
        "$@" && return 0
        echo "try $n failed" >&2
        sleep 0.3
    done
    return 1
}

for asset in icons-5.0.svg fonts-2.1.woff2 sounds-1.0.ogg; do
    if ! retry curl -fsS "$base/$asset" -o "assets/$asset"; then
        echo "cannot fetch $asset" >&2
        exit 1
    fi
done
ls assets
""",
            "ci/mirror.py": r'''"""A mirror of the assets, as busy as the real one: the first request is refused."""
import http.server
import os
import sys

directory, port_file = sys.argv[1:]
seen = []


class Mirror(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen.append(self.path)
        path = os.path.join(directory, os.path.basename(self.path))
        if len(seen) == 1:
            self.send_error(503)
        elif not os.path.exists(path):
            self.send_error(404)
        else:
            body = open(path, "rb").read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Mirror)
with open(port_file, "w") as f:
    f.write("%d\n" % server.server_port)
server.serve_forever()
''',
            "mirror/icons-5.0.svg": "<svg/>\n",
            "mirror/fonts-2.2.woff2": "wOF2\n",
            "mirror/sounds-1.0.ogg": "OggS\n",
        },
        r"fonts-2\.1",
        needs="curl",
    ),
    "deploy-unset-database-url": Plant(
        "shell",
        "bash deploy/release.sh staging",
        {
            "deploy/release.sh": r"""#!/bin/bash
set -euo pipefail
stage=$1
. "deploy/$stage.env"
mkdir -p out

if ! diff -q deploy/unit.service out/unit.service >/dev/null 2>&1; then
    cp deploy/unit.service out/unit.service
fi
if grep -q '^MAINTENANCE=1' "deploy/$stage.env"; then
    echo "maintenance: not deploying" >&2
    exit 0
fi

database=$DATABASE_URL
sed -e "s|@PORT@|$APP_PORT|" -e "s|@DATABASE@|$database|" deploy/app.conf.in > out/app.conf
echo "rendered out/app.conf for $stage"
""",
            "deploy/staging.env": "APP_PORT=8080\nAPP_WORKERS=2\n",
            "deploy/app.conf.in": "listen @PORT@\ndatabase @DATABASE@\n",
            "deploy/unit.service": "[Service]\nExecStart=/opt/app/bin/app\n",
        },
        "itself",
    ),
    # ------------------------------------------------------ generated code
    "generated-client-is-stale": Plant(
        "make",
        "make verify",
        {
            "setup.sh": r"""set -e
git init -q .
git add .
git -c user.name=ci -c user.email=ci@example.test commit -q -m 'Import'
""",
            "Makefile": r"""VERSION := $(shell git describe --tags 2>/dev/null || echo dev)

verify: lint check-generated
	@echo verified $(VERSION)

lint:
	@! grep -rnE 'console\.log' client
	node --check client/routes.js

generate:
	perl tools/gen-routes.pl api/routes.txt > client/routes.js

check-generated: generate
	@git --no-pager diff --exit-code -- client || \
		{ echo "client/ is stale: run 'make generate' and commit" >&2; exit 1; }

.PHONY: verify lint generate check-generated
""",
            "tools/gen-routes.pl": r"""use strict;
use warnings;

print "// Generated by tools/gen-routes.pl. Do not edit.\n";
while (<>) {
    next if /^\s*(#|$)/;
    my ($name, $method, $path) = split;
    print "exports.$name = (send, args) => send('$method', '$path', args);\n";
}
""",
            "api/routes.txt": r"""# name      method path
listJobs    GET    /jobs
createJob   POST   /jobs
cancelJob   DELETE /jobs/:id
""",
            "client/routes.js": r"""// Generated by tools/gen-routes.pl. Do not edit.
exports.listJobs = (send, args) => send('GET', '/jobs', args);
exports.createJob = (send, args) => send('POST', '/jobs', args);
""",
        },
        r"git.*diff",
        before="sh setup.sh",
        needs="node",
    ),
    "option-table-generator-in-a-pipe": Plant(
        "make",
        "make",
        {
            "Makefile": r"""CFLAGS ?= -O1 -Wall
HAVE_NCURSES := $(shell pkg-config --exists 'ncursesw-tools >= 9' && echo 1)

all: pager

pager: src/pager.o
	$(CC) -o $@ $^

src/pager.o: src/pager.c src/options.h
	$(CC) $(CFLAGS) -Isrc -c -o $@ $<

src/options.h: src/options.def tools/mkoptions.pl
	perl tools/mkoptions.pl src/options.def | sed -e 's/[ \t]*$$//' > $@

clean:
	rm -f pager src/*.o src/options.h
""",
            "tools/mkoptions.pl": r"""use strict;
use warnings;

my @options;
while (<>) {
    chomp;
    next if /^\s*(#|$)/;
    /^(\w+)\s+(flag|number)\s+"(.*)"$/
        or die "$ARGV:$.: cannot understand '$_'\n";
    push @options, [uc $1, $2, $3];
}
print "/* generated from options.def */\n";
print "enum option {\n";
print "    OPT_$_->[0], /* $_->[2] */   \n" for @options;
print "    OPT_COUNT\n};\n";
""",
            "src/options.def": r"""# name   kind    help
quiet    flag    "print less"
width    number  "columns of the page"
colour   string  "when to use colours"
""",
            "src/pager.c": r"""#include <stdio.h>
#include "options.h"

static int value[OPT_COUNT];

int main(int argc, char **argv)
{
    (void)argv;
    value[OPT_QUIET] = argc > 1;
    value[OPT_COLOUR] = 1;
    printf("%d options, colour %d\n", OPT_COUNT, value[OPT_COLOUR]);
    return 0;
}
""",
        },
        r"mkoptions\.pl",
        also=r"cc1|\bcc\b|gcc",
        needs="perl",
    ),
    # ------------------------------------------------------------ perl, java
    "prove-tokenizer-apostrophe": Plant(
        "perl",
        "make test",
        {
            "Makefile": r"""test:
	@perl -MTest::Pod -e 1 2>/dev/null || echo 'Test::Pod is not there, its tests are skipped'
	prove -l t

.PHONY: test
""",
            "lib/Wordstat.pm": r"""package Wordstat;
use strict;
use warnings;

sub words {
    my ($text) = @_;
    return map { lc } $text =~ /([A-Za-z]+)/g;
}

1;
""",
            "bin/wordstat": r"""use strict;
use warnings;
use Getopt::Long;
use Wordstat;

GetOptions('top=i' => \my $top) or exit 2;
my %n;
while (<>) { $n{$_}++ for Wordstat::words($_) }
my @sorted = sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n;
splice @sorted, $top if $top && @sorted > $top;
print "$_ $n{$_}\n" for @sorted;
""",
            "t/00-load.t": r"""use strict;
use warnings;
use Test::More tests => 1;
use_ok('Wordstat');
""",
            "t/01-cli.t": r"""use strict;
use warnings;
use Test::More tests => 2;

my $out = `$^X -Ilib bin/wordstat --bogus 2>&1`;
is($? >> 8, 2, 'an unknown option is a usage error');
like($out, qr/Unknown option/, 'and it is named');
""",
            "t/02-tokenize.t": r"""use strict;
use warnings;
use Test::More;
use Wordstat;

is_deeply([Wordstat::words('The cat.')], ['the', 'cat'], 'plain words');
is_deeply([Wordstat::words("don't stop")], ["don't", 'stop'], 'an apostrophe is a part of its word');
done_testing;
""",
            "t/03-pod.t": r"""use strict;
use warnings;
use Test::More;
eval { require Test::Pod; 1 } or plan skip_all => 'Test::Pod is not there';
ok(1);
done_testing;
""",
            "t/04-unicode.t": r"""use strict;
use warnings;
use Test::More tests => 1;
use Wordstat;
TODO: {
    local $TODO = 'accents are not letters yet';
    is_deeply([Wordstat::words("caf\x{e9}")], ["caf\x{e9}"], 'accents');
}
""",
        },
        r"02-tokenize\.t",
        also=r"prove",
        needs="prove",
    ),
    "javac-raw-type-under-werror": Plant(
        "java",
        "bash build.sh",
        {
            "build.sh": r"""#!/bin/bash
set -euo pipefail
rev=$(git rev-parse --short HEAD 2>/dev/null || echo norev)
rm -rf out && mkdir -p out/classes
if grep -rnE 'System\.exit' src; then
    echo "System.exit is not allowed in the library" >&2
    exit 1
fi
javac -Xlint:all -Werror -d out/classes $(find src -name '*.java' | sort)
printf 'Implementation-Version: %s\n' "$rev" > out/manifest
jar --create --file out/tally.jar --manifest out/manifest -C out/classes .
echo out/tally.jar
""",
            "src/tally/Counter.java": r"""package tally;

public final class Counter {
    private int n;

    public void add(int k) {
        n += k;
    }

    public int value() {
        return n;
    }
}
""",
            "src/tally/Registry.java": r"""package tally;

import java.util.HashMap;
import java.util.Map;

public final class Registry {
    private final Map<String, Counter> counters = new HashMap();

    public Counter get(String name) {
        return counters.computeIfAbsent(name, k -> new Counter());
    }
}
""",
        },
        r"javac",
        needs="javac",
    ),
    # ------------------------------------------------------------------- C
    "configure-required-library-missing": Plant(
        "make",
        "bash build.sh",
        {
            "build.sh": r"""#!/bin/bash
set -e
export PKG_CONFIG_PATH=$PWD/pkgconfig
sh ./configure --prefix="$PWD/inst"
make
make install
""",
            "configure": r"""#!/bin/sh
prefix=/usr/local
for a in "$@"; do
    case $a in --prefix=*) prefix=${a#--prefix=} ;; esac
done
: ${CC=cc}
: > config.h
: > config.log

check_func() {
    printf 'checking for %s... ' "$1"
    printf 'char %s(void);\nint main(void) { return %s(); }\n' "$1" "$1" > conftest.c
    if $CC -w -o conftest conftest.c >> config.log 2>&1; then
        echo yes
        echo "#define HAVE_$(echo "$1" | tr a-z A-Z) 1" >> config.h
    else
        echo no
    fi
    rm -f conftest conftest.c
}

check_func getline
check_func strtonum
check_func arc4random_uniformly

printf 'checking for systemd-journal-extras... '
if pkg-config --exists systemd-journal-extras; then echo yes; else echo 'no (optional)'; fi

printf 'checking for libsnorkel >= 1.2... '
if pkg-config --exists --print-errors 'libsnorkel >= 1.2' 2>> config.log; then
    echo yes
else
    echo no
    echo 'configure: error: libsnorkel >= 1.2 is required (see config.log)' >&2
    exit 1
fi
printf 'PREFIX = %s\nCC = %s\n' "$prefix" "$CC" > config.mk
""",
            "pkgconfig/libsnorkel.pc": r"""Name: libsnorkel
Description: breathing under water
Version: 1.1.4
Libs:
Cflags:
""",
            "Makefile": r"""include config.mk

diver: diver.c config.h
	$(CC) -o $@ diver.c

install: diver
	install -D diver $(PREFIX)/bin/diver
""",
            "diver.c": r"""#include "config.h"
int main(void) { return 0; }
""",
        },
        r"pkg-config.*snorkel|^sh (\./)?configure|^(\./)?configure",
        needs="pkg-config",
    ),
    "object-forgotten-in-the-link": Plant(
        "make",
        "make -k all check",
        {
            "Makefile": r"""CFLAGS ?= -O1 -Wall -Wextra
COMMON := build/config.o
SERVER := build/server.o build/listen.o
CTL := build/ctl.o build/utf8.o

all: bin/relayctl bin/relayd

bin/relayctl: $(CTL) $(COMMON)
	@mkdir -p bin
	$(CC) -o $@ $^

bin/relayd: $(SERVER) $(COMMON)
	@mkdir -p bin
	$(CC) -o $@ $^

build/%.o: src/%.c
	@mkdir -p build
	$(CC) $(CFLAGS) -c -o $@ $<

check: bin/relayctl
	sh tests/usage.sh

clean:
	rm -rf bin build

.PHONY: all check clean
""",
            "src/relay.h": r"""int config_port(void);
int utf8_valid(const char *s);
int listen_on(int port);
""",
            "src/config.c": '#include "relay.h"\nint config_port(void) { return 4100; }\n',
            "src/utf8.c": r"""#include "relay.h"

int utf8_valid(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s >= 0xf8)
            return 0;
    return 1;
}
""",
            "src/listen.c": r"""#include "relay.h"

static const char name[] = "relay";

int listen_on(int port)
{
    return utf8_valid(name) ? port : -1;
}
""",
            "src/server.c": '#include "relay.h"\nint main(void) { return listen_on(config_port()) < 0; }\n',
            "src/ctl.c": r"""#include <stdio.h>
#include "relay.h"

int main(int argc, char **argv)
{
    if (argc != 2 || !utf8_valid(argv[1])) {
        fprintf(stderr, "usage: relayctl COMMAND\n");
        return 2;
    }
    printf("%s at %d\n", argv[1], config_port());
    return 0;
}
""",
            "tests/usage.sh": r"""bin/relayctl 2>/dev/null
[ $? -eq 2 ] || { echo 'relayctl without arguments must fail with 2'; exit 1; }
bin/relayctl status | grep -q 'status at 4100' || exit 1
echo 'usage: ok'
""",
        },
        r"\bld\b|collect2|\bcc\b|gcc",
        needs="gcc",
    ),
    "valgrind-leak-on-the-error-path": Plant(
        "make",
        "make memcheck",
        {
            "Makefile": r"""CFLAGS ?= -g -O0 -Wall
TESTS := test_names test_headers
VALGRIND ?= valgrind -q --leak-check=full --error-exitcode=9

memcheck: check
	$(VALGRIND) ./test_names
	$(VALGRIND) ./test_headers

check: $(TESTS) hdrdump
	./test_names
	./test_headers
	@echo 'no colon here' | ./hdrdump && exit 1 || echo 'hdrdump refuses rubbish: ok'

test_%: tests/test_%.c src/headers.c
	$(CC) $(CFLAGS) -Isrc -o $@ $^

hdrdump: src/hdrdump.c src/headers.c
	$(CC) $(CFLAGS) -Isrc -o $@ $^

.PHONY: memcheck check
""",
            "src/headers.h": r"""struct header { char *name; char *value; };
struct header *header_parse(const char *line);
void header_free(struct header *h);
int name_valid(const char *name);
""",
            "src/headers.c": r"""#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "headers.h"

int name_valid(const char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '-')
            return 0;
    return 1;
}

struct header *header_parse(const char *line)
{
    struct header *h = calloc(1, sizeof *h);
    const char *colon = strchr(line, ':');
    if (!colon) {
        free(h);
        return NULL;
    }
    h->name = strndup(line, colon - line);
    if (!name_valid(h->name)) {
        free(h);
        return NULL;
    }
    h->value = strdup(colon + 1 + strspn(colon + 1, " "));
    return h;
}

void header_free(struct header *h)
{
    free(h->name);
    free(h->value);
    free(h);
}
""",
            "src/hdrdump.c": r"""#include <stdio.h>
#include <string.h>
#include "headers.h"

int main(void)
{
    char line[512];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        struct header *h = header_parse(line);
        if (!h) {
            fprintf(stderr, "hdrdump: not a header: %s\n", line);
            return 1;
        }
        printf("%s=%s\n", h->name, h->value);
        header_free(h);
    }
    return 0;
}
""",
            "tests/test_names.c": r"""#include <assert.h>
#include "headers.h"

int main(void)
{
    assert(name_valid("Content-Type"));
    assert(!name_valid("Content Type"));
    return 0;
}
""",
            "tests/test_headers.c": r"""#include <assert.h>
#include <string.h>
#include "headers.h"

int main(void)
{
    struct header *h = header_parse("Host: example.test");
    assert(h && strcmp(h->value, "example.test") == 0);
    header_free(h);
    assert(header_parse("Bad Name: 1") == NULL);
    return 0;
}
""",
        },
        r"valgrind|memcheck-|test_headers",
        needs="valgrind",
    ),
    "xargs-pool-ring-test-segfaults": Plant(
        "make",
        "make -s check",
        {
            "Makefile": r"""CFLAGS ?= -g -O0 -Wall
TESTS := $(patsubst tests/%.c,bin/%,$(wildcard tests/test_*.c))

check: $(TESTS)
	ls bin/test_* | xargs -P 4 -n 1 sh tests/run-one.sh

bin/test_%: tests/test_%.c src/ring.c src/ring.h
	mkdir -p bin
	$(CC) $(CFLAGS) -Isrc -o $@ $< src/ring.c

.PHONY: check
""",
            "tests/run-one.sh": r"""# 77 is a skipped test
"$1"
status=$?
case $status in
0) echo "PASS $1" ;;
77) echo "SKIP $1" ;;
*) echo "FAIL $1 ($status)"; exit 1 ;;
esac
""",
            "src/ring.h": r"""#include <stddef.h>
struct ring { char *data; size_t size, head, used; };
int ring_init(struct ring *r, size_t size);
int ring_put(struct ring *r, char c);
""",
            "src/ring.c": r"""#include <stdlib.h>
#include "ring.h"

int ring_init(struct ring *r, size_t size)
{
    r->size = size;
    r->head = r->used = 0;
    r->data = size > 64 ? malloc(size) : NULL; /* small ones are inline */
    return 0;
}

int ring_put(struct ring *r, char c)
{
    if (r->used == r->size)
        return -1;
    r->data[(r->head + r->used++) % r->size] = c;
    return 0;
}
""",
            "tests/test_large.c": r"""#include "ring.h"

int main(void)
{
    struct ring r;
    ring_init(&r, 4096);
    for (int i = 0; i < 4096; i++)
        if (ring_put(&r, 'x'))
            return 1;
    return ring_put(&r, 'y') == 0;
}
""",
            "tests/test_hugepages.c": r"""#include <stdlib.h>
#include "ring.h"

int main(void)
{
    if (!getenv("TEST_HUGEPAGES"))
        return 77;
    struct ring r;
    return ring_init(&r, 1 << 21);
}
""",
            "tests/test_init.c": r"""#include "ring.h"

int main(void)
{
    struct ring r;
    return ring_init(&r, 128) || r.used != 0;
}
""",
            "tests/test_small.c": r"""#include "ring.h"

int main(void)
{
    struct ring r;
    ring_init(&r, 8);
    return ring_put(&r, 'a');
}
""",
        },
        r"test_small",
        needs="gcc",
    ),
}
