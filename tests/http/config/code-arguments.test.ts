import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform, until } from "../../support/index.ts";
import { PLACES_OF_CODE } from "../../support/places-of-code.ts";
import { roomVisits } from "../../support/room-visits.ts";
import { connect, subscribe } from "../../ws/realtime/realtime-support.ts";
import { upload } from "../storage/storage-support.ts";

/**
 * Every function of the config notes its arguments, and then writes into each of them at every depth, as far as it can. No later
 * call and no answer may have anything of that.
 */
const SPOILT = "SPOILT";

const TABLE = `schema: { title: { type: "string" }, doc: { type: "json" } }, fts: ["title"],
  embed: { fields: ["title"], with: noting("databases.*.tables.*.embed.with", (app, texts) => texts.map(() => [1])) }`;
const RULES = (name: string, parameters: string, answer: string) =>
  ["read", "insert", "update", "delete"]
    .map((action) => `${action}: noting("databases.*.tables.*.access.${action}", ${parameters} => ${answer})`)
    .join(", ")
    .concat(`, /* ${name} */`);
const HOOKS = ["beforeInsert", "beforeUpdate", "beforeDelete", "afterInsert", "afterUpdate", "afterDelete"]
  .map((hook) => `${hook}: noting("databases.*.tables.*.hooks.${hook}", () => undefined)`)
  .join(", ");
const tableOf = (name: string, parameters: string, answer: string) =>
  `${name}: { ${TABLE}, access: { ${RULES(name, parameters, answer)} }, hooks: { ${HOOKS} } }`;

/** Tables by the arguments of their rules: none of the record, the record, the context too, and all of it awaited. */
const TABLES = ["callers", "records", "contexts", "awaited"];

const CONFIG = `
  import { defineConfig } from "platform";
  const SPOILT = "${SPOILT}";
  const notes = [];
  function spoiltFunction() { return SPOILT; }
  const isOpaque = (value) => value instanceof Request || value instanceof AbortSignal || value instanceof Headers;
  /** With what a room has by getters and methods. */
  const partsOf = (value) => typeof value.players === "function" && typeof value.setShared === "function"
    ? { shared: value.shared, server: value.server, metadata: value.metadata, players: value.players(), app: value.app }
    : value;
  const shown = (args) => JSON.stringify(args, (_key, value) =>
    typeof value === "function" ? value.name : typeof value === "object" && value !== null ? partsOf(value) : value);
  function spoil(value, done = new Set()) {
    if (typeof value !== "object" || value === null || isOpaque(value) || done.has(value)) return;
    done.add(value);
    const parts = partsOf(value);
    for (const key of Object.keys(parts)) {
      const member = parts[key];
      spoil(member, done);
      if (typeof member === "function") Reflect.set(value, key, spoiltFunction);
      else if (typeof member !== "object") Reflect.set(value, key, SPOILT);
    }
    Reflect.set(value, "spoilt", SPOILT);
    if (Array.isArray(value)) Reflect.set(value, value.length, SPOILT);
  }
  const note = (place, args) => {
    let text;
    // The stand-in of a record throws where it is read.
    try { text = shown(args); } catch { return; }
    notes.push({ place, text });
    spoil(args);
  };
  const noting = (place, work) => Object.defineProperty((...args) => {
    const answer = work(...args);
    note(place, args);
    return answer;
  }, "length", { value: work.length });

  export default defineConfig({
    databases: {
      shared: { tables: {
        ${tableOf("callers", "(auth)", "true")},
        ${tableOf("records", "(auth, record)", "record.title !== null")},
        ${tableOf("contexts", "(auth, record, next, context)", "record.title !== null")},
        ${tableOf("awaited", "async (auth, record, next, context)", 'record.title !== "hidden"')},
      }, views: { seen: {
        sql: "SELECT id, title, doc FROM records", schema: { title: { type: "string" }, doc: { type: "json" } },
        access: { read: noting("databases.*.views.*.access.read", (auth, record, context) => record.title !== null) },
      } } },
      teams: {
        instance: true,
        access: {
          create: noting("databases.*.access.create", (auth, id, context) => true),
          open: noting("databases.*.access.open", (auth, id, context) => true),
        },
        tables: { members: { access: { insert: true, read: true } } },
      },
    },
    storage: { buckets: { files: { access: {
      read: noting("storage.buckets.*.access.read", (auth, file, context) => file.key !== "none"),
      write: noting("storage.buckets.*.access.write", (auth, file, context) => file.key !== "none"),
      delete: noting("storage.buckets.*.access.delete", (auth, file) => file.key !== "none"),
    } } } },
    kv: { cache: {} },
    auth: {
      signup: noting("auth.signup", (facts, context) => facts.metadata !== null),
      phones: { countries: "all", send: noting("auth.phones.send", (app, text, context) => undefined) },
      tokens: { audience: "others", claims: noting("auth.tokens.claims", (user) => ({})) },
      hooks: {
        afterSignup: noting("auth.hooks.afterSignup", (user, app) => undefined),
        afterAccept: noting("auth.hooks.afterAccept", (user, invitation, app) => undefined),
        afterDelete: noting("auth.hooks.afterDelete", (user, app) => undefined),
      },
    },
    realtime: { access: {
      broadcast: noting("realtime.access.broadcast", (auth, channel, event, context) => auth.role === "user"),
      presence: noting("realtime.access.presence", (auth, channel, context) => auth.role === "user"),
    } },
    rooms: { halls: {
      idleTimeout: 1,
      reconnectTimeout: 0,
      access: {
        join: noting("rooms.*.access.join", (auth, id, context) => auth.role === "user"),
        action: noting("rooms.*.access.action", (auth, id, type, payload, context) => payload.list[0] === "x"),
      },
      onCreate: noting("rooms.*.onCreate", (room) => {
        room.setShared({ deep: { list: ["x"] } });
        room.setServer({ deep: { list: ["x"] } });
        room.setMetadata({ deep: { list: ["x"] } });
      }),
      onJoin: noting("rooms.*.onJoin", (room, player) => undefined),
      onLeave: noting("rooms.*.onLeave", (room, player, reason) => undefined),
      onDestroy: noting("rooms.*.onDestroy", (room) => undefined),
      actions: {
        tell: noting("rooms.*.actions.*", (room, player, payload) => { room.setTimer("tick", 1, payload); room.send("told", payload); }),
      },
      timers: { tick: noting("rooms.*.timers.*", (room, data) => room.send("ticked", data)) },
    } },
    jobs: { work: { run: noting("jobs.*.run", (job) => undefined) } },
    cron: { never: { schedule: "0 0 29 2 *", run: noting("cron.*.run", (run) => undefined) } },
    triggers: { written: { on: { table: "shared.callers" }, run: noting("triggers.*.run", (run) => undefined) } },
    routes: (api) => {
      noting("routes", () => undefined)();
      return api
      .get("/notes", () => notes, { access: true })
      .get("/hello/:name", ({ auth, params, app }) => {
        note("routes handler", [auth, params, app]);
        return { auth };
      }, { access: noting("routes access", (auth, context) => auth !== null) })
      .get("/app/:id", async ({ auth, params: { id }, app }) => {
        await app.kv("cache").set("k", { deep: { list: ["x"] } });
        const answers = await Promise.all([
          app.users.get(auth.id),
          app.users.auth(auth.id),
          app.users.list(),
          app.kv("cache").get("k"),
          app.db("shared").table("callers").get(id),
          app.db("shared").table("callers").list(),
          app.as(auth).db("shared").table("records").list(),
          app.storage("files").head("k-1"),
          app.storage("files").list(),
        ]);
        const text = shown(answers);
        note("app", answers);
        await app.jobs.enqueue("work", { deep: { list: ["x"] } });
        return { text };
      });
    },
  });`;

