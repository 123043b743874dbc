import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type HttpClient,
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

// The table with one record for each account.

const CONFIG = `{
  api: { schemaEndpoint: true },
  auth: { anonymous: true, users: {
    in: "shared",
    schema: { bio: { type: "text" }, points: { type: "integer", default: 3 }, handle: { type: "string", unique: true } },
    fts: ["displayName", "bio"],
    indexes: [{ fields: ["displayName"] }],
    access: { read: (auth) => auth !== null, update: (auth, user) => auth !== null && user.id === auth.id },
  } },
  serviceKeys: {
    plain: { key: "plain-key-0123456789abcdefghijklmnopqrstuv", scopes: ["db:shared:*:read"] },
    reader: {
      key: "reader-key-0123456789abcdefghijklmnopqrstu", scopes: ["db:shared:*:read", "auth:admin:*:read"],
    },
  },
  databases: { shared: { tables: {
    notes: {
      schema: { userId: { type: "string", unique: true }, address: { type: "string" } },
      access: { read: true },
    },
    invites: {
      schema: { userId: { type: "string", unique: true }, address: { type: "string" } },
      access: {
        // By what a rule sees of another record: the address of the invited user.
        read: (auth, invite, context) => context.table("users").get(invite.userId)?.email === invite.address,
        insert: () => [{ some: { table: "users", where: [
          ["id", "==", { field: "userId" }], ["email", "==", { field: "address" }],
        ] } }],
      },
    },
  } } },
  routes: (api) => api
    .get("/server", ({ app, query }) => app.db("shared").table("users").list({ filter: JSON.parse(query.filter) }))
    .get("/inside", ({ app, query }) =>
      app.db("shared").transaction((tx) => tx.table("users").list([["email", "==", query.email]])))
    .get("/ordered", ({ app, auth }) =>
      app.as(auth).db("shared").transaction((tx) => tx.table("users").sort("email").list().items))
    .post("/insert", ({ app }) => app.db("shared").table("users").insert({ id: "x" }))
    .post("/inside", ({ app }) => app.db("shared").transaction((tx) => tx.table("users").delete("x")))
    .post("/rename", async ({ app, body: { id, displayName } }) => {
      await app.db("shared").transaction((tx) => tx.table("users").update(id, { displayName }));
      return {};
    })
    .post("/create", ({ app, body }) => app.users.create(body)),
}`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let plain: HttpClient;
let reader: HttpClient;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = [await signIn(platform), await signIn(platform)];
  plain = platform.withKey("plain-key-0123456789abcdefghijklmnopqrstuv");
  reader = platform.withKey("reader-key-0123456789abcdefghijklmnopqrstu");
});
afterAll(() => platform.stop());

const USERS = "/api/db/shared/tables/users";
const record = async (id: string, by: HttpClient = ann): Promise<JsonObject | null> => {
  const { status, body } = await by.get(`${USERS}/${id}`);
  return status === 404 ? null : body;
};
const show = (user: SignedIn, emailVisibility: string) => user.patch("/api/auth/me", { emailVisibility });

test("[AU310] a record is there when an account is answered, however it was made", async () => {
  const password = "correct horse battery";
  const signUp = await platform.post<{ user: { id: string } }>("/api/auth/signup", {
    email: "up@example.com",
    password,
    displayName: "Up",
  });
  const anonymous = await platform.post<{ user: { id: string } }>("/api/auth/signin/anonymous");
  const added = await platform.service.post<{ user: { id: string } }>("/api/auth/admin/users", {
    email: "added@example.com",
    password,
  });
  const invited = await platform.service.post<{ user: { id: string } }>("/api/auth/admin/users/invite", {
    email: "invited@example.com",
  });
  const users = [
    { id: "im-1", email: "im1@example.com" },
    { email: "im2@example.com", displayName: "Im" },
  ];
  const imported = await platform.service.post<{ results: { id: string }[] }>("/api/admin/auth/users/import", {
    users,
  });
  const created = await platform.service.post<{ id: string }>("/api/functions/create", { email: "app@example.com" });
  const ids = [
    ...[signUp, anonymous, added, invited].map(({ body }) => body.user.id),
    ...imported.body.results.map(({ id }) => id),
    created.body.id,
  ];
  expect(ids.length).toBe(7);
  for (const id of ids) expect(await record(id)).toMatchObject({ id, points: 3, bio: null, email: null });
  expect(await record(signUp.body.user.id)).toEqual({
    id: signUp.body.user.id,
    displayName: "Up",
    avatarUrl: null,
    isAnonymous: false,
    email: null,
    bio: null,
    points: 3,
    handle: null,
    createdAt: expect.stringMatching(/^\d{4}-/),
  });
  expect((await record(anonymous.body.user.id))?.["isAnonymous"]).toBe(true);
  const { body } = await platform.service.get<ListAnswer>("/api/auth/admin/users", { query: { limit: 100 } });
  const { body: listed } = await ann.get<ListAnswer>(USERS, { query: { limit: 100 } });
  expect(listed.total).toBe(((body as unknown as { users: unknown[] }).users ?? body.items).length);
});

