// Runs the tests of the core against the package as it was built by scripts/build.mjs.
//
//   node scripts/test.mjs [NAME…]
import { readdirSync } from "node:fs";
import { join } from "node:path";

import { here, run } from "./tools.mjs";

const wanted = process.argv.slice(2);
const files = readdirSync(join(here, "test/core")).filter((file) => file.endsWith(".test.mjs"));
const chosen = files.filter((file) => wanted.length === 0 || wanted.includes(file.replace(".test.mjs", "")));
if (chosen.length === 0) {
  console.error(`no such test; one of ${files.map((file) => file.replace(".test.mjs", "")).join(", ")}`);
  process.exit(1);
}

// Within the package, `import "deloop"` is the package itself.
const paths = chosen.map((file) => join(here, "test/core", file));
const { status } = run(process.execPath, ["--test", "--test-reporter=spec", ...paths], { stdio: "inherit", mayFail: true });
process.exit(status ?? 1);
