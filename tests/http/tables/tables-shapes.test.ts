import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// Statements are made once for requests that differ in their values alone. Each request here is followed by others of its
// shape, by other callers and on other files, and has to be answered as if it were alone.

const RECORDS = 120;
const NOTES = "/api/db/shared/tables/notes";
const SCHEMA = `{
  owner: { type: "string" },
  category: { type: "string" },
  score: { type: "number" },
  at: { type: "datetime" },
  tags: { type: "json" },
}`;
const INDEXES = `[{ fields: ["category", "score"] }, { fields: ["at"] }, { fields: ["score"] }]`;
const CONFIG = `{
  databases: {
    shared: { tables: {
      notes: {
        schema: ${SCHEMA},
        indexes: ${INDEXES},
        access: { read: (auth, _note, { table }) => auth !== null && [
          ["owner", "in", table("memberships").list([["userId", "==", auth.id]]).map((one) => one.owner)],
        ] },
      },
      memberships: { schema: { userId: { type: "string" }, owner: { type: "string" } }, indexes: [{ fields: ["userId"] }] },
    } },
    rooms: {
      instance: true,
      access: { create: () => true, open: () => true },
      tables: { notes: { schema: ${SCHEMA}, indexes: ${INDEXES}, access: { read: true, insert: true } } },
    },
  },
}`;

type Note = {
  id: string;
  owner: string;
  category: string | null;
  score: number | null;
  at: string;
  tags: JsonValue;
};

const CATEGORIES = ["news", "film", "a' OR 1=1", null];
const TAGS: JsonValue[] = [["x", 1, null], { a: "x" }, "text", null];
const noteAt = (index: number, prefix = "n"): Note => ({
  id: `${prefix}${String((index * 37) % RECORDS).padStart(3, "0")}`,
  owner: `o${index % 5}`,
  category: CATEGORIES[index % 4] ?? null,
  score: index % 7 === 0 ? null : (index % 12) / 2,
  at: `2026-11-${String(1 + (index % 28)).padStart(2, "0")}T12:00:00.000Z`,
  tags: TAGS[index % 4] ?? null,
});

let platform: TestPlatform;
const tokens: string[] = [];
/** Projects that each of the callers may read: two projects, one other, none. */
const OWNERS = [["o0", "o1"], ["o2"], []];
const notes = Array.from({ length: RECORDS }, (_, index) => noteAt(index));

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  expect((await platform.service.post(`${NOTES}/batch`, { inserts: notes })).status).toBe(200);
  for (const [place, owners] of OWNERS.entries()) {
    const { id, token } = await signIn(platform, { email: `reader${place}@example.com` });
    tokens.push(token);
    for (const owner of owners) {
      await platform.service.post("/api/db/shared/tables/memberships", { userId: id, owner });
    }
  }
});
afterAll(() => platform.stop());

type Condition = [string, string, unknown];
type Test = (note: Note) => boolean;

/** Groups of one shape, or nearly so: each filter with what it means. */
const GROUPS: [Condition[], Test][][] = [
  CATEGORIES.map((category) => [[["category", "==", category]], (note) => note.category === category]),
  CATEGORIES.map((category) => [[["category", "!=", category]], (note) => note.category !== category]),
  [[], ["news"], ["news", "film"], ["news", null], ["a' OR 1=1", "film", "none"], ["1", "2", "3", "film"]].map(
    (list) => [[["category", "in", list]], (note) => list.includes(note.category)],
  ),
  [["news"], ["news", "film", null], []].map((list) => [
    [["category", "not in", list]],
    (note) => !list.includes(note.category),
  ]),
  ["2026-11-05T12:00:00.000Z", "2026-11-20T00:00:00.000Z", "1970-01-01T00:00:00.000Z"].map((at) => [
    [["at", ">=", at]],
    (note) => note.at >= at,
  ]),
  [0.5, 2, 5, -1].map((score) => [
    [
      ["score", ">", score],
      ["category", "==", "film"],
    ],
    (note) => note.score !== null && note.score > score && note.category === "film",
  ]),
  ["n", "f", "", "a' "].map((text) => [
    [["category", "startsWith", text]],
    (note) => note.category?.startsWith(text) === true,
  ]),
  ["ew", "il", "1="].map((text) => [
    [["category", "contains", text]],
    (note) => note.category?.includes(text) === true,
  ]),
  ["x", 1, null, "text"].map((value) => [
    [["tags", "contains", value]],
    ({ tags }) =>
      (Array.isArray(tags) && tags.includes(value)) || (typeof tags === "string" && tags.includes(String(value))),
  ]),
  ["x", "y", null, 1].map((value) => [
    [["tags.a", "==", value]],
    ({ tags }) => ((tags as { a?: unknown } | null)?.a ?? null) === value,
  ]),
];
const SORTS: [string, (a: Note, b: Note) => number][] = [
  ["id", () => 0],
  ["score:desc", (a, b) => (b.score ?? -1) - (a.score ?? -1) || byId(b, a)],
  ["at", (a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)],
];

