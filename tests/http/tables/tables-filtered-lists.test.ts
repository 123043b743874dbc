import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// More records than a list may test one by one on the main thread, so that indexes decide how it is read.
const RECORDS = 6_000;
const ITEMS = "/api/db/shared/tables/items";
const OWNED = "/api/db/shared/tables/owned";
const SCHEMA = `{
  rank: { type: "integer" },
  rating: { type: "number" },
  done: { type: "boolean" },
  owner: { type: "string" },
  note: { type: "text" },
}`;
const INDEXES = `[{ fields: ["rating"] }, { fields: ["done", "rank"] }]`;
const CONFIG = `{
  databases: { shared: { tables: {
    items: { schema: ${SCHEMA}, indexes: ${INDEXES}, access: { read: true } },
    members: { schema: { note: { type: "text" } }, access: { read: (auth) => auth !== null } },
    owned: {
      schema: ${SCHEMA},
      indexes: ${INDEXES},
      access: { read: (auth) => (auth === null ? false : [["owner", "==", auth.id]]) },
    },
  } } },
}`;

type Item = {
  id: string;
  rank: number | null;
  rating: number | null;
  done: boolean | null;
  owner: string;
  note: string | null;
};
interface List {
  items: Item[];
  total: number | null;
  hasMore: boolean | null;
  cursor: string | null;
}

let platform: TestPlatform;
let items: Item[] = [];
const owners: string[] = [];
const tokens: string[] = [];

/** Groups of equal values, nulls, few matches far down, and a text that is too long to be tested beside others. */
const itemAt = (index: number): Item => ({
  id: `i${String((index * 7_919) % RECORDS).padStart(5, "0")}`,
  rank: index % 11 === 0 ? null : index % 500,
  rating: index % 13 === 0 ? null : (index % 90) / 4,
  done: index % 17 === 0 ? null : index % 3 === 0,
  owner: owners[index % 2] ?? "",
  note: index === 1_234 ? "long ".repeat(20_000) : index % 1_000 === 0 ? "rare" : null,
});

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  for (const email of ["a@example.com", "b@example.com"]) {
    const { id, token } = await signIn(platform, { email });
    owners.push(id);
    tokens.push(token);
  }
  items = Array.from({ length: RECORDS }, (_, index) => itemAt(index));
  for (const path of [ITEMS, OWNED]) {
    for (let start = 0; start < RECORDS; start += 500) {
      const { status } = await platform.service.post(`${path}/batch`, { inserts: items.slice(start, start + 500) });
      expect(status).toBe(200);
    }
  }
});
afterAll(() => platform.stop());

type Condition = readonly ["rank" | "rating" | "done" | "owner" | "note", string, unknown];

function isMet(item: Item, [field, operator, wanted]: Condition): boolean {
  const value = item[field];
  if (operator === "==") return value === wanted;
  if (operator === "!=") return value !== wanted;
  if (operator === "in") return (wanted as unknown[]).includes(value);
  if (value === null) return false;
  const than = wanted as number;
  if (operator === ">") return (value as number) > than;
  if (operator === ">=") return (value as number) >= than;
  if (operator === "<") return (value as number) < than;
  return (value as number) <= than;
}

function ordered(field: "rating" | "rank", direction: "asc" | "desc", found: Item[]): Item[] {
  const sign = direction === "asc" ? 1 : -1;
  return found.toSorted((a, b) => {
    const [left, right] = [a[field] ?? -1, b[field] ?? -1];
    return sign * (left === right ? (a.id < b.id ? -1 : 1) : left - right);
  });
}

const FILTERS: Condition[][] = [
  [
    ["rating", ">", 10],
    ["done", "==", true],
  ],
  [
    ["rating", ">=", 3],
    ["rating", "<", 4],
    ["done", "!=", true],
  ],
  [["rating", "<=", 20]],
  [
    ["done", "==", true],
    ["rank", ">", 250],
  ],
  [
    ["done", "==", true],
    ["rank", "<", 100],
    ["rating", ">", 2],
  ],
  [
    ["done", "==", null],
    ["rank", ">=", 1],
  ],
  [["note", "==", "rare"]],
  [
    ["rank", "in", [3, 4, 5, null]],
    ["rating", ">", 1],
  ],
  [
    ["rating", ">", 1_000],
    ["done", "==", true],
  ],
  [["done", "==", false]],
];
const SORTS = [
  ["rating", "asc"],
  ["rating", "desc"],
  ["rank", "asc"],
  ["rank", "desc"],
] as const;
const queryOf = (filter: readonly Condition[], sort: string, more: string): string =>
  `?filter=${encodeURIComponent(JSON.stringify(filter))}&sort=${sort}${more}`;
