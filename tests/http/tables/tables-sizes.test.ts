import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const MIB = 1024 * 1024;
const PAGE_BYTES = 8 * MIB;
const RECORDS = 30;
const CONFIG = `{
  databases: { shared: { tables: {
    large: {
      schema: { text: { type: "text" }, n: { type: "integer" }, flag: { type: "boolean" }, data: { type: "json" } },
      indexes: [{ fields: ["n"] }],
      access: { read: true, update: true },
    },
    seen: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: { read: (auth, record) => record.n < 25 } },
    free: { access: { read: true } },
  } } },
}`;
const P = "/api/db/shared/tables";
const idOf = (n: number) => `r${String(n).padStart(3, "0")}`;
/** Characters of one byte, of two bytes, and one whose JSON has six. */
const textOf = (n: number) =>
  ["x", "\u00e9", "\u0001"].map((one) => one.repeat(n % 3 === 0 ? 110_000 : 115_000)).join("");
const recordOf = (n: number) => ({ id: idOf(n), text: textOf(n), n });

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  for (let n = 0; n < RECORDS; n++) {
    const others = { flag: n % 2 === 0, data: { tags: ["a", n], deep: { n } } };
    for (const [table, record] of [
      ["large", { ...recordOf(n), ...others }],
      ["seen", recordOf(n)],
      ["free", { ...recordOf(n), ...others }],
    ] as const) {
      expect((await platform.service.post(`${P}/${table}`, record)).status).toBe(201);
    }
  }
});
afterAll(() => platform.stop());

interface Large {
  id: string;
  text: string;
  n: number;
  flag?: boolean;
  data?: unknown;
}

/** Every record of a table, page by page. Fails where a page is too large, or ends early without a reason. */
async function walk(path: string, direction: "after" | "before"): Promise<Large[]> {
  const found: Large[] = [];
  let query = direction === "after" ? "" : `&before=zzz`;
  for (;;) {
    const { status, body } = await platform.get<ListAnswer<Large & Record<string, never>>>(`${path}${query}`);
    expect(status).toBe(200);
    const bytes = Buffer.byteLength(JSON.stringify(body.items));
    expect(bytes).toBeLessThanOrEqual(PAGE_BYTES + 2 + body.items.length);
    if (body.hasMore) expect(bytes).toBeGreaterThan(PAGE_BYTES - 2 * MIB);
    found.splice(direction === "after" ? found.length : 0, 0, ...body.items);
    expect(body.hasMore).toBe(body.cursor !== null);
    if (body.cursor === null) return found;
    query = `&${direction}=${encodeURIComponent(body.cursor)}`;
  }
}

test("[TB101] pages by cursor have at most 8 MiB, and together all records unchanged", async () => {
  const wanted = Array.from({ length: RECORDS }, (_, n) => n);
  for (const table of ["large", "free"]) {
    for (const direction of ["after", "before"] as const) {
      const found = await walk(`${P}/${table}?limit=1000`, direction);
      expect(found.map(({ n }) => n)).toEqual(wanted);
      for (const { n, id, text, flag, data } of found) {
        expect([id, text === textOf(n), flag, data]).toEqual([
          idOf(n),
          true,
          n % 2 === 0,
          { tags: ["a", n], deep: { n } },
        ]);
      }
    }
  }
  const sorted = await walk(`${P}/large?limit=1000&sort=n:desc`, "after");
  expect(sorted.map(({ n }) => n)).toEqual([...wanted].reverse());
  const filtered = await walk(`${P}/large?limit=1000&filter=${encodeURIComponent('[["n",">=",5]]')}`, "after");
  expect(filtered.map(({ n }) => n)).toEqual(wanted.slice(5));
});

test("[TB101] the first page has the total, and a page by number that would be too large is 413", async () => {
  const first = await platform.get<ListAnswer>(`${P}/large?limit=1000`);
  expect(first.body).toMatchObject({ total: RECORDS, page: 1, perPage: 1000, hasMore: true });
  for (const query of ["page=1", "offset=0", "offset=3&sort=n"]) {
    const answer = await platform.get<ErrorAnswer>(`${P}/large?limit=1000&${query}`);
    expect([query, answer.status, answer.body.code]).toEqual([query, 413, 413]);
  }
  expect((await platform.get<ListAnswer>(`${P}/large?limit=5&page=2`)).body.items.length).toBe(5);
  const { body } = await platform.get<ListAnswer>(`${P}/large?limit=1000&page=1&fields=n`);
  expect(body.items).toEqual(Array.from({ length: RECORDS }, (_, n) => ({ id: idOf(n), n })));
});