test("[AU311] what the account's endpoints change is in the record when they answer", async () => {
  await ann.patch("/api/auth/me", { displayName: "Ann", avatarUrl: "https://example.com/a.png" });
  expect(await record(ann.id)).toMatchObject({ displayName: "Ann", avatarUrl: "https://example.com/a.png" });
  await platform.service.patch(`/api/auth/admin/users/${ann.id}`, { displayName: "Anna" });
  expect((await record(ann.id, bob))?.["displayName"]).toBe("Anna");
  await platform.service.patch(`/api/auth/admin/users/${bob.id}`, { disabled: true });
  expect((await record(bob.id))?.["id"]).toBe(bob.id);
  await platform.service.patch(`/api/auth/admin/users/${bob.id}`, { disabled: false });
  bob = { ...bob, ...(await again(bob)) };
});

const again = async ({ email, password }: SignedIn): Promise<HttpClient> => {
  const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", { email, password });
  return platform.as(body.accessToken);
};

test("[AU312] a record goes with its account, and one of its id begins anew", async () => {
  const cem = await signIn(platform);
  await cem.patch(`${USERS}/${cem.id}`, { bio: "mine", handle: "cem" });
  expect((await cem.delete("/api/auth/me")).status).toBe(200);
  expect(await record(cem.id)).toBe(null);
  const users = [{ id: cem.id, email: "other@example.com" }];
  expect((await platform.service.post("/api/admin/auth/users/import", { users })).status).toBeLessThan(300);
  expect(await record(cem.id)).toMatchObject({ bio: null, handle: null });
  await platform.service.delete(`/api/auth/admin/users/${cem.id}`);
  expect(await record(cem.id)).toBe(null);
});

test("[TB780] an address is shown to its owner, to keys that may read accounts, and to others where it is public", async () => {
  const seen = async () =>
    Promise.all([ann, bob, plain, reader, platform.service].map(async (by) => (await record(ann.id, by))?.["email"]));
  expect(await seen()).toEqual([ann.email, null, null, ann.email, ann.email]);
  await show(ann, "public");
  expect(await seen()).toEqual([ann.email, ann.email, ann.email, ann.email, ann.email]);
  await show(ann, "private");
  expect(await seen()).toEqual([ann.email, null, null, ann.email, ann.email]);
  const listed = async (by: HttpClient, query = {}) => {
    const { body } = await by.get<ListAnswer>(USERS, { query: { limit: 100, ...query } });
    return body.items.find(({ id }) => id === ann.id)?.["email"];
  };
  for (let times = 0; times < 3; times++) {
    expect(await listed(bob)).toBe(null);
    expect(await listed(ann)).toBe(ann.email);
    expect(await listed(ann, { fields: "email" })).toBe(ann.email);
    expect(await listed(ann, { fields: "displayName" })).toBeUndefined();
    expect(await listed(reader)).toBe(ann.email);
  }
  const found = async (by: HttpClient) =>
    (await by.get<ListAnswer>(`${USERS}/search`, { query: { q: "anna" } })).body.items.map(({ email }) => email);
  expect([await found(bob), await found(ann), await found(reader)]).toEqual([[null], [ann.email], [ann.email]]);
});

