/** The text of a step may have this many characters; longer ones are refused before they are built. */
const LONGEST = 64 << 20;

/** Values nested deeper than this are replaced by a text. */
const DEEPEST = 1000;

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
    return JSON.stringify(plainOf(step, "step", 0, new Set())) ?? "null";
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
      return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
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
  if (ArrayBuffer.isView(value)) {
    return bytesText(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return bytesText(new Uint8Array(value));
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") return inner(toJSON.call(value, ""), `${path}.toJSON()`);
  if (Array.isArray(value)) return value.map((part, i) => inner(part, `${path}[${i}]`));
  if (value instanceof Set) return [...value].map((part, i) => inner(part, `${path}[${i}]`));
  if (value instanceof Map) {
    const entries = [...value].map(([key, part]) => [keyText(key), inner(part, `${path}.${keyText(key)}`)]);
    return Object.fromEntries(entries);
  }
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof RegExp) return String(value);
  if (value instanceof String || value instanceof Number || value instanceof Boolean || value instanceof BigInt) {
    return inner(value.valueOf(), path);
  }
  const plain: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value)) {
    if ((room -= key.length) < 0) throw new TooLarge();
    plain[key] = inner(readable(`${path}.${key}`, () => (value as Record<string, unknown>)[key]), `${path}.${key}`);
  }
  return plain;
}

function keyText(key: unknown): string {
  return typeof key === "object" && key !== null ? jsonText(key) : String(key);
}

function bytesText(bytes: Uint8Array): string {
  if ((room -= Math.ceil(bytes.length / 3) * 4) < 0) throw new TooLarge();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}

/** An error that already names the value that can't be read. */
class Unreadable extends TypeError {}

/** Calls `read`; what it throws becomes an error that names the value. */
function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable || error instanceof TooLarge) throw error;
    throw new Unreadable(`${path} can't be read: ${messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return "it throws";
  }
}
