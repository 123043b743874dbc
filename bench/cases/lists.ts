import { SERVICE_KEY } from "../support/processes.ts";

export const RECORDS = 100_000;
const MAKERS = 1_000;
const OWNED = 20_000;
const BATCH = 500;
export const PAGE = 20;
/** Number of distinct requests of a kind: more than any cache holds. */
export const VARIED = 20_000;

export const CONFIG = `import { defineConfig } from "platform";

const schema = {
  title: { type: "string" },
  body: { type: "text" },
  category: { type: "string" },
  ownerId: { type: "string" },
  makerId: { references: "makers", type: "string" },
  rating: { type: "number" },
  done: { type: "boolean" },
} as const;
const indexes = [{ fields: ["rating"] }, { fields: ["category"] }, { fields: ["ownerId"] }];
export default defineConfig({
  databases: { shared: { tables: {
    items: { schema, indexes, fts: ["title"], access: { read: true } },
    owned: { schema, indexes, access: { read: () => [["ownerId", "==", "owner-7"]] } },
    makers: { schema: { name: { type: "string" }, city: { type: "string" } }, access: { read: true } },
  } } },
});
`;

const WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "juniper"];
const spread = (index: number, step: number, range: number): number => (index * step) % range;
const idAt = (index: number): string => `item-${String(index).padStart(6, "0")}`;
const categoryAt = (index: number): string => `category-${index % 1_000}`;

const itemAt = (index: number) => ({
  id: idAt(index),
  title: `Item ${index} of ${WORDS[index % 10]} and ${WORDS[Math.floor(index / 10) % 10]} rare${spread(index, 7_919, 5_000)}`,
  body: "A paragraph of text that says what happened, to whom, and what came of it in the end. ".repeat(4),
  category: categoryAt(spread(index, 7_919, 1_000_003)),
  ownerId: `owner-${index % 100}`,
  makerId: `maker-${spread(index, 7_919, MAKERS)}`,
  rating: spread(index, 7_919, 1_000) / 10,
  done: index % 2 === 0,
});

async function post(url: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
}

export async function fill(tables: string): Promise<void> {
  const insertAll = async (table: string, count: number, recordAt: (index: number) => unknown) => {
    for (let start = 0; start < count; start += BATCH) {
      await post(`${tables}/${table}/batch`, { inserts: Array.from({ length: BATCH }, (_, n) => recordAt(start + n)) });
    }
  };
  await insertAll("makers", MAKERS, (index) => ({ id: `maker-${index}`, name: `Maker ${index}`, city: "Vienna" }));
  await insertAll("items", RECORDS, itemAt);
  await insertAll("owned", OWNED, (index) => ({ ...itemAt(index), ownerId: `owner-${index % 10}` }));
}

/** Kind of request. `ours` and `floor` return the address of request number `index`. */
export interface Kind {
  name: string;
  ours(index: number): string;
  floor(index: number): string;
  /** Number of connections; 32 by default. */
  connections?: number;
}

const query = (values: Record<string, string | number | boolean>): string =>
  `?${new URLSearchParams(Object.entries(values).map(([name, value]): [string, string] => [name, String(value)]))}`;
const where = (...conditions: readonly (readonly [string, string, unknown])[]): string => JSON.stringify(conditions);

/** Returns numbers spread over a range, different for every request. */
const anywhere = (index: number, from: number, to: number): number =>
  from + (spread(index, 7_919, VARIED) / VARIED) * (to - from);
const anyRecord = (index: number): string => idAt(spread(index, 7_919, RECORDS - 2 * PAGE));
const twenty = (index: number): string[] =>
  Array.from({ length: PAGE }, (_, n) => idAt(spread(index * PAGE + n, 7_919, RECORDS)));

/** Returns a word of some twenty records. No other word begins with it, as the last word of a search is a prefix. */
const rareWord = (index: number): string => `rare${1_000 + (index % 4_000)}`;

const list = (values: Record<string, string | number | boolean>): string => `items${query({ limit: PAGE, ...values })}`;

