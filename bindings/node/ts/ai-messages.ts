import type { Returned } from "./watch.js";

/** A nudge and the call after whose results it stands. */
export interface PlacedNudge {
  readonly after: string;
  readonly text: string;
}

/** Returns the messages with each nudge after the results of its turn, and the nudges that have no place anymore. */
export function withNudges(messages: readonly any[], nudges: readonly PlacedNudge[]): { messages: any[]; lost: PlacedNudge[] } {
  const placed = [...messages];
  const lost: PlacedNudge[] = [];
  for (const nudge of nudges) {
    const at = endOfResults(placed, nudge.after);
    if (at === -1) lost.push(nudge);
    else if (!hasNudge(placed, at, nudge.text)) placed.splice(at, 0, { role: "user", content: nudge.text });
  }
  return { messages: placed, lost };
}

/** Returns the messages without the nudges that an earlier step left in them. */
export function withoutNudges(messages: readonly any[], nudges: readonly PlacedNudge[]): any[] {
  const texts = new Set(nudges.map((nudge) => nudge.text));
  return messages.filter((message) => !(message.role === "user" && typeof message.content === "string" && texts.has(message.content)));
}

/** Returns the index behind the last result of the turn that a call belongs to; -1 if its result isn't there. */
function endOfResults(messages: readonly any[], call: string): number {
  const found = messages.findLastIndex((message) => resultParts(message).some((part) => part.toolCallId === call));
  if (found === -1) return -1;
  let end = found + 1;
  while (messages[end]?.role === "tool") end += 1;
  return end;
}

function hasNudge(messages: readonly any[], from: number, text: string): boolean {
  for (let index = from; messages[index]?.role === "user"; index += 1) {
    if (messages[index].content === text) return true;
  }
  return false;
}

/** Returns the text that a person wrote last, if the conversation ends with it. */
export function latestUserText(messages: readonly any[]): string | null {
  const last = messages.at(-1);
  if (last?.role !== "user") return null;
  if (typeof last.content === "string") return last.content;
  return last.content.flatMap((part: any) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** Returns the results in the conversation, by call. */
export function resultsIn(messages: readonly any[]): Map<string, Returned> {
  const parts = messages.flatMap(resultParts);
  return new Map(parts.map((part) => [part.toolCallId as string, returnedOf(part.output)]));
}

function resultParts(message: any): any[] {
  if (message.role !== "tool" || !Array.isArray(message.content)) return [];
  return message.content.filter((part: any) => part.type === "tool-result");
}

function returnedOf(output: any): Returned {
  switch (output?.type) {
    case "error-text":
    case "error-json":
      return { output: output.value, ok: false };
    case "execution-denied":
      return { output: output.reason, outcome: "denied" };
    default:
      return { output: output?.value };
  }
}
