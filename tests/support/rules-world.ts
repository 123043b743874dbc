import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { createHttpClient, type HttpClient, type ListAnswer } from "./http-client.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { type Random, random } from "./random.ts";
import {
  type Auth,
  covers,
  FACTS,
  type GeneratedRule,
  type Grant,
  grantOf,
  randomRecord,
  randomRule,
} from "./rules.ts";
import { until } from "./until.ts";

/** World of tables with random rules, all kinds of callers, and the expected access of each. */

export const ACTIONS = ["read", "insert", "update", "delete"] as const;
export type Action = (typeof ACTIONS)[number];

export interface RuledTable {
  name: string;
  /** Path of the table; `linksPath` is that of the table that refers to it. */
  path: string;
  linksPath: string;
  channel: string;
  /** Address of the table in `platform export`. */
  address: string;
  rules: Record<Action, GeneratedRule | null>;
  /** Upsert mode of the config; null: not declared. */
  upsert: "either" | "matching" | null;
  /** Records by id; `secret` holds a canary that names table and record. */
  records: Map<string, JsonObject>;
}

export interface Caller {
  name: string;
  client: HttpClient;
  /** User; null: nobody, or a service key. */
  auth: Auth;
  key: string | null;
  /** Actions that the service key allows; null for other callers. */
  scopes: readonly Action[] | null;
  token: string | null;
}

export interface RulesWorld {
  platform: TestPlatform;
  r: Random;
  tables: RuledTable[];
  callers: Caller[];
  owners: readonly string[];
  stop(): Promise<number>;
}

export const RECORDS_PER_TABLE = 10;
const PASSWORD = "correct horse battery";
const USERS = [
  { id: "ann", role: "user", claims: {} },
  { id: "bob", role: "editor", claims: { team: "red" } },
];

const schema = `{ owner: { type: "string" }, n: { type: "integer" }, s: { type: "text" }, b: { type: "boolean" }, j: { type: "json" },
  refs: { type: "references", references: "facts" }, slug: { type: "string", unique: true }, secret: { type: "string" }, stamp: { type: "string" } }`;

/** Hook that adds a field the writer of a record has not sent: responses may show it only by the read rule. */
const STAMPS = `hooks: { beforeInsert: (_auth, record) => ({ ...record, stamp: \`stamp:\${record.id};\` }) }`;

/** Vectors of texts, by their letters. */
const EMBED = `embed: { fields: ["s"], model: "letters", with: (_app, texts) =>
  texts.map((text) => [..."awors "].map((letter) => text.split(letter).length)) }`;

/** Table that rules look up. */
export const FACTS_TABLE = `facts: {
  schema: { level: { type: "integer" }, circle: { type: "string" } }, indexes: [{ fields: ["circle"] }] },`;

function tableSource({ name, rules, upsert }: RuledTable): string {
  const access = ACTIONS.flatMap((action) => {
    const rule = rules[action];
    return rule === null ? [] : [`${action}: ${rule.source}`];
  });
  if (upsert !== null) access.push(`upsert: "${upsert}"`);
  return `${name}: { schema: ${schema}, ${STAMPS}, fts: ["s"], ${EMBED}, access: { ${access.join(", ")} } },
    links_${name}: { schema: { to: { type: "string", references: "${name}" } }, access: { insert: true, update: true } },`;
}

function generateTable(r: Random, index: number, owners: readonly string[]): RuledTable {
  const name = `t${index}`;
  const isDynamic = index % 3 === 2;
  const base = isDynamic ? "/api/db/spaces/one/tables" : "/api/db/shared/tables";
  const records = Array.from({ length: RECORDS_PER_TABLE }, (_, at) => recordOf(r, name, `r${at}`, owners));
  // Lists and channels show what filters keep; a rule that looks at records denies whole responses.
  const readBy = r.chance(0.6) ? "by filter" : "may look at the record";
  return {
    name,
    path: `${base}/${name}`,
    linksPath: `${base}/links_${name}`,
    channel: isDynamic ? `realtime:spaces:one:${name}` : `realtime:shared:${name}`,
    address: isDynamic ? `spaces/one/${name}` : `shared/${name}`,
    rules: {
      read: randomRule(r, owners, ["record"], readBy),
      insert: randomRule(r, owners, ["record"]),
      update: randomRule(r, owners, ["record", "next"]),
      delete: randomRule(r, owners, ["record"]),
    },
    upsert: r.pick([null, null, "matching", "either"]),
    records: new Map(records.map((record) => [String(record["id"]), record])),
  };
}