const idsOf = (list: readonly Item[]): string[] => list.map(({ id }) => id);

async function get(path: string, token?: string): Promise<List> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await platform.fetch(path, { headers });
  expect([path, response.status]).toEqual([path, 200]);
  return (await response.json()) as List;
}

describe("lists along an index", () => {
  for (const [field, direction] of SORTS) {
    test(`[TB471] sorted by ${field}:${direction}: first pages, offsets and totals of every filter`, async () => {
      for (const filter of FILTERS) {
        const wanted = ordered(
          field,
          direction,
          items.filter((item) => filter.every((one) => isMet(item, one))),
        );
        for (const [limit, offset] of [
          [20, 0],
          [1, 0],
          [20, 40],
          [300, 0],
          [50, 100],
        ] as const) {
          const place = `&limit=${limit}&offset=${offset}`;
          const page = await get(ITEMS + queryOf(filter, `${field}:${direction}`, place));
          expect({ filter, place, total: page.total, ids: idsOf(page.items) }).toEqual({
            ...{ filter, place, total: wanted.length },
            ids: idsOf(wanted.slice(offset, offset + limit)),
          });
          const uncounted = await get(ITEMS + queryOf(filter, `${field}:${direction}`, `${place}&total=false`));
          expect({ filter, place, total: uncounted.total, ids: idsOf(uncounted.items) }).toEqual({
            ...{ filter, place, total: null },
            ids: idsOf(wanted.slice(offset, offset + limit)),
          });
          expect(uncounted.hasMore).toBe(wanted.length > offset + limit);
        }
      }
    }, 60_000);

    test(`[TB471] sorted by ${field}:${direction}: cursors there and back have each match once`, async () => {
      for (const filter of FILTERS) {
        const wanted = ordered(
          field,
          direction,
          items.filter((item) => filter.every((one) => isMet(item, one))),
        );
        const size = Math.max(7, Math.ceil(wanted.length / 6));
        const there: string[] = [];
        let page = await get(ITEMS + queryOf(filter, `${field}:${direction}`, `&limit=${size}&total=false`));
        let last = page.cursor;
        for (;;) {
          there.push(...idsOf(page.items));
          if (page.cursor === null) break;
          last = page.cursor;
          page = await get(ITEMS + queryOf(filter, `${field}:${direction}`, `&limit=${size}&after=${page.cursor}`));
        }
        expect({ filter, ids: there }).toEqual({ filter, ids: idsOf(wanted) });
        if (last === null) continue;
        const back: string[] = [];
        for (let cursor: string | null = last; cursor !== null; cursor = page.cursor) {
          page = await get(ITEMS + queryOf(filter, `${field}:${direction}`, `&limit=${size}&before=${cursor}`));
          back.unshift(...idsOf(page.items));
        }
        const shown = there.slice(0, back.length);
        expect({ filter, ids: back }).toEqual({ filter, ids: shown });
        expect(back.length).toBeGreaterThan(0);
      }
    }, 60_000);
  }

  test("[TB471] a read rule's filter holds, and the totals are each caller's own", async () => {
    for (const [own, token] of tokens.entries()) {
      for (const [field, direction] of SORTS) {
        for (const filter of FILTERS) {
          const readable = items.filter((item) => item.owner === owners[own]);
          const wanted = ordered(
            field,
            direction,
            readable.filter((item) => filter.every((one) => isMet(item, one))),
          );
          // Twice: counted, and remembered.
          for (let round = 0; round < 2; round++) {
            const page = await get(OWNED + queryOf(filter, `${field}:${direction}`, "&limit=15"), token);
            expect({ filter, total: page.total, ids: idsOf(page.items) }).toEqual({
              ...{ filter, total: wanted.length },
              ids: idsOf(wanted.slice(0, 15)),
            });
          }
        }
      }
    }
  }, 60_000);

  test("[TB471] matches that are rare, or behind a long record, are found all the same", async () => {
    const filter: Condition[] = [
      ["note", "==", "rare"],
      ["rating", ">", 0],
    ];
    const wanted = ordered(
      "rating",
      "asc",
      items.filter((item) => filter.every((one) => isMet(item, one))),
    );
    for (let round = 0; round < 5; round++) {
      const page = await get(ITEMS + queryOf(filter, "rating:asc", "&limit=4&total=false"));
      expect(idsOf(page.items)).toEqual(idsOf(wanted.slice(0, 4)));
    }
    const around: Condition[] = [
      ["rating", ">=", items[1_234]?.rating],
      ["done", "!=", null],
    ];
    const all = ordered(
      "rating",
      "asc",
      items.filter((item) => around.every((one) => isMet(item, one))),
    );
    const page = await get(ITEMS + queryOf(around, "rating:asc", "&limit=30"));
    expect(idsOf(page.items)).toEqual(idsOf(all.slice(0, 30)));
  });
});

