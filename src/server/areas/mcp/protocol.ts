import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { VERSION } from "../../../kernel/version.ts";
import { SESSION_HEADER, sessionOf } from "./agent.ts";
import type { Tool } from "./tools.ts";

// The first message of an agent loads this module, and the SDK with it.

const INSTRUCTIONS = `A Platform server: tables of records in namespaces, files, users. Begin with list_tables, or ask for the names of
namespace and table. A record that a rule hides does not exist for you. Errors name the fields at fault. Only tools that you may use are
listed; those that write need the address /mcp?write=1 or a scope. In development, /docs/llms.txt has the documentation.`;

export interface Served {
  agent: string;
  /** Tools that the caller may use. */
  tools: readonly Tool[];
  /** Runs a tool of them. */
  call(tool: Tool, args: JsonObject): Promise<{ text: string; isError: boolean }>;
}

/** Answers one message. Nothing is kept between two messages, so that an agent costs no memory. */
export async function answerMessage(
  request: Request,
  message: JsonObject,
  { agent, tools, call }: Served,
): Promise<Response> {
  const server = new Server(
    { name: "platform", version: VERSION },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, title, description, input, action }) => ({
      name,
      title,
      description,
      // TypeBox makes plain JSON Schema.
      inputSchema: JSON.parse(JSON.stringify({ additionalProperties: false, ...input })),
      annotations: { title, readOnlyHint: action === "read", destructiveHint: action === "write" },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    const { text, isError } =
      tool === undefined
        ? { text: `There is no tool "${params.name}" that this caller may use here`, isError: true }
        : await call(tool, (params.arguments ?? {}) as JsonObject); // JSON, by the SDK's schema
    return { content: [{ type: "text", text }], isError };
  });
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    const response = await transport.handleRequest(request, { parsedBody: message });
    if (message["method"] === "initialize") response.headers.set(SESSION_HEADER, sessionOf(agent));
    return response;
  } finally {
    await server.close();
  }
}
