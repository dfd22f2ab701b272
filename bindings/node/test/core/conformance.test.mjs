// The conformance vectors of all profiles, as conformance/vectors/README.md says.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Guard } from "deloop";

import { repository } from "./deloop.mjs";

const folder = join(repository, "conformance/vectors");
const profiles = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());

function check(expected, decision, place) {
  for (const field of ["action", "level", "message", "notices", "loop_detection_state"]) {
    if (field in expected) assert.deepEqual(decision[field] ?? null, expected[field], `${place}: ${field}`);
  }
  if ("findings" in expected) {
    const found = decision.findings.map(({ detector, count }) => ({ detector, count }));
    assert.deepEqual(found, expected.findings, `${place}: findings`);
  }
}

let vectors = 0;
for (const { name: profile } of profiles) {
  test(`the vectors of ${profile} hold`, () => {
    for (const file of readdirSync(join(folder, profile))) {
      const vector = JSON.parse(readFileSync(join(folder, profile, file), "utf8"));
      const ways = [(step) => step, (step) => JSON.stringify(step)];
      for (const way of ways) {
        const guard = new Guard({ profile: vector.profile, ...(vector.config && { config: vector.config }) });
        const decisions = vector.steps.map((step) => guard.observe(way(step)));
        assert.equal(decisions.length, vector.decisions.length, file);
        vector.decisions.forEach((expected, i) => check(expected, decisions[i], `${profile}/${file}, step ${i}`));
      }
      vectors += 1;
    }
  });
}

test("no vector was left out", () => {
  assert.equal(profiles.length, 5);
  assert.ok(vectors >= 120, `${vectors} vectors`);
});