export function recordOf(r: Random, table: string, id: string, owners: readonly string[]): JsonObject {
  return { id, ...randomRecord(r, owners), slug: `slug-${id}`, secret: `canary:${table}:${id};` };
}

/** Route that calls `app.as` for the calling user; null is answered like a missing record. */
const ROUTES = `(api) => api.post("/as", async ({ auth, app, body, status }) => {
  const parts = body.address.split("/");
  const table = parts.pop();
  const db = app.as(auth).db(...parts);
  const [way, method = way] = body.method.split(" ");
  const alone = () => db.table(table)[method](...body.args);
  // An awaited rule has no place in a transaction of a function.
  const together = () => db.transaction((tx) => tx.table(table)[method](...body.args)).catch((error) => {
    if (error.message.includes("nothing can be awaited")) return alone();
    throw error;
  });
  const given = await (way === "transaction" ? together() : alone());
  return given === null ? status(404, {}) : (given ?? {});
}, { access: true })`;

/**
 * Returns the same request through `app.as` for users (`transaction METHOD`: inside a transaction of a function). Service keys
 * have no user, and use `otherwise`.
 */
export const throughApp = (
  caller: Caller,
  { address }: RuledTable,
  [method, ...args]: [method: string, ...args: JsonValue[]],
  otherwise: [path: string, method: string, body?: JsonObject],
): [path: string, method: string, body?: JsonObject] =>
  caller.key === null ? ["/api/functions/as", "POST", { address, method, args }] : otherwise;

/** Returns the same call as a tool for agents. Nobody has any, and uses `otherwise`. */
export const throughMcp = (
  caller: Caller,
  { path }: RuledTable,
  [tool, args]: [tool: string, args: JsonObject],
  otherwise: [path: string, method: string, body?: JsonObject],
): [path: string, method: string, body?: JsonObject] => {
  if (caller.auth === null && caller.key === null) return otherwise;
  const [, , , namespace = "", ...parts] = path.split("/");
  const table = parts.at(-1) ?? "";
  const place = parts.length > 2 ? { namespace, instance: parts[0] ?? "", table } : { namespace, table };
  const params = { name: tool, arguments: { ...place, ...args } };
  return [MCP, "POST", { jsonrpc: "2.0", id: 1, method: "tools/call", params }];
};
const MCP = "/mcp?write=1";

/** Returns the answer that a tool had; a tool that the caller may not use is refused. */
function ofTool({ status, text }: { status: number; text: string }): { status: number; text: string } {
  if (status !== 200) return { status, text };
  const { result } = JSON.parse(text) as { result: { isError: boolean; content: [{ text: string }] } };
  const [{ text: inner }] = result.content;
  if (!inner.startsWith("{")) return { status: result.isError ? 403 : 200, text: "{}" };
  return { status: result.isError ? (JSON.parse(inner) as { code: number }).code : 200, text: inner };
}

