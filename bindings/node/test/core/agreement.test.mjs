// Node's decisions are those of `deloop stream`, on random steps.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Guard } from "deloop";

import { emptyFolder, stream } from "./deloop.mjs";
import { randomSteps } from "./random-steps.mjs";

const cases = Number(process.env.DELOOP_CASES ?? 40);
const profiles = ["default", "behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash"];
const variants = [
  { options: {}, args: [] },
  { options: { mode: "observe" }, args: ["--mode", "shadow"] },
  { options: { mode: "nudge", attended: true }, args: ["--mode", "nudge", "--attended"] },
  { options: { deliver: "tool", rollback: true }, args: ["--deliver", "tool", "--rollback"] },
  { options: { deliver: ["user", "system"] }, args: ["--deliver", "user,system"] },
];

/** Returns the decision, or what `deloop stream` answers to a line that isn't a Step. */
function answer(guard, step) {
  try {
    return guard.observe(step);
  } catch (error) {
    assert.ok(error instanceof TypeError, error);
    return "refused";
  }
}

/** Returns a decision without the times that the library and the command take from their clocks: these steps have none. */
function withoutTimes(value) {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([name]) => name !== "lastWarningTime" && name !== "timestamp");
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutTimes(inner)]));
}

for (const profile of profiles) {
  test(`${profile}: objects and their JSON get the decisions of the command`, (t) => {
    const home = emptyFolder(t);
    let acted = 0;
    for (let seed = 1; seed <= cases; seed += 1) {
      const { options, args } = variants[seed % variants.length];
      const steps = randomSteps(seed * 7919, 60);
      const lines = steps.map((step) => JSON.stringify(step));
      const expected = stream(home, ["--profile", profile, ...args], lines);
      assert.equal(expected.length, steps.length, `seed ${seed}`);
      const byObject = new Guard({ profile, ...options });
      const byText = new Guard({ profile, ...options });
      steps.forEach((step, i) => {
        const wanted = "error" in expected[i] && !("action" in expected[i]) ? "refused" : withoutTimes(expected[i]);
        const place = `seed ${seed}, step ${i}: ${lines[i].slice(0, 300)}`;
        assert.deepEqual(withoutTimes(answer(byObject, step)), wanted, place);
        assert.deepEqual(withoutTimes(answer(byText, lines[i])), wanted, place);
        if (wanted !== "refused" && (wanted.action !== "continue" || wanted.would !== undefined)) acted += 1;
      });
    }
    assert.ok(acted > cases / 4, `only ${acted} decisions did anything`);
  });
}
