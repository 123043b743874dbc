import { afterAll, beforeAll, expect, test } from "bun:test";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { MINUTE_MS } from "../../../src/kernel/time/duration.ts";
import { type SignedIn, signIn, signToken, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { timedPlatform } from "../../support/timed-platform.ts";
import { PageVisitor } from "../auth/pages-visitor.ts";

// The export of a user: everything about one person as a file.

const KEY = "-key-0123456789abcdefghijklmnopqrstuvw";
const CONFIG = `
let open = () => {};
let gate = null;
export default {
  auth: { pages: {}, users: {
    in: "shared",
    schema: { bio: { type: "string" }, leadId: { references: "users", onDelete: "setNull" } },
    access: { read: (auth) => [["id", "==", auth?.id ?? ""]], update: (auth, user) => user.id === auth?.id },
  } },
  serviceKeys: {
    all: { key: "all${KEY}", scopes: ["auth:admin:*:read", "db:shared:*:read", "storage:bucket:*:read"] },
    posts: { key: "posts${KEY}", scopes: ["auth:admin:*:read", "db:shared:posts:read"] },
    none: { key: "none${KEY}", scopes: ["db:shared:*:read", "storage:bucket:*:read"] },
  },
  storage: { buckets: {
    own: { access: { read: (auth, file) => file.uploadedBy === auth?.id, write: true } },
    box: { access: { read: false, write: true } },
  } },
  databases: { shared: { tables: {
    posts: {
      schema: { authorId: { references: "users", onDelete: "cascade" }, editorIds: { type: "references", references: "users", onDelete: "remove" },
        isHidden: { type: "boolean", default: false }, scan: { type: "file", bucket: "box" } },
      access: { read: (auth) => [["isHidden", "==", false]], insert: true },
    },
    notes: {
      schema: { ofId: { references: "users", onDelete: "cascade" }, text: { type: "string" } },
      access: { read: (auth, note) => note.text !== "secret" },
    },
    audits: { schema: { ofId: { references: "users", onDelete: "cascade" } }, access: { read: false } },
    loose: { schema: { ofId: { type: "string" } }, access: { read: true } },
    held: {
      schema: { ofId: { references: "users", onDelete: "cascade" } },
      access: { read: async () => (console.error("the export is held"), await gate, true) },
    },
  } }, journal: { tables: {
    entries: {
      schema: { ofId: { references: "shared/users", onDelete: "cascade" }, text: { type: "string" },
        readers: { type: "references", references: "shared/users", onDelete: "remove" } },
      access: { read: (auth) => [["text", "!=", "secret"]] },
    },
    closed: { schema: { ofId: { references: "shared/users", onDelete: "cascade" } }, access: { read: false } },
  } }, boards: { instance: true, access: { open: (auth, id) => id !== "shut", create: true }, tables: {
    cards: {
      schema: { ofId: { references: "shared/users", onDelete: "cascade" }, text: { type: "string" },
        guests: { type: "references", references: "shared/users", onDelete: "remove" }, scan: { type: "file", bucket: "box" } },
      access: { read: (auth) => [["text", "!=", "secret"]], insert: true },
    },
    rows: { schema: { ofId: { references: "shared/users", onDelete: "cascade" } }, access: { read: false } },
  } } },
  routes: (api) => api
    .post("/hold", () => { gate = new Promise((resolve) => { open = resolve; }); return {}; }, { access: true })
    .post("/open", () => (open(), {}), { access: true }),
};`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

type Exported = JsonObject & { records: Record<string, JsonObject[]>; files: JsonObject[]; account: JsonObject };
const TABLES = "/api/db/shared/tables";
const OWN = "/api/auth/me/export";
const of = (id: string) => `/api/auth/admin/users/${id}/export`;
const insert = async (table: string, body: JsonObject): Promise<string> => {
  const answer = await platform.service.post<{ id: string }>(`${TABLES}/${table}`, body);
  expect(answer.status).toBe(201);
  return answer.body.id;
};
const ids = (body: Exported, table: string) =>
  (body.records[`shared/${table}`] ?? []).map(({ id }) => String(id)).sort();
const upload = async (by: SignedIn, bucket: string, key: string, text: string): Promise<void> => {
  const form = new FormData();
  form.set("key", key);
  form.set("file", new Blob([text], { type: "text/plain" }));
  const headers = { authorization: `Bearer ${by.token}` };
  const answer = await fetch(`${platform.url}/api/storage/${bucket}/upload`, { method: "POST", headers, body: form });
  expect(answer.ok).toBe(true);
};

test("[AU390] records of other namespaces that refer to the user are there too, each once, under their rules", async () => {
  const user = await signIn(platform);
  const added = async (table: string, body: JsonObject): Promise<string> => {
    const answer = await platform.service.post<{ id: string }>(`/api/db/journal/tables/${table}`, body);
    expect(answer.status).toBe(201);
    return answer.body.id;
  };
  const own = await added("entries", { ofId: user.id, readers: [user.id, bob.id] });
  const read = await added("entries", { ofId: bob.id, readers: [user.id] });
  await added("entries", { ofId: user.id, text: "secret" });
  await added("entries", { ofId: bob.id });
  await added("closed", { ofId: user.id });
  const note = await insert("notes", { ofId: user.id });
  const { status, body } = await user.get<Exported>(OWN);
  expect(status).toBe(200);
  expect(Object.keys(body.records).sort()).toEqual(["journal/entries", "shared/notes", "shared/users"]);
  expect(ids(body, "notes")).toEqual([note]);
  const entries = (body.records["journal/entries"] ?? []).map(({ id }) => String(id));
  expect(entries.sort()).toEqual([own, read].sort());
  // By the scopes of a key, which allow one namespace here.
  const byKey = await platform.withKey(`all${KEY}`).get<Exported>(of(user.id));
  expect(Object.keys(byKey.body.records).some((place) => place.startsWith("journal/"))).toBe(false);
});

test("[AU390] records of instances that refer to the user are there too, of open and closed ones, under the rules of both", async () => {
  const user = await signIn(platform);
  const added = async (board: string, body: JsonObject, table = "cards"): Promise<string> => {
    const answer = await platform.service.post<{ id: string }>(`/api/db/boards/${board}/tables/${table}`, body);
    expect(answer.status).toBe(201);
    return answer.body.id;
  };
  const [first, second] = [
    await added("early", { ofId: user.id, guests: [user.id, bob.id] }),
    await added("early", { guests: [bob.id, user.id] }),
  ];
  await added("early", { ofId: user.id, text: "secret" });
  await added("early", { ofId: user.id }, "rows");
  await added("other", { ofId: bob.id });
  await added("shut", { ofId: user.id });
  const expected = { "boards/early/cards": [first, second].sort() };
  const cardsOf = ({ records }: Exported) => {
    const found = Object.entries(records).filter(([place]) => place.startsWith("boards/"));
    return Object.fromEntries(found.map(([place, rows]) => [place, rows.map(({ id }) => String(id)).sort()]));
  };
  expect(cardsOf((await user.get<Exported>(OWN)).body)).toEqual(expected);
  // Now no instance is open.
  await platform.restart();
  await added("late", { ofId: bob.id });
  expect(cardsOf((await user.get<Exported>(OWN)).body)).toEqual(expected);
  // A key passes the rules, as far as its scopes go.
  const all = cardsOf((await platform.service.get<Exported>(of(user.id))).body);
  expect(Object.keys(all).sort()).toEqual(["boards/early/cards", "boards/early/rows", "boards/shut/cards"]);
  expect(all["boards/early/cards"]?.length).toBe(3);
  expect(cardsOf((await platform.withKey(`all${KEY}`).get<Exported>(of(user.id))).body)).toEqual({});
});

test("[AU390] an instance that cannot be opened is left out of an export, and the log names it", async () => {
  const user = await signIn(platform);
  for (const board of ["broken", "whole"]) {
    const answer = await platform.service.post(`/api/db/boards/${board}/tables/cards`, { ofId: user.id });
    expect(answer.status).toBe(201);
  }
  await platform.kill("SIGTERM");
  await writeFile(join(platform.dataDirectory, "databases", "boards", "broken.db"), "no database ".repeat(1000));
  await platform.restart();
  const { status, body } = await user.get<Exported>(OWN);
  expect(status).toBe(200);
  expect(Object.keys(body.records)).toEqual(["shared/users", "boards/whole/cards"]);
  expect(platform.stderr()).toContain("an instance that may refer to a record cannot be read");
  await rm(join(platform.dataDirectory, "databases", "boards", "broken.db"));
});

test("[AU390] GET me/export answers account, sessions, records that refer to the user, and files, as a file", async () => {
  const user = await signIn(platform);
  await user.patch(`${TABLES}/users/${user.id}`, { bio: "about me" });
  const written = await insert("posts", { authorId: user.id });
  const edited = await insert("posts", { authorId: bob.id, editorIds: [bob.id, user.id] });
  const both = await insert("posts", { authorId: user.id, editorIds: [user.id] });
  await insert("posts", { authorId: bob.id });
  await insert("loose", { ofId: user.id });
  await upload(user, "own", "a.txt", "mine");
  await upload(bob, "own", "b.txt", "not mine");
  const answer = await fetch(platform.url + OWN, { headers: { authorization: `Bearer ${user.token}` } });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(answer.headers.get("content-disposition")).toMatch(/^attachment; filename="export-\d{4}-\d\d-\d\d\.json"$/);
  expect(answer.headers.get("cache-control")).toBe("private, no-store");
  const body = (await answer.json()) as Exported;
  expect(body.account).toMatchObject({ id: user.id, email: user.email });
  expect(JSON.stringify(body)).not.toContain("passwordHash");
  expect((body["sessions"] as JsonObject[]).length).toBe(1);
  expect(Object.keys(body.records)).toEqual(["shared/users", "shared/posts"]);
  expect(body.records["shared/users"]).toMatchObject([{ id: user.id, bio: "about me", email: user.email }]);
  expect(ids(body, "posts")).toEqual([written, edited, both].sort());
  expect(body.files).toMatchObject([{ bucket: "own", key: "a.txt", size: 4, contentType: "text/plain;charset=utf-8" }]);
  expect(await (await fetch(String(body.files[0]?.["url"]))).text()).toBe("mine");
});

test("[AU391] the export has what the user may read: no record and no file that a rule hides", async () => {
  const user = await signIn(platform);
  const shown = await insert("notes", { ofId: user.id, text: "seen" });
  await insert("notes", { ofId: user.id, text: "secret" });
  await insert("posts", { authorId: user.id, isHidden: true });
  await insert("audits", { ofId: user.id });
  await platform.service.patch(`${TABLES}/users/${bob.id}`, { leadId: user.id });
  await upload(user, "box", `${user.id}.txt`, "kept");
  const { body } = await user.get<Exported>(OWN);
  expect(Object.keys(body.records)).toEqual(["shared/users", "shared/notes"]);
  expect(ids(body, "users")).toEqual([user.id]);
  expect(ids(body, "notes")).toEqual([shown]);
  expect(body.files).toEqual([]);
});

test("[AU391] an administrator's export has what the scopes of the key let it read", async () => {
  const user = await signIn(platform);
  const post = await insert("posts", { authorId: user.id, isHidden: true });
  const audit = await insert("audits", { ofId: user.id });
  await upload(user, "box", `${user.id}.txt`, "kept");
  const all = await platform.withKey(`all${KEY}`).get<Exported>(of(user.id));
  expect(all.status).toBe(200);
  expect(all.body.account).toMatchObject({ id: user.id, role: "user", appMetadata: {} });
  expect([ids(all.body, "posts"), ids(all.body, "audits")]).toEqual([[post], [audit]]);
  expect(all.body.files).toMatchObject([{ bucket: "box", key: `${user.id}.txt` }]);
  expect(await (await fetch(String(all.body.files[0]?.["url"]))).text()).toBe("kept");
  const some = await platform.withKey(`posts${KEY}`).get<Exported>(of(user.id));
  expect(Object.keys(some.body.records)).toEqual(["shared/posts"]);
  expect(some.body.files).toEqual([]);
  expect((await platform.withKey(`none${KEY}`).get(of(user.id))).status).toBe(403);
  expect((await platform.get(of(user.id))).status).toBe(401);
  expect((await user.get(of(user.id))).status).toBe(401);
  expect((await platform.service.get(of("nobody"))).status).toBe(404);
  expect((await platform.service.get(`${of(user.id)}?x=1`)).status).toBe(400);
});

test("[AU392] a stolen access token exports nothing: it takes a sign-in of the last ten minutes", async () => {
  const timed = await timedPlatform({});
  const credentials = { email: "ann@example.com", password: "correct horse battery" };
  const { body } = await timed.post<{ accessToken: string; refreshToken: string }>("/api/auth/signup", credentials);
  expect((await timed.as(body.accessToken).get(OWN)).status).toBe(200);
  timed.clock.advance(11 * MINUTE_MS);
  const { refreshToken } = body;
  const renewed = await timed.post<{ accessToken: string }>("/api/auth/refresh", { refreshToken });
  const refused = await timed.as(renewed.body.accessToken).get(OWN);
  expect([refused.status, refused.body["message"]]).toEqual([401, "Sign in again"]);
  await timed.stop();
  expect((await platform.get(OWN)).status).toBe(401);
  expect((await platform.service.get(OWN)).status).toBe(401);
  expect((await platform.as(await signToken({ sub: ann.id, sid: "nothing" })).get(OWN)).status).toBe(401);
  // The root key may look at what a user sees; that takes nobody's data away in their name.
  const acting = await platform.service.get(OWN, { headers: { "x-platform-act-as": ann.id } });
  expect(acting.status).toBe(401);
});

/** Begins an export of a user who has a record in `held`, and waits until it waits for the rule of that table. */
async function heldExport<Answer>(ask: () => Promise<Answer>): Promise<{ answer: Promise<Answer> }> {
  const timesHeld = () => platform.stderr().split("the export is held").length;
  const before = timesHeld();
  await platform.post("/api/functions/hold");
  const answer = ask();
  await until("the export is under way", () => timesHeld() > before);
  return { answer };
}

test("[AU393] one export of a user at a time, and each is in the audit log", async () => {
  const user = await signIn(platform);
  const held = await insert("held", { ofId: user.id });
  const first = await heldExport(() => user.get<Exported>(OWN));
  expect((await user.get(OWN)).status).toBe(429);
  expect((await platform.service.get(of(user.id))).status).toBe(429);
  expect((await bob.get(OWN)).status).toBe(200);
  await platform.post("/api/functions/open");
  expect(ids((await first.answer).body, "held")).toEqual([held]);
  expect(ids((await user.get<Exported>(OWN)).body, "held")).toEqual([held]);
  await platform.service.get(of(user.id));
  const log = await platform.service.get<{ entries: JsonObject[] }>(`/api/admin/audit?target=users/${user.id}`);
  const actors = log.body.entries.filter(({ action }) => action === "user.export").map(({ actor }) => actor);
  expect(actors).toMatchObject([{ kind: "serviceKey" }, { kind: "user" }, { kind: "user" }]);
});

test("[AU393] of exports of a user that are asked for at once, the log has those that were given", async () => {
  const user = await signIn(platform);
  const answers = await Promise.all(Array.from({ length: 8 }, () => user.get(OWN)));
  const given = answers.filter(({ status }) => status === 200).length;
  expect(answers.every(({ status }) => [200, 429].includes(status))).toBe(true);
  const log = await platform.service.get<{ entries: JsonObject[] }>(
    `/api/admin/audit?target=users/${user.id}&action=user.export`,
  );
  expect([given > 0, log.body.entries.length]).toEqual([true, given]);
});

test("[AU393] an export breaks off when the session that asked for it ends", async () => {
  const user = await signIn(platform);
  await insert("held", { ofId: user.id });
  await insert("posts", { authorId: user.id });
  const headers = { authorization: `Bearer ${user.token}` };
  const isWhole = async (): Promise<boolean> => {
    const answer = await fetch(platform.url + OWN, { headers });
    return answer.ok && (await answer.text()).endsWith("]}");
  };
  const control = await heldExport(isWhole);
  await platform.post("/api/functions/open");
  expect(await control.answer).toBe(true);
  const broken = await heldExport(() => isWhole().catch(() => false));
  await platform.service.post(`/api/auth/admin/users/${user.id}/revoke`);
  await platform.post("/api/functions/open");
  expect(await broken.answer).toBe(false);
});

test("[AU394] the account page has a button that exports, without JavaScript, for its own form alone", async () => {
  const user = await signIn(platform);
  const visitor = new PageVisitor(platform);
  await visitor.open("/auth/sign-in");
  await visitor.send("/auth/sign-in", { email: user.email, password: user.password });
  const account = await visitor.open("/auth/account");
  expect(account.text).toContain(">Export my data</button>");
  const file = await visitor.send("/auth/export", {});
  expect(file.status).toBe(200);
  expect(file.headers.get("content-disposition")).toStartWith("attachment");
  expect((JSON.parse(file.text) as Exported).account).toMatchObject({ id: user.id });
  expect((await visitor.send("/auth/export", {}, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await new PageVisitor(platform).send("/auth/export", {})).path).toStartWith("/auth/sign-in");
});
