/** What a field of a Step must be: how that is called, and whether a value is it. */
type Kind = readonly [expected: string, fits: (value: unknown) => boolean];

const TEXT: Kind = ["a string", (value) => typeof value === "string"];
const ID: Kind = ["a string or a number", (value) => typeof value === "string" || typeof value === "number"];
const FLAG: Kind = ["true or false", (value) => typeof value === "boolean"];
const NUMBER: Kind = ["a number", (value) => typeof value === "number"];
const WHOLE: Kind = ["a whole number from 0", (value) => Number.isInteger(value) && (value as number) >= 0];
const NUMBERS: Kind = [
  "a list of numbers",
  (value) => Array.isArray(value) && value.every((part) => typeof part === "number" && Math.abs(part) < 3.5e38),
];
const LIST: Kind = ["a list", Array.isArray];

function oneOf(...names: string[]): Kind {
  return [`one of ${names.join(", ")}`, (value) => names.includes(value as string)];
}

const FIELDS: Readonly<Record<string, Kind>> = {
  type: TEXT,
  session: TEXT,
  agent: TEXT,
  swarm: TEXT,
  controller: TEXT,
  task: TEXT,
  project: TEXT,
  text: TEXT,
  turn_id: ID,
  calls: LIST,
  embedding: NUMBERS,
  id: ID,
  tool: TEXT,
  ok: FLAG,
  outcome: oneOf("ok", "error", "denied", "cancelled", "timeout", "running", "invalid"),
  error_type: TEXT,
  origin: oneOf("human", "harness"),
  model: TEXT,
  input_tokens: WHOLE,
  output_tokens: WHOLE,
  cache_read_tokens: WHOLE,
  cache_write_tokens: WHOLE,
  cache_write_1h_tokens: WHOLE,
  cost_usd: NUMBER,
  weighted_tokens: WHOLE,
  step: WHOLE,
};

/** Longer texts aren't read again to explain what is wrong. */
const LONGEST_EXPLAINED = 1 << 20;

/** Returns the error for a text that isn't a Step. The native side knows a place in the text; this names the field. */
export function refusal(text: string, reason: string): TypeError {
  if (text.length > LONGEST_EXPLAINED) return new TypeError(reason);
  let step: unknown;
  try {
    step = JSON.parse(text);
  } catch {
    return new TypeError(reason);
  }
  return new TypeError(problemOf(step) ?? reason);
}

function problemOf(step: unknown): string | undefined {
  if (typeof step !== "object" || step === null) return `a Step is an object or its JSON, not ${nameOf(step)}`;
  if (Array.isArray(step)) return undefined;
  const problem = wrongField(step, "");
  if (problem !== undefined) return problem;
  const { calls } = step as { calls?: unknown[] | null };
  for (const [index, call] of (calls ?? []).entries()) {
    const path = `calls[${index}]`;
    if (typeof call !== "object" || call === null) return `\`${path}\`: ${nameOf(call)} instead of an object`;
    if (!("tool" in call)) return `\`${path}\` needs the field \`tool\``;
    const wrong = wrongField({ ...call, tool: call.tool ?? 0 }, `${path}.`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function wrongField(value: object, path: string): string | undefined {
  for (const [name, part] of Object.entries(value)) {
    const kind = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (kind === undefined || part === null || kind[1](part)) continue;
    return `\`${path}${name}\`: ${nameOf(part)} instead of ${kind[0]}`;
  }
  return undefined;
}

/** Describes a value from JSON in a few words. */
function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  const text = JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