export const KINDS: readonly Kind[] = [
  { name: "GET one", ours: (i) => `items/${anyRecord(i)}`, floor: (i) => `one/${anyRecord(i)}` },
  {
    name: "page behind a cursor, by id",
    ours: (i) => list({ after: anyRecord(i) }),
    floor: (i) => `after${query({ x: anyRecord(i) })}`,
  },
  {
    name: "the same, three fields",
    ours: (i) => list({ after: anyRecord(i), fields: "id,title,rating" }),
    floor: (i) => `after-fields${query({ x: anyRecord(i) })}`,
  },
  {
    name: "page that everybody asks for: a kept answer",
    ours: () => list({ after: anyRecord(1) }),
    floor: () => `after${query({ x: anyRecord(1) })}`,
  },
  {
    name: "page 1 to 50, total=false",
    ours: (i) => list({ offset: Math.floor(anywhere(i, 0, 1_000)), total: false }),
    floor: (i) => `paged${query({ x: Math.floor(anywhere(i, 0, 1_000)) })}`,
  },
  {
    name: "page 200 to 1,000, total=false",
    ours: (i) => list({ offset: Math.floor(anywhere(i, 4_000, 20_000)), total: false }),
    floor: (i) => `paged${query({ x: Math.floor(anywhere(i, 4_000, 20_000)) })}`,
  },
  {
    name: "range of an indexed field, ascending",
    ours: (i) => list({ filter: where(["rating", ">", anywhere(i, 0, 90)]), sort: "rating", total: false }),
    floor: (i) => `up${query({ x: anywhere(i, 0, 90) })}`,
  },
  {
    name: "the same, descending",
    ours: (i) => list({ filter: where(["rating", "<", anywhere(i, 10, 100)]), sort: "rating:desc", total: false }),
    floor: (i) => `down${query({ x: anywhere(i, 10, 100) })}`,
  },
  {
    name: "range and a second condition, descending",
    ours: (i) =>
      list({
        filter: where(["rating", ">", anywhere(i, 40, 50)], ["done", "==", true]),
        sort: "rating:desc",
        total: false,
      }),
    floor: (i) => `tested${query({ x: anywhere(i, 40, 50) })}`,
  },
  {
    name: "the same with its total",
    connections: 4,
    ours: (i) =>
      list({ filter: where(["rating", ">", anywhere(i, 90, 95)], ["done", "==", true]), sort: "rating:desc" }),
    floor: (i) => `tested-count${query({ x: anywhere(i, 90, 95) })}`,
  },
  {
    name: "an indexed field ==, with its total",
    ours: (i) => list({ filter: where(["category", "==", categoryAt(i)]), offset: Math.floor(i / 1_000) }),
    floor: (i) => `equal${query({ x: categoryAt(i) })}`,
  },
  {
    name: "two conditions, one indexed, sorted by a third field",
    ours: (i) =>
      list({
        filter: where(["category", "==", categoryAt(i)], ["rating", ">=", -i]),
        sort: "title",
        total: false,
      }),
    floor: (i) => `sorted${query({ x: categoryAt(i) })}`,
  },
  {
    name: "id in 20 ids",
    ours: (i) => list({ filter: where(["id", "in", twenty(i)]), total: false }),
    floor: (i) => `listed${query({ x: twenty(i).join(",") })}`,
  },
  {
    name: "count of a range",
    ours: (i) =>
      `items/count${query({ filter: where(["rating", ">=", anywhere(i, 0, 90)], ["rating", "<", anywhere(i, 0, 90) + 1]) })}`,
    floor: (i) => `range-count${query({ x: anywhere(i, 0, 90) })}`,
  },
  {
    name: "page behind a cursor, behind a rule's filter",
    ours: (i) => `owned${query({ limit: PAGE, after: idAt(spread(i, 7_919, OWNED - 500)) })}`,
    floor: (i) => `owned${query({ x: idAt(spread(i, 7_919, OWNED - 500)) })}`,
  },
  {
    name: "page behind a cursor, a reference expanded",
    ours: (i) => list({ after: anyRecord(i), expand: "makerId" }),
    floor: (i) => `expanded${query({ x: anyRecord(i) })}`,
  },
  {
    name: "aggregate of an indexed group",
    ours: (i) =>
      `items/aggregate${query({ filter: where(["category", "==", categoryAt(i)], ["rating", ">=", -i]), groupBy: "done", select: "count(),avg(rating)" })}`,
    floor: (i) => `grouped${query({ x: categoryAt(i) })}`,
  },
  {
    name: "search of a word",
    ours: (i) => `items/search${query({ q: rareWord(i), limit: PAGE })}`,
    floor: (i) => `found${query({ x: `"${rareWord(i)}"*` })}`,
  },
];
