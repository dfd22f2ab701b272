// Compiled with --strict, as ESM and as CommonJS, and then run: the types say what happens.
import { type Action, type Decision, type Finding, Guard, type GuardOptions, Step, StopError, steps, version } from "deloop";

const options: GuardOptions = { profile: "default", mode: "enforce", deliver: ["tool", "user"], config: {} };
const guard: Guard = new Guard(options);

const plain: Step = { type: "turn", session: "s1", text: "Let me look.", calls: [{ id: "c1", tool: "bash", args: { command: "ls" } }] };
const built: Step[] = [
  plain,
  Step.result("s1", "c1", { ok: false, output: { code: 2 }, outcome: "error", error_type: "ENOENT" }),
  Step.user("s1", "go on", { origin: "harness", ts: new Date(0) }),
  Step.usage("s1", { model: "m", input_tokens: 1, cost_usd: 0.5 }),
  Step.delivery("s1", 0, true),
  Step.state("s1", { agent: "worker", swarm: "w" }),
];

function told(decision: Decision): string {
  const action: Action = decision.action;
  switch (action) {
    case "continue":
      return "";
    case "warn":
    case "ask":
      return decision.user_message ?? "";
    case "nudge":
    case "block":
    case "stop":
      return decision.message ?? "";
    default: {
      const never: never = action;
      return never;
    }
  }
}

/** `type` tells which fields a step has. */
function about(step: Step): string | number {
  switch (step.type) {
    case "turn":
      return step.calls?.[0]?.tool ?? step.text ?? "";
    case "call":
      return step.tool;
    case "result":
      return String(step.output);
    case "delivery":
      return step.step;
    case "usage":
      return step.input_tokens ?? 0;
    case "swarm_end":
      return step.swarm;
    default:
      return step.type;
  }
}

for (const step of built) told(guard.observe(step));
const decision = guard.observe(JSON.stringify(plain));
const findings: readonly Finding[] = decision.findings;
const { events } = guard.observeAll(Step.intervention("s1"));
const text: string | null = guard.checkpoint("s1");
if (text !== null) guard.restore("s1", text);
const count: number = guard.sessionCount;
const read: (path: string) => Iterable<Step> = steps;
const error: Error = new StopError(decision, "stopped");
declare const console: { log(text: string): void };
console.log(JSON.stringify([built.map(about), findings.length, events.length, count, typeof read, error.message, version]));

export function neverCalled(): void {
  // @ts-expect-error a type that doesn't exist
  guard.observe({ type: "tool" });
  // @ts-expect-error a call needs a tool
  const noTool: Step = { type: "call", session: "s1" };
  // @ts-expect-error a delivery says whether it arrived
  const noAnswer: Step = { type: "delivery", step: 1 };
  // @ts-expect-error not an outcome
  Step.result("s1", "c1", { outcome: "failed" });
  // @ts-expect-error not a mode
  new Guard({ mode: "block" });
  // @ts-expect-error decisions don't change
  decision.action = "stop";
  // @ts-expect-error nor do their lists
  decision.calls.push("c1");
  void [noTool, noAnswer];
}
