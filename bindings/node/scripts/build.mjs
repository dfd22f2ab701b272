// Builds the package in place: dist/ from TypeScript, and npm/PLATFORM with the addon and the command.
//
//   node scripts/build.mjs [--js | --profile dev|release|dist | --built FOLDER]
//
// --js builds dist/ only and needs no Rust. --built takes the addon and the command from a folder that cargo built in.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { cargoTarget, here, platformName, put, repository, run, tsc } from "./tools.mjs";

const { values } = parseArgs({
  options: { js: { type: "boolean" }, profile: { type: "string", default: "release" }, built: { type: "string" } },
});

/** Compiles dist/cjs and dist/esm. The core exists once, in dist/cjs; in dist/esm it is a door to that. */
function buildJs() {
  const dist = join(here, "dist");
  rmSync(dist, { recursive: true, force: true });
  const compiler = tsc();
  for (const kind of ["cjs", "esm"]) run(process.execPath, [compiler, "-p", `tsconfig.${kind}.json`], { stdio: "inherit" });
  writeFileSync(join(dist, "esm/package.json"), '{ "type": "module" }\n');
  const door = join(dist, "esm/core");
  rmSync(door, { recursive: true });
  mkdirSync(door);
  const names = Object.keys(createRequire(import.meta.url)(join(dist, "cjs/core/index.js"))).sort();
  writeFileSync(join(door, "index.js"), `export { ${names.join(", ")} } from "../../cjs/core/index.js";\n`);
  writeFileSync(join(door, "index.d.ts"), 'export * from "../../cjs/core/index.js";\n');
}

/** Builds the addon and the command with cargo and returns the folder that they are in. */
function buildNative(profile) {
  // One after the other: built together, each would get the features of both, and nothing built before could be reused.
  for (const part of [["-p", "deloop", "--bin", "deloop"], ["-p", "deloop-node"]]) {
    run("cargo", ["build", "--profile", profile, ...part], { cwd: repository, stdio: "inherit" });
  }
  return join(cargoTarget, profile === "dev" ? "debug" : profile);
}

/** Puts the addon and the command into npm/PLATFORM. */
function stage(built) {
  const name = platformName();
  const [os, cpu, libc] = name.split("-");
  const library = { darwin: "libdeloop_node.dylib", win32: "deloop_node.dll" }[os] ?? "libdeloop_node.so";
  const program = os === "win32" ? "deloop.exe" : "deloop";
  const absent = [library, program].filter((file) => !existsSync(join(built, file)));
  if (absent.length > 0) {
    console.error(`${absent.join(" and ")} isn't in ${built}: run \`cargo build --workspace --lib --bins --examples\``);
    process.exit(2);
  }
  const folder = join(here, "npm", name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "bin"), { recursive: true });
  put(join(built, library), join(folder, "deloop.node"));
  put(join(built, program), join(folder, "bin", program));
  chmodSync(join(folder, "bin", program), 0o755);
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(repository, licence), join(folder, licence));
  const { version, license, repository: home, engines } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const manifest = {
    name: `@deloop/cli-${name}`,
    version,
    description: `deloop's command and native addon for ${name}`,
    license,
    repository: home,
    engines,
    os: [os],
    cpu: [cpu],
    ...(os === "linux" && { libc: [libc === "gnu" ? "glibc" : libc] }),
    preferUnplugged: true,
    files: ["bin", "deloop.node", "LICENSE-APACHE", "LICENSE-MIT"],
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

buildJs();
if (!values.js) stage(values.built === undefined ? buildNative(values.profile) : resolve(values.built));
