// The parts of Node that the core uses: its types would be a dependency of their own.

declare const __dirname: string;
declare const require: { (id: string): unknown; resolve(id: string): string };
declare const process: {
  readonly arch: string;
  readonly platform: string;
  readonly report: { excludeNetwork: boolean; getReport(): unknown };
};

declare class Buffer extends Uint8Array {
  static from(bytes: ArrayBufferLike, offset: number, length: number): Buffer;
  static concat(pieces: readonly Uint8Array[]): Buffer;
  toString(encoding: "utf8"): string;
}

declare class TextEncoder {
  encodeInto(text: string, bytes: Uint8Array): { read: number; written: number };
}

declare module "node:fs" {
  export function existsSync(path: string): boolean;
}

declare module "node:path" {
  export function dirname(path: string): string;
  export function join(...parts: string[]): string;
}

declare module "node:child_process" {
  interface Child {
    readonly stdout: AsyncIterable<Uint8Array>;
    readonly stderr: AsyncIterable<Uint8Array>;
    on(event: "error", listener: (error: Error) => void): void;
    on(event: "close", listener: (code: number | null) => void): void;
  }
  export function spawn(
    file: string,
    args: readonly string[],
    options: { stdio: ["ignore", "pipe", "pipe"] },
  ): Child;
}

declare module "node:util" {
  export const types: {
    isAnyArrayBuffer(value: unknown): value is ArrayBuffer | SharedArrayBuffer;
    isBoxedPrimitive(value: unknown): value is Number | Boolean | String | BigInt | Symbol;
    isDataView(value: unknown): value is DataView;
    isMap(value: unknown): value is Map<unknown, unknown>;
    isNativeError(value: unknown): value is Error;
    isRegExp(value: unknown): value is RegExp;
    isSet(value: unknown): value is Set<unknown>;
    isTypedArray(value: unknown): boolean;
    isUint8Array(value: unknown): value is Uint8Array;
  };
}
