// Measures the npm package canonicalize on the files of a folder: writes "BYTES NANOSECONDS" a file, the best of the rounds of about 50 ms.
// Called by tests/bench/canonical_json with the path of the package's module and the folder.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { default: canonicalize } = await import(pathToFileURL(process.argv[2]));
for (const name of readdirSync(process.argv[3])) {
  const body = readFileSync(join(process.argv[3], name));
  const timed = (calls) => {
    const begin = process.hrtime.bigint();
    for (let i = 0; i < calls; ++i) {
      Buffer.from(canonicalize(JSON.parse(body.toString("utf8"))), "utf8");
    }
    return Number(process.hrtime.bigint() - begin) / calls;
  };
  const calls = Math.max(1, Math.round(50e6 / timed(3)));
  let best = Infinity;
  for (let round = 0; round < 15; ++round) {
    best = Math.min(best, timed(calls));
  }
  console.log(parseInt(name), Math.round(best));
}
