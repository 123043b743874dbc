// The typed client under the conformance suite: one operation for each line of its input, see tests/conformance/SPEC.md.
import { createInterface } from "node:readline";
import { createAdminClient } from "../../src/client/admin/index.ts";
import { createClient, PlatformError } from "../../src/client/index.ts";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";

type Client = ReturnType<typeof createClient>;
type Room = Awaited<ReturnType<ReturnType<Client["rooms"]>["join"]>>;
type Condition = [string, "==", JsonValue];

interface QueryArgs {
  where?: JsonValue[];
  orWhere?: Condition[];
  sort?: [string, "asc" | "desc"][];
  limit?: number;
  fields?: string[];
  expand?: string[];
}

/** Members of `with`, each of the operations that SPEC.md gives them to. */
interface Args {
  url: string;
  serviceKey?: string;
  email: string;
  password: string;
  namespace?: string;
  instance?: string;
  table: string;
  id: string;
  record: JsonObject & { id: string };
  changes: JsonObject;
  if?: Condition[];
  conflictTarget: string;
  query?: QueryArgs;
  after?: string;
  select: "count()"[];
  groupBy?: string[];
  text: string;
  operations: { table: string; action: "delete"; id: string }[];
  bucket: string;
  key: string;
  contentType: string;
  name: string;
  channel: string;
  event: string;
  state: JsonObject;
  data: JsonObject;
  room: string;
  type: string;
  payload: JsonObject;
}

interface Open {
  client: Pick<Client, "db" | "storage" | "close">;
  /** The client itself, unless it has a service key. */
  whole: Client | null;
  watches: Map<string, { items: readonly { id: string }[]; status: string; stop(): void }>;
  heard: unknown[];
  rooms: Map<string, { room: Room; said: unknown[] }>;
}

const opened = new Map<string, Open>();

function wholeOf({ whole }: Open): Client {
  if (whole === null) throw new Error("A client with a service key has no user");
  return whole;
}

const tableOf = ({ client }: Open, { namespace = "shared", instance, table }: Args) =>
  client.db(namespace as never, instance).table(table as never);

function queryOf(open: Open, args: Args) {
  const { where = [], orWhere = [], sort = [], limit, fields = [], expand = [] } = args.query ?? {};
  // Without the type of a config, names and values are any.
  let query = where.length === 0 ? tableOf(open, args) : tableOf(open, args).where(where as never);
  for (const [field, operator, value] of orWhere)
    query = query.orWhere(field as never, operator as never, value as never);
  for (const [field, direction] of sort) query = query.sort(field as never, direction);
  if (limit !== undefined) query = query.limit(limit);
  const chosen = fields.length === 0 ? query : query.fields(...(fields as never[]));
  return expand.length === 0 ? chosen : chosen.expand(...(expand as never[]));
}

