// What the tests of all framework adapters share.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));
/** The repository. */
export const repository = process.env.DELOOP_REPOSITORY;

/** Returns the version of an installed package. */
export function versionOf(name) {
  return JSON.parse(readFileSync(join(folder, "../node_modules", name, "package.json"), "utf8")).version;
}

const ID = /\b(?:call|toolu|chatcmpl|resp|msg|fc|run|item|req|aitxt)[-_][A-Za-z0-9_-]{4,}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const TIME = /\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?/g;

/** Returns the bodies of requests as text, ids numbered by their first appearance and times taken out. */
export function normalized(requests) {
  const numbers = new Map();
  const number = (id) => {
    if (!numbers.has(id)) numbers.set(id, `id${numbers.size}`);
    return numbers.get(id);
  };
  return requests.map((request) => request.raw.replace(ID, number).replace(TIME, "TIME"));
}

/** Checks that two runs sent the same requests, ids and times aside, and returns how many. */
export function assertSameRequests(without, withDeloop) {
  const [left, right] = [normalized(without), normalized(withDeloop)];
  for (const [index, text] of left.entries()) {
    const other = right[index] ?? "";
    const at = [...text].findIndex((letter, place) => letter !== other[place]);
    const near = (each) => each.slice(Math.max(0, at - 100), at + 100);
    assert.ok(text === other, `request ${index} differs at ${at}:\n- …${near(text)}…\n+ …${near(other)}…`);
  }
  assert.equal(right.length, left.length);
  return left.length;
}

/** Returns the number of the first request that shows a text, and checks that all later ones show it too. */
export function firstWith(requests, text) {
  const shown = requests.map((request) => request.shows(text));
  const first = shown.indexOf(true);
  assert.notEqual(first, -1, `no request shows ${text}`);
  assert.ok(shown.slice(first).every(Boolean), `"${text}" is in request ${first} but not in all later ones: ${shown}`);
  return first;
}

/** Returns where a text stands in a request: the role of its entry. */
export function placeOf(request, text) {
  return request.conversation.find((entry) => entry.text.includes(text))?.role;
}

/** Checks that the model refused no request. */
export function assertValid(model) {
  assert.deepEqual(model.requests.map((request) => request.refused).filter((reason) => reason !== null), []);
}

/** The failing tool of the loop tests; counts what really ran. */
export class FailingTool {
  ran = [];

  constructor(error = "no such table: orders") {
    this.error = error;
  }

  /** Notes a run and throws. */
  convert = ({ url }) => {
    this.ran.push(url);
    throw Object.assign(new Error(this.error), { code: "SQLITE_ERROR" });
  };
}

/** The tools of the healthy run, over files in memory; the script `healthy` calls them. */
export class Workspace {
  files = new Map();

  /** The tools by name: `[description, names of the arguments, function]`. */
  get tools() {
    return {
      read_file: ["Read a file.", ["path"], ({ path }) => {
        if (path.startsWith("missing")) throw new Error(`no such file: ${path}`);
        return this.files.get(path) ?? `# ${path} is empty\n`;
      }],
      edit_file: ["Write a file.", ["path", "text"], ({ path, text }) => {
        this.files.set(path, text);
        return `wrote ${text.length} characters to ${path}`;
      }],
      run_tests: ["Run the tests of one part.", ["name"], ({ name }) =>
        this.files.has(`src/${name}.py`) ? `${name}: 1 passed` : `${name}: 1 failed: ${name}() returned None`],
      search: ["Search all files.", ["pattern"], ({ pattern }) =>
        [...this.files].filter(([, text]) => text.includes(pattern)).map(([path]) => path).join("\n") || `no match for ${pattern}`],
    };
  }
}

/** Stands for a guard that crashes in every method. */
export const brokenGuard = {
  observe() { throw new RangeError("crash inside deloop: observe"); },
  checkpoint() { throw new RangeError("crash inside deloop: checkpoint"); },
  restore() { throw new RangeError("crash inside deloop: restore"); },
};

/** A guard that keeps the steps it is given, as JSON. */
export class RecordingGuard {
  steps = [];

  constructor(guard) {
    this.guard = guard;
  }

  observe(step) {
    this.steps.push(JSON.parse(JSON.stringify(step)));
    return this.guard.observe(step);
  }

  checkpoint(session) {
    return this.guard.checkpoint(session);
  }

  restore(session, text) {
    this.guard.restore(session, text);
  }

  /** Returns the steps in short: type and what identifies each. */
  get short() {
    return this.steps.map((step) => {
      if (step.type === "turn") return `turn ${step.calls.map((call) => call.tool)}`.trim();
      if (step.type === "result") return ["result", step.outcome, step.error_type].filter(Boolean).join(" ");
      if (step.type === "user") return `user ${step.origin ?? "human"}`;
      if (step.type === "usage") return `usage ${step.input_tokens}+${step.cache_read_tokens}+${step.output_tokens} ${step.model}`;
      return step.type === "delivery" ? `delivery ${step.ok}` : step.type;
    });
  }
}

/** What a loop of one failing call looks like to the guard, from the person's text to the stop. */
export function loopSteps(turn = "turn convert", failure = "result error SQLITE_ERROR") {
  const usage = "usage 60+40+20 fake-model";
  const failed = [usage, turn, failure];
  const refused = [usage, turn, "result denied"];
  const third = [...failed, "delivery true"];
  return ["user human", ...failed, ...failed, ...third, ...failed, ...third, ...refused, ...refused, ...refused];
}

/** Collects what deloop logs. */
export class Log {
  warnings = [];
  errors = [];
  warn = (text) => void this.warnings.push(text);
  error = (text) => void this.errors.push(text);
}

/** Runs a program in a new process of this Node and returns what it printed; it must exit with 0. */
export async function runProgram(source, { env = {}, args = [], extension = "mjs" } = {}) {
  const scratch = mkdtempSync(join(folder, "program-"));
  const path = join(scratch, `program.${extension}`);
  writeFileSync(path, source);
  try {
    const strip = extension === "ts" ? ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"] : [];
    const child = spawn(process.execPath, [...strip, path, ...args], { env: { ...process.env, NODE_TEST_CONTEXT: "", ...env } });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (err += text));
    const code = await new Promise((resolve) => child.on("close", resolve));
    assert.equal(code, 0, `exit code ${code}\n${out}\n${err}`);
    return out;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Returns the program of docs/frameworks/NAME.md: its first ts block, at most 20 lines long. */
export function pageProgram(name) {
  const page = readFileSync(join(repository, "docs/frameworks", `${name}.md`), "utf8");
  const found = /^```ts\n(.*?)^```/ms.exec(page);
  assert.ok(found, `docs/frameworks/${name}.md has no ts block`);
  const lines = found[1].trimEnd().split("\n").length;
  assert.ok(lines <= 20, `the program of docs/frameworks/${name}.md has ${lines} lines`);
  return found[1];
}

/** Runs the program of a page as it stands against a fake model and returns what it printed. */
export function runPageProgram(name, model, extension = "ts") {
  return runProgram(pageProgram(name), { env: model.env, extension });
}

/** Adds cells to the row of a framework, which the docs' table is made from. */
export function writeRow(name, cells) {
  const rows = process.env.DELOOP_ROWS;
  mkdirSync(rows, { recursive: true });
  const path = join(rows, `${name}.json`);
  const row = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { framework: name };
  writeFileSync(path, `${JSON.stringify({ ...row, ...cells }, null, 1)}\n`);
}
