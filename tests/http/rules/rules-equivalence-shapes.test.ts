import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type HttpClient, type ListAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";
import { type RecordFile, sendForm } from "../tables/tables-files-support.ts";

// Files of records, views and the table of users are read alike by every way, under rules of every form. A new way to one of them is a
// new entry in WAYS or FILE_WAYS; a new form of rule is one in RULES.

const SEED = testSeed(20_275);
const r = random(SEED);
const ROUNDS = 3 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const RECORDS = 14;

const MEMBER = '[["workspaceId", "==", field("workspaceId")], ["userId", "==", auth?.id ?? ""]]';
const same = (one: unknown, other: unknown): boolean => one !== null && one === other;

type Memberships = readonly JsonObject[];
interface Rule {
  source: string;
  /** Whether it looks at each record. */
  isByRecord?: boolean;
  shows(record: JsonObject, mine: Memberships, all: Memberships, caller: string | null): boolean;
}
const isInside = ({ workspaceId }: JsonObject, mine: Memberships) =>
  mine.some((one) => same(one["workspaceId"], workspaceId));

const RULES: Record<string, Rule> = {
  everybody: { source: "true", shows: () => true },
  nobody: { source: "anyOf()", shows: () => false },
  own: { source: '[["ownerId", "==", auth?.id ?? ""]]', shows: ({ ownerId }, _, __, caller) => same(ownerId, caller) },
  some: { source: `some("members", ${MEMBER})`, shows: isInside },
  none: { source: `none("members", ${MEMBER})`, shows: (record, mine) => !isInside(record, mine) },
  groups: {
    source: `anyOf([["n", "==", 0]], [not([["n", "<", 3]]), some("members", ${MEMBER})])`,
    shows: (record, mine) => {
      const n = record["n"] ?? null;
      return n === 0 || (!(n !== null && Number(n) < 3) && isInside(record, mine));
    },
  },
  nested: {
    source: `some("members", [["userId", "==", field("ownerId")], some("members", ${MEMBER})])`,
    shows: ({ ownerId }, mine, all) =>
      all.some(
        (one) => same(one["userId"], ownerId) && mine.some((own) => same(own["workspaceId"], one["workspaceId"])),
      ),
  },
  looked: {
    source: "record.n === null || record.n < 3",
    isByRecord: true,
    shows: ({ n }) => n === null || Number(n) < 3,
  },
};
const NAMES = Object.keys(RULES);

const FIELDS = `workspaceId: { type: "string" }, ownerId: { references: "users", onDelete: "setNull" }, n: { type: "integer" }`;
const rule = ({ source, isByRecord = false }: Rule): string => `(${isByRecord ? "auth, record" : "auth"}) => ${source}`;
const tables = Object.entries(RULES).map(
  ([name, one]) => `
  ${name}: {
    schema: { ${FIELDS}, text: { type: "text" }, at: { type: "geo" }, one: { type: "file", bucket: "files" }, more: { type: "file", bucket: "files", many: 3 } },
    fts: ["text"], access: { read: ${rule(one)} },
  },
  links_${name}: { schema: { to: { references: "${name}", mayBeHidden: true }, all: { type: "references", references: "${name}", mayBeHidden: true } }, access: { read: true } },`,
);
const views = Object.entries(RULES).map(
  ([name, one]) => `
  view_${name}: { sql: 'SELECT id, workspaceId, ownerId, n FROM "${name}"', schema: { workspaceId: { type: "string" }, ownerId: { type: "string" }, n: { type: "integer" } }, access: { read: ${rule(one)} } },`,
);
const CONFIG = `import { anyOf, defineConfig, field, none, not, some } from "platform";
  export default defineConfig({
    auth: { users: { in: "shared", access: {
      read: (auth) => anyOf([["id", "==", auth?.id ?? ""]], [some("members", [["userId", "==", field("id")], some("members", ${MEMBER})])]),
    } } },
    storage: { buckets: { files: { access: { read: true } } } },
    rateLimits: { global: { requests: 1000000, window: 1 } },
    routes: (api) => api.get("/ids/:table", async ({ app, auth, params }) => {
      const { items } = await app.as(auth).db("shared").table(params.table).list({ limit: 1000 });
      return { ids: items.map(({ id }) => id) };
    }, { access: true }),
    databases: { shared: {
      tables: {
        members: {
          schema: { workspaceId: { type: "string" }, userId: { references: "users", onDelete: "cascade" } },
          indexes: [{ fields: ["userId", "workspaceId"] }, { fields: ["workspaceId", "userId"] }],
        },
        ${tables.join("")}
      },
      views: { ${views.join("")} },
    } },
  });`;

