// The parts of LangChain that the middleware uses: its own types come with the package that you install.

declare module "langchain" {
  export type AgentMiddleware = any;
  export const createMiddleware: (options: any) => any;
  export class AIMessage {
    constructor(fields: any);
    static isInstance(value: unknown): boolean;
  }
  export class ToolMessage {
    constructor(fields: any);
    static isInstance(value: unknown): boolean;
  }
}

declare module "@langchain/langgraph" {
  export class Command {
    constructor(fields: any);
  }
}

declare module "zod" {
  export const z: any;
}