test("[TB781] filters, sorts and aggregates see a hidden address as null; filters one's own as it is", async () => {
  await show(bob, "public");
  const names = [ann, bob].map(({ email }) => email);
  const filtered = async (by: HttpClient, filter: unknown, sort = "id") => {
    const query = { filter: JSON.stringify(filter), sort, limit: 100 };
    const { status, body } = await by.get<ListAnswer>(USERS, { query });
    return status === 200 ? body.items.map(({ id }) => id) : status;
  };
  const both = [["email", "in", names]];
  expect(await filtered(plain, both)).toEqual([bob.id]);
  expect(await filtered(ann, both, "id")).toEqual([ann.id, bob.id].sort());
  expect(await filtered(reader, both, "email")).toEqual([ann.id, bob.id]);
  expect(
    await filtered(ann, [
      ["email", "==", null],
      ["id", "==", ann.id],
    ]),
  ).toEqual([]);
  expect(await filtered(ann, [["email", "==", ann.email]])).toEqual([ann.id]);
  expect(await filtered(ann, { not: [["email", "==", ann.email]] })).not.toContain(ann.id);
  expect(await filtered(bob, [["email", "==", ann.email]])).toEqual([]);
  expect(await filtered(bob, [{ not: [["email", "startsWith", "user"]] }, ["id", "==", ann.id]])).toEqual([ann.id]);
  const sorted = async (by: HttpClient) => {
    const query = { sort: "email:desc", limit: 1, fields: "email" };
    return (await by.get<ListAnswer>(USERS, { query })).body;
  };
  const page = await sorted(plain);
  expect(page.items.map(({ email }) => email)).toEqual([bob.email]);
  const next = await plain.get<ListAnswer>(USERS, {
    query: { sort: "email:desc", after: page.cursor ?? "", limit: 1 },
  });
  expect(next.body.items.map(({ email }) => email)).toEqual([null]);
  const most = async (by: HttpClient) => {
    const filter = JSON.stringify([["id", "in", [ann.id, bob.id]]]);
    const query = { select: "min(email),max(email)", filter };
    return (await by.get<{ groups: JsonObject[] }>(`${USERS}/aggregate`, { query })).body.groups;
  };
  expect(await most(plain)).toEqual([{ "min(email)": bob.email, "max(email)": bob.email }]);
  expect((await most(reader))[0]?.["min(email)"]).toBe(ann.email);
  const grouped = await plain.get<{ groups: JsonObject[] }>(`${USERS}/aggregate`, { query: { groupBy: "email" } });
  expect(grouped.body.groups.map(({ email }) => email).sort()).toEqual([bob.email, null].sort());
  const change = { action: "update", data: { bio: "by filter" } };
  const changed = async (by: HttpClient, filter: JsonValue) =>
    (await by.post<{ processed: number }>(`${USERS}/batch-by-filter`, { ...change, filter })).body.processed;
  expect(await changed(bob, [["email", "==", ann.email]])).toBe(0);
  expect(await changed(ann, [["email", "==", ann.email]])).toBe(1);
  expect(
    await changed(ann, [
      ["email", "==", null],
      ["id", "==", ann.id],
    ]),
  ).toBe(0);
  const when = { query: { if: JSON.stringify([["email", "==", ann.email]]) } };
  expect((await ann.patch(`${USERS}/${ann.id}`, { bio: "if" }, when)).status).toBe(200);
  await show(bob, "private");
});

test("[TB781] one's own address has its place in every order, with cursors in both directions", async () => {
  await show(bob, "public");
  const everybody = (await ann.get<ListAnswer>(USERS, { query: { limit: 100 } })).body.items;
  const found = await ann.get<ListAnswer>(`${USERS}/search`, { query: { q: "anna", sort: "email", limit: 100 } });
  expect(found.body.items.map(({ email }) => email)).toEqual([ann.email]);
  for (const [sort, sign] of [
    ["email", 1],
    ["email:desc", -1],
    ["isAnonymous,email:desc,id", -1],
  ] as const) {
    const shown: JsonObject[] = [];
    let cursor: string | null = "";
    let first = "";
    while (cursor !== null) {
      const query: Record<string, string | number | boolean> = {
        sort,
        limit: 2,
        total: false,
        fields: "id,email",
        ...(cursor === "" ? {} : { after: cursor }),
      };
      const { status, body }: { status: number; body: ListAnswer } = await ann.get<ListAnswer>(USERS, { query });
      expect([sort, status]).toEqual([sort, 200]);
      shown.push(...body.items);
      cursor = body.cursor;
      if (first === "") first = String(cursor);
    }
    expect(shown.map(({ id }) => id).sort()).toEqual(everybody.map(({ id }) => id).sort());
    if (sort.startsWith("email")) {
      // Null comes first in ascending order; the others by their text.
      const rank = ({ email }: JsonObject): string => (email === null ? "" : `1${String(email)}`);
      const ordered = shown.toSorted((a, b) => sign * (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0));
      expect(shown.map(({ email }) => email)).toEqual(ordered.map(({ email }) => email));
    }
    const back = await ann.get<ListAnswer>(USERS, { query: { sort, limit: 1, before: first, fields: "id,email" } });
    expect(back.body.items).toEqual(shown.slice(0, 1));
    expect(shown.find(({ id }) => id === ann.id)).toEqual({ id: ann.id, email: ann.email });
  }
  const inside = await ann.get<JsonObject[]>("/api/functions/ordered");
  expect(inside.body.filter(({ email }) => email !== null).map(({ email }) => email)).toEqual([ann.email, bob.email]);
  await show(bob, "private");
});