interface Caller {
  id: string | null;
  client: HttpClient;
}

let platform: TestPlatform;
let callers: Caller[];
const memberships = new Map<string, JsonObject>();
const records = new Map<string, JsonObject>();
/** The files of each record, by table and id. */
const files = new Map<string, RecordFile[]>();
const path = (table: string, rest = "") => `/api/db/shared/tables/${table}${rest}`;
const WORKSPACES = ["w1", "w2", "w3"];

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const users = [await signIn(platform), await signIn(platform), await signIn(platform)];
  callers = [{ id: null, client: platform }, ...users.map((user) => ({ id: user.id, client: user }))];
  for (let index = 0; index < RECORDS; index++) {
    records.set(`r${String(index).padStart(2, "0")}`, {
      workspaceId: r.pick([...WORKSPACES, null]),
      ownerId: r.pick([...users.map(({ id }) => id), null]),
      n: r.pick([0, 1, 2, 3, 4, null]),
    });
  }
  for (const name of NAMES) {
    for (const [id, record] of records) {
      const { status, body } = await sendForm<{ one: RecordFile; more: RecordFile[] }>(platform.service, path(name), {
        record: { id, ...record, text: "word", at: { lat: r.below(80), lng: r.below(170) } },
        files: ["one", "more", "more"].map((field, place) => ({ field, content: `${name} ${id} ${place}` })),
      });
      expect(status).toBe(201);
      files.set(`${name} ${id}`, [body.one, ...body.more]);
    }
    const ids = [...records.keys()];
    const inserts = [...ids.map((id) => ({ id, to: id })), { id: "zz", all: ids }];
    expect((await platform.service.post(path(`links_${name}`, "/batch"), { inserts })).status).toBe(200);
  }
}, 60_000);
afterAll(() => platform.stop());

interface Way {
  /** Whether it lists, counts or searches: a rule that looks at each record refuses all where it hides one. */
  isList?: boolean;
  isForViews?: boolean;
  ids(client: HttpClient, table: string): Promise<string[] | number>;
}

const listed = async (client: HttpClient, url: string, query: Record<string, string | number | boolean> = {}) => {
  const { status, body } = await client.get<ListAnswer>(url, { query: { limit: 1000, ...query } });
  // A filter that shows nothing to anybody is an empty list; what is refused shows nothing either.
  return status === 200 ? (body.items ?? []).map(({ id }) => String(id)) : [];
};

const WAYS: Record<string, Way> = {
  "a list": { isList: true, isForViews: true, ids: (client, table) => listed(client, path(table)) },
  "app.as": {
    isList: true,
    isForViews: true,
    async ids(client, table) {
      const { status, body } = await client.get<{ ids: string[] }>(`/api/functions/ids/${table}`);
      return status === 200 ? body.ids : [];
    },
  },
  "pages of a sort": {
    isList: true,
    isForViews: true,
    async ids(client, table) {
      const found: string[] = [];
      for (let after: string | null = ""; after !== null; ) {
        const query: Record<string, string | number> = { sort: "n:desc", limit: 3, ...(after === "" ? {} : { after }) };
        const { body } = await client.get<ListAnswer & { cursor: string | null }>(path(table), { query });
        found.push(...(body.items ?? []).map(({ id }) => String(id)));
        after = body.cursor ?? null;
      }
      return found;
    },
  },
  "one by one": {
    isForViews: true,
    async ids(client, table) {
      const found: string[] = [];
      for (const id of records.keys()) if ((await client.get(path(table, `/${id}`))).status === 200) found.push(id);
      return found;
    },
  },
  "a count": {
    isList: true,
    isForViews: true,
    ids: async (client, table) => (await client.get<{ total: number }>(path(table, "/count"))).body.total ?? 0,
  },
  "an aggregate": {
    isList: true,
    isForViews: true,
    async ids(client, table) {
      const query = { groupBy: "ownerId", select: "count()" };
      const { body } = await client.get<{ groups?: JsonObject[] }>(path(table, "/aggregate"), { query });
      return (body.groups ?? []).reduce((sum, group) => sum + Number(group["count()"]), 0);
    },
  },
  "a search": {
    isList: true,
    ids: (client, table) => listed(client, path(table, "/search"), { q: "word" }),
  },
  "by distance": { isList: true, ids: (client, table) => listed(client, path(table), { near: "at:40:80" }) },
  "in a box": {
    isList: true,
    ids: (client, table) =>
      listed(client, path(table), { filter: '[["at","inBox",{"south":-90,"west":-180,"north":90,"east":180}]]' }),
  },
  "expanded along a reference": {
    async ids(client, table) {
      const { body } = await client.get<ListAnswer>(path(`links_${table}`), { query: { expand: "to", limit: 1000 } });
      return (body.items ?? []).flatMap(({ id, expand }) =>
        (expand as JsonObject)["to"] === null ? [] : [String(id)],
      );
    },
  },
  "expanded along several references": {
    async ids(client, table) {
      const { body } = await client.get<JsonObject>(path(`links_${table}`, "/zz"), { query: { expand: "all" } });
      return ((body["expand"] as JsonObject)["all"] as JsonObject[]).map(({ id }) => String(id));
    },
  },
  "a relation of the caller": {
    isList: true,
    async ids(client, table) {
      const filter = JSON.stringify([{ some: { table, where: [["id", "==", { field: "to" }]] } }]);
      return listed(client, path(`links_${table}`), { filter });
    },
  },
};

