import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { type Client, clientOf, createContext } from "../../src/client/client.ts";
import { field, some } from "../../src/client/index.ts";
import { memoryStore } from "../../src/client/store.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { random, testSeed } from "../support/random.ts";
import { type SignedIn, signIn } from "../support/sign-in.ts";
import { until } from "../support/until.ts";
import { errorOf } from "./support.ts";
import { createWire, fastRuntime, type Wire } from "./wire.ts";

// Searches that follow what everybody changes.

const SEED = testSeed(20_140);
const r = random(SEED);

const CONFIG = `{
  auth: { anonymous: true },
  databases: { shared: { tables: {
    people: { schema: { name: { type: "string" } }, access: { read: true } },
    notes: {
      schema: { title: { type: "string" }, body: { type: "text" }, topic: { type: "string" }, authorId: { references: "people" } },
      fts: ["title", "body"],
      access: { read: true, insert: true, update: true, delete: true },
    },
    mine: {
      schema: { title: { type: "string" }, owner: { type: "string" } }, fts: ["title"], indexes: [{ fields: ["owner"] }],
      access: { read: (auth) => auth !== null && [["owner", "==", auth.id]] },
    },
    plain: { schema: { title: { type: "string" } }, access: { read: true } },
    members: {
      schema: { topic: { type: "string" }, userId: { type: "string" } }, indexes: [{ fields: ["topic", "userId"] }], access: { read: true },
    },
    shared: {
      schema: { title: { type: "string" }, topic: { type: "string" } }, fts: ["title"], indexes: [{ fields: ["topic"] }],
      access: { read: (auth) => [{ some: { table: "members", where: [["topic", "==", { field: "topic" }], ["userId", "==", auth?.id ?? ""]] } }] },
    },
  } } },
}`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

interface Visit {
  client: Client;
  wire: Wire;
  /** Searches that have been sent. */
  searches(): number;
}

async function visit(work: (visit: Visit) => Promise<void>, { speed = 20 }: { speed?: number } = {}): Promise<void> {
  const wire = createWire();
  const fetched = spyOn(globalThis, "fetch");
  const searches = () => fetched.mock.calls.filter(([url]) => String(url).includes("/search?")).length;
  const options = { url: platform.url, store: memoryStore(), webSocket: wire.WebSocket };
  const client = clientOf(createContext(options, fastRuntime(speed)));
  await client.auth.signIn({ email: user.email, password: user.password });
  try {
    await work({ client, wire, searches });
  } finally {
    client.close();
    fetched.mockRestore();
  }
}

const at = (table: string) => `/api/db/shared/tables/${table}`;
const put = async (table: string, record: JsonObject) => {
  const { status, body } = await platform.service.post<JsonObject>(`${at(table)}?upsert=true`, record);
  if (status >= 300) throw new Error(JSON.stringify(body));
};
const remove = (table: string, id: string) => platform.service.delete(`${at(table)}/${id}`);
const ids = ({ items }: { items: readonly { [field: string]: unknown }[] }) => items.map(({ id }) => id);
const untilIds = (what: string, live: { items: readonly { [field: string]: unknown }[] }, wanted: readonly string[]) =>
  until(what, () => JSON.stringify(ids(live)) === JSON.stringify(wanted));

test("[TC140] a search is sent when it is awaited, once, and is a promise in every way", () =>
  visit(async ({ client, searches }) => {
    await put("notes", { id: "p1", title: "promised" });
    const notes = client.db("shared").table("notes");
    const found = notes.search("promised");
    await Bun.sleep(20);
    expect(searches()).toBe(0);
    expect((await found).items.map(({ id, highlights }) => [id, highlights])).toEqual([
      ["p1", { title: "<mark>promised</mark>" }],
    ]);
    expect(await found).toBe(await found);
    expect(searches()).toBe(1);
    expect(await Promise.all([notes.search("promised"), found.then(({ total }) => total)])).toMatchObject([
      { total: 1, hasMore: false },
      1,
    ]);
    let isOver = false;
    const refused = client.db("shared").table("plain").search("x");
    const caught = refused.finally(() => {
      isOver = true;
    });
    expect(await errorOf(caught)).toMatchObject({ status: 400 });
    expect(isOver).toBe(true);
    expect(await refused.catch(({ status }) => status)).toBe(400);
  }));

