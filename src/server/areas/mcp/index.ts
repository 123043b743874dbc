import { Type } from "typebox";
import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import type { AuditActor } from "../../../kernel/observing/request-trace.ts";
import { AnyObject } from "../../../kernel/schema/types.ts";
import { auditActorOf, callerNameOf, type Principal } from "../../access/principal.ts";
import { maySeeSchema, type SchemaEndpoint } from "../../access/service-key-right.ts";
import type { RateLimit } from "../../config/types.ts";
import type { AuditedChange } from "../../db/index.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { createRateLimiter } from "../../http/rate-limit.ts";
import { agentOf } from "./agent.ts";
import { type AgentCaller, type CallerDeps, callerOf } from "./caller.ts";
import { createConfigCheck } from "./config-check.ts";
import {
  ANSWER_MAX_BYTES,
  AUDITED_ARGUMENTS_MAX_CHARACTERS,
  AUDITED_NAME_MAX_CHARACTERS,
  MESSAGE_MAX_BYTES,
} from "./limits.ts";
import { ask, fits, type OwnServer } from "./requests.ts";
import { isKeyScope, mayUse } from "./rights.ts";
import { TOOLS, type Tool, type ToolWork } from "./tools.ts";

export type { DevelopmentKey } from "./caller.ts";

/** Tables by namespace, as `/api/schema` describes them. */
interface Schema {
  namespaces: Readonly<Record<string, { tables: Readonly<Record<string, unknown>> }>>;
}

export interface McpDeps extends CallerDeps {
  clock: Clock;
  limit: RateLimit;
  dataDirectory: string;
  own: OwnServer;
  requirePresent(principal: Principal): void;
  schema(): Schema;
  schemaEndpoint: SchemaEndpoint;
  /** Records what somebody did; resolves when it is on disk. Errors: it cannot be written. */
  audit(actor: AuditActor, change: AuditedChange): Promise<void>;
}

/** The end of a call. `failed`: by a fault of the server. */
type Outcome = "done" | "refused" | "failed";

/** Creates the endpoint for agents, without which the server has none; see `docs/mcp.md`. */
export function mcpEndpoints(deps: McpDeps): readonly Endpoint[] {
  if (!deps.isDeclared && deps.development === null) return [];
  const limiter = createRateLimiter(deps.limit, deps.clock);
  const tryConfig = createConfigCheck(deps);
  const post = endpoint(
    "POST /mcp",
    {
      tag: "System",
      summary: "Model Context Protocol",
      caller: "open",
      place: "none",
      query: { write: Type.Optional(Type.Enum(["1"], { description: "Users and keys of every right may write" })) },
      body: AnyObject,
      bodyMaxBytes: MESSAGE_MAX_BYTES,
      isDocumented: false,
      answers: { 200: Type.Unknown() },
    },
    async ({ request, address, query, body }) => {
      const caller = await callerOf(deps, request, address);
      limiter.hit(callerNameOf(caller.principal, address));
      const isWriting = query().write === "1";
      const message = (await body()) as JsonObject; // parsed JSON
      deps.requirePresent(caller.principal);
      const { answerMessage } = await import("./protocol.ts");
      const agent = agentOf(request, message);
      const asking = {
        principal: caller.principal,
        isWriting,
        maySeeSchema: maySeeSchema(caller.principal, deps.schemaEndpoint),
      };
      const tools = TOOLS.filter((tool) => isThere(deps, tool) && mayUse(asking, tool));
      const work: ToolWork = {
        ask: (asked) => ask(deps.own, request, caller.credentials, asked),
        tables: () => tablesOf(deps.schema(), caller),
        tryConfig,
      };
      const call = async (tool: Tool, args: JsonObject) => {
        const note = (outcome: Outcome) =>
          deps.audit(actorOf(caller.principal), {
            action: "mcp.call",
            target: `mcp/${tool.name}`,
            after: { agent, arguments: auditedArguments(args), outcome },
          });
        const done = await performed(tool, args, work).catch(async (cause: unknown) => {
          await note("failed");
          throw cause;
        });
        // Afterwards: an entry from before would say of a refused call, or of one that a crash has cut off, that it was carried out.
        await note(done.isError ? "refused" : "done");
        return shown(tool, done);
      };
      return answerMessage(request, message, { agent, tools, call });
    },
  );
  return [post];
}

const isThere = ({ development }: McpDeps, tool: Tool): boolean => !tool.isForDevelopment || development !== null;

async function performed(tool: Tool, args: JsonObject, work: ToolWork): ReturnType<Tool["run"]> {
  try {
    return await tool.run(args, work);
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    const { status: code, message, data } = cause;
    return { text: JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) }), isError: true };
  }
}

function shown(tool: Tool, { text, isError }: { text: string | null; isError: boolean }) {
  if (text !== null && fits(text)) return { text, isError };
  const size = `more than ${ANSWER_MAX_BYTES / 1024} KiB`;
  if (tool.action === "write" && !isError) return { text: `Done. The answer has ${size} and is left out.`, isError };
  return { text: `The answer has ${size}: ask for fewer fields by select, or for less.`, isError: true };
}

/** Returns the tables that the caller may see: of a service key, those that its scopes name. */
function tablesOf({ namespaces }: Schema, { principal }: AgentCaller): JsonValue {
  const maySee = (namespace: string, table: string): boolean => {
    if (principal.kind !== "serviceKey") return true;
    return principal.scopes.texts.some((scope) => {
      const [, ofNamespace = "", ofTable = ""] = scope.split(":");
      return isKeyScope(scope, "db") && [namespace, "*"].includes(ofNamespace) && [table, "*"].includes(ofTable);
    });
  };
  const shownOnes = Object.entries(namespaces).map(([name, { tables, ...namespace }]) => {
    const seen = Object.entries(tables).filter(([table]) => maySee(name, table));
    return [name, { ...namespace, tables: Object.fromEntries(seen) }] as const;
  });
  // The description is plain JSON.
  return {
    namespaces: Object.fromEntries(shownOnes.filter(([, { tables }]) => Object.keys(tables).length > 0)),
  } as JsonValue;
}

const actorOf = (principal: AgentCaller["principal"]): AuditActor =>
  auditActorOf(principal) ?? { kind: "user", name: principal.kind === "user" ? principal.auth.id : principal.name };

/**
 * Returns what the log has of arguments: all of them, or where they are long the names of what was asked for. The log hides secrets by
 * the names of members, which a cut text would no longer have.
 */
function auditedArguments(args: JsonObject): JsonValue {
  const length = JSON.stringify(args).length;
  if (length <= AUDITED_ARGUMENTS_MAX_CHARACTERS) return args;
  const named = ["namespace", "instance", "table", "id", "bucket"].flatMap((name) => {
    const value = args[name];
    return typeof value === "string" ? [[name, value.slice(0, AUDITED_NAME_MAX_CHARACTERS)] as const] : [];
  });
  const record = args["record"] ?? args["changes"];
  return {
    ...Object.fromEntries(named),
    ...(isJsonObject(record) ? { fields: Object.keys(record).length } : {}),
    length,
  };
}
