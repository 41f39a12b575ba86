// Bundles the page's program and style: node build.mjs DIRECTORY
import { build } from "esbuild";

const directory = process.argv[2];
if (!directory) throw new Error("usage: node build.mjs DIRECTORY");
await build({
  entryPoints: { report: "src/main.ts", predict: "src/predict.ts" },
  outdir: directory,
  bundle: true,
  format: "iife",
  target: ["es2022", "chrome109", "firefox115", "safari16.4"],
  minify: true,
  // Licences of what is bundled stand at the end of the bundle.
  legalComments: "eof",
  charset: "ascii",
  logLevel: "warning",
});
await build({
  entryPoints: { report: "src/report.css" },
  outdir: directory,
  bundle: true,
  minify: true,
  charset: "utf8",
  logLevel: "warning",
});
