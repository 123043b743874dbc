import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Client, clientOf, createClient, createContext } from "../../src/client/client.ts";
import type { LiveQuery } from "../../src/client/live/types.ts";
import { keepQueries, SEEN_LENGTH_MAX, SEEN_QUERIES_MAX, startOffline } from "../../src/client/offline/offline.ts";
import { UNKNOWN_AFTER_MS, WAITING_WRITES_MAX } from "../../src/client/offline/queue.ts";
import type { OfflineStorage } from "../../src/client/offline/storage.ts";
import { memoryStore, type Store } from "../../src/client/store.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { memoryStorage } from "./offline-storage.ts";
import { errorOf } from "./support.ts";
import { type CountedRuntime, countedRuntime, fastRuntime } from "./wire.ts";

const SPEED = 20;

let platform: TestPlatform;
let network: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      auth: { anonymous: true },
      databases: { shared: { tables: { notes: {
        schema: { title: { type: "string" }, count: { type: "integer", default: 0 } },
        access: { read: true, insert: (auth, note) => note.title !== "refused", update: true, delete: true },
      } } } },
    }`,
  });
  network = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await network.stop();
  await platform.stop();
});

/** A browser: its pages share what is stored. */
interface Browser {
  store: Store;
  storage: OfflineStorage & { readonly size: number };
  name: string;
  /** Added to the time of its pages. */
  laterMs: number;
  /** Runtime of its pages. */
  runtime: CountedRuntime;
}
let browser: Browser;
let count = 0;
beforeEach(() => {
  network.refuse(false);
  browser = {
    store: memoryStore(),
    storage: memoryStorage(),
    name: `test${++count}`,
    laterMs: 0,
    runtime: countedRuntime(fastRuntime(SPEED)),
  };
});

interface Page {
  client: Client;
  refused: { type: string; code: string }[];
  live: LiveQuery<JsonObject>;
  titles(): unknown[];
  close(): void;
}

async function openPage({ isSignedIn = true }: { isSignedIn?: boolean } = {}): Promise<Page> {
  const own = browser;
  const runtime = { ...own.runtime, now: () => Date.now() + own.laterMs };
  const context = createContext({ url: network.url, store: browser.store }, runtime);
  const client = clientOf(context);
  if (isSignedIn && context.transport.userId() === null) await client.auth.signInAnonymously();
  const refused: Page["refused"] = [];
  context.deliver = await startOffline(context, {
    name: browser.name,
    storage: browser.storage,
    direct: context.deliver,
    refused: (write, { code }) => refused.push({ type: write.operations[0]?.type ?? "none", code }),
  });
  // Any table: its types are those of JSON.
  const live = notesOf(client).where("title", "!=", "hidden").live() as unknown as LiveQuery<JsonObject>;
  live.subscribe(() => {});
  const titles = () => live.items.map((item) => item["title"]);
  return { client, refused, live, titles, close: () => client.close() };
}

const notesOf = (client: Client) => client.db("shared").table("notes");
const path = "/api/db/shared/tables/notes";
const stored = async () => {
  const { body } = await platform.get<{ items: JsonObject[] }>(path, { query: { sort: "title", limit: 1000 } });
  return body.items.map((item) => item["title"]);
};
const clear = async () => {
  const filter = [["id", "!=", ""]];
  expect((await platform.service.post(`${path}/batch-by-filter`, { action: "delete", filter })).status).toBe(200);
};
const isLive = ({ live }: Page) => until("the query is live", () => live.status === "live");
const isOffline = ({ live }: Page) => until("the query is offline", () => live.status === "offline");
const nothingWaits = () => until("nothing waits", async () => (await browser.storage.waiting()).length === 0);

for (const how of ["signs out", "is ended by the server"]) {
  test(`[TC65] writes that wait are reported when their user ${how}, those of an earlier page too`, async () => {
    const before = await openPage();
    await isLive(before);
    network.refuse(true);
    await isOffline(before);
    const lost = errorOf(notesOf(before.client).insert({ title: "of an earlier page" }));
    await until("it is kept", async () => (await browser.storage.waiting()).length === 1);
    before.close();
    const page = await openPage();
    await until("it is shown", () => page.titles().length === 1);
    const writing = errorOf(notesOf(page.client).update("x", { title: "of this page" }));
    await until("it is kept", async () => (await browser.storage.waiting()).length === 2);
    const userId = page.client.auth.user?.id;
    if (how === "signs out") {
      await page.client.auth.signOut().catch(() => {});
    } else {
      expect((await platform.service.delete(`/api/auth/admin/users/${userId}`)).status).toBeLessThan(300);
      network.refuse(false);
    }
    await until("both are reported", () => page.refused.length === 2);
    const expected = ["insert", "update"].map((type) => ({ type, code: "unauthenticated" }));
    expect(page.refused).toEqual(expected);
    expect(await writing).toMatchObject({ code: "unauthenticated" });
    expect([await stored(), page.titles(), await browser.storage.waiting()]).toEqual([[], [], []]);
    void lost;
    page.close();
  });
}

test("[TC65] what one user writes while the code of offline is loading is not written as the next one", async () => {
  const [ann, bob] = [memoryStore(), memoryStore()];
  for (const store of [ann, bob]) {
    const client = createClient({ url: platform.url, store });
    await client.auth.signInAnonymously();
    client.close();
  }
  const key = `platform.session@${new URL(platform.url).host}`;
  const client = createClient({ url: platform.url, store: ann, offline: { name: "loading" } });
  const writing = errorOf(notesOf(client).insert({ title: "Ann's" }));
  // Another tab signs in.
  await ann.set(key, String(await bob.get(key)));
  expect(await writing).toMatchObject({ code: "unauthenticated" });
  expect(await stored()).not.toContain("Ann's");
  client.close();
});

test("[TC60] what a live query had loaded before the storage was open is stored", async () => {
  await clear();
  expect((await platform.service.post(path, { title: "early" })).status).toBe(201);
  const context = createContext({ url: network.url, store: browser.store }, browser.runtime);
  const client = clientOf(context);
  await client.auth.signInAnonymously();
  const live = notesOf(client).live();
  live.subscribe(() => {});
  await until("the query is live", () => live.status === "live");
  const { name, storage } = browser;
  await startOffline(context, { name, storage, direct: context.deliver, refused: () => {} });
  await until("it is stored", async () => JSON.stringify(await storage.seen(await onlyKey())).includes('"early"'));
  client.close();
});

test("[TC60] live queries start from what was seen", async () => {
  await clear();
  const first = await openPage();
  await isLive(first);
  await notesOf(first.client).insert({ title: "seen" });
  await until("it is stored", async () =>
    JSON.stringify(await browser.storage.seen(await onlyKey())).includes('"seen"'),
  );
  first.close();
  network.refuse(true);
  const second = await openPage();
  await until("it is there", () => second.titles().length === 1);
  await isOffline(second);
  expect(second.titles()).toEqual(["seen"]);
  network.refuse(false);
  await isLive(second);
  expect(second.titles()).toEqual(["seen"]);
  second.close();
});
const onlyKey = async () => (await browser.storage.seenKeys())[0] ?? "";

test("[TC60] the last queries are kept, and no more; very large ones are not", async () => {
  const queries = keepQueries(browser.storage, fastRuntime(SPEED), { userId: () => "ann" });
  const viewOf = (key: string, text: string) => ({
    plan: { key },
    seen: { records: [{ id: "a", text }], hasMore: false },
  });
  for (let index = 0; index < SEEN_QUERIES_MAX + 10; index++) {
    queries.changed(viewOf(`query ${index}`, "short") as never);
    await until("it is stored", async () => (await queries.read(`query ${index}`)) !== null);
  }
  queries.changed(viewOf("large", "x".repeat(SEEN_LENGTH_MAX)) as never);
  queries.changed(viewOf("last", "short") as never);
  await until("it is stored", async () => (await queries.read("last")) !== null);
  await until("old ones are gone", async () => (await browser.storage.seenKeys()).length === SEEN_QUERIES_MAX);
  expect([await queries.read("query 10"), await queries.read("large")]).toEqual([null, null]);
  expect((await queries.read("query 20"))?.records).toEqual([{ id: "a", text: "short" }]);
});

test("[TC61] writes without a connection wait in order, survive a reload, and are sent", async () => {
  await clear();
  const first = await openPage();
  await isLive(first);
  network.refuse(true);
  await isOffline(first);
  const notes = notesOf(first.client);
  const waiting = [
    notes.insert({ id: "one", title: "one" }),
    notes.update("one", { title: "two" }),
    notes.insert({ id: "gone", title: "gone" }),
    notes.delete("gone"),
    notes.batch({ inserts: [{ id: "three", title: "three" }], updates: [{ id: "one", data: { count: 7 } }] }),
  ];
  expect(first.titles().toSorted()).toEqual(["three", "two"]);
  expect(first.live.isPending("one")).toBe(true);
  await until("all are stored", async () => (await browser.storage.waiting()).length === 5);
  first.close();
  const second = await openPage();
  await until("they are shown", () => String(second.titles().toSorted()) === "three,two");
  expect(second.live.isPending("one")).toBe(true);
  expect(await stored()).toEqual([]);
  network.refuse(false);
  await nothingWaits();
  await until("they are done", () => !second.live.isPending("one") && !second.live.isPending("three"));
  expect(await stored()).toEqual(["three", "two"]);
  await isLive(second);
  // The changes of the last writes may follow the list that made it live.
  await until("it shows what is stored", () => String(second.titles().toSorted()) === "three,two");
  expect(second.refused).toEqual([]);
  second.close();
  for (const write of waiting) void write.catch(() => {});
});

test("[TC61] a promise resolves when its write is done, and no more than some wait", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  network.refuse(true);
  const notes = notesOf(page.client);
  const inserting = notes.insert({ title: "later" });
  const others = Array.from({ length: WAITING_WRITES_MAX - 1 }, () =>
    notes.update("nothing", { count: 1 }).catch(() => {}),
  );
  await until("all wait", async () => (await browser.storage.waiting()).length === WAITING_WRITES_MAX);
  expect(await errorOf(notes.insert({ title: "too many" }))).toMatchObject({ code: "too_large" });
  expect(page.titles()).toEqual(["later"]);
  for (const [serial] of (await browser.storage.waiting()).slice(1)) await browser.storage.remove(serial);
  network.refuse(false);
  expect(await inserting).toMatchObject({ title: "later", count: 0 });
  void others;
  page.close();
});

test("[TC61] no more than some wait, also of those that are made at once", async () => {
  const page = await openPage();
  await isLive(page);
  network.refuse(true);
  const codes: string[] = [];
  for (let index = 0; index < WAITING_WRITES_MAX + 5; index++) {
    notesOf(page.client)
      .update("nothing", { count: 1 })
      .catch(({ code }) => codes.push(code));
  }
  await until("some are refused", () => codes.length > 0);
  await until("the others wait", async () => (await browser.storage.waiting()).length === WAITING_WRITES_MAX);
  expect(codes).toEqual(Array(5).fill("too_large"));
  page.close();
});

test("[TC123] [TC61] a write waits as it was given, also one of an object that cannot be stored", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  const notes = notesOf(page.client);
  const { inserted } = await notes.batch({ inserts: [{ title: "one" }, { title: "two" }] });
  network.refuse(true);
  await isOffline(page);
  const given = { title: "as given" };
  // Vue's reactive objects are proxies, which a browser's database refuses.
  const reactive = new Proxy({ title: "reactive" }, {});
  const waiting = [given, reactive].map((changes, index) => notes.update(String(inserted[index]?.["id"]), changes));
  given.title = "changed";
  await until("both are shown", () => String(page.titles().sort()) === "as given,reactive");
  network.refuse(false);
  await Promise.all(waiting);
  expect(await stored()).toEqual(["as given", "reactive"]);
  page.close();
});

test("[TC62] a refused write is undone and reported, and the others are sent", async () => {
  await clear();
  const first = await openPage();
  await isLive(first);
  network.refuse(true);
  await isOffline(first);
  const notes = notesOf(first.client);
  const refusals = [notes.insert({ title: "refused" }), notes.insert({ title: "fine" })].map((write) =>
    write.catch((error) => error.code),
  );
  await until("both are stored", async () => (await browser.storage.waiting()).length === 2);
  first.close();
  const second = await openPage();
  await until("both are shown", () => second.titles().length === 2);
  network.refuse(false);
  await nothingWaits();
  await until("it is reported", () => second.refused.length === 1);
  expect(second.refused).toEqual([{ type: "insert", code: "forbidden" }]);
  await until("it is undone", () => String(second.titles()) === "fine");
  expect(await stored()).toEqual(["fine"]);
  expect(await errorOf(notesOf(second.client).insert({ title: "refused" }))).toMatchObject({ code: "forbidden" });
  expect(second.refused.length).toBe(2);
  second.close();
  void refusals;
});

test("[TC63] a write whose answer was lost is done once", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  const notes = notesOf(page.client);
  const { id } = await notes.insert({ title: "counted", count: 0 });
  for (let round = 0; round < 3; round++) {
    network.loseAnswers(2);
    await notes.update(String(id), { count: { $op: "increment", value: 1 } as never });
  }
  expect((await notes.get(String(id)))?.["count"]).toBe(3);
  network.loseAnswers(1);
  await notes.delete(String(id));
  expect([page.refused, await stored()]).toEqual([[], []]);
  page.close();
});

test("[TC63] a write whose first try is still under way at the server waits for it, and is not undone", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  const { fetch } = globalThis;
  let underWay = 6;
  const answered = async (...given: Parameters<typeof fetch>) => {
    if (given[1]?.method !== "POST" || !String(given[0]).endsWith(path) || underWay-- <= 0) return fetch(...given);
    const data = { "": { code: "idempotency_in_progress", message: "…" } };
    return Response.json({ code: 409, message: "…", data }, { status: 409, headers: { "retry-after": "1" } });
  };
  globalThis.fetch = Object.assign(answered, fetch);
  try {
    expect(await notesOf(page.client).insert({ title: "slow" })).toMatchObject({ title: "slow" });
  } finally {
    globalThis.fetch = fetch;
  }
  expect([page.refused, await stored()]).toEqual([[], ["slow"]]);
  page.close();
});

test("[TC63] one that is too old is reported as unknown, and not sent again", async () => {
  await clear();
  const first = await openPage();
  await isLive(first);
  const sending = notesOf(first.client)
    .insert({ title: "lost", count: 1 })
    .catch(() => {});
  network.refuse(true);
  await until("it was sent", async () => (await browser.storage.waiting())[0]?.[1].sentAt != null);
  first.close();
  const before = await stored();
  browser.laterMs = UNKNOWN_AFTER_MS + 60_000;
  const second = await openPage();
  await until("it is reported", () => second.refused.length === 1);
  expect(second.refused).toEqual([{ type: "insert", code: "unknown" }]);
  network.refuse(false);
  browser.laterMs = 0;
  await nothingWaits();
  expect(await stored()).toEqual(before);
  second.close();
  void sending;
});

test("[TC64] tabs show each other's writes, and each is sent once", async () => {
  await clear();
  const [one, other] = [await openPage(), await openPage()];
  await isLive(one);
  await isLive(other);
  network.refuse(true);
  await isOffline(one);
  await isOffline(other);
  const inserting = notesOf(one.client).insert({ title: "by one" });
  await until("the other shows it", () => String(other.titles()) === "by one");
  const another = notesOf(other.client).insert({ title: "by the other" });
  await until("both show both", () => one.titles().length === 2 && other.titles().length === 2);
  network.refuse(false);
  const done = await Promise.all([inserting, another]);
  for (const page of [one, other]) {
    await isLive(page);
    await until("they are done", () => done.every(({ id }) => !page.live.isPending(String(id))));
    expect(page.titles().toSorted()).toEqual(["by one", "by the other"]);
    page.close();
  }
  expect(await stored()).toEqual(["by one", "by the other"]);
});

test("[TC65] signing out leaves nothing, and a visitor's write does not wait", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  await notesOf(page.client).insert({ title: "own" });
  await until("it is stored", async () => (await browser.storage.seenKeys()).length > 0);
  network.refuse(true);
  await isOffline(page);
  const waiting = errorOf(notesOf(page.client).insert({ title: "waits" }));
  await until("it waits", async () => (await browser.storage.waiting()).length === 1);
  await page.client.auth.signOut();
  expect(await waiting).toMatchObject({ code: "unauthenticated" });
  await until("nothing is left", () => browser.storage.size === 0);
  expect(page.titles()).toEqual([]);
  expect(await errorOf(notesOf(page.client).insert({ title: "of a visitor" }))).toMatchObject({ code: "network" });
  expect(browser.storage.size).toBe(0);
  network.refuse(false);
  page.close();
  expect(await stored()).toEqual(["own"]);
});

test("[TC65] a write that is stored after its user has signed out is not done as the next one", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  const { add } = browser.storage;
  const stores = Promise.withResolvers<void>();
  let isAdding = false;
  browser.storage.add = async (write) => {
    isAdding = true;
    await stores.promise;
    return add(write);
  };
  const waiting = errorOf(notesOf(page.client).insert({ title: "of the first" }));
  await until("it is being stored", () => isAdding);
  await page.client.auth.signOut();
  await page.client.auth.signInAnonymously();
  stores.resolve();
  expect(await waiting).toMatchObject({ code: "unauthenticated" });
  expect(await notesOf(page.client).insert({ title: "of the second" })).toMatchObject({ title: "of the second" });
  expect([await browser.storage.waiting(), await stored()]).toEqual([[], ["of the second"]]);
  page.close();
});

test("[TC65] a write that another tab has stored for another user is neither shown nor sent", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  network.refuse(true);
  const own = notesOf(page.client).insert({ title: "own" });
  await until("it waits", async () => (await browser.storage.waiting()).length === 1);
  const [[, { write }] = [0, null as never]] = await browser.storage.waiting();
  const request = { ...write.request, body: { title: "another's" } };
  const operations = [{ type: "insert" as const, record: { title: "another's" } }];
  await browser.storage.add({ write: { ...write, request, operations } as never, userId: "another", sentAt: null });
  const tab = await openPage();
  await until("what waits is shown", () => tab.titles().includes("own"));
  expect(tab.titles()).toEqual(["own"]);
  network.refuse(false);
  expect(await own).toMatchObject({ title: "own" });
  expect(await notesOf(tab.client).insert({ title: "second" })).toMatchObject({ title: "second" });
  expect(await stored()).toEqual(["own", "second"]);
  for (const { close } of [page, tab]) close();
});

test("[TC65] what a tab has stored that had not heard of another user yet is not shown to that one", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  await notesOf(page.client).insert({ title: "of the first" });
  const seen = async () => browser.storage.seen(await onlyKey());
  await until("it is stored", async () => JSON.stringify(await seen()).includes("of the first"));
  const late = await seen();
  await page.client.auth.signOut();
  await clear();
  await page.client.auth.signInAnonymously();
  await isLive(page);
  page.close();
  if (late === null) throw new Error("nothing was stored");
  await browser.storage.setSeen(late);
  network.refuse(true);
  const next = await openPage();
  await isOffline(next);
  expect(next.titles()).toEqual([]);
  next.close();
});

test("[TC61] a write is sent that was made while one of the user before was under way", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  const { fetch } = globalThis;
  const answers = Promise.withResolvers<void>();
  let isAnswered = false;
  const held = async (...given: Parameters<typeof fetch>) => {
    const answer = await fetch(...given);
    if (given[1]?.method !== "POST" || !String(given[0]).endsWith(path)) return answer;
    isAnswered = true;
    await answers.promise;
    return answer;
  };
  globalThis.fetch = Object.assign(held, fetch);
  try {
    const first = errorOf(notesOf(page.client).insert({ title: "of the first" }));
    await until("it is under way", () => isAnswered);
    await page.client.auth.signOut();
    await page.client.auth.signInAnonymously();
    await isLive(page);
    const second = notesOf(page.client).insert({ title: "of the second" });
    await until("it waits", async () => (await browser.storage.waiting()).length === 1);
    answers.resolve();
    expect(await first).toMatchObject({ code: "unauthenticated" });
    expect(await second).toMatchObject({ title: "of the second" });
  } finally {
    globalThis.fetch = fetch;
  }
  page.close();
});

test("[TC61] a closed client does not try what waits any more", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  network.refuse(true);
  notesOf(page.client)
    .insert({ title: "waits" })
    .catch(() => {});
  await until("it was tried", async () => (await browser.storage.waiting())[0]?.[1].sentAt != null);
  page.close();
  await until("nothing is to be done", () => browser.runtime.timers() === 0);
  expect((await browser.storage.waiting()).length).toBe(1);
});

test("[TC66] a write that the database does not take is sent at once, and does not wait", async () => {
  await clear();
  const page = await openPage();
  await isLive(page);
  // As on a full disk, or where the user has cleared the data of the site.
  const refuse = () => Promise.reject(new DOMException("The database connection is closing", "InvalidStateError"));
  Object.assign(browser.storage, { add: refuse, clear: refuse, waiting: refuse });
  expect(await notesOf(page.client).insert({ title: "first" })).toMatchObject({ title: "first" });
  await page.client.auth.signOut();
  await page.client.auth.signInAnonymously();
  expect(await notesOf(page.client).insert({ title: "of the next user" })).toMatchObject({ title: "of the next user" });
  network.refuse(true);
  expect(await errorOf(notesOf(page.client).insert({ title: "lost" }))).toMatchObject({ code: "network" });
  network.refuse(false);
  expect(await stored()).toEqual(["first", "of the next user"]);
  page.close();
});

test("[TC66] a client that is closed while it begins leaves nothing open", async () => {
  const context = createContext({ url: network.url, store: browser.store }, browser.runtime);
  const reads = Promise.withResolvers<null>();
  let isOpen = true;
  const close = () => {
    isOpen = false;
  };
  const storage = { ...browser.storage, owner: () => reads.promise, close };
  const beginning = startOffline(context, { name: browser.name, storage, direct: context.deliver, refused: () => {} });
  context.close();
  reads.resolve(null);
  await beginning;
  expect([isOpen, browser.runtime.timers()]).toEqual([false, 0]);
});