const OPERATIONS: Readonly<Record<string, (open: Open, args: Args) => unknown>> = {
  signUp: async (open, { email, password }) => (await wholeOf(open).auth.signUp({ email, password })).user,
  signIn: async (open, { email, password }) => (await wholeOf(open).auth.signIn({ email, password })).user,
  signOut: (open) => wholeOf(open).auth.signOut(),
  user: (open) => wholeOf(open).auth.user,
  async get(open, args) {
    const record = await tableOf(open, args).get(args.id);
    if (record === null) throw new PlatformError({ status: 404, code: "not_found", message: "There is none" });
    return record;
  },
  insert: (open, args) => tableOf(open, args).insert(args.record as never),
  update: (open, args) =>
    tableOf(open, args).update(args.id, args.changes as never, args.if === undefined ? {} : { if: args.if as never }),
  upsert: (open, args) =>
    tableOf(open, args).upsert(args.record as never, { conflictTarget: args.conflictTarget as never }),
  delete: (open, args) => tableOf(open, args).delete(args.id, args.if === undefined ? {} : { if: args.if as never }),
  list: (open, args) => queryOf(open, args).list(args.after === undefined ? {} : { after: args.after }),
  async all(open, args) {
    const found: unknown[] = [];
    for await (const items of queryOf(open, args).pages()) found.push(...items);
    return found;
  },
  count: (open, args) => queryOf(open, args).count(),
  aggregate: (open, args) =>
    queryOf(open, args).aggregate({ select: args.select, groupBy: (args.groupBy ?? []) as never[] }),
  search: async (open, args) => (await queryOf(open, args).search(args.text)).items,
  batch: (open, args) => tableOf(open, args).batch(args as never),
  transaction: ({ client }, { namespace = "shared", operations }) =>
    client.db(namespace as never).transaction(operations as never),
  upload: ({ client }, { bucket, key, text, contentType }) =>
    client.storage(bucket as never).upload(key, text, { contentType }),
  download: async ({ client }, { bucket, key }) => (await client.storage(bucket as never).download(key)).text(),
  watch(open, args) {
    const live = queryOf(open, args).live();
    const stop = live.subscribe(() => {});
    open.watches.set(args.name, {
      get items() {
        return live.items as readonly { id: string }[]; // records have ids
      },
      get status() {
        return live.status;
      },
      stop() {
        stop();
        live.close();
      },
    });
  },
  watched({ watches }, { name }) {
    const watch = watches.get(name);
    return watch?.status === "live" ? watch.items.map(({ id }) => id).sort() : null;
  },
  unwatch: ({ watches }, { name }) => watches.get(name)?.stop(),
  follow: (open, { channel }) =>
    void wholeOf(open)
      .presence(channel)
      .subscribe(() => {}),
  present: (open, { channel }) => wholeOf(open).presence(channel).users,
  track: (open, { channel, state }) => wholeOf(open).presence(channel).track(state),
  untrack: (open, { channel }) => wholeOf(open).presence(channel).untrack(),
  async listen(open, { channel, event }) {
    const broadcast = wholeOf(open).broadcast(channel);
    broadcast.on(event, (data) => void open.heard.push(data));
    while (broadcast.status === "loading") await new Promise((resolve) => setTimeout(resolve, 20));
  },
  say: (open, { channel, event, data }) => wholeOf(open).broadcast(channel).send(event, data),
  heard: ({ heard }) => heard,
  async join(open, { room: id }) {
    const room = await wholeOf(open).rooms("board").join(id);
    const said: unknown[] = [];
    room.on("said", (data) => void said.push((data as JsonObject)["text"]));
    open.rooms.set(id, { room, said });
  },
  act: ({ rooms }, { room, type, payload }) => rooms.get(room)?.room.act(type, payload),
  room({ rooms }, { room }) {
    const joined = rooms.get(room);
    return { shared: joined?.room.shared ?? null, said: joined?.said ?? [] };
  },
};

function openClient(name: string, { url, serviceKey }: Args): void {
  const whole = serviceKey === undefined ? createClient({ url }) : null;
  const client = whole ?? createAdminClient({ url, serviceKey: serviceKey ?? "" });
  // A client for servers has no live queries to end.
  const closing = { db: client.db, storage: client.storage, close: () => whole?.close() };
  opened.set(name, { client: closing as Open["client"], whole, watches: new Map(), heard: [], rooms: new Map() });
}

async function perform(name: string, operation: string, args: Args): Promise<unknown> {
  if (operation === "hello") return { supports: ["files", "live", "presence", "broadcast", "rooms"] };
  if (operation === "open") return openClient(name, args);
  const open = opened.get(name);
  if (operation === "close") {
    open?.client.close();
    return opened.delete(name);
  }
  const work = OPERATIONS[operation];
  if (open === undefined || work === undefined) throw new Error(`There is no ${operation} of ${name}`);
  return await work(open, args);
}

/** Returns the status and the codes of the fields at fault. */
function failureOf(error: unknown): object {
  if (!(error instanceof PlatformError)) return { status: -1, message: String(error) };
  const codes = Object.entries(error.fields).map(([field, { code }]) => [field, code]);
  return { status: error.status, message: error.message, fields: Object.fromEntries(codes) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, client, do: operation, with: args } = JSON.parse(line);
  void perform(client, operation, args).then(
    (result) => console.log(JSON.stringify({ id, result: result ?? null })),
    (error) => console.log(JSON.stringify({ id, error: failureOf(error) })),
  );
}