/** Whether a file is given, by each way to it. */
const FILE_WAYS: Record<string, (client: HttpClient, file: RecordFile) => Promise<boolean>> = {
  GET: async (client, { url }) => (await client.fetch(url)).status === 200,
  HEAD: async (client, { url }) => (await client.fetch(url, { method: "HEAD" })).status === 200,
  "a range": async (client, { url }) => (await client.fetch(url, { headers: { range: "bytes=0-2" } })).status === 206,
  "an ETag": async (client, { url }) => {
    const etag = (await platform.service.fetch(url)).headers.get("etag") ?? "";
    return (await client.fetch(url, { headers: { "if-none-match": etag } })).status === 304;
  },
  "a signed url": async (client, { url }) => {
    const { status, body } = await client.post<{ url: string }>(`${url}/signed-url`, { expiresIn: 60 });
    if (status !== 200) return false;
    return (await fetch(body.url)).status === 200;
  },
};

async function expectSame(caller: Caller): Promise<void> {
  const all = [...memberships.values()];
  const mine = all.filter(({ userId }) => userId === caller.id);
  for (const [name, one] of Object.entries(RULES)) {
    const wanted = [...records].flatMap(([id, record]) => (one.shows(record, mine, all, caller.id) ? [id] : []));
    for (const [way, { isList = false, isForViews = false, ids }] of Object.entries(WAYS)) {
      if (isList && one.isByRecord === true) continue;
      for (const table of isForViews ? [name, `view_${name}`] : [name]) {
        const found = await ids(caller.client, table);
        const about = { table, way, caller: caller.id };
        const expected = typeof found === "number" ? wanted.length : wanted;
        expect({ ...about, found: typeof found === "number" ? found : found.sort() }).toEqual({
          ...about,
          found: expected,
        });
      }
    }
    for (const id of records.keys()) {
      for (const file of files.get(`${name} ${id}`) ?? []) {
        for (const [way, isGiven] of Object.entries(FILE_WAYS)) {
          const about = { table: name, id, way, caller: caller.id };
          expect({ ...about, given: await isGiven(caller.client, file) }).toEqual({
            ...about,
            given: wanted.includes(id),
          });
        }
      }
    }
  }
}

async function changeMemberships(round: number): Promise<void> {
  for (let index = 0; index < 2; index++) {
    const id = `m${round}-${index}`;
    const userId = r.pick(callers.flatMap((caller) => caller.id ?? []));
    memberships.set(id, { workspaceId: r.pick(WORKSPACES), userId });
    expect((await platform.service.post(path("members"), { id, ...memberships.get(id) })).status).toBe(201);
  }
  if (round === 0) return;
  const gone = r.pick([...memberships.keys()]);
  memberships.delete(gone);
  expect((await platform.service.delete(path("members", `/${gone}`))).status).toBe(200);
}

test(`[TB904] records, views and files of records are given alike by every way, under every form of rule (seed ${SEED})`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await changeMemberships(round);
    for (const caller of callers) await expectSame(caller);
  }
}, 300_000);

