import { createInterface } from "node:readline";
import { Command } from "@commander-js/extra-typings";
import { isJsonObject, type JsonObject, jsonObjectOf } from "../../kernel/json/json.ts";
import { HOST_DEFAULT, PORT_DEFAULT } from "../http/listening/listener.ts";
import { MCP_MESSAGE_MAX_CHARACTERS } from "./limits.ts";
import { option } from "./options.ts";
import { printAnswer, printNote } from "./output.ts";
import { type Remote, remoteOf } from "./remote.ts";

const SESSION = "mcp-session-id";
const VERSION = "mcp-protocol-version";
const PARSE_ERROR = -32_700;
const SERVER_ERROR = -32_000;

/** Passes the messages of an agent on to a server: lines of standard input to `/mcp`, its answers to standard output. */
export const mcpCommand = new Command("mcp")
  .description(
    "Lets an agent that speaks MCP over standard input and output use a server; the key is PLATFORM_SERVICE_KEY",
  )
  .addOption(option("--url <URL>", "The server").default(`http://${HOST_DEFAULT}:${PORT_DEFAULT}`))
  .option("--write", "Let a key of every right write, by /mcp?write=1")
  .action(async ({ url, write: isWriting = false }) => {
    const remote = remoteOf({ url });
    if (remote === null) return;
    const path = isWriting ? "/mcp?write=1" : "/mcp";
    const session: Record<string, string> = {};
    for await (const line of createInterface({ input: process.stdin })) {
      if (line.trim() === "") continue;
      const answer = await passOn(remote, path, session, line);
      if (answer !== null) await printAnswer(answer);
    }
  });

/** Sends one message. Returns the line of its answer; null: it has none. */
async function passOn(
  remote: Remote,
  path: string,
  session: Record<string, string>,
  line: string,
): Promise<string | null> {
  const message = parsed(line);
  if (message === null) return failure(null, PARSE_ERROR, "A line must be a message of JSON-RPC");
  try {
    const answer = await remote.send(path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "x-platform-service-key": remote.key,
        ...session,
      },
      body: line,
    });
    const text = await answer.text();
    const body = parsed(text);
    if (answer.ok) remember(session, message, answer.headers.get(SESSION), body);
    if (answer.ok || body?.["jsonrpc"] !== undefined) return body === null ? null : JSON.stringify(body);
    await printNote(`platform: ${answer.status} ${text}`);
    return failure(message["id"], SERVER_ERROR, `${answer.status} ${String(body?.["message"] ?? "")}`.trim());
  } catch (cause) {
    return failure(message["id"], SERVER_ERROR, cause instanceof Error ? cause.message : String(cause));
  }
}

/** Keeps what later messages repeat: the session, and the version of the protocol. */
function remember(
  session: Record<string, string>,
  message: JsonObject,
  id: string | null,
  body: JsonObject | null,
): void {
  if (message["method"] !== "initialize") return;
  if (id !== null) session[SESSION] = id;
  const result = body?.["result"];
  if (isJsonObject(result)) session[VERSION] = String(result["protocolVersion"]);
}

const parsed = (text: string): JsonObject | null =>
  text.length > MCP_MESSAGE_MAX_CHARACTERS ? null : jsonObjectOf(text);

/** Returns the answer to a request that failed; null for a notification, which has none. */
const failure = (id: unknown, code: number, message: string): string | null =>
  id === undefined ? null : JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