test("[TB300] a page by number that has room for its records is complete without a total", async () => {
  const statuses: number[] = [];
  for (let limit = 5; limit < 12; limit++) {
    const counted = await platform.get(`${P}/large?limit=${limit}&page=1`);
    const uncounted = await platform.get<ListAnswer>(`${P}/large?limit=${limit}&page=1&total=false`);
    expect([limit, uncounted.status]).toEqual([limit, counted.status]);
    if (uncounted.status === 200) expect(uncounted.body).toMatchObject({ total: null, hasMore: true });
    statuses.push(uncounted.status);
  }
  expect([...new Set(statuses)]).toEqual([200, 413]);
});

test("[TB101] a rule that sees each record is called with the records of a page that ends early", async () => {
  const pages: number[][] = [];
  let query = "";
  for (;;) {
    const { status, body } = await platform.get<ListAnswer>(`${P}/seen?limit=1000${query}`);
    if (status !== 200) {
      expect([status, pages.flat().length < 25]).toEqual([401, true]);
      break;
    }
    pages.push(body.items.map((item) => Number(item["n"])));
    expect(body).toMatchObject({ total: null, hasMore: true });
    query = `&after=${encodeURIComponent(String(body.cursor))}`;
  }
  expect(pages.flat()).toEqual(pages.flat().map((_, index) => index));
  expect(pages.length).toBeGreaterThan(1);
});

test("[TB101] HEAD of a large page is answered like GET, and clients that disconnect release their places", async () => {
  for (let round = 0; round < 10; round++) {
    expect((await platform.head(`${P}/large?limit=1000`)).status).toBe(200);
    const gone = new AbortController();
    const { body } = await platform.fetch(`${P}/large?limit=1000`, { signal: gone.signal });
    await body?.getReader().read();
    gone.abort();
  }
  expect((await walk(`${P}/large?limit=1000`, "after")).length).toBe(RECORDS);
});

test("[TB105] a long record that is asked for many times at once does not hold up other requests", async () => {
  const members = Array.from({ length: 40_000 }, (_, index) => ({ [`member${index}`]: [index] }));
  const { status } = await platform.service.post(`${P}/large`, { id: "slow", n: 7, data: members });
  expect(status).toBe(201);
  expect((await platform.get(`${P}/large/slow`)).body).toMatchObject({ id: "slow", text: null, n: 7, data: members });
  let answered = 0;
  const ask = async () => {
    expect((await platform.get(`${P}/large/slow?fields=n`)).body).toEqual({ id: "slow", n: 7 });
    answered++;
  };
  const reads = Array.from({ length: 60 }, ask);
  await Promise.race(reads);
  expect((await platform.get("/api/health")).status).toBe(200);
  expect(answered).toBeLessThan(40);
  await Promise.all(reads);
  expect(await platform.service.delete(`${P}/large/slow`)).toMatchObject({ status: 200 });
});

test("[TB105] a long record is readable and shown as any other", async () => {
  const long = recordOf(3);
  expect((await platform.get(`${P}/seen/${long.id}`)).body).toMatchObject(long);
  expect((await platform.get(`${P}/seen/${long.id}?fields=n`)).body).toEqual({ id: long.id, n: long.n });
  expect((await platform.get(`${P}/seen/${idOf(RECORDS - 1)}`)).status).toBe(401);
  expect((await platform.get(`${P}/free/${long.id}`)).body).toMatchObject(long);
});

test("[TB103] the text of contains, startsWith and the like has at most 1,000 characters, wherever filters are accepted", async () => {
  const OPERATORS = ["contains", "icontains", "startsWith", "istartsWith"];
  let operator = "";
  const conditions = (length: number, field = "text") => [[field, operator, "x".repeat(length)]];
  const ask = async (name: "filter" | "orFilter", length: number, field?: string) => {
    const query = { [name]: JSON.stringify(conditions(length, field)) };
    const answers = await Promise.all([
      platform.get<ErrorAnswer>(`${P}/large`, { query: { ...query, limit: 1 } }),
      platform.get<ErrorAnswer>(`${P}/large/count`, { query }),
      platform.service.post<ErrorAnswer>(`${P}/large/batch-by-filter`, {
        action: "update",
        [name]: conditions(length, field),
        data: {},
      }),
    ]);
    return answers.map(({ status, body }) => [status, body.data?.[`${name}.0`]?.code]);
  };
  const names = ["filter", "orFilter"] as const;
  for (const [name, one] of names.flatMap((name) => OPERATORS.map((one) => [name, one] as const))) {
    operator = one;
    expect(await ask(name, 1_000)).toEqual(Array(3).fill([200, undefined]));
    expect(await ask(name, 1_001)).toEqual(Array(3).fill([400, "too_long"]));
    expect(await ask(name, 1_001, "data.tags")).toEqual(Array(3).fill([400, "too_long"]));
  }
});
