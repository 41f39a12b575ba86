// Runs SQL on a trace in Perfetto's trace_processor (WebAssembly), and prints a JSON object for each row.
//
// Usage: trace_processor.mjs DIRECTORY TRACE SQL...     DIRECTORY: of scripts/trace_processor.sh
import { readFileSync } from "node:fs";
import v8 from "node:v8";
import vm from "node:vm";
import { MessageChannel } from "node:worker_threads";
import { pathToFileURL } from "node:url";

const [directory, trace, ...queries] = process.argv.slice(2);
const { EngineBase } = await import(pathToFileURL(`${directory}/engine.mjs`));
// Short queries: the optimizing compiler takes two seconds of a processor's time, which are not won back.
v8.setFlagsFromString("--liftoff-only");
globalThis.self = globalThis;
// As in a web worker.
globalThis.WorkerGlobalScope = class {};
self.location = { href: "https://localhost/engine_bundle.js" };
globalThis.XMLHttpRequest = class {
  open(_method, url) {
    this.name = url.split("/").pop();
  }
  send() {
    this.response = readFileSync(`${directory}/${this.name}`);
  }
};
console.warn = () => {};
vm.runInThisContext(readFileSync(`${directory}/engine_bundle.node.js`, "utf8"));
const { port1, port2 } = new MessageChannel();
self.onmessage({ data: port2 });
class Engine extends EngineBase {
  rpcSendRequestBytes(data) {
    port1.postMessage(data);
  }
}
const engine = new Engine();
port1.on("message", (data) => engine.onRpcResponseBytes(data));
const bytes = readFileSync(trace);
for (let at = 0; at < bytes.length; at += 1 << 20)
  await engine.parse(new Uint8Array(bytes.subarray(at, at + (1 << 20))));
await engine.notifyEof();
const lines = [];
for (const sql of queries) {
  const result = await engine.query(sql);
  const columns = result.columns();
  for (const it = result.iter({}); it.valid(); it.next()) {
    const row = {};
    for (const name of columns) {
      const value = it.get(name);
      row[name] = typeof value === "bigint" ? Number(value) : value;
    }
    lines.push(JSON.stringify(row) + "\n");
  }
}
// A pipe may take its rows after this.
process.stdout.write(lines.join(""), () => process.exit(0));