let platform: TestPlatform;
let user: SignedIn;
const visits = roomVisits(() => platform);
const sockets: TestSocket[] = [];

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform, { claims: { teams: ["red"], deep: { list: ["x"] } } });
});
afterAll(async () => {
  await visits.closeAll();
  for (const socket of sockets) await socket.close();
  await platform.stop();
});

interface Note {
  place: string;
  text: string;
}
const notes = async (): Promise<Note[]> => (await platform.get<Note[]>("/api/functions/notes")).body;

const DOC = { deep: { list: ["x"] } };
const answers: { what: string; text: string }[] = [];
const answered = (what: string, value: unknown): void => void answers.push({ what, text: JSON.stringify(value) });

async function workOnTable(table: string, round: number): Promise<void> {
  const at = `/api/db/shared/tables/${table}`;
  const id = `${table}-${round}`;
  const socket = await connect(platform, user);
  sockets.push(socket);
  await subscribe(socket, `realtime:shared:${table}`);
  const call = async (what: string, method: "get" | "post" | "patch", path: string, body?: JsonObject) => {
    const { status, body: said } = await (method === "get" ? user.get(path) : user[method](path, body ?? {}));
    answered(`${what} of ${table}: ${status}`, said);
    expect([what, table, status < 300]).toEqual([what, table, true]);
  };
  await call("insert", "post", at, { id, title: "one", doc: DOC });
  await call("get", "get", `${at}/${id}`);
  await call("list", "get", at);
  if (table === "records") {
    await call("view", "get", `/api/db/shared/tables/seen/${id}`);
    await call("list of a view", "get", "/api/db/shared/tables/seen");
  }
  await call("update", "patch", `${at}/${id}`, { doc: { ...DOC, more: 1 } });
  await call("batch", "post", `${at}/batch`, {
    inserts: [{ id: `${id}-b`, title: "two", doc: DOC }],
    updates: [{ id, data: { title: "three" } }],
  });
  await call("transaction", "post", "/api/db/shared/transaction", {
    operations: [{ table, action: "update", id, data: { title: "four" } }],
  });
  const removed = await user.delete(`${at}/${id}-b`);
  answered(`delete of ${table}`, removed.body ?? null);
  const events: JsonObject[] = [];
  while (!events.some((event) => event["changeType"] === "removed")) events.push(await socket.next());
  answered(`changes of ${table}`, events);
}