describe("pages far down an index", () => {
  const sorted = (field: "rating" | "rank", direction: "asc" | "desc") => idsOf(ordered(field, direction, items));

  test("[TB480] offsets of every depth, in both directions and by id, without records between or twice", async () => {
    for (const offset of [1, 2_000, 2_001, 4_321, RECORDS - 10, RECORDS, RECORDS + 5]) {
      for (const [sort, wanted] of [
        ["", idsOf(items).toSorted()],
        ["id:desc", idsOf(items).toSorted().toReversed()],
        ["rating", sorted("rating", "asc")],
        ["rating:desc", sorted("rating", "desc")],
      ] as const) {
        const page = await get(`${ITEMS}?sort=${sort}&limit=25&offset=${offset}&total=false`);
        expect({ sort, offset, ids: idsOf(page.items) }).toEqual({
          sort,
          offset,
          ids: wanted.slice(offset, offset + 25),
        });
        expect(page.hasMore).toBe(offset + 25 < RECORDS);
      }
    }
  });

  test("[TB6] an id in the other direction than the sort is in the order that it names", async () => {
    const byRating = ordered("rating", "desc", items);
    const groups = Map.groupBy(byRating, ({ rating }) => rating);
    const wanted = [...groups.values()].flatMap((group) => idsOf(group).toSorted());
    const page = await get(`${ITEMS}?sort=rating:desc,id:asc&limit=500`);
    expect(idsOf(page.items)).toEqual(wanted.slice(0, 500));
    const next = await get(`${ITEMS}?sort=rating:desc,id:asc&limit=500&after=${page.cursor}`);
    expect(idsOf(next.items)).toEqual(wanted.slice(500, 1_000));
  });

  test("[TB7] a cursor of 0.2 continues in the order of now, and one of another sort does not", async () => {
    const former = (key: string, ...place: unknown[]) =>
      `c1~${Buffer.from(JSON.stringify([key, ...place])).toString("base64url")}`;
    for (const [field, direction] of SORTS) {
      const all = ordered(field, direction, items);
      const at = all[3_000];
      const cursor = former(`${field}:${direction},id:asc`, at?.[field] ?? null, at?.id);
      const page = await get(`${ITEMS}?sort=${field}:${direction}&limit=30&after=${cursor}`);
      expect({ field, direction, ids: idsOf(page.items) }).toEqual({
        ...{ field, direction, ids: idsOf(all.slice(3_001, 3_031)) },
      });
    }
    const other = former("rating:desc,id:asc", 5, "i00001");
    expect((await platform.get(`${ITEMS}?sort=rating&after=${other}`)).status).toBe(400);
  });
});

