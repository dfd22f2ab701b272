/** Where the JSON of ordinary steps is written; the native side reads it there. */
const BYTES = new Uint8Array(16 << 10);

export { BYTES };

/** Deeper values, and steps that come closer to the end of the bytes than this, take the long way. */
const DEEPEST = 16;
const END = BYTES.length - 64;

const hasOwn = Object.prototype.hasOwnProperty;
const { getPrototypeOf, prototype: plainPrototype } = Object;
const { isArray } = Array;

/** Where the next byte goes. */
let at = 0;

/**
 * Writes the JSON of a step into `BYTES` and returns its length. Returns -1 for anything that isn't short, plain and
 * printable ASCII: `jsonText` writes that. Steps are mostly small, and this takes half the time of `JSON.stringify`.
 */
export function jsonBytes(step: object): number {
  at = 0;
  try {
    return written(step, 0) ? at : -1;
  } catch {
    // A getter or a proxy threw. The long way says which.
    return -1;
  }
}

function written(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
      return text(value);
    case "number":
      return Number.isFinite(value) && word(String(value));
    case "boolean":
      return word(value ? "true" : "false");
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return word("null");
  if (depth > DEEPEST) return false;
  return isArray(value) ? list(value, depth + 1) : object(value, depth + 1);
}

function list(values: readonly unknown[], depth: number): boolean {
  BYTES[at++] = 0x5b;
  for (let i = 0; i < values.length; i++) {
    if (i > 0) BYTES[at++] = 0x2c;
    if (!written(values[i], depth)) return false;
  }
  BYTES[at++] = 0x5d;
  return at < END;
}

function object(value: object, depth: number): boolean {
  const prototype: unknown = getPrototypeOf(value);
  if (prototype !== plainPrototype && prototype !== null) return false;
  BYTES[at++] = 0x7b;
  let first = true;
  for (const key in value) {
    if (!hasOwn.call(value, key)) continue;
    const part: unknown = (value as Record<string, unknown>)[key];
    if (part === undefined) continue;
    if (!first) BYTES[at++] = 0x2c;
    first = false;
    if (!text(key)) return false;
    BYTES[at++] = 0x3a;
    if (!written(part, depth)) return false;
  }
  BYTES[at++] = 0x7d;
  return at < END;
}

/** Writes a string; returns false if it doesn't fit or has a character that JSON escapes or that isn't ASCII. */
function text(value: string): boolean {
  const { length } = value;
  // Local names: the loop is most of the work.
  const bytes = BYTES;
  let next = at;
  if (next + length > END) return false;
  bytes[next++] = 0x22;
  for (let i = 0; i < length; i++) {
    const unit = value.charCodeAt(i);
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) return false;
    bytes[next++] = unit;
  }
  bytes[next++] = 0x22;
  at = next;
  return true;
}

/** Writes a number or a name of JSON. */
function word(value: string): boolean {
  if (at > END - 32) return false;
  for (let i = 0; i < value.length; i++) BYTES[at++] = value.charCodeAt(i);
  return true;
}
