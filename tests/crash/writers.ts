import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { path, upload } from "../http/storage/storage-support.ts";
import type { HttpClient } from "../support/index.ts";
import type { Random } from "../support/random.ts";
import { INSTANCES } from "./config.ts";
import type { Change, Ledger, State } from "./ledger.ts";

/** One of many that write at once. What it names `prefix…` is its own. */
export interface WriterContext {
  service: HttpClient;
  /** A user, whose devices the load registers. */
  user: HttpClient;
  ledger: Ledger;
  random: Random;
  prefix: string;
  /** A name that nobody has had. */
  fresh(): string;
}

/** Does one thing. Throws when the connection breaks. */
type Step = (context: WriterContext) => Promise<void>;

/** Beyond so many things a writer deletes, so that comparing stays quick. */
const OWN_MAX = 10;

const notes = "/api/db/shared/tables/notes";
const comments = "/api/db/shared/tables/comments";
const idOf = (thing: string): string => thing.slice(thing.indexOf("/") + 1);

/** The state of a note, as text. The word is nobody else's: a search for it finds this note. */
export const noteState = (record: JsonObject): string => `${String(record["text"])} n=${String(record["n"])}`;

function newNote({ fresh, random }: WriterContext): { id: string; text: string; n: number } {
  const id = fresh();
  return { id, text: `every w${id}`, n: random.below(1_000) };
}

const noteSteps: readonly Step[] = [
  (context) => {
    const note = newNote(context);
    return one(context, `note/${note.id}`, noteState(note), () => context.service.post(notes, note));
  },
  async (context) => {
    const thing = context.ledger.pick(`note/${context.prefix}`, context.random);
    if (thing === null) return;
    const [text = "", n] = (context.ledger.state(thing) ?? "").split(" n=");
    const next = noteState({ text: `${text} again`.slice(0, 200), n: Number(n) + 1 });
    const changes = { text: `${text} again`.slice(0, 200), n: { $op: "increment", value: 1 } };
    await one(context, thing, next, () => context.service.patch(`${notes}/${idOf(thing)}`, changes));
  },
  async (context) => {
    const thing = context.ledger.pick(`note/${context.prefix}`, context.random);
    const note = newNote(context);
    if (thing !== null) note.id = idOf(thing);
    const send = () => context.service.post(`${notes}?upsert=true`, note);
    await one(context, `note/${note.id}`, noteState(note), send);
  },
  async (context) => {
    const thing = context.ledger.pick(`note/${context.prefix}`, context.random);
    if (thing === null) return;
    const id = `${idOf(thing)}.${context.fresh()}`;
    await one(context, `comment/${id}`, idOf(thing), () => context.service.post(comments, { id, note: idOf(thing) }));
  },
  async (context) => {
    const thing = context.ledger.pick(`note/${context.prefix}`, context.random);
    if (thing === null) return;
    // Its comments go with it.
    const gone = [thing, ...context.ledger.own(`comment/${idOf(thing)}.`)];
    const changes = gone.map((each) => ({ thing: each, next: null }));
    await context.ledger.attempt(changes, () => context.service.delete(`${notes}/${idOf(thing)}`));
  },
  async (context) => {
    const inserts = [newNote(context), newNote(context), newNote(context)];
    const changes: Change[] = inserts.map((note) => ({ thing: `note/${note.id}`, next: noteState(note) }));
    const own = context.ledger.own(`note/${context.prefix}`).slice(0, 2);
    const updates: JsonValue[] = own.slice(0, 1).map((thing) => ({ id: idOf(thing), data: { text: "batched" } }));
    for (const thing of own.slice(0, 1)) {
      const n = Number((context.ledger.state(thing) ?? "").split(" n=")[1]);
      changes.push({ thing, next: noteState({ text: "batched", n }) });
    }
    const deletes = own.slice(1);
    for (const thing of deletes.flatMap((each) => [each, ...context.ledger.own(`comment/${idOf(each)}.`)])) {
      changes.push({ thing, next: null });
    }
    const body = { inserts, updates, deletes: deletes.map(idOf) };
    await context.ledger.attempt(changes, () => context.service.post(`${notes}/batch`, body));
  },
];

