const DEPTH = 24;
const ITEMS = 2_000;
const TEXT = 200_000;

/**
 * Returns a value as plain JSON, for arguments and outputs that JSON can't hold.
 *
 * Dates become their ISO form, errors their text, maps and sets objects and arrays, big integers their digits. Anything
 * nested deeper than 24 levels or longer than 2,000 entries is cut, and so is anything that refers to itself.
 */
export function plain(value: unknown, depth = 0): unknown {
  switch (typeof value) {
    case "string":
      return value.slice(0, TEXT);
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
    case "symbol":
    case "function":
      return String(value).slice(0, TEXT);
    case "undefined":
      return null;
    default:
      return value === null ? null : object(value as object, depth);
  }
}

function object(value: object, depth: number): unknown {
  if (value instanceof Date) return Number.isNaN(value.valueOf()) ? "Invalid Date" : value.toISOString();
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (depth >= DEPTH) return "...";
  if (Array.isArray(value)) return value.slice(0, ITEMS).map((item) => plain(item, depth + 1));
  if (value instanceof Set) return [...value].slice(0, ITEMS).map((item) => plain(item, depth + 1));
  const pairs: [unknown, unknown][] =
    value instanceof Map
      ? [...value]
      : Object.keys(value).map((key) => [key, field(value as Record<string, unknown>, key)]);
  return Object.fromEntries(pairs.slice(0, ITEMS).map(([key, item]) => [String(key), plain(item, depth + 1)]));
}

function field(value: Record<string, unknown>, key: string): unknown {
  try {
    return value[key];
  } catch {
    return "...";
  }
}

/** Returns the arguments that a model wrote: parsed if they are JSON, otherwise the raw text. */
export function parsedArguments(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return text;
  }
}

/** Returns the text of an error, whatever was thrown. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return error.message;
  if (typeof error === "string") return error;
  try {
    return JSON.stringify(plain(error)) ?? String(error);
  } catch {
    return String(error);
  }
}

/** Returns the kind of an error: its code (`ENOENT`) or its class. */
export function errorType(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (typeof code === "string" && code !== "") return code;
  return typeof name === "string" && name !== "" ? name : undefined;
}
