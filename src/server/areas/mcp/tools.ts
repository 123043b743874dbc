import { type Static, type TObject, type TProperties, Type } from "typebox";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, PAGE_SHRINK, SOURCE_MAX_CHARACTERS } from "./limits.ts";
import type { Asked, ToolRequest } from "./requests.ts";
import type { Need } from "./rights.ts";

/** Work that tools do with the caller's rights. */
export interface ToolWork {
  ask(request: ToolRequest): Promise<Asked>;
  /** Returns the tables that the caller may see. */
  tables(): JsonValue;
  /** Tries a config, on the server's data too if `isPlan`. Returns what `platform check` prints. */
  tryConfig(source: string, options: { isPlan: boolean }): Promise<{ isFine: boolean; text: string }>;
}

/** Result of a call; null where it has more than fits into an answer. */
export interface ToolResult {
  text: string | null;
  isError: boolean;
}

export interface Tool {
  name: string;
  title: string;
  description: string;
  action: "read" | "write";
  need: Need;
  /** Whether it exists in development only. */
  isForDevelopment: boolean;
  input: TObject;
  /** Runs it. Errors: 400 that names the arguments at fault; those of its request. */
  run(args: JsonObject, work: ToolWork): Promise<ToolResult>;
}

type Declared<Input extends TProperties> = Omit<Tool, "input" | "run" | "isForDevelopment"> & {
  isForDevelopment?: boolean;
  input: Input;
  run(args: Static<TObject<Input>>, work: ToolWork): Promise<ToolResult>;
};

function tool<Input extends TProperties>({ isForDevelopment = false, ...declared }: Declared<Input>): Tool {
  const input = Type.Object(declared.input);
  const parser = createParser(input);
  return { ...declared, isForDevelopment, input, run: async (args, work) => declared.run(parser.parse(args), work) };
}

const resultOf = ({ status, text }: Asked): ToolResult => ({ text, isError: status >= 400 });

/** Asks for a page, and for a smaller one while it has more than fits. */
async function askForPage(
  { ask }: ToolWork,
  limit: number | undefined,
  request: (limit: number) => ToolRequest,
): Promise<ToolResult> {
  for (let count = limit ?? PAGE_LIMIT_DEFAULT; ; count = Math.floor(count / PAGE_SHRINK)) {
    const asked = await ask(request(count));
    if (asked.text !== null || count <= 1) return resultOf(asked);
  }
}

const TABLE = {
  namespace: Type.String({ description: "A namespace, such as shared" }),
  instance: Type.Optional(Type.String({ description: "The instance, where the namespace has instances" })),
  table: Type.String(),
};
const ID = { id: Type.String({ description: "The id of a record" }) };
const FILTER = Type.Optional(
  Type.Unknown({
    description:
      'All must match: [["year", ">=", 1999], ["genre", "in", ["Drama", "War"]]]. Operators: ==, !=, >, >=, <, <=, contains, icontains, ' +
      'startsWith, istartsWith, in, not in, has, hasAny, hasAll, within, inBox. Groups: {"or": [[…], […]]}, {"and": […]}, {"not": […]}',
  }),
);
const LIMIT = Type.Optional(
  Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX, description: `${PAGE_LIMIT_DEFAULT} by default` }),
);
const SORT = Type.Optional(Type.String({ description: "field:asc or field:desc, comma-separated" }));
const AFTER = Type.Optional(Type.String({ description: "The cursor of the page before" }));
const FIELDS = Type.Optional(Type.Array(Type.String(), { description: "Only these fields, and the id" }));
const RECORD = Type.Record(Type.String(), Type.Unknown());

interface TablePlace {
  namespace: string;
  instance?: string | undefined;
  table?: string | undefined;
}

const pathOf = ({ namespace, instance, table }: TablePlace, ...more: string[]): string[] => [
  ...["api", "db", namespace, ...(instance === undefined ? [] : [instance])],
  ...(table === undefined ? [] : ["tables", table]),
  ...more,
];
const jsonOf = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));
/** Parsed arguments come from JSON. */
const jsonValue = (value: unknown): JsonValue => value as JsonValue;

const READ_RECORDS = { kind: "rules", area: "db", actions: ["read"] } as const;

