// Runs the tests of the framework adapters against the real packages, at the versions in frameworks/NAME.
//
//   node bindings/node/test/run.mjs [NAME…] [--package FOLDER | --tarballs FOLDER] [--only TEST] [--test-name-pattern TEXT]
//   node bindings/node/test/run.mjs --list
//
// --package is a built Node package (with dist/ and npm/PLATFORM); by default it is bindings/node, and dist/ is built.
// --tarballs has the packages as `npm pack` makes them; they are unpacked, as npm does.
// `cargo xtask setup` installs the frameworks; this installs nothing and needs no network.
// Exit codes: 0 all tests passed, 1 some failed, 2 something isn't installed.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { here, installations, installed, platformName, put, repository, tsc } from "../scripts/tools.mjs";

/** The frameworks: which tests each has, and the oldest Node that it runs on. */
const FRAMEWORKS = {
  "fake-model": { tests: ["fake-model"], node: 20 },
  "ai-7": { tests: ["ai", "ai-traps", "ai-7"], node: 22 },
  "ai-6": { tests: ["ai", "ai-traps", "ai-6"], node: 20 },
  "langchain-js": { tests: ["langchain", "langchain-traps"], node: 22 },
  "openai-node": { tests: ["openai"], node: 22 },
  "anthropic-node": { tests: ["anthropic"], node: 20 },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: "boolean" }, package: { type: "string" }, tarballs: { type: "string" }, only: { type: "string", multiple: true }, "test-name-pattern": { type: "string", multiple: true } },
});
if (values.list) {
  console.log(Object.keys(FRAMEWORKS).join("\n"));
  process.exit(0);
}
const unknown = positionals.filter((name) => !(name in FRAMEWORKS));
if (unknown.length > 0) {
  console.error(`no such framework: ${unknown.join(", ")}; one of ${Object.keys(FRAMEWORKS).join(", ")}`);
  process.exit(1);
}
const built = values.tarballs === undefined && (values.package === undefined ? buildHere() : resolve(values.package));
const failed = (positionals.length > 0 ? positionals : Object.keys(FRAMEWORKS)).filter((name) => !passes(name));
if (failed.length > 0) console.error(`failed: ${failed.join(", ")}`);
process.exit(failed.length > 0 ? 1 : 0);

function buildHere() {
  const done = spawnSync(process.execPath, [join(here, "scripts/build.mjs"), "--js"], { stdio: "inherit" });
  if (done.status !== 0) process.exit(done.status ?? 1);
  return here;
}

/** Puts deloop and the tests beside a framework and runs them there. */
function passes(name) {
  const { tests, node } = FRAMEWORKS[name];
  const folder = folderOf(name);
  installDeloop(join(folder, "node_modules"));
  const copies = join(folder, "test");
  rmSync(copies, { recursive: true, force: true });
  mkdirSync(copies);
  const sources = readdirSync(join(here, "test")).filter((file) => file.endsWith(".mjs"));
  for (const file of sources) copyFileSync(join(here, "test", file), join(copies, file));
  rmSync(join(installations, "rows", `${name}.json`), { force: true });
  const files = (values.only ?? tests).map((test) => join(copies, `${test}.test.mjs`)).filter((file) => existsSync(file));
  const patterns = (values["test-name-pattern"] ?? []).map((pattern) => `--test-name-pattern=${pattern}`);
  const env = { ...process.env, DELOOP_FRAMEWORK: name, DELOOP_REPOSITORY: repository, DELOOP_ROWS: join(installations, "rows") };
  console.log(`${name}:`);
  const passed = spawnSync(nodeOf(node), ["--test", "--test-reporter=spec", ...patterns, ...files], { stdio: "inherit", env, cwd: folder });
  return (patterns.length > 0 || values.only !== undefined || typesFit(name, copies)) && passed.status === 0;
}

/** Compiles a program of types/ against the packages, as a module of both kinds. */
function typesFit(name, folder) {
  if (!existsSync(join(here, "test/types", `${name}.ts`))) return true;
  const options = ["--strict", "--noEmit", "--skipLibCheck", "--target", "es2023", "--lib", "es2023,dom,esnext.disposable", "--types", "", "--module", "nodenext"];
  return ["mts", "cts"].every((extension) => {
    copyFileSync(join(here, "test/types", `${name}.ts`), join(folder, `types.${extension}`));
    const done = spawnSync(process.execPath, [tsc(), ...options, join(folder, `types.${extension}`)], { encoding: "utf8" });
    console.log(`${done.status === 0 ? "✔" : "✖"} types of a ${extension} program\n${done.stdout}`.trimEnd());
    return done.status === 0;
  });
}

/** Returns the folder with the packages of frameworks/NAME; a framework without pins needs none. */
function folderOf(name) {
  const pins = join(here, "test/frameworks", name);
  if (existsSync(pins)) return installed(`node-${name}`, pins);
  const folder = join(installations, `node-${name}`);
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  return folder;
}

function installDeloop(modules) {
  if (values.tarballs !== undefined) return unpackTarballs(resolve(values.tarballs), modules);
  const platform = join(built, "npm", platformName());
  if (!existsSync(platform)) {
    console.error(`${platform} isn't there: run \`node bindings/node/scripts/build.mjs\` first`);
    process.exit(1);
  }
  const target = join(modules, "deloop");
  for (const folder of [target, join(modules, "@deloop")]) rmSync(folder, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  copyFileSync(join(built, "package.json"), join(target, "package.json"));
  cpSync(join(built, "dist"), join(target, "dist"), { recursive: true });
  for (const file of readdirSync(platform, { recursive: true }).filter((each) => statSync(join(platform, each)).isFile())) {
    put(join(platform, file), join(modules, `@deloop/cli-${platformName()}`, file));
  }
}

/** Unpacks each package into the place that its name says. */
function unpackTarballs(folder, modules) {
  const tar = (...args) => {
    const done = spawnSync("tar", args, { encoding: "utf8" });
    if (done.status !== 0) throw new Error(`tar ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
  };
  for (const file of readdirSync(folder).filter((each) => each.endsWith(".tgz"))) {
    const archive = join(folder, file);
    const { name } = JSON.parse(tar("-xzOf", archive, "package/package.json"));
    const target = join(modules, name);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    tar("-xzf", archive, "-C", target, "--strip-components=1");
  }
}

/** Returns a Node that is new enough: this one, or the one that npm has as a package. */
function nodeOf(version) {
  if (Number(process.versions.node.split(".")[0]) >= version) return process.execPath;
  return join(folderOf(`node-${version}`), "node_modules/node/bin/node");
}
