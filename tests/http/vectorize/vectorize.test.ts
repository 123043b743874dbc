import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { EMBEDDING_DIMENSIONS, type Embedding, makeEmbeddings } from "../../support/embeddings.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const READER = "vector-reader-key-0123456789abcdefghijkl";
const WRITER = "vector-writer-key-0123456789abcdefghijkl";
const METRICS = ["cosine", "euclidean", "dot-product"] as const;
const EMBEDDINGS = 3_000;
const WIDE_DIMENSIONS = 512;

const CONFIG = {
  vectorize: {
    cosine: { dimensions: EMBEDDING_DIMENSIONS },
    euclidean: { dimensions: EMBEDDING_DIMENSIONS, metric: "euclidean" },
    "dot-product": { dimensions: EMBEDDING_DIMENSIONS, metric: "dot-product" },
    small: { dimensions: 2 },
    wide: { dimensions: WIDE_DIMENSIONS },
    plane: { dimensions: 2, metric: "euclidean" },
    product: { dimensions: 2, metric: "dot-product" },
    exact: { dimensions: 3, metric: "dot-product" },
    churn: { dimensions: 2, metric: "euclidean" },
    "churn-product": { dimensions: 2, metric: "dot-product" },
  },
  serviceKeys: {
    reader: { key: READER, scopes: ["vectorize:index:small:read"] },
    writer: { key: WRITER, scopes: ["vectorize:index:small:write"] },
  },
};

interface Match {
  id: string;
  score: number;
  metadata: JsonObject;
  values?: number[];
}

let platform: TestPlatform;
let embeddings: Embedding[];
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  embeddings = makeEmbeddings(EMBEDDINGS);
  for (const index of METRICS) {
    for (let from = 0; from < EMBEDDINGS; from += 1_000) {
      const part = embeddings.slice(from, from + 1_000);
      const vectors = part.map(({ word, values }, offset) => ({
        id: word,
        values,
        metadata: metadataOf(from + offset),
      }));
      await ask(index, { action: "upsert", vectors });
    }
  }
});
afterAll(() => platform.stop());

const metadataOf = (number: number): JsonObject => ({ number, group: `g${number % 20}`, isEven: number % 2 === 0 });
const ask = <T = JsonObject>(index: string, body: JsonValue) =>
  platform.service.post<T>(`/api/vectorize/${index}`, body);
const search = async (index: string, vector: number[], options: JsonObject = {}) =>
  (await ask<{ matches: Match[]; count: number }>(index, { action: "search", vector, ...options })).body;
const upsert = (index: string, ...vectors: JsonObject[]) => ask(index, { action: "upsert", vectors });

/** The score as its definition says, of the numbers of 32 bits that are stored. */
function scoreOf(metric: string, a: readonly number[], b: readonly number[]): number {
  let [product, aSquare, bSquare, distanceSquare] = [0, 0, 0, 0];
  for (const [dimension, value] of a.entries()) {
    const [x, y] = [Math.fround(value), Math.fround(b[dimension] ?? 0)];
    product += x * y;
    aSquare += x * x;
    bSquare += y * y;
    distanceSquare += (x - y) ** 2;
  }
  if (metric === "euclidean") return Math.sqrt(distanceSquare);
  return metric === "cosine" ? product / Math.sqrt(aSquare * bSquare) : product;
}

/** The scores of the nearest, by comparing with every one. */
function nearestScores(metric: string, vector: number[], topK: number, allows: (number: number) => boolean): number[] {
  const scores = embeddings.flatMap(({ values }, number) => (allows(number) ? [scoreOf(metric, vector, values)] : []));
  return scores.sort((a, b) => (metric === "euclidean" ? a - b : b - a)).slice(0, topK);
}

const FILTERS: [JsonObject | null, (number: number) => boolean][] = [
  [null, () => true],
  [{ group: "g7" }, (number) => number % 20 === 7],
  [{ number: { $gte: 2_990 }, isEven: true }, (number) => number >= 2_990 && number % 2 === 0],
  [
    { group: { $in: ["g1", "g2"] }, number: { $ne: 1, $lt: 100 } },
    (n) => [1, 2].includes(n % 20) && n !== 1 && n < 100,
  ],
];