const readingRecords: readonly Tool[] = [
  tool({
    name: "list_tables",
    title: "List tables",
    description: "Namespaces, tables, fields and their types. Begin here.",
    action: "read",
    need: { kind: "schema" },
    input: {},
    run: async (_, work) => ({ text: JSON.stringify(work.tables()), isError: false }),
  }),
  tool({
    name: "list_records",
    title: "List records",
    description: "A page of records that the caller may read. Where hasMore is true, go on with after = cursor.",
    action: "read",
    need: READ_RECORDS,
    input: { ...TABLE, filter: FILTER, sort: SORT, select: FIELDS, limit: LIMIT, after: AFTER },
    run: (args, work) =>
      askForPage(work, args.limit, (limit) => {
        const { sort, after } = args;
        const query = { filter: jsonOf(args.filter), sort, limit, after, fields: args.select?.join() };
        return { method: "GET", path: pathOf(args), query };
      }),
  }),
  tool({
    name: "get_record",
    title: "Get a record",
    description: "One record. 404: there is none, or a rule hides it.",
    action: "read",
    need: READ_RECORDS,
    input: { ...TABLE, ...ID, select: FIELDS },
    run: async (args, { ask }) =>
      resultOf(await ask({ method: "GET", path: pathOf(args, args.id), query: { fields: args.select?.join() } })),
  }),
  tool({
    name: "search_records",
    title: "Search records",
    description: "Full-text search in tables that have it, the best match first, with highlights.",
    action: "read",
    need: READ_RECORDS,
    input: { ...TABLE, q: Type.String(), filter: FILTER, select: FIELDS, limit: LIMIT },
    run: (args, work) =>
      askForPage(work, args.limit, (limit) => {
        const query = { q: args.q, filter: jsonOf(args.filter), limit, fields: args.select?.join() };
        return { method: "GET", path: pathOf(args, "search"), query };
      }),
  }),
  tool({
    name: "aggregate_records",
    title: "Count and sum records",
    description:
      "select: count(), sum(field), avg(field), min(field), max(field). groupBy: fields; times as field:day, :month …",
    action: "read",
    need: READ_RECORDS,
    input: {
      ...TABLE,
      select: Type.Optional(Type.Array(Type.String())),
      groupBy: Type.Optional(Type.Array(Type.String())),
      filter: FILTER,
      sort: SORT,
      limit: LIMIT,
    },
    run: (args, work) =>
      askForPage(work, args.limit, (limit) => {
        const [select, groupBy] = [args.select?.join(), args.groupBy?.join() || undefined];
        const query = { select, groupBy, filter: jsonOf(args.filter), sort: args.sort, limit };
        return { method: "GET", path: pathOf(args, "aggregate"), query };
      }),
  }),
];

const writingRecords: readonly Tool[] = [
  tool({
    name: "insert_record",
    title: "Insert a record",
    description: "Answers the record, with its id.",
    action: "write",
    need: { kind: "rules", area: "db", actions: ["insert"] },
    input: { ...TABLE, record: RECORD },
    run: async (args, { ask }) =>
      resultOf(await ask({ method: "POST", path: pathOf(args), body: jsonValue(args.record) })),
  }),
  tool({
    name: "update_record",
    title: "Update a record",
    description: 'Changes these fields. {"$op": "increment", "value": 1} adds atomically, null clears.',
    action: "write",
    need: { kind: "rules", area: "db", actions: ["update"] },
    input: { ...TABLE, ...ID, changes: RECORD },
    run: async (args, { ask }) =>
      resultOf(await ask({ method: "PATCH", path: pathOf(args, args.id), body: jsonValue(args.changes) })),
  }),
  tool({
    name: "delete_record",
    title: "Delete a record",
    description: "Deletes it for good, with what refers to it by cascade.",
    action: "write",
    need: { kind: "rules", area: "db", actions: ["delete"] },
    input: { ...TABLE, ...ID },
    run: async (args, { ask }) => resultOf(await ask({ method: "DELETE", path: pathOf(args, args.id) })),
  }),
  tool({
    name: "transaction",
    title: "Several writes, all or none",
    description:
      'Up to 500 operations over the tables of a namespace: { "table", "action": "insert" | "update" | "upsert" | "delete", "id"?, "data"?, "if"? }.',
    action: "write",
    need: { kind: "rules", area: "db", actions: ["insert", "update", "delete"] },
    input: { namespace: TABLE.namespace, instance: TABLE.instance, operations: Type.Array(RECORD) },
    run: async ({ operations, ...place }, { ask }) =>
      resultOf(
        await ask({
          method: "POST",
          path: pathOf(place, "transaction"),
          body: { operations: operations.map(jsonValue) },
        }),
      ),
  }),
];