test("[TB781] where one's own address cannot be told from a hidden one, a user is refused", async () => {
  const named = { code: "invalid_value", message: expect.stringContaining("email") };
  for (const query of [{ groupBy: "email" }, { select: "max(email)" }, { select: "count(),min(email)" }]) {
    const parameter = "groupBy" in query ? "groupBy" : "select";
    const { status, body } = await ann.get<ErrorAnswer>(`${USERS}/aggregate`, { query });
    expect([status, body.data]).toEqual([400, { [parameter]: named }]);
    expect((await plain.get(`${USERS}/aggregate`, { query })).status).toBe(200);
    expect((await reader.get(`${USERS}/aggregate`, { query })).status).toBe(200);
  }
  const notes = "/api/db/shared/tables/notes";
  const isOfNote = ["id", "==", { field: "userId" }];
  const hasAddress = ["email", "==", { field: "address" }];
  const ofNote = [{ some: { table: "users", where: [isOfNote, hasAddress] } }];
  const ofUser = [
    {
      some: {
        table: "notes",
        where: [
          ["userId", "==", { field: "id" }],
          ["address", "==", { field: "email" }],
        ],
      },
    },
  ];
  for (const [path, filter] of [
    [notes, ofNote],
    [USERS, ofUser],
  ] as const) {
    for (const way of ["", "/count", "/aggregate"]) {
      const query = { filter: JSON.stringify(filter) };
      expect([path, way, (await ann.get(`${path}${way}`, { query })).status]).toEqual([path, way, 400]);
      expect([path, way, (await plain.get(`${path}${way}`, { query })).status]).toEqual([path, way, 200]);
    }
  }
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: ann.token });
  await socket.expect({ type: "auth_success" });
  const channel = "realtime:shared:users";
  const isAnn = ["email", "==", ann.email];
  const refused = async (message: JsonObject): Promise<void> => {
    socket.send({ channel, ...message });
    expect(await socket.nextOf("error")).toMatchObject({
      code: "INVALID_FILTER",
      message: expect.stringContaining("email"),
    });
  };
  await refused({ type: "subscribe", filters: [isAnn] });
  await refused({ type: "subscribe", orFilters: [{ not: [isAnn] }] });
  const inRelation = { some: { table: "users", where: [isOfNote, isAnn] } };
  await refused({ type: "subscribe", channel: "realtime:shared:notes", filters: [inRelation] });
  await refused({ type: "subscribe", channel: "realtime:shared:notes", filters: ofNote });
  socket.send({ type: "subscribe", channel });
  await socket.nextOf("subscribed");
  await refused({ type: "update_filters", filters: [isAnn] });
  await socket.close();
});

test("[TB781] relations of clients see a hidden address as null, those of rules see it", async () => {
  const asked = (email: string) => {
    const where = [
      ["id", "==", { field: "userId" }],
      ["email", "==", email],
    ];
    return { filter: JSON.stringify([{ some: { table: "users", where } }]) };
  };
  const path = "/api/db/shared/tables/invites";
  const insert = (address: string) => bob.post(path, { userId: ann.id, address });
  expect((await insert("wrong@example.com")).status).toBe(403);
  const { status, body } = await insert(ann.email);
  expect(status).toBe(201);
  expect((await bob.get(`${path}/${String(body["id"])}`)).status).toBe(200);
  const total = async (by: HttpClient) =>
    (await by.get<{ total: number }>(`${path}/count`, { query: asked(ann.email) })).body.total;
  expect([await total(plain), await total(reader)]).toEqual([0, 1]);
});

test("[TB780] server code sees addresses, in transactions too", async () => {
  const filter = JSON.stringify([["email", "==", ann.email]]);
  const { body } = await platform.service.get<ListAnswer>("/api/functions/server", { query: { filter } });
  expect(body.items).toMatchObject([{ id: ann.id, email: ann.email }]);
  const inside = await platform.service.get("/api/functions/inside", { query: { email: ann.email } });
  expect(inside.body).toMatchObject([{ id: ann.id, email: ann.email }]);
});