describe("totals", () => {
  const filter: Condition[] = [
    ["rating", ">", 10],
    ["done", "==", true],
  ];
  const total = async (): Promise<number[]> => {
    const query = queryOf(filter, "rating:desc", "&limit=5");
    const [list, counted] = [
      await get(ITEMS + query),
      await platform.get<{ total: number }>(`${ITEMS}/count${query.split("&")[0]}`),
    ];
    return [list.total ?? -1, counted.body.total];
  };

  test("[TB470] a total that is asked for again follows every change of the table", async () => {
    const before = items.filter((item) => filter.every((one) => isMet(item, one))).length;
    expect(await total()).toEqual([before, before]);
    const match = { rating: 11, done: true };
    await platform.service.post(ITEMS, { id: "added", ...match });
    expect(await total()).toEqual([before + 1, before + 1]);
    await platform.service.patch(`${ITEMS}/added`, { done: false });
    expect(await total()).toEqual([before, before]);
    await platform.service.patch(`${ITEMS}/added`, { done: true });
    expect(await total()).toEqual([before + 1, before + 1]);
    const refused = await platform.service.post(`${ITEMS}/batch`, { inserts: [match, { id: "added", ...match }] });
    expect(refused.status).toBe(409);
    expect(await total()).toEqual([before + 1, before + 1]);
    await platform.service.post(`${ITEMS}/batch-by-filter`, {
      ...{ action: "update", filter: [["id", "==", "added"]] },
      data: { rating: 1 },
    });
    expect(await total()).toEqual([before, before]);
    await platform.service.delete(`${ITEMS}/added`);
    expect(await total()).toEqual([before, before]);
  });

  test("[TB470] totals during writes are those of some moment between request and answer", async () => {
    const before = (await total())[0] ?? 0;
    let begun = 0;
    let done = 0;
    const writing = (async () => {
      for (let index = 0; index < 60; index++) {
        begun++;
        await platform.service.post(ITEMS, { id: `during-${index}`, rating: 12, done: true });
        done++;
      }
    })();
    for (let round = 0; round < 60; round++) {
      const least = before + done;
      const [list = -1] = await total();
      expect(list).toBeGreaterThanOrEqual(least);
      expect(list).toBeLessThanOrEqual(before + begun);
    }
    await writing;
    expect(await total()).toEqual([before + 60, before + 60]);
  });
});

describe("lists that are asked for again", () => {
  const MEMBERS = "/api/db/shared/tables/members";
  const listed = async (): Promise<unknown[]> => {
    // The second answer at one state of the table is kept, and the third is the kept one.
    const answers: List[] = [];
    for (let round = 0; round < 3; round++) answers.push(await get(`${MEMBERS}?limit=2`, tokens[0]));
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
    return [answers[0]?.total, answers[0]?.hasMore, ...(answers[0]?.items.map(({ id, note }) => [id, note]) ?? [])];
  };

  test("[TB472] they follow every change, and a write that is undone changes nothing", async () => {
    expect(await listed()).toEqual([0, false]);
    await platform.service.post(MEMBERS, { id: "a", note: "1" });
    expect(await listed()).toEqual([1, false, ["a", "1"]]);
    await platform.service.patch(`${MEMBERS}/a`, { note: "2" });
    expect(await listed()).toEqual([1, false, ["a", "2"]]);
    await platform.service.post(`${MEMBERS}/batch`, { inserts: [{ id: "b" }, { id: "c" }] });
    expect(await listed()).toEqual([3, true, ["a", "2"], ["b", null]]);
    const refused = await platform.service.post(`${MEMBERS}/batch`, {
      deletes: ["a"],
      updates: [{ id: "d", data: {} }],
    });
    expect(refused.status).toBe(404);
    expect(await listed()).toEqual([3, true, ["a", "2"], ["b", null]]);
    await platform.service.delete(`${MEMBERS}/a`);
    expect(await listed()).toEqual([2, false, ["b", null], ["c", null]]);
  });

  test("[TB472] a list that is too long to be kept is the same each time", async () => {
    const note = "long ".repeat(8_000);
    await platform.service.post(`${MEMBERS}/batch`, { inserts: ["x", "y", "z"].map((id) => ({ id, note })) });
    for (let round = 0; round < 4; round++) {
      const { items: found } = await get(`${MEMBERS}?limit=100&fields=note`, tokens[0]);
      expect(found.filter((one) => one.note === note).map(({ id }) => id)).toEqual(["x", "y", "z"]);
    }
    await platform.service.post(`${MEMBERS}/batch`, { deletes: ["x", "y", "z"] });
  });

  test("[TB472] the rule is asked each time: a caller whom it denies gets no kept answer", async () => {
    await listed();
    expect((await platform.get(`${MEMBERS}?limit=2`)).status).toBe(401);
    expect((await get(`${MEMBERS}?limit=2`, tokens[1])).items.length).toBe(2);
  });
});
