// Canonicalises a document a line, in hexadecimal, with Node and the npm package canonicalize: writes "ok HEX", or "no REASON".
// Called by tests/fuzz/differential with the path of the package's module.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: canonicalize } = await import(pathToFileURL(process.argv[2]));
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
let answers = [];
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const value = JSON.parse(strict.decode(Buffer.from(line, "hex")));
    answers.push("ok " + Buffer.from(canonicalize(value)).toString("hex"));
  } catch (error) {
    answers.push("no " + String(error.message).replace(/[^ -~]/g, "?"));
  }
  if (answers.length === 1000) {
    process.stdout.write(answers.join("\n") + "\n");
    answers = [];
  }
}
process.stdout.write(answers.map((answer) => answer + "\n").join(""));