/** Creates a world, determined by the seed including the ids of users. */
export async function rulesWorld(seed: number, tableCount: number): Promise<RulesWorld> {
  const r = random(seed);
  const owners = [...USERS.map(({ id }) => id), "cyd"];
  const tables = Array.from({ length: tableCount }, (_, index) => generateTable(r, index, owners));
  const keys: [name: string, scopes: readonly Action[]][] = [
    ...ACTIONS.map((action): [string, readonly Action[]] => [`only-${action}`, [action]]),
    ["stranger", []],
  ];
  const secretOf = (name: string) => `key-${name}-0123456789abcdef`;
  const keySource = keys.map(([name, scopes]) => {
    const all = [...scopes.map((scope) => `db:*:*:${scope}`), "kv:namespace:x:read", "mcp:*:*:*"];
    return `"${name}": { key: "${secretOf(name)}", scopes: ${JSON.stringify(all)} }`;
  });
  const of = (isDynamic: boolean) =>
    tables
      .filter((one) => one.path.includes("/spaces/") === isDynamic)
      .map(tableSource)
      .join("\n");
  const platform = await testPlatform({
    config: `{ serviceKeys: { ${keySource.join(", ")} }, realtime: { messageRate: 100_000 }, mcp: true, rateLimits: { mcp: { requests: 1_000_000, window: 60 }, embeddings: { requests: 1_000_000, window: 60 } }, databases: {
      shared: { tables: { ${of(false)} ${FACTS_TABLE} } },
      spaces: { instance: true, access: { create: true, open: true }, tables: { ${of(true)} ${FACTS_TABLE} } } },
      routes: ${ROUTES} }`,
  });

  const imported = await platform.service.post("/api/admin/auth/users/import", {
    users: USERS.map(({ id, role }) => ({ id, role, email: `${id}@example.com`, password: PASSWORD })),
  });
  if (imported.status !== 200) throw new Error(`no users: ${JSON.stringify(imported.body)}`);
  const people = await Promise.all(
    USERS.map(async ({ id, role, claims }): Promise<Caller> => {
      await platform.service.put(`/api/auth/admin/users/${id}/claims`, claims);
      const credentials = { email: `${id}@example.com`, password: PASSWORD };
      const token = (await platform.post<{ accessToken: string }>("/api/auth/signin", credentials)).body.accessToken;
      return {
        name: id,
        client: platform.as(token),
        auth: { id, role, custom: claims },
        key: null,
        scopes: null,
        token,
      };
    }),
  );
  for (const file of ["shared", "spaces/one"]) {
    const facts = await platform.service.post(`/api/db/${file}/tables/facts/batch`, { inserts: FACTS });
    if (facts.status !== 200) throw new Error(`no facts: ${JSON.stringify(facts.body)}`);
  }
  for (const { path, records } of tables) {
    const written = await platform.service.post(`${path}/batch`, { inserts: [...records.values()] });
    if (written.status !== 200) throw new Error(`no records: ${JSON.stringify(written.body)}`);
  }
  for (const { path, records } of tables) {
    const [first] = records.keys();
    await until(`the records of ${path} have vectors`, async () => {
      const near = await platform.service.get<ListAnswer>(`${path}/${first}/nearest?limit=100`);
      return near.body.items.length === records.size - 1;
    });
  }
  const keyHolder = (name: string, key: string, scopes: readonly Action[]): Caller => ({
    ...{ name, key, scopes, client: platform.withKey(key), auth: null, token: null },
  });
  const nobody: Caller = { name: "nobody", client: platform, auth: null, key: null, scopes: null, token: null };
  const actedBy = { "x-platform-service-key": platform.serviceKey };
  /** Returns the same caller, impersonated by the root key. */
  const acting = (caller: Caller): Caller => ({
    ...caller,
    name: `root-as-${caller.name}`,
    client: createHttpClient(() => platform.url, { ...actedBy, "x-platform-act-as": caller.auth?.id ?? "anonymous" }),
    token: null,
  });
  const callers: Caller[] = [
    nobody,
    ...people,
    ...[nobody, ...people].map(acting),
    keyHolder("root", platform.serviceKey, ACTIONS),
    ...keys.map(([name, scopes]) => keyHolder(name, secretOf(name), scopes)),
  ];
  return { platform, r, tables, callers, owners, stop: () => platform.stop() };
}

/** Returns the expected access of a caller, by the rules alone. */
export const granted = ({ rules }: RuledTable, { scopes, auth }: Caller, action: Action): Grant =>
  scopes === null ? grantOf(rules[action], auth) : scopes.includes(action) ? "all" : "none";

export const may = (table: RuledTable, caller: Caller, action: Action, record: JsonObject, next = record): boolean =>
  caller.scopes === null ? covers(table.rules[action], caller.auth, record, next) : caller.scopes.includes(action);

/** Returns whether the rule looks up other records. */
export const looksUp = ({ rules }: RuledTable, { scopes, auth }: Caller, action: Action): boolean =>
  scopes === null && rules[action]?.looksUp?.(auth) === true;

/** Returns whether the record is hidden from this caller. */
export const isHidden = (table: RuledTable, caller: Caller, record: JsonObject): boolean =>
  typeof granted(table, caller, "read") !== "string" && !may(table, caller, "read", record);

/** Returns the status of a refusal. */
export const refused = ({ auth, scopes }: Caller): number => (auth === null && scopes === null ? 401 : 403);

export interface Heard {
  status: number;
  text: string;
  body: JsonObject;
  /** Ids of the records whose secret is in the response. */
  secretsOf: string[];
}

/** Sends one request, and collects the secrets in its response. */
export async function ask(caller: Caller, method: string, path: string, body?: JsonValue): Promise<Heard> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const json: RequestInit = body === undefined ? {} : { headers, body: JSON.stringify(body) };
  const response = await caller.client.fetch(path, { method, ...json });
  const heard = { status: response.status, text: await response.text() };
  const { status, text } = path === MCP ? ofTool(heard) : heard;
  return {
    status,
    text,
    // Every response of a table is a JSON object, except to HEAD.
    body: (text === "" ? {} : JSON.parse(text)) as JsonObject,
    secretsOf: secretsIn(text),
  };
}

export const secretsIn = (text: string): string[] =>
  [...text.matchAll(/canary:\w+:([\w-]+);/g)].map(([, id = ""]) => id).sort();