const lineSteps: readonly Step[] = [
  async (context) => {
    const tenant = `t${context.random.below(INSTANCES)}`;
    const inserts = Array.from({ length: 3 }, () => ({ id: context.fresh(), value: context.random.below(1_000) }));
    const changes = inserts.map(({ id, value }) => ({ thing: `line/${id}@${tenant}`, next: String(value) }));
    const send = () => context.service.post(`/api/db/tenants/${tenant}/tables/lines/batch`, { inserts });
    await context.ledger.attempt(changes, send);
  },
  async (context) => {
    const thing = context.ledger.pick(`line/${context.prefix}`, context.random);
    if (thing === null) return;
    const [id = "", tenant = ""] = idOf(thing).split("@");
    await one(context, thing, null, () => context.service.delete(`/api/db/tenants/${tenant}/tables/lines/${id}`));
  },
];

/** Returns a file's content for its state: a word as often as it says. */
export function contentOf(state: string): string {
  const [word = "", times = "0"] = state.split("*");
  return `${word} `.repeat(Number(times));
}

const fileSteps: readonly Step[] = [
  async (context) => {
    const own = context.random.chance(0.5) ? context.ledger.pick(`file/${context.prefix}`, context.random) : null;
    const key = own === null ? context.fresh() : idOf(own);
    const state = `${context.fresh()}*${1 + context.random.below(8_000)}`;
    await one(context, `file/${key}`, state, () => upload(context.service, "files", key, contentOf(state)));
  },
  async (context) => {
    const thing = context.ledger.pick(`file/${context.prefix}`, context.random);
    if (thing === null) return;
    await one(context, thing, null, () => context.service.delete(path("files", idOf(thing))));
  },
  async (context) => {
    const { service, fresh } = context;
    const [key, word] = [fresh(), fresh()];
    const multipart = "/api/storage/files/multipart";
    const { body: begun } = await service.post(`${multipart}/create`, { key });
    const parts = await Promise.all(
      [1, 2].map(async (partNumber) => {
        const address = `${multipart}/upload-part?uploadId=${begun["uploadId"]}&key=${key}&partNumber=${partNumber}`;
        const answer = await service.fetch(address, { method: "POST", body: contentOf(`${word}*2000`) });
        return (await answer.json()) as JsonObject; // the answer of upload-part
      }),
    );
    const body = { uploadId: begun["uploadId"] ?? "", key, parts: parts as JsonValue[] };
    await one(context, `file/${key}`, `${word}*4000`, () => service.post(`${multipart}/complete`, body));
  },
];

const keySteps: readonly Step[] = [
  async (context) => {
    const own = context.random.chance(0.5) ? context.ledger.pick(`key/${context.prefix}`, context.random) : null;
    const [key, value] = [own === null ? context.fresh() : idOf(own), context.fresh()];
    const send = () => context.service.post("/api/kv/cache", { action: "set", key, value });
    await one(context, `key/${key}`, value, send);
  },
  async (context) => {
    const thing = context.ledger.pick(`key/${context.prefix}`, context.random);
    if (thing === null) return;
    const send = () => context.service.post("/api/kv/cache", { action: "delete", key: idOf(thing) });
    await one(context, thing, null, send);
  },
];

const sql = ({ service }: WriterContext, query: string, params: JsonValue[]) =>
  service.post("/api/d1/main", { query, params });

const rowSteps: readonly Step[] = [
  async (context) => {
    const ids = [context.fresh(), context.fresh()];
    const changes = ids.map((id) => ({ thing: `row/${id}`, next: "new" }));
    await context.ledger.attempt(changes, () => sql(context, "INSERT INTO t VALUES (?, 'new'), (?, 'new')", ids));
  },
  async (context) => {
    const own = context.ledger.own(`row/${context.prefix}`);
    const value = context.fresh();
    const changes = own.map((thing) => ({ thing, next: value }));
    const send = () => sql(context, "UPDATE t SET value = ? WHERE id GLOB ?", [value, `${context.prefix}*`]);
    if (own.length > 0) await context.ledger.attempt(changes, send);
  },
  async (context) => {
    const thing = context.ledger.pick(`row/${context.prefix}`, context.random);
    if (thing === null) return;
    await one(context, thing, null, () => sql(context, "DELETE FROM t WHERE id = ?", [idOf(thing)]));
  },
];

