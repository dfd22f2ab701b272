// What the scripts share: where things are, and how programs are run.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the Node package in the repository. */
export const here = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** The repository. */
export const repository = resolve(here, "../..");
/** Where cargo puts what it builds. */
export const cargoTarget = resolve(repository, process.env.CARGO_TARGET_DIR ?? "target");
/** Where the packages that tests need are installed; ignored by git, as everything below it. */
export const installations = join(cargoTarget, "bindings");
/** Where the tests put their own files. */
export const scratch = join(installations, "node");

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

/** Returns the folder with the packages of a lock file; `cargo xtask setup` installs them. Ends the script with 2 if they aren't there. */
export function installed(name, pins) {
  const folder = join(installations, name);
  const mark = join(folder, "installed");
  // As xtask/src/bindings/node.rs writes it, at the end.
  if (existsSync(mark) && readFileSync(mark, "utf8") === readFileSync(join(pins, "package-lock.json"), "utf8")) return folder;
  console.error(`the packages of ${name} aren't installed: run \`cargo xtask setup\``);
  process.exit(2);
}

/** Returns the path of the TypeScript compiler. */
export function tsc() {
  return join(installed("node-dev", join(here, "dev")), "node_modules/typescript/bin/tsc");
}

/** Puts a file, which may have 100 MB, into another place: as a link, or as a copy where links aren't possible. */
export function put(source, target) {
  rmSync(target, { force: true });
  mkdirSync(dirname(target), { recursive: true });
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target);
  }
}
