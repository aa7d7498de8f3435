#!/usr/bin/env node
// Starts the codehand of this machine, which npm has installed beside this package as an optional dependency. Nothing
// is downloaded here, and no script ran when the package was installed.
"use strict";
const { spawn } = require("node:child_process");

const name = `codehand-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/codehand${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`codehand: there is no package ${name} beside this one. Install again without --omit=optional; ` +
    "if npm then knows no such package, there is none for this machine.");
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The child stops by itself at the end of its input. What asks this process to end, asks the child.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (e) => {
  console.error(`codehand: ${program}: ${e.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