test("[VZ2] [VZ3] [VZ4] searches of embeddings give what a comparison with every vector gives", async () => {
  for (const metric of METRICS) {
    for (const number of [0, 17, 1_234, 2_999]) {
      const vector = embeddings[number]!.values;
      for (const [filter, allows] of FILTERS) {
        const { matches, count } = await search(metric, vector, { topK: 25, ...(filter === null ? {} : { filter }) });
        const wanted = nearestScores(metric, vector, 25, allows);
        expect([metric, number, filter, count]).toEqual([metric, number, filter, wanted.length] as never);
        for (const [rank, match] of matches.entries()) {
          expect(match.score).toBeCloseTo(wanted[rank]!, metric === "dot-product" ? 12 : 3);
          const own = embeddings.find(({ word }) => word === match.id)!;
          expect(match.score).toBeCloseTo(scoreOf(metric, vector, own.values), 3);
          expect(allows(Number(match.metadata["number"]))).toBe(true);
        }
      }
    }
  }
});

test("[VZ3] products and their order are exact, also for vectors of very different lengths", async () => {
  const vectors = { five: 5, nine: 9, minus: -1, almost: 8.5, zero: 0 };
  await upsert(
    "exact",
    ...Object.entries(vectors).map(([id, last]) => ({ id, values: [10_000, -10_000, last] })),
    { id: "far", values: [-1e9, -1e9, 1] },
    { id: "b", values: [1, 1, 1] },
    { id: "a", values: [1, 1, 1] },
  );
  const found = async (options: JsonObject) =>
    (await search("exact", [10_000, 10_000, 1], options)).matches.map(({ id, score }) => [id, score]);
  const wanted = [
    ["a", 20_001],
    ["b", 20_001],
    ["nine", 9],
    ["almost", 8.5],
    ["five", 5],
    ["zero", 0],
    ["minus", -1],
  ];
  expect(await found({ topK: 100 })).toEqual([...wanted, ["far", -2e13 + 1]]);
  expect(await found({ topK: 4 })).toEqual(wanted.slice(0, 4));
  expect((await search("exact", [1e10, 0, 0], { topK: 1, returnValues: true })).matches).toEqual([
    { id: "five", score: 1e14, metadata: {}, values: [10_000, -10_000, 5] },
  ]);
  await ask("exact", { action: "delete", ids: ["nine"] });
  expect((await found({ topK: 3 })).at(-1)).toEqual(["almost", 8.5]);
});

test("[VZ2] topK, values and their bounds", async () => {
  const vector = embeddings[5]!.values;
  expect((await search("cosine", vector)).matches).toHaveLength(10);
  expect((await search("cosine", vector, { topK: 100 })).matches).toHaveLength(100);
  const [first] = (await search("cosine", vector, { topK: 1, returnValues: true })).matches;
  expect(first).toEqual({
    id: embeddings[5]!.word,
    score: expect.closeTo(1, 12),
    metadata: metadataOf(5),
    values: vector,
  } as never);
  for (const topK of [0, 101, 1.5, "10"]) {
    expect((await ask("cosine", { action: "search", vector, topK })).status).toBe(400);
  }
});

test("[VZ1] [VZ3] [VZ8] scores are the metric's own, and an upsert replaces all of a vector", async () => {
  for (const index of ["plane", "product"]) {
    const answer = await upsert(
      index,
      { id: "a", values: [3, 4], metadata: { old: true } },
      { id: "b", values: [0, 0] },
    );
    expect(answer).toMatchObject({ status: 200, body: { ok: true, count: 2 } });
  }
  expect((await search("plane", [0, 0])).matches).toEqual([
    { id: "b", score: 0, metadata: {} },
    { id: "a", score: 5, metadata: { old: true } },
  ]);
  const products = (await search("product", [2, 1])).matches;
  expect(products.map(({ id }) => id)).toEqual(["a", "b"]);
  expect(products[0]!.score).toBeCloseTo(10, 4);
  expect(products[1]!.score).toBe(0);
  expect((await search("product", [0, 0])).matches.map(({ score }) => score)).toEqual([0, 0]);
  for (const index of ["plane", "product"]) {
    await upsert(index, { id: "a", values: [1, 0] });
    const vectors = (await ask(index, { action: "getByIds", ids: ["a"] })).body;
    expect(vectors).toEqual({ vectors: [{ id: "a", values: [1, 0], metadata: {} }] });
    expect((await search(index, [1, 0], { topK: 1 })).matches[0]!.id).toBe("a");
  }
});