test("[TB782] records are not inserted, upserted, imported or deleted: 403 names the account's endpoint", async () => {
  const key = platform.service;
  const answers = [
    key.post(USERS, { id: "x" }),
    key.post(`${USERS}?upsert=true`, { id: "x" }),
    key.post(`${USERS}/batch`, { inserts: [{ id: "x" }] }),
    key.post(`${USERS}/batch?upsert=true`, { inserts: [{ id: ann.id }] }),
    key.post(`${USERS}/batch`, { deletes: [ann.id] }),
    key.delete(`${USERS}/${ann.id}`),
    key.post(`${USERS}/batch-by-filter`, { action: "delete", filter: [["id", "==", ann.id]] }),
    key.post("/api/db/shared/transaction", { operations: [{ action: "insert", table: "users", data: {} }] }),
    key.post("/api/db/shared/transaction", { operations: [{ action: "delete", table: "users", id: ann.id }] }),
    ann.delete(`${USERS}/${ann.id}`),
  ];
  for (const answer of answers) {
    const { status, body } = await answer;
    expect([status, String(body["message"]).includes("/api/auth/")]).toEqual([403, true]);
  }
  for (const name of ["insert", "inside"]) expect((await key.post(`/api/functions/${name}`, {})).status).toBe(403);
  expect(await record(ann.id)).not.toBe(null);
});

test("[TB782] the document has no such operations of users", async () => {
  const { body } = await platform.service.get<{ paths: Record<string, JsonObject> }>("/swagger/json");
  const methods = (path: string) => Object.keys(body.paths[`/api/db/shared/tables/${path}`] ?? {}).sort();
  expect([methods("users"), methods("users/{id}")]).toEqual([["get"], ["get", "patch"]]);
  expect([methods("invites"), methods("invites/{id}")]).toEqual([
    ["get", "post"],
    ["delete", "get", "patch"],
  ]);
});

test("[TB883] the described schema marks the table, and what the account decides", async () => {
  const { body } = await platform.service.get<{ namespaces: Record<string, { tables: Record<string, JsonObject> }> }>(
    "/api/schema",
  );
  const { users, invites } = body.namespaces["shared"]?.tables ?? {};
  expect([users?.["users"], invites?.["users"]]).toEqual([true, undefined]);
  const fields = users?.["fields"] as Record<string, JsonObject>;
  const generated = Object.keys(fields).filter((name) => fields[name]?.["generated"] === true);
  expect(generated).toEqual(["id", "isAnonymous", "email", "createdAt"]);
});

test("[TB783] an update changes fields of one's own; the answer has one's address, and an address that is sent is ignored", async () => {
  const path = `${USERS}/${ann.id}`;
  const whole = await record(ann.id);
  const { status, body } = await ann.patch(path, {
    ...whole,
    email: "other@example.com",
    isAnonymous: true,
    bio: "new",
  });
  expect([status, body["bio"], body["email"], body["isAnonymous"]]).toEqual([200, "new", ann.email, false]);
  expect((await bob.patch(path, { bio: "not mine" })).status).toBe(403);
  const byKey = await platform.service.patch(path, { points: { $op: "increment", value: 2 } });
  expect([byKey.body["points"], byKey.body["email"]]).toEqual([5, ann.email]);
  expect(await record(ann.id, platform.service)).toMatchObject({ bio: "new", points: 5, email: ann.email });
});