const administration: readonly Tool[] = [
  tool({
    name: "list_files",
    title: "List files",
    description: "Files of a bucket that the caller may read, in the order of their keys.",
    action: "read",
    need: { kind: "rules", area: "storage", actions: ["read"] },
    input: { bucket: Type.String(), prefix: Type.Optional(Type.String()), limit: LIMIT },
    run: ({ bucket, prefix, limit: asked }, work) =>
      askForPage(work, asked, (limit) => ({
        method: "GET",
        path: ["api", "storage", bucket],
        query: { prefix, limit },
      })),
  }),
  tool({
    name: "list_users",
    title: "List users",
    description: "Accounts, those whose address or name begins with q.",
    action: "read",
    need: { kind: "key", area: "auth", actions: ["read"] },
    input: { q: Type.Optional(Type.String()) },
    run: ({ q }, work) =>
      askForPage(work, undefined, (limit) => ({
        method: "GET",
        path: ["api", "auth", "admin", "users"],
        query: { q, limit },
      })),
  }),
  tool({
    name: "list_jobs",
    title: "List jobs",
    description: "Background jobs, the newest first.",
    action: "read",
    need: { kind: "key", area: "jobs", actions: ["read"] },
    input: { status: Type.Optional(Type.String({ description: "A state, such as failed" })), limit: LIMIT },
    run: ({ status, limit: asked }, work) =>
      askForPage(work, asked, (limit) => ({
        method: "GET",
        path: ["api", "admin", "jobs"],
        query: { state: status, limit },
      })),
  }),
  tool({
    name: "search_logs",
    title: "Search the log",
    description: "Lines of the server's log, the newest first, that have q in them and are not older than since.",
    action: "read",
    need: { kind: "key", area: "system", actions: ["read"] },
    input: {
      q: Type.Optional(Type.String()),
      since: Type.Optional(Type.String({ format: "date-time" })),
      limit: LIMIT,
    },
    async run({ q, since, limit: asked }, work) {
      const found = await askForPage(work, asked, (limit) => ({
        method: "GET",
        path: ["api", "admin", "logs"],
        query: { q, limit },
      }));
      return since === undefined || found.isError || found.text === null
        ? found
        : { text: linesSince(found.text, since), isError: false };
    },
  }),
  tool({
    name: "try_rule",
    title: "Try a rule",
    description:
      "Asks a rule of a table about one record for a user, or anonymous: what it answers, why, and what it looked up.",
    action: "read",
    need: { kind: "root" },
    input: {
      ...TABLE,
      rule: Type.Enum(["read", "insert", "update", "delete"]),
      ...ID,
      userId: Type.String({ description: "The id of a user, or anonymous" }),
    },
    async run({ namespace, instance, table, rule, id, userId }, { ask }) {
      const place = instance === undefined ? {} : { instanceId: instance };
      const body = { namespace, ...place, table, id, as: userId, operations: [rule] };
      return resultOf(await ask({ method: "POST", path: ["api", "admin", "rules", "try"], body }));
    },
  }),
];

const SOURCE = {
  source: Type.String({ maxLength: SOURCE_MAX_CHARACTERS, description: "The text of a platform.config.ts" }),
};

const config: readonly Tool[] = [
  tool({
    name: "check_config",
    title: "Check a config",
    description: "Says whether a config is right, what it declares, and what is wrong with it. It changes nothing.",
    action: "read",
    need: { kind: "root" },
    isForDevelopment: true,
    input: SOURCE,
    run: async ({ source }, { tryConfig }) => tried(await tryConfig(source, { isPlan: false })),
  }),
  tool({
    name: "plan_config",
    title: "Plan a config",
    description:
      "Like check_config, and tries the config on the data: which records do not fit, and which migrations it needs.",
    action: "read",
    need: { kind: "root" },
    isForDevelopment: true,
    input: SOURCE,
    run: async ({ source }, { tryConfig }) => tried(await tryConfig(source, { isPlan: true })),
  }),
];

const tried = ({ isFine, text }: { isFine: boolean; text: string }): ToolResult => ({ text, isError: !isFine });

function linesSince(text: string, since: string): string {
  const body: unknown = JSON.parse(text);
  const lines = isJsonObject(body) && Array.isArray(body["lines"]) ? body["lines"] : [];
  const from = Date.parse(since);
  return JSON.stringify({
    lines: lines.filter((line) => isJsonObject(line) && Date.parse(String(line["at"])) >= from),
  });
}

export const TOOLS: readonly Tool[] = [...readingRecords, ...writingRecords, ...administration, ...config];