test("[VZ7] [VZ8] deletes, reads by id, and the description of an index", async () => {
  const ids = ["one", "two", 'q"uo\\te', "é\u{1f600}"];
  await upsert("small", ...ids.map((id, number) => ({ id, values: [1, number + 0.1], metadata: { number } })));
  expect((await ask("small", { action: "describe" })).body).toEqual({
    vectorCount: 4,
    dimensions: 2,
    metric: "cosine",
  });
  const got = await ask("small", { action: "getByIds", ids: [ids[3]!, "missing", ids[0]!, ids[2]!] });
  expect(got.body["vectors"]).toEqual([
    { id: ids[3]!, values: [1, 3.1], metadata: { number: 3 } },
    { id: ids[0]!, values: [1, 0.1], metadata: { number: 0 } },
    { id: ids[2]!, values: [1, 2.1], metadata: { number: 2 } },
  ]);
  const deleted = await ask("small", { action: "delete", ids: ["two", "missing", "one", "one"] });
  expect(deleted).toMatchObject({ status: 200, body: { ok: true, count: 2 } });
  expect((await search("small", [1, 0])).matches.map(({ id }) => id)).toEqual([ids[2]!, ids[3]!]);
  expect((await ask("small", { action: "describe" })).body["vectorCount"]).toBe(2);
  await ask("small", { action: "delete", ids });
  expect(await search("small", [1, 0])).toEqual({ matches: [], count: 0 });
});

test("[VZ7] the description counts vectors that arrive and leave at the same time", async () => {
  const ids = Array.from({ length: 40 }, (_, number) => `together${number}`);
  const countOf = async () => (await ask("small", { action: "describe" })).body["vectorCount"] as number;
  const before = await countOf();
  await Promise.all(ids.map((id) => upsert("small", { id, values: [1, 0] })));
  expect(await countOf()).toBe(before + ids.length);
  await Promise.all(ids.map((id) => ask("small", { action: "delete", ids: [id] })));
  expect(await countOf()).toBe(before);
});

test("[VZ5] filters distinguish types, and handle absent, nested and oddly named members", async () => {
  const items: [string, JsonObject][] = [
    ["number", { v: 1 }],
    ["text", { v: "1" }],
    ["true", { v: true }],
    ["null", { v: null }],
    ["absent", {}],
    ["list", { v: [1] }],
    ["nested", { v: { w: 1, "x.y": 2 } }],
    ["odd", { 'a"b\\c': 1, $d: 2, "e f": 3, "v.w": 9, é: 4 }],
  ];
  await upsert("small", ...items.map(([id, metadata], number) => ({ id, values: [1, number], metadata })));
  const found = async (filter: JsonObject) => (await search("small", [1, 0], { filter })).matches.map(({ id }) => id);
  expect(await found({ v: 1 })).toEqual(["number"]);
  expect(await found({ v: "1" })).toEqual(["text"]);
  expect(await found({ v: true })).toEqual(["true"]);
  expect(await found({ v: null })).toEqual(["null", "absent", "odd"]);
  expect(await found({ v: { $ne: 1 } })).toHaveLength(7);
  expect(await found({ v: { $in: [1, true, "x"] } })).toEqual(["number", "true"]);
  expect(await found({ v: { $in: [] } })).toEqual([]);
  expect(await found({ v: { $gte: 1 } })).toEqual(["number"]);
  expect(await found({ v: { $gte: "0", $lt: "2" } })).toEqual(["text"]);
  expect(await found({ "v.w": 1 })).toEqual(["nested"]);
  expect(await found({ "v.w": 9 })).toEqual(["odd"]);
  expect(await found({ 'a"b\\c': 1, $d: 2, "e f": { $gt: 2.5 }, é: 4 })).toEqual(["odd"]);
  expect(await found({})).toHaveLength(items.length);
  await ask("small", { action: "delete", ids: items.map(([id]) => id) });
});