const byId = (a: Note, b: Note): number => (a.id < b.id ? -1 : 1);
const parameters = (filter: Condition[], more: string): string =>
  `?filter=${encodeURIComponent(JSON.stringify(filter))}${more}`;

interface List {
  items: Note[];
  total: number | null;
  cursor: string | null;
}

async function get<T>(path: string, token: string): Promise<T> {
  const response = await platform.fetch(path, { headers: { authorization: `Bearer ${token}` } });
  expect([path, response.status]).toEqual([path, 200]);
  return (await response.json()) as T;
}

for (const [sort, compare] of SORTS) {
  test(`[TB473] sorted by ${sort}: lists and counts of one shape, by callers with other rights, have their own records`, async () => {
    for (const group of GROUPS) {
      for (const [filter, isMet] of group) {
        for (const [caller, token] of tokens.entries()) {
          const wanted = notes
            .filter((note) => OWNERS[caller]?.includes(note.owner) === true && isMet(note))
            .toSorted((a, b) => compare(a, b) || byId(a, b));
          const first = await get<List>(NOTES + parameters(filter, `&sort=${sort}&limit=7`), token);
          const { total } = await get<{ total: number }>(`${NOTES}/count${parameters(filter, "")}`, token);
          expect({ filter, caller, ids: first.items.map(({ id }) => id), total: first.total, counted: total }).toEqual({
            ...{ filter, caller, total: wanted.length, counted: wanted.length },
            ids: wanted.slice(0, 7).map(({ id }) => id),
          });
          if (first.cursor === null) continue;
          const more = `&sort=${sort}&limit=7&after=${first.cursor}`;
          const second = await get<List>(NOTES + parameters(filter, more), token);
          expect({ filter, caller, ids: second.items.map(({ id }) => id) }).toEqual({
            ...{ filter, caller },
            ids: wanted.slice(7, 14).map(({ id }) => id),
          });
        }
      }
    }
  }, 60_000);
}

test("[TB473] cursors at null and at values, and either file of two instances, are each other's shape in nothing but the statement", async () => {
  const own = ["a", "b"].map((prefix) => Array.from({ length: RECORDS }, (_, index) => noteAt(index, prefix)));
  const path = (place: number) => `/api/db/rooms/${["one", "two"][place]}/tables/notes`;
  for (const [place, inserts] of own.entries()) {
    expect((await platform.service.post(`${path(place)}/batch`, { inserts })).status).toBe(200);
  }
  const found: string[][] = [[], []];
  const cursors: (string | null)[] = ["", ""];
  while (cursors.some((cursor) => cursor !== null)) {
    for (const place of [0, 1]) {
      const cursor = cursors[place];
      if (cursor === null || cursor === undefined) continue;
      const behind = cursor === "" ? "" : `&after=${cursor}`;
      const page = await get<List>(`${path(place)}?sort=score:desc&limit=9&total=false${behind}`, tokens[0] ?? "");
      found[place]?.push(...page.items.map(({ id }) => id));
      cursors[place] = page.cursor;
    }
  }
  const wanted = own.map((list) =>
    list.toSorted((a, b) => (b.score ?? -1) - (a.score ?? -1) || byId(b, a)).map(({ id }) => id),
  );
  expect(found).toEqual(wanted);
});

test("[TB473] many shapes, one after the other, are answered like the first", async () => {
  for (let index = 0; index < 300; index++) {
    const filter: Condition[] = [
      [`tags.path${index}`, "==", null],
      ["score", index % 2 === 0 ? ">" : "<=", index % 5],
    ];
    const wanted = notes.filter(({ owner, score }) => {
      const isScored = score !== null && (index % 2 === 0 ? score > index % 5 : score <= index % 5);
      return OWNERS[0]?.includes(owner) === true && isScored;
    });
    const { total } = await get<List>(NOTES + parameters(filter, "&limit=1"), tokens[0] ?? "");
    expect([index, total]).toEqual([index, wanted.length]);
  }
});
