// What the scripts share: where things are, and how programs are run.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the Node package in the repository. */
export const here = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** The repository. */
export const repository = resolve(here, "../..");
/** Where everything that is built or installed goes; ignored by git. */
export const scratch = join(repository, "target/bindings/node");
/** Where cargo puts what it builds. */
export const cargoTarget = resolve(repository, process.env.CARGO_TARGET_DIR ?? "target");

/** The name of this platform in `@deloop/cli-…`. */
export function platformName() {
  const { arch, platform } = process;
  if (platform === "win32") return `win32-${arch}-msvc`;
  if (platform !== "linux") return `${platform}-${arch}`;
  process.report.excludeNetwork = true;
  const { glibcVersionRuntime } = process.report.getReport().header;
  return `linux-${arch}-${glibcVersionRuntime === undefined ? "musl" : "gnu"}`;
}

/** Runs a program and returns its output; ends the script with what it printed if it fails. */
export function run(program, args, options = {}) {
  const result = spawnSync(program, args, { cwd: here, encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (result.status !== 0 && !options.mayFail) {
    console.error(`${program} ${args.join(" ")}: ${result.error?.message ?? `code ${result.status ?? result.signal}`}`);
    console.error(result.stdout ?? "", result.stderr ?? "");
    process.exit(1);
  }
  return options.mayFail ? result : result.stdout;
}

/** Runs npm without asking, auditing or advertising anything. */
export function npm(args, options = {}) {
  return run("npm", [...args, "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"], options);
}

/** How often packages are asked for: a registry that fails once has said nothing about the package. */
const TRIES = 3;

/** Installs the packages of a lock file; returns what npm said if it can't, and undefined if it could. */
export function install(folder, args = []) {
  let said;
  for (let i = 0; i < TRIES; i += 1) {
    const done = npm(["ci", ...args], { cwd: folder, mayFail: true });
    if (done.status === 0) return undefined;
    said = `npm ci: code ${done.status ?? done.signal}\n${done.stdout}\n${done.stderr}`;
  }
  return said;
}

/** Returns the path of the TypeScript compiler, installed at the version in dev/package-lock.json; ends the script with 2 if it can't. */
export function tsc() {
  const folder = join(scratch, "dev");
  const path = join(folder, "node_modules/typescript/bin/tsc");
  const wanted = readFileSync(join(here, "dev/package-lock.json"), "utf8");
  const found = existsSync(path) ? readFileSync(join(folder, "package-lock.json"), "utf8") : "";
  if (found !== wanted) {
    mkdirSync(folder, { recursive: true });
    for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(here, "dev", file), join(folder, file));
    const failed = install(folder, ["--ignore-scripts"]);
    if (failed !== undefined) {
      console.error(`TypeScript can't be installed: ${failed}`);
      process.exit(2);
    }
  }
  return path;
}
