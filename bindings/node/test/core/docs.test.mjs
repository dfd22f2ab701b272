// The programs in docs/node.md and README.md run as they stand.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Guard } from "deloop";

import { here } from "../../scripts/tools.mjs";
import { repository } from "./deloop.mjs";

function blocks(file, language) {
  const pattern = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms");
  return [...readFileSync(file, "utf8").matchAll(pattern)].map(([, code]) => code);
}

const guide = join(repository, "docs/node.md");
// The last block of the guide reads files that aren't here.
for (const [name, program] of [["the guide", blocks(guide, "js")[0]], ["the README", blocks(join(here, "README.md"), "js")[0]]]) {
  test(`the first program of ${name} runs`, () => {
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd: here, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
}

test("the settings in the guide exist", () => {
  const [, config] = /as in deloop\.yaml: `(.*?)`/.exec(readFileSync(guide, "utf8"));
  new Guard({ config: new Function(`return ${config}`)() });
});

test("the guide lists every option and method", () => {
  const text = readFileSync(guide, "utf8");
  const methods = Object.getOwnPropertyNames(Guard.prototype).filter((name) => name !== "constructor");
  const options = /one of (.*)$/.exec(assertThrows(() => new Guard({ nope: 1 })))[1].split(", ");
  for (const name of [...methods, ...options]) assert.match(text, new RegExp(`^\\| \`${name}`, "m"), name);
});

function assertThrows(run) {
  try {
    run();
  } catch (error) {
    return error.message;
  }
  return assert.fail("nothing was thrown");
}