async function workOnFiles(round: number): Promise<void> {
  const key = `k-${round}`;
  const made = await upload(user, "files", key, "hello", { metadata: '{"colour":"red"}' });
  answered("upload", made.body);
  expect(made.status).toBe(201);
  answered("list of files", (await user.get("/api/storage/files")).body);
  answered("metadata", (await user.get(`/api/storage/files/${key}/metadata`)).body);
  const head = await user.fetch(`/api/storage/files/${key}`);
  answered("download", [...head.headers, await head.text()]);
  const changed = await user.patch(`/api/storage/files/${key}/metadata`, { colour: "blue" });
  answered("changed metadata", changed.body);
  await upload(user, "files", `${key}-gone`, "hello", { metadata: '{"colour":"red"}' });
  await user.delete(`/api/storage/files/${key}-gone`);
}

async function workOnSockets(round: number): Promise<void> {
  const socket = await connect(platform, user);
  sockets.push(socket);
  await subscribe(socket, "broadcast:talk");
  socket.send({ type: "subscribe", channel: "presence:talk" });
  await socket.nextOf("presence_sync");
  socket.send({ type: "track", channel: "presence:talk", state: { list: ["x"] } });
  socket.send({ type: "broadcast", channel: "broadcast:talk", event: "said", data: DOC, excludeSelf: false });
  const said: JsonObject[] = [];
  while (!said.some(({ type }) => type === "broadcast_event")) said.push(await socket.next());
  answered("broadcast", said);

  const room = await visits.enter(user, `hall-${round}`, "halls");
  answered("sync of a room", room.sync);
  room.send({ type: "send", actionType: "tell", requestId: "r", payload: { list: ["x"] } });
  const told: JsonObject[] = [];
  while (told.filter(({ type }) => type === "message").length < 2) told.push(await room.next());
  answered("messages of a room", told);
  room.send({ type: "leave" });
  await room.close();
}

async function workOnAll(round: number): Promise<void> {
  for (const table of TABLES) await workOnTable(table, round);
  const member = await user.post(`/api/db/teams/team-${round}/tables/members`, { id: "m" });
  expect(member.status).toBe(201);
  await user.get(`/api/db/teams/team-${round}/tables/members`);
  await workOnFiles(round);
  const email = `visitor-${round}@example.com`;
  const made = await platform.post<{ user: { id: string } }>("/api/auth/signup", {
    email,
    password: "correct horse battery",
    metadata: DOC,
  });
  answered("sign-up", made.body);
  await platform.service.delete(`/api/auth/admin/users/${made.body.user.id}`);
  const invitation = { email: `invited-${round}@example.com`, data: DOC, sendMail: false };
  const { link } = (await platform.service.post<{ link: string }>("/api/auth/admin/users/invite", invitation)).body;
  const token = new URL(link).searchParams.get("token");
  answered("invitation", (await platform.post("/api/auth/accept-invite", { token, password: "correct horse" })).body);
  answered("text", (await platform.post("/api/auth/signin/phone", { phone: `+43660123400${round}` })).body);
  await workOnSockets(round);
  for (const route of [`hello/${round}`, `app/callers-${round}`]) {
    const { status, body } = await user.get(`/api/functions/${route}`);
    answered(`route ${route}`, body);
    expect([route, status, body]).toMatchObject([route, 200, {}]);
  }
}

test("[CF205] code of the config that writes into its arguments changes nothing for anybody", async () => {
  // A schedule has no arguments but texts, and runs by the clock; a provider's answer, or a token, is parsed for one call of `profile` alone.
  const others = ["cron.*.run", "auth.issuers.*.profile", "auth.oauth.*.profile"];
  const declared = PLACES_OF_CODE.filter((place) => !others.includes(place));
  const expected = [...declared, "routes handler", "routes access", "app"];
  for (const round of [1, 2]) {
    const before = (await notes()).length;
    await workOnAll(round);
    const since = async () => (await notes()).slice(round === 1 ? 0 : before).map(({ place }) => place);
    const wanted = expected.filter((place) => round === 1 || place !== "routes");
    const missing = async () => {
      const called = await since();
      return wanted.filter((place) => !called.includes(place));
    };
    await until(`all places are called, round ${round}`, async () => (await missing()).length === 0).catch(async () => {
      expect(await missing()).toEqual([]);
    });
  }
  const spoilt = [...new Set((await notes()).filter(({ text }) => /spoilt/i.test(text)).map(({ place }) => place))];
  expect(spoilt).toEqual([]);
  expect(answers.filter(({ text }) => /spoilt/i.test(text)).map(({ what }) => what)).toEqual([]);
}, 120_000);
