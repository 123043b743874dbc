import type { JsonObject } from "../../src/kernel/json/json.ts";

/** Result of a tool: its text, parsed where it is JSON. */
export interface Called {
  isError: boolean;
  text: string;
  value: JsonObject;
}

export const MCP_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** Sends a message of JSON-RPC to `/mcp`. */
export const sendMessage = (
  url: string,
  headers: Record<string, string>,
  message: JsonObject,
  query = "",
): Promise<Response> =>
  fetch(`${url}/mcp${query}`, {
    method: "POST",
    headers: { ...MCP_HEADERS, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
  });

/** Agent with these credentials; it writes with `?write=1`. */
export function agent(url: string, headers: Record<string, string>, query = "") {
  const ask = async (method: string, params: JsonObject = {}): Promise<JsonObject> => {
    const answer = await sendMessage(url, headers, { method, params }, query);
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    const { result } = (await answer.json()) as { result: JsonObject };
    return result;
  };
  return {
    ask,
    async tools(): Promise<{ name: string; annotations: { readOnlyHint: boolean } }[]> {
      return (await ask("tools/list"))["tools"] as never; // as the protocol says
    },
    async call(name: string, args: JsonObject = {}): Promise<Called> {
      const result = await ask("tools/call", { name, arguments: args });
      const [{ text = "" } = {}] = result["content"] as { text?: string }[];
      let value: JsonObject = {};
      try {
        value = JSON.parse(text);
      } catch {
        // A message.
      }
      return { isError: result["isError"] === true, text, value };
    },
  };
}