test("[TC140, TC141] a live search has the items of the search, in its order and with highlights, and follows changes", () =>
  visit(async ({ client }) => {
    await put("people", { id: "ann", name: "Ann" });
    await put("notes", { id: "s1", title: "heron of the lake that is far", topic: "a", authorId: "ann" });
    await put("notes", { id: "s2", title: "heron heron", topic: "a" });
    await put("notes", { id: "s3", title: "heron", topic: "b" });
    const notes = client.db("shared").table("notes");
    const query = notes.where("topic", "==", "a").expand("authorId").fields("title");
    const live = query.search("heron", { highlightPre: "[", highlightPost: "]" }).live();
    let calls = 0;
    const stop = live.subscribe(() => calls++);
    await untilIds("two are found", live, ["s2", "s1"]);
    expect([live.status, live.hasMore, live.error]).toEqual(["live", false, null]);
    expect(live.items).toEqual((await query.search("heron", { highlightPre: "[", highlightPost: "]" })).items);
    expect(live.items[1]).toEqual({
      id: "s1",
      title: "heron of the lake that is far",
      highlights: { title: "[heron] of the lake that is far" },
      expand: { authorId: expect.objectContaining({ name: "Ann" }) },
    });
    const [first, second] = live.items;
    // Others insert, change, delete; unchanged records stay the same objects.
    await put("notes", { id: "s4", title: "a heron", topic: "a" });
    await untilIds("the new one is there", live, ["s2", "s4", "s1"]);
    expect([live.items[0], live.items[2]]).toEqual([first, second]);
    expect(live.items[0] === first && live.items[2] === second).toBe(true);
    await put("notes", { id: "s1", title: "heron heron heron" });
    await untilIds("a better match comes first", live, ["s1", "s2", "s4"]);
    expect(live.items[0]?.["highlights"]).toEqual({ title: "[heron] [heron] [heron]" });
    await put("notes", { id: "s2", title: "egret" });
    await untilIds("what does not match is gone", live, ["s1", "s4"]);
    await put("notes", { id: "s3", topic: "a" });
    await untilIds("what meets the conditions comes", live, ["s1", "s3", "s4"]);
    await remove("notes", "s4");
    await untilIds("what is deleted is gone", live, ["s1", "s3"]);
    // Writes of this client show when they are done.
    await notes.insert({ id: "s5", title: "heron by me", topic: "a" });
    await untilIds("one's own is there", live, ["s1", "s3", "s5"]);
    expect(live.isPending("s5")).toBe(false);
    expect(calls).toBeGreaterThan(5);
    stop();
  }));

test("[TC141] many changes repeat a search a few times, and the last one counts", () =>
  visit(
    async ({ client, searches }) => {
      const live = client.db("shared").table("notes").search("flood").live();
      live.subscribe(() => {});
      await until("it is live", () => live.status === "live");
      const [before, startedAt] = [searches(), performance.now()];
      for (let n = 0; n < 100; n++) await put("notes", { id: `f${String(n).padStart(3, "0")}`, title: "flood" });
      await until("all are there", () => live.items.length === 100);
      // Each at least 0.3 s after the one before, by a clock that is ten times as fast.
      const found = searches();
      expect(found - before).toBeLessThanOrEqual((performance.now() - startedAt) / 30 + 2);
      // The last one is 5 s after the last change.
      await until("it is repeated", () => searches() > found);
      await Bun.sleep(1_500);
      const settled = searches();
      await Bun.sleep(700);
      expect(searches()).toBe(settled);
    },
    { speed: 10 },
  ));

test("[TC141] long texts, which are indexed after their write, come too", () =>
  visit(
    async ({ client }) => {
      const live = client.db("shared").table("notes").search("marathon").live();
      live.subscribe(() => {});
      await until("it is live", () => live.status === "live");
      const inserts = Array.from({ length: 12 }, (_, n) => ({
        id: `l${String(n).padStart(2, "0")}`,
        title: "long",
        body: `${"word ".repeat(15_000)}marathon`,
      }));
      expect((await platform.service.post(`${at("notes")}/batch`, { inserts })).status).toBe(200);
      await until("all of them are found", () => live.items.length === 12);
    },
    { speed: 2 },
  ));

test("[TC142] limit, offset and hasMore are those of the search; without a limit it has 100", () =>
  visit(async ({ client }) => {
    const inserts = Array.from({ length: 130 }, (_, n) => ({ id: `h${String(n).padStart(3, "0")}`, title: "hundred" }));
    await platform.service.post(`${at("notes")}/batch`, { inserts });
    const notes = client.db("shared").table("notes");
    const [all, few, last] = [
      notes.search("hundred").live(),
      notes.limit(3).search("hundred").live(),
      notes.limit(100).search("hundred", { offset: 60 }).live(),
    ];
    for (const live of [all, few, last]) live.subscribe(() => {});
    await until("all are live", () => [all, few, last].every(({ status }) => status === "live"));
    expect([all.items.length, all.hasMore]).toEqual([100, true]);
    expect([ids(few), few.hasMore]).toEqual([["h000", "h001", "h002"], true]);
    expect([last.items.length, last.hasMore, ids(last)[0]]).toEqual([70, false, "h060"]);
    await remove("notes", "h001");
    await untilIds("the window is filled again", few, ["h000", "h002", "h003"]);
    const most = notes.limit(1_000).search("hundred").live();
    most.subscribe(() => {});
    await until("it is live", () => most.status === "live");
    expect([most.items.length, most.hasMore]).toEqual([129, false]);
  }));

