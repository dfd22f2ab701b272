// Makes the npm tarballs of what scripts/build.mjs built: the package itself, and one per platform in npm/.
//
//   node scripts/pack.mjs
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { here, npm, repository, scratch } from "./tools.mjs";

/** The platforms that a release is built for. */
export const PLATFORMS = [
  "darwin-arm64", "darwin-x64", "linux-arm64-gnu", "linux-arm64-musl", "linux-x64-gnu", "linux-x64-musl", "win32-x64-msvc",
];

/** Returns the manifest to publish: each platform is an optional dependency, and what isn't built isn't exported. */
function manifest() {
  const source = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const isBuilt = ([, target]) => typeof target === "string" || existsSync(join(here, target.import.default));
  const exports = Object.fromEntries(Object.entries(source.exports).filter(isBuilt));
  const optionalDependencies = Object.fromEntries(PLATFORMS.map((name) => [`@deloop/cli-${name}`, source.version]));
  const { scripts: _, ...published } = { ...source, exports, optionalDependencies };
  return published;
}

function packFolder(folder, into) {
  const [{ filename, size, unpackedSize, entryCount }] = JSON.parse(npm(["pack", "--json", "--ignore-scripts", "--pack-destination", into], { cwd: folder }));
  return { path: join(into, filename), size, unpackedSize, files: entryCount };
}

/** Makes the tarballs and returns their paths and sizes, that of the package first. */
export function pack() {
  const into = join(scratch, "tarballs");
  const staged = join(scratch, "package");
  for (const folder of [into, staged]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  for (const part of ["bin", "dist", "README.md"]) cpSync(join(here, part), join(staged, part), { recursive: true });
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(repository, licence), join(staged, licence));
  writeFileSync(join(staged, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
  const platforms = readdirSync(join(here, "npm")).filter((name) => statSync(join(here, "npm", name)).isDirectory());
  return [packFolder(staged, into), ...platforms.map((name) => packFolder(join(here, "npm", name), into))];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
  for (const { path, size, unpackedSize, files } of pack()) {
    console.log(`${path}: ${megabytes(size)}, ${megabytes(unpackedSize)} installed, ${files} files`);
  }
}
