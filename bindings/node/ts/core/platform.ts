import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The platforms that deloop is built for, as in the names of the packages `@deloop/cli-…`. */
function candidates(): string[] {
  const { arch, platform } = process;
  switch (platform) {
    case "linux":
      return [`linux-${arch}-gnu`, `linux-${arch}-musl`];
    case "win32":
      return [`win32-${arch}-msvc`];
    default:
      return [`${platform}-${arch}`];
  }
}

/** Returns the folder of an installed package, or of one that was built in a checkout of the repository. */
function folderOf(name: string): string | undefined {
  try {
    return dirname(require.resolve(`@deloop/cli-${name}/package.json`));
  } catch {
    const built = join(__dirname, "..", "..", "..", "npm", name);
    return existsSync(join(built, "package.json")) ? built : undefined;
  }
}

/** Returns whether this Node runs on musl. The report takes milliseconds, so it is asked only if it matters. */
function onMusl(): boolean {
  const { report } = process;
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined;
}

/**
 * Returns the folder with the native addon and the command for this platform.
 *
 * @throws if the package isn't installed
 */
export function platformFolder(): string {
  const names = candidates();
  const folders = names.map(folderOf).filter((folder) => folder !== undefined);
  const folder = folders.length > 1 && onMusl() ? folders[1] : folders[0];
  if (folder === undefined) {
    const packages = names.map((name) => `@deloop/cli-${name}`).join(" or ");
    throw new Error(
      `deloop has no native files for this machine: ${packages} isn't installed. Install again with optional ` +
        `dependencies, and on this platform; if there is no such package, deloop isn't built for ${process.platform} ` +
        `on ${process.arch}.`,
    );
  }
  return folder;
}

/** Returns the path of the native command, which starts without Node. */
export function command(): string {
  return join(platformFolder(), "bin", process.platform === "win32" ? "deloop.exe" : "deloop");
}
