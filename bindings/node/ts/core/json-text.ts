import { types } from "node:util";

/** The text of a step may have this many characters; longer ones are refused before they are built. */
const LONGEST = 64 << 20;

/** Values nested deeper than this are replaced by a text. */
const DEEPEST = 400;

/** A step may have this many values. Shared parts count each time they appear. */
const MOST_VALUES = 4 << 20;

/** What stands for a value that contains itself, and for one that is nested too deeply. */
const CYCLE = "[circular]";
const DEEP = "[nested too deeply]";

/** How many characters and values are left for the step that is being looked at. */
let room = 0;
let values = 0;

/**
 * Returns the JSON of a step. Plain data is written as `JSON.stringify` does; other objects have the meaning that
 * docs/node.md lists.
 *
 * @throws {TypeError} if a part of it can't be read, because a getter or a proxy throws
 * @throws {RangeError} if it is too large
 */
export function jsonText(step: unknown): string {
  room = LONGEST;
  values = MOST_VALUES;
  try {
    if (isPlain(step, 0)) return JSON.stringify(step) ?? "null";
  } catch (error) {
    // A getter or a proxy threw, or changes its mind. The slow way below finds out which.
    if (error instanceof TooLarge) throw new RangeError(error.message);
  }
  room = LONGEST;
  values = MOST_VALUES;
  try {
    return JSON.stringify(plainOf(step, "", 0, new Set())) ?? "null";
  } catch (error) {
    if (error instanceof TooLarge) throw new RangeError(error.message);
    throw error;
  }
}

class TooLarge extends Error {
  constructor() {
    super(`the step is too large: at most ${LONGEST >> 20} MiB of JSON and ${MOST_VALUES} values`);
  }
}

/** Returns whether `JSON.stringify` writes this value without losing anything. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
      if ((room -= value.length) < 0) throw new TooLarge();
      return true;
    case "number":
    case "boolean":
    case "undefined":
      return true;
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > DEEPEST) return false;
  if (Array.isArray(value)) {
    if ((values -= value.length) < 0) throw new TooLarge();
    for (let i = 0; i < value.length; i++) {
      if (!isPlain(value[i], depth + 1)) return false;
    }
    return true;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key in value) {
    if (--values < 0 || (room -= key.length) < 0) throw new TooLarge();
    if (!isPlain((value as Record<string, unknown>)[key], depth + 1)) return false;
  }
  return true;
}

/** Returns plain data that stands for any value. `path` names it in errors, and `around` holds what contains it. */
function plainOf(value: unknown, path: string, depth: number, around: Set<object>): unknown {
  if (--values < 0) throw new TooLarge();
  switch (typeof value) {
    case "string":
      if ((room -= value.length) < 0) throw new TooLarge();
      return value;
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : plainOf(value.toString(), path, depth, around);
    case "object":
      break;
    default:
      // JSON.stringify leaves out functions and symbols, or writes null in a list.
      return value;
  }
  if (value === null) return null;
  if (around.has(value)) return CYCLE;
  if (depth > DEEPEST) return DEEP;
  around.add(value);
  const plain = readable(path, () => partsOf(value, path, depth, around));
  around.delete(value);
  return plain;
}

function partsOf(value: object, path: string, depth: number, around: Set<object>): unknown {
  const inner = (part: unknown, name: string): unknown => plainOf(part, name, depth + 1, around);
  const bytes = bytesOf(value);
  if (bytes !== undefined) return bytesText(bytes);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") return inner(toJSON.call(value, ""), path);
  const list = Array.isArray(value) || types.isSet(value) || types.isTypedArray(value);
  if (list) return Array.from(value as Iterable<unknown>, (part, i) => inner(part, `${path}[${i}]`));
  if (types.isMap(value)) {
    return Object.fromEntries(Array.from(value, ([key, part]) => entryOf(keyText(key), part, path, inner)));
  }
  if (isError(value)) return inner(`${value.name}: ${value.message}`, path);
  if (types.isRegExp(value)) return inner(String(value), path);
  if (types.isBoxedPrimitive(value)) return inner(value.valueOf(), path);
  const names = Object.keys(value);
  return Object.fromEntries(
    names.map((name) => {
      const part = readable(fieldOf(path, name), () => (value as Record<string, unknown>)[name]);
      return entryOf(name, part, path, inner);
    }),
  );
}

function entryOf(
  name: string,
  part: unknown,
  path: string,
  inner: (part: unknown, name: string) => unknown,
): [string, unknown] {
  if ((room -= name.length) < 0) throw new TooLarge();
  return [name, inner(part, fieldOf(path, name))];
}

function fieldOf(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** Errors of other realms, and of libraries that only inherit from Error, count too. */
function isError(value: object): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

/** Returns the bytes of a value that holds nothing but bytes. A list of larger numbers isn't one. */
function bytesOf(value: object): Uint8Array | undefined {
  if (types.isUint8Array(value) || types.isDataView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  return types.isAnyArrayBuffer(value) ? new Uint8Array(value) : undefined;
}

function keyText(key: unknown): string {
  if (typeof key !== "object" || key === null) return String(key);
  return JSON.stringify(plainOf(key, "a key", 0, new Set()));
}

function bytesText(bytes: Uint8Array): string {
  if ((room -= bytes.length) < 0) throw new TooLarge();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

/** An error that already names the value that can't be read. */
class Unreadable extends TypeError {}

/** Calls `read`; what it throws becomes an error that names the value. */
function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable || error instanceof TooLarge) throw error;
    throw new Unreadable(`${path === "" ? "the step" : `\`${path}\``} can't be read: ${messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return "it throws";
  }
}