test("[TB904] a signed url of a list ends with the right of its signer, and begins with it again", async () => {
  const [, caller] = callers;
  if (caller === undefined) throw new Error("there are users");
  const { status: joined } = await platform.service.post(path("members"), {
    ...{ id: "signer", workspaceId: "w-signed", userId: caller.id },
  });
  expect(joined).toBe(201);
  const record = { id: "signed", workspaceId: "w-signed" };
  const sent = await sendForm(platform.service, path("some"), { record, files: [{ field: "one", content: "signed" }] });
  expect(sent.status).toBe(201);
  const query = { signFiles: 600, filter: '[["id","==","signed"]]' };
  const { body } = await caller.client.get<{ items: { one: RecordFile }[] }>(path("some"), { query });
  const url = body.items[0]?.one.url ?? "";
  expect((await platform.fetch(url)).status).toBe(200);
  await platform.service.delete(path("members", "/signer"));
  expect((await platform.fetch(url)).status).toBe(404);
  await platform.service.post(path("members"), { id: "signer", workspaceId: "w-signed", userId: caller.id });
  expect((await platform.fetch(url)).status).toBe(200);
  for (const one of [path("members", "/signer"), path("some", "/signed")]) await platform.service.delete(one);
});

test("[TB904] a file is found below its own record and field alone, and in no list of its bucket", async () => {
  const [first, second] = [...records.keys()];
  const [file] = files.get(`everybody ${first}`) ?? [];
  if (file === undefined) throw new Error("records have files");
  const elsewhere = [
    path("everybody", `/${second}/files/one/${file.id}`),
    path("everybody", `/${first}/files/more/${file.id}`),
    path("some", `/${first}/files/one/${file.id}`),
    `/api/storage/files/${file.id}`,
  ];
  for (const client of [platform, platform.service, ...callers.map((caller) => caller.client)]) {
    expect((await client.fetch(file.url)).status).toBe(200);
    for (const url of elsewhere) expect([url, (await client.fetch(url)).status]).toEqual([url, 404]);
    const { body } = await client.get<{ objects?: unknown[] }>("/api/storage/files");
    expect(body.objects ?? []).toEqual([]);
  }
});

test(`[TB904] users are seen alike by every way, and their addresses by themselves (seed ${SEED})`, async () => {
  for (const caller of callers.filter(({ id }) => id !== null)) {
    const all = [...memberships.values()];
    const mine = all.filter(({ userId }) => userId === caller.id);
    const isSeen = (id: string | null) =>
      id === caller.id || all.some((one) => one["userId"] === id && isInside(one, mine));
    const wanted = callers.flatMap(({ id }) => (id !== null && isSeen(id) ? [id] : [])).sort();
    const { client } = caller;
    const { body } = await client.get<ListAnswer>(path("users"), { query: { limit: 1000 } });
    expect((body.items ?? []).map(({ id }) => String(id)).sort()).toEqual(wanted);
    for (const { id, email } of body.items ?? []) expect([id, email !== null]).toEqual([id, id === caller.id]);
    expect((await client.get<{ total: number }>(path("users", "/count"))).body.total).toBe(wanted.length);
    for (const { id } of callers) {
      if (id === null) continue;
      expect((await client.get(path("users", `/${id}`))).status).toBe(wanted.includes(id) ? 200 : 404);
    }
    const owners = await client.get<ListAnswer>(path("everybody"), { query: { expand: "ownerId", limit: 1000 } });
    for (const { ownerId, expand } of owners.body.items ?? []) {
      const owner = (expand as JsonObject)["ownerId"] as JsonObject | null;
      expect([ownerId, owner !== null]).toEqual([ownerId, ownerId !== null && wanted.includes(String(ownerId))]);
      if (owner !== null && owner["id"] !== caller.id) expect(owner["email"]).toBeNull();
    }
    const filter = JSON.stringify([{ some: { table: "users", where: [["id", "==", { field: "ownerId" }]] } }]);
    const related = await listed(client, path("everybody"), { filter });
    const ofSeen = [...records].flatMap(([id, { ownerId }]) =>
      ownerId !== null && wanted.includes(String(ownerId)) ? [id] : [],
    );
    expect(related.sort()).toEqual(ofSeen);
  }
  const { body } = await platform.service.get<ListAnswer>(path("users"), { query: { limit: 1000 } });
  for (const { email } of body.items ?? []) expect(email).not.toBeNull();
});