test("[TB882] an update of displayName and avatarUrl changes the account, by every way", async () => {
  const path = `${USERS}/${ann.id}`;
  const account = async () => {
    const { body } = await ann.get<{ user: JsonObject }>("/api/auth/me");
    return [body.user["displayName"], body.user["avatarUrl"]];
  };
  const avatarUrl = "https://example.com/b.png";
  const both = await ann.patch(path, { displayName: "Two", avatarUrl, bio: "at once" });
  expect([both.status, both.body["displayName"], both.body["bio"]]).toEqual([200, "Two", "at once"]);
  expect(await account()).toEqual(["Two", avatarUrl]);
  const where = [["id", "==", ann.id]];
  const ways: [string, () => Promise<{ status: number }>][] = [
    ["key", () => platform.service.patch(path, { displayName: "key" })],
    ["batch", () => ann.post(`${USERS}/batch`, { updates: [{ id: ann.id, data: { displayName: "batch" } }] })],
    [
      "filter",
      () => ann.post(`${USERS}/batch-by-filter`, { action: "update", filter: where, data: { displayName: "filter" } }),
    ],
    [
      "transaction",
      () =>
        ann.post("/api/db/shared/transaction", {
          operations: [{ action: "update", table: "users", id: ann.id, data: { displayName: "transaction" } }],
        }),
    ],
    ["inside", () => platform.service.post("/api/functions/rename", { id: ann.id, displayName: "inside" })],
  ];
  for (const [name, way] of ways) {
    expect([name, (await way()).status]).toEqual([name, 200]);
    expect(await account()).toEqual([name, avatarUrl]);
    expect(await record(ann.id)).toMatchObject({ displayName: name, avatarUrl });
  }
  expect((await ann.patch(path, { displayName: null, avatarUrl: { $op: "deleteField" } })).status).toBe(200);
  expect(await account()).toEqual([null, null]);
  expect(await record(ann.id)).toMatchObject({ displayName: null, avatarUrl: null });
});

test("[TB882] what the account's endpoints refuse is refused there, and rules decide", async () => {
  const path = `${USERS}/${ann.id}`;
  const faults: JsonObject[] = [
    { displayName: "a\u0000b" },
    { displayName: "x".repeat(10_000) },
    { avatarUrl: "javascript:alert(1)" },
    { displayName: 1 },
  ];
  for (const body of faults) {
    const answer = await ann.patch(path, body);
    expect([answer.status, Object.keys((answer.body["data"] ?? {}) as object)]).toEqual([400, Object.keys(body)]);
    expect((await ann.patch("/api/auth/me", body)).status).toBe(400);
  }
  expect((await bob.patch(path, { displayName: "Not mine" })).status).toBe(403);
  expect((await plain.patch(path, { displayName: "Not mine" })).status).toBe(403);
  expect((await ann.patch(path, { displayName: "Ann", points: "x" })).status).toBe(400);
  expect((await ann.get("/api/auth/me")).body).toMatchObject({ user: { displayName: null } });
});

test("[TB882] updates of records and of accounts at once end alike", async () => {
  const changes = Array.from({ length: 60 }, (_, at) =>
    at % 2 === 0
      ? ann.patch(`${USERS}/${ann.id}`, { displayName: `record ${at}` })
      : ann.patch("/api/auth/me", { displayName: `account ${at}` }),
  );
  for (const { status } of await Promise.all(changes)) expect(status).toBe(200);
  const { body } = await ann.get<{ user: JsonObject }>("/api/auth/me");
  expect(String(body.user["displayName"])).toMatch(/^(record|account) \d+$/);
  expect((await record(ann.id))?.["displayName"]).toBe(String(body.user["displayName"]));
});

test("[TB784] live changes have no hidden address, and a change of one is not told", async () => {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: (await signIn(platform)).token });
  await socket.expect({ type: "auth_success" });
  socket.send({ type: "subscribe", channel: "realtime:shared:users" });
  const { channel } = (await socket.nextOf("subscribed")) as { channel: string };
  const dan = await signIn(platform);
  await socket.expect({ type: "db_change", channel, changeType: "added", docId: dan.id, data: { email: null } });
  await dan.patch("/api/auth/me", { displayName: "Dan" });
  await socket.expect({ changeType: "modified", docId: dan.id, data: { displayName: "Dan", email: null } });
  const email = "dan-moved@example.com";
  expect((await platform.service.patch(`/api/auth/admin/users/${dan.id}`, { email })).status).toBe(200);
  expect((await record(dan.id, platform.service))?.["email"]).toBe(email);
  await platform.service.patch(`/api/auth/admin/users/${dan.id}`, { emailVisibility: "public" });
  // The next message after that of the name: the change of the hidden address was not told.
  await socket.expect({ changeType: "modified", docId: dan.id, data: { email } });
  await platform.service.delete(`/api/auth/admin/users/${dan.id}`);
  await socket.expect({ changeType: "removed", docId: dan.id, data: null });
  const eve = await signIn(platform);
  await socket.expect({ changeType: "added", docId: eve.id, data: { email: null } });
  await platform.service.delete(`/api/auth/admin/users/${eve.id}`);
  await socket.expect({ changeType: "removed", docId: eve.id, data: null });
  await socket.close();
});
