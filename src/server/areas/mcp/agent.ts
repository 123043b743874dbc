import { isJsonObject, type JsonObject } from "../../../kernel/json/json.ts";
import { AGENT_MAX_CHARACTERS } from "./limits.ts";

/** Header that an agent repeats with each request after `initialize`. */
export const SESSION_HEADER = "mcp-session-id";
const UNKNOWN = "unknown";

/**
 * Returns the name by which a request's agent introduced itself. The server keeps nothing of a session: its id holds the name, which
 * the agent chooses anyway.
 */
export function agentOf(request: Request, message: JsonObject): string {
  if (message["method"] === "initialize") return introducedAs(message);
  const id = request.headers.get(SESSION_HEADER);
  if (id === null) return UNKNOWN;
  return shown(Buffer.from(id, "base64url").toString()) || UNKNOWN;
}

/** Returns the id of a session of this agent. */
export const sessionOf = (agent: string): string => Buffer.from(agent).toString("base64url");

function introducedAs({ params }: JsonObject): string {
  const info = isJsonObject(params) ? params["clientInfo"] : null;
  if (!isJsonObject(info)) return UNKNOWN;
  const { name, version } = info;
  return shown([name, version].filter((part) => typeof part === "string").join(" ")) || UNKNOWN;
}

/** Returns what of a name is put into the log: printable characters, so many. */
const shown = (name: string): string => name.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "").slice(0, AGENT_MAX_CHARACTERS);