test("[TC142] equal searches share one view and one subscription", () =>
  visit(async ({ client, wire, searches }) => {
    const notes = client.db("shared").table("notes");
    const [one, other] = [notes.search("shared").live(), notes.search("shared").live()];
    const third = notes.search("shares").live();
    for (const live of [one, other, third]) live.subscribe(() => {});
    await until("all are live", () => [one, other, third].every(({ status }) => status === "live"));
    expect(searches()).toBe(2);
    expect(wire.sent.filter(({ type }) => type === "subscribe")).toHaveLength(1);
  }));

test("[TC143] hidden records stay hidden, and rights that end leave nothing", () =>
  visit(async ({ client }) => {
    await put("mine", { id: "m1", title: "otter", owner: user.id });
    await put("mine", { id: "m2", title: "otter", owner: "another" });
    const live = client.db("shared").table("mine").search("otter").live();
    live.subscribe(() => {});
    await untilIds("one's own is found", live, ["m1"]);
    await put("mine", { id: "m2", owner: user.id });
    await untilIds("one that becomes visible comes", live, ["m1", "m2"]);
    await put("mine", { id: "m1", owner: "another" });
    await untilIds("one that is hidden goes", live, ["m2"]);
    await client.auth.signOut();
    await until("nothing is left", () => live.status === "denied" && live.items.length === 0);
    expect(live.error).toMatchObject({ code: "unauthenticated" });
    await client.auth.signIn({ email: user.email, password: user.password });
    await untilIds("it comes back", live, ["m2"]);
    const broken = client.db("shared").table("plain").search("x").live();
    broken.subscribe(() => {});
    await until("a table without a search says so", () => broken.status === "error");
    expect(broken.error).toMatchObject({ status: 400 });
  }));

test("[TC143] a live search follows the relations of its rule, and those of its own conditions", () =>
  visit(async ({ client }) => {
    await put("shared", { id: "l1", title: "lynx lynx", topic: "woods" });
    await put("shared", { id: "l2", title: "lynx", topic: "rocks" });
    await put("notes", { id: "l3", title: "lynx", topic: "woods" });
    await put("members", { id: "w", topic: "woods", userId: "somebody" });
    const live = client.db("shared").table("shared").search("lynx").live();
    const asked = client
      .db("shared")
      .table("notes")
      .where(
        some("members", [
          ["topic", "==", field("topic")],
          ["userId", "==", user.id],
        ]),
      )
      .search("lynx")
      .live();
    for (const one of [live, asked]) one.subscribe(() => {});
    await until("both are live", () => live.status === "live" && asked.status === "live");
    expect([ids(live), ids(asked)]).toEqual([[], []]);
    await put("members", { id: "w", userId: user.id });
    await untilIds("who comes in finds it", live, ["l1"]);
    await untilIds("what the condition asks for is there", asked, ["l3"]);
    await put("members", { id: "r", topic: "rocks", userId: user.id });
    await untilIds("the better match is first", live, ["l1", "l2"]);
    await remove("members", "w");
    await untilIds("who is put out finds no more", live, ["l2"]);
    await untilIds("nothing meets the condition", asked, []);
  }));

test("[TC143] what changed while the connection was lost is there afterwards", () =>
  visit(async ({ client, wire }) => {
    await put("notes", { id: "c1", title: "connection" });
    const live = client.db("shared").table("notes").search("connection").live();
    live.subscribe(() => {});
    await untilIds("one is found", live, ["c1"]);
    // The change arrives, and the connection is lost before the search is repeated.
    await put("notes", { id: "c2", title: "connection" });
    wire.cut();
    await put("notes", { id: "c3", title: "connection" });
    await untilIds("all are there", live, ["c1", "c2", "c3"]);
    await until("it is live", () => live.status === "live");
  }));

test(`[TC141] after random writes each live search equals its search (seed ${SEED})`, () =>
  visit(async ({ client }) => {
    const words = ["wren", "wrens", "lark", "rook", "jay"];
    const texts = () => Array.from({ length: 1 + r.below(6) }, () => r.pick(words)).join(" ");
    const notes = client.db("shared").table("notes").where("topic", "==", "random");
    const searches = [
      () => notes.search("wren"),
      () => notes.limit(4).search("lark rook"),
      () => notes.sort("title", "desc").limit(6).search("ja"),
      () => notes.fields("title").search("rook", { offset: 2 }),
    ];
    const lives = searches.map((search) => search().live());
    for (const live of lives) live.subscribe(() => {});
    const own = client.db("shared").table("notes");
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 10; n++) {
        const id = `r${r.below(25)}`;
        const what = r.below(4);
        if (what === 0) await remove("notes", id);
        else if (what === 1) await own.upsert({ id, title: texts(), topic: "random" });
        else await put("notes", { id, title: texts(), body: texts(), topic: r.pick(["random", "random", "other"]) });
      }
      for (const [place, live] of lives.entries()) {
        await until(`search ${place} equals`, async () => {
          const { items, hasMore } = (await searches[place]?.()) ?? { items: [], hasMore: null };
          return JSON.stringify([live.items, live.hasMore]) === JSON.stringify([items, hasMore]);
        });
      }
    }
  }));