test("[VZ6] [VZ9] invalid values are refused by name", async () => {
  const vector = [1, 0];
  const refused: [string, JsonObject][] = [
    ["action", {}],
    ["action", { action: "query" }],
    ["vectors", { action: "upsert" }],
    [
      "vectors",
      { action: "upsert", vectors: Array.from({ length: 1_001 }, (_, id) => ({ id: `${id}`, values: vector })) },
    ],
    [
      "vectors.1.values",
      {
        action: "upsert",
        vectors: [
          { id: "a", values: vector },
          { id: "b", values: [1] },
        ],
      },
    ],
    ["vectors.0.values", { action: "upsert", vectors: [{ id: "a", values: [0, 0] }] }],
    ["vectors.0.values", { action: "upsert", vectors: [{ id: "a", values: [1e39, 0] }] }],
    ["vectors.0.values.1", { action: "upsert", vectors: [{ id: "a", values: [1, "2"] }] }],
    ["vectors.0.id", { action: "upsert", vectors: [{ values: vector }] }],
    ["vectors.0.id", { action: "upsert", vectors: [{ id: "", values: vector }] }],
    ["vectors.0.metadata", { action: "upsert", vectors: [{ id: "a", values: vector, metadata: [] }] }],
    ["vector", { action: "search" }],
    ["vector", { action: "search", vector: [1, 2, 3] }],
    ["filter", { action: "search", vector, filter: [] }],
    ["filter.a", { action: "search", vector, filter: { a: { $regex: "x" } } }],
    ["filter.a", { action: "search", vector, filter: { a: [1] } }],
    ["filter.a", { action: "search", vector, filter: { a: { $gt: true } } }],
    ["filter.a", { action: "search", vector, filter: { a: { $in: 1 } } }],
    ["ids", { action: "delete" }],
    ["ids.0", { action: "delete", ids: [5] }],
    ["ids", { action: "getByIds", ids: Array.from({ length: 1_001 }, String) }],
  ];
  for (const [field, body] of refused) {
    const answer = await ask<ErrorAnswer>("small", body);
    expect([field, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([field, 400, [field]]);
  }
  const conditions = Object.fromEntries(Array.from({ length: 51 }, (_, number) => [`m${number}`, 1]));
  expect((await ask("small", { action: "search", vector, filter: conditions })).status).toBe(400);
  const values = Array.from({ length: 1_001 }, (_, number) => number);
  expect((await ask("small", { action: "search", vector, filter: { a: { $in: values } } })).status).toBe(400);
  expect((await upsert("small", { id: "a", values: vector, metadata: { big: "x".repeat(65_536) } })).status).toBe(413);
  expect((await ask("small", { action: "describe" })).body["vectorCount"]).toBe(0);
});

test("[VZ10] a service key with the scope is required", async () => {
  const read = { action: "describe" };
  const write = { action: "delete", ids: ["none"] };
  expect((await platform.post("/api/vectorize/small", read)).status).toBe(401);
  expect((await platform.withKey("wrong").post("/api/vectorize/small", read)).status).toBe(401);
  expect((await ask("nowhere", read)).status).toBe(404);
  expect((await platform.withKey(READER).post("/api/vectorize/small", read)).status).toBe(200);
  expect((await platform.withKey(READER).post("/api/vectorize/small", write)).status).toBe(403);
  expect((await platform.withKey(WRITER).post("/api/vectorize/small", write)).status).toBe(200);
  expect((await platform.withKey(WRITER).post("/api/vectorize/small", read)).status).toBe(403);
  expect((await platform.withKey(READER).post("/api/vectorize/plane", {})).status).toBe(403);
});

test("[VZ11] many concurrent searches are all answered, and other requests with them", async () => {
  const searches = embeddings.slice(0, 64).map(async ({ word, values }) => {
    const { matches } = await search("cosine", values, { topK: 1 });
    expect(matches[0]!.id).toBe(word);
  });
  expect((await platform.get("/api/health")).status).toBe(200);
  await Promise.all(searches);
});

test("[VZ14] after many deletions searches are still exact, and the space is used again", async () => {
  const vectors = Array.from({ length: 6_000 }, (_, number) => ({ id: `${number}`, values: [number, 0] }));
  const gone = vectors.filter((_, number) => number % 8 !== 0).map(({ id }) => id);
  const wanted = vectors.filter((_, number) => number % 8 === 0).map(({ id }) => id);
  const nearest = { churn: ["4000", "3992", "4008"], "churn-product": ["5992", "5984", "5976"] };
  for (const [index, ids] of Object.entries(nearest)) {
    for (let from = 0; from < vectors.length; from += 1_000) await upsert(index, ...vectors.slice(from, from + 1_000));
    for (let from = 0; from < gone.length; from += 1_000) {
      await ask(index, { action: "delete", ids: gone.slice(from, from + 1_000) });
    }
    for (let turn = 0; turn < 10; turn++) {
      const { matches } = await search(index, [4_000, 0], { topK: 3 });
      expect(matches.map(({ id }) => id)).toEqual(ids);
      await Bun.sleep(20);
    }
    expect((await ask(index, { action: "describe" })).body["vectorCount"]).toBe(750);
    const got = await ask<{ vectors: Match[] }>(index, { action: "getByIds", ids: wanted });
    expect(got.body.vectors).toEqual(wanted.map((id) => ({ id, values: [Number(id), 0], metadata: {} })) as never);
  }
});

test("[VZ13] vectors survive a killed process", async () => {
  await upsert("small", { id: "kept", values: [1, 0.25], metadata: { a: [1] } });
  await platform.kill("SIGKILL");
  await platform.restart();
  expect((await search("small", [1, 0])).matches.map(({ id }) => id)).toEqual(["kept"]);
  expect((await ask("cosine", { action: "describe" })).body["vectorCount"]).toBe(EMBEDDINGS);
  expect((await search("cosine", embeddings[7]!.values, { topK: 1 })).matches[0]!.id).toBe(embeddings[7]!.word);
});

test("[VZ12] another dimension or metric for stored vectors stops the start", async () => {
  const changed = { ...CONFIG, vectorize: { ...CONFIG.vectorize, small: { dimensions: 3, metric: "euclidean" } } };
  await expect(platform.restart({ config: changed })).rejects.toThrow("vectorize.small.dimensions");
  await platform.restart({ config: CONFIG });
});

test("[VZ100] an unknown member of an action or a vector is 400 and named, and nothing is written", async () => {
  const vector = [1, 0];
  const bodies: [string, JsonValue][] = [
    ["namespace", { action: "search", vector, namespace: "x" }],
    ["topk", { action: "search", vector, topk: 5 }],
    ["vectors", { action: "delete", ids: [], vectors: [] }],
    ["ids", { action: "describe", ids: [] }],
    ["topK", { action: "getByIds", ids: [], topK: 1 }],
    ["upsert", { action: "upsert", vectors: [], upsert: true }],
    [
      "vectors.1.meta",
      {
        action: "upsert",
        vectors: [
          { id: "strict", values: vector },
          { id: "b", values: vector, meta: 1 },
        ],
      },
    ],
  ];
  for (const [member, body] of bodies) {
    const answer = await ask<ErrorAnswer>("small", body);
    expect([member, answer.status, answer.body.data?.[member]?.code]).toEqual([member, 400, "unknown_field"]);
  }
  const free = { id: "free", values: vector, metadata: { anything: { at: "all" } } };
  expect((await upsert("small", free)).status).toBe(200);
  expect((await search("small", vector, { filter: { anything: "else" } })).matches).toEqual([]);
  const found = await ask<{ vectors: JsonObject[] }>("small", { action: "getByIds", ids: ["strict", "b"] });
  expect(found.body.vectors).toEqual([]);
});

test("[VZ103] a filter of huge names or values is 400 and costs no search", async () => {
  const filters: JsonObject[] = [
    { ["a.".repeat(1_000_000)]: 1 },
    { ["x".repeat(513)]: 1 },
    { a: { $in: Array.from({ length: 900 }, (_, n) => "x".repeat(9_000) + n) } },
  ];
  for (const filter of filters) {
    const answer = await ask<ErrorAnswer>("small", { action: "search", vector: [1, 0], filter });
    expect([answer.status, answer.body.message.length < 300]).toEqual([400, true]);
  }
  // The largest that is allowed.
  const most = Object.fromEntries(
    Array.from({ length: 50 }, (_, n) => [`f${n}`, { $in: Array.from({ length: 1_000 }, (__, value) => value) }]),
  );
  expect((await search("small", [1, 0], { filter: most })).matches).toEqual([]);
  const many = { text: { $in: ['it\'s "quoted"', 1, "1", true, null] } };
  await upsert("small", { id: "quoted", values: [1, 0], metadata: { text: 'it\'s "quoted"' } });
  expect((await search("small", [1, 0], { filter: many })).matches.map(({ id }) => id)).toContain("quoted");
});

test("[VZ106] large upserts and answers are complete", async () => {
  const vectors = Array.from({ length: 1_000 }, (_, number) => ({
    id: `wide${number}`,
    values: Array.from({ length: WIDE_DIMENSIONS }, (__, at) => ((number * 7 + at) % 97) + 0.5),
    metadata: {},
  }));
  for (const half of [vectors.slice(0, 500), vectors.slice(500)]) await upsert("wide", ...half);
  const ids = vectors.map(({ id }) => id);
  const answer = await ask<{ vectors: JsonObject[] }>("wide", { action: "getByIds", ids });
  expect(answer.status).toBe(200);
  expect(answer.body.vectors).toEqual(vectors);
});
