/** What a person's or a program's approval says about a call (AI SDK 7). */
export type Approval = undefined | string | { type: string; reason?: string };

/** What the AI SDK asks: may this call run? */
export interface ApprovalRequest {
  readonly toolCall: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown };
  readonly tools?: Record<string, any>;
  readonly toolsContext?: Record<string, unknown>;
  readonly messages: readonly any[];
  readonly runtimeContext?: unknown;
}

/** A user's own `toolApproval`: one function, or a status or function per tool. */
export type OwnApproval = ((request: any) => any) | Readonly<Record<string, any>>;

/**
 * Returns what the user's own rules say about a call: `toolApproval` first, then `needsApproval` of the tool.
 *
 * A `toolApproval` function switches `needsApproval` off in the AI SDK, so deloop, which is one, asks for it here.
 */
export async function ownApproval(rules: OwnApproval | undefined, request: ApprovalRequest): Promise<Approval> {
  if (typeof rules === "function") return rules(request);
  const { toolCallId, toolName, input } = request.toolCall;
  const tool = own(request.tools, toolName);
  const { messages, runtimeContext } = request;
  const rule = own(rules, toolName);
  if (rule != null) {
    if (typeof rule !== "function") return rule;
    return rule(input, { toolCallId, messages, toolContext: await contextOf(tool, toolName, request), runtimeContext });
  }
  const needed = tool?.needsApproval;
  if (needed == null) return undefined;
  const asks =
    typeof needed === "function"
      ? await needed(input, { toolCallId, messages, context: await contextOf(tool, toolName, request) })
      : needed;
  return asks ? "user-approval" : undefined;
}

/** Returns the context of a tool as its schema reads it. */
async function contextOf(tool: any, name: string, request: ApprovalRequest): Promise<unknown> {
  const context = own(request.toolsContext, name);
  const validated = await tool?.contextSchema?.["~standard"]?.validate(context);
  return validated !== undefined && validated.issues === undefined ? validated.value : context;
}

/** A tool's name comes from the model, so `constructor` must not find what every object inherits. */
function own(object: Readonly<Record<string, any>> | undefined, name: string): any {
  return object !== undefined && object !== null && Object.hasOwn(object, name) ? object[name] : undefined;
}