const vectorSteps: readonly Step[] = [
  async (context) => {
    const vectors = Array.from({ length: 5 }, () => ({
      id: context.fresh(),
      values: [1, 2, 3, context.random.below(100)],
      metadata: { by: context.fresh() },
    }));
    const changes = vectors.map(({ id, values, metadata }) => ({
      thing: `vector/${id}`,
      next: `${values.join()} ${metadata.by}`,
    }));
    const send = () => context.service.post("/api/vectorize/near", { action: "upsert", vectors });
    await context.ledger.attempt(changes, send);
  },
  async (context) => {
    const own = context.ledger.own(`vector/${context.prefix}`).slice(0, 3);
    const send = () => context.service.post("/api/vectorize/near", { action: "delete", ids: own.map(idOf) });
    await context.ledger.attempt(
      own.map((thing) => ({ thing, next: null })),
      send,
    );
  },
];

/** Hash of the right form, and nobody's password: hashing would be most of the load. */
const PASSWORD_HASH = `$2b$10$${"x".repeat(53)}`;

const userSteps: readonly Step[] = [
  async (context) => {
    const users = Array.from({ length: 3 }, () => ({
      ...{ id: context.fresh(), role: "editor", passwordHash: PASSWORD_HASH },
      email: `${context.fresh().toLowerCase()}@example.com`,
    }));
    const changes = users.map(({ id, role }) => ({ thing: `user/${id}`, next: role }));
    await context.ledger.attempt(changes, () => context.service.post("/api/admin/auth/users/import", { users }));
  },
  async (context) => {
    const thing = context.ledger.pick(`user/${context.prefix}`, context.random);
    if (thing === null) return;
    const role = context.fresh();
    await one(context, thing, role, () => context.service.patch(`/api/auth/admin/users/${idOf(thing)}`, { role }));
  },
  async (context) => {
    const thing = context.ledger.pick(`user/${context.prefix}`, context.random);
    if (thing === null) return;
    await one(context, thing, null, () => context.service.delete(`/api/auth/admin/users/${idOf(thing)}`));
  },
];

const register = (context: WriterContext, deviceId: string): Promise<void> => {
  const token = context.fresh();
  const send = () => context.user.post("/api/push/register", { deviceId, token, platform: "android" });
  return one(context, `device/${deviceId}`, token, send);
};

const deviceSteps: readonly Step[] = [
  (context) => register(context, context.fresh()),
  async (context) => {
    const thing = context.ledger.pick(`device/${context.prefix}`, context.random);
    if (thing !== null) await register(context, idOf(thing));
  },
  async (context) => {
    const thing = context.ledger.pick(`device/${context.prefix}`, context.random);
    if (thing === null) return;
    const token = context.ledger.state(thing) ?? "";
    await one(context, thing, null, () => context.user.post("/api/push/unregister", { token }));
  },
];

interface Kind {
  steps: readonly Step[];
  /** The one that makes room. */
  removal: number;
  writers: number;
}

export const KINDS: Readonly<Record<string, Kind>> = {
  note: { steps: noteSteps, removal: 4, writers: 6 },
  line: { steps: lineSteps, removal: 1, writers: 3 },
  file: { steps: fileSteps, removal: 1, writers: 3 },
  key: { steps: keySteps, removal: 1, writers: 2 },
  row: { steps: rowSteps, removal: 2, writers: 1 },
  vector: { steps: vectorSteps, removal: 1, writers: 1 },
  user: { steps: userSteps, removal: 2, writers: 2 },
  device: { steps: deviceSteps, removal: 2, writers: 1 },
};

/** One step of a writer of this kind. */
export async function step(kind: string, { steps, removal }: Kind, context: WriterContext): Promise<void> {
  const isFull = context.ledger.own(`${kind}/${context.prefix}`).length > OWN_MAX;
  const chosen = isFull ? steps[removal] : context.random.pick(steps);
  await chosen?.(context);
}

const one = (
  context: WriterContext,
  thing: string,
  next: State,
  send: () => Promise<{ status: number; body: unknown }>,
) => context.ledger.attempt([{ thing, next }], send);
