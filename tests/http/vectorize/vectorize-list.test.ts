import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type Answer, type TestPlatform, testPlatform } from "../../support/index.ts";

const WRITER = "vector-writer-key-0123456789abcdefghijkl";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      vectorize: { small: { dimensions: 2 }, none: { dimensions: 2 } },
      serviceKeys: { writer: { key: WRITER, scopes: ["vectorize:index:small:write"] } },
    },
  });
  const ids = ["b/2", "a", "b/1", "b", "ü", "c", "\u{1f600}", "b/\u{10ffff}"];
  const vectors = ids.map((id, n) => ({ id, values: [n + 1, 1], metadata: { n } }));
  await platform.service.post("/api/vectorize/small", { action: "upsert", vectors });
});
afterAll(() => platform.stop());

interface Page {
  vectors: { id: string; metadata: JsonObject }[];
  cursor: string | null;
}
const list = (options: JsonObject, index = "small"): Promise<Answer<Page>> =>
  platform.service.post<Page>(`/api/vectorize/${index}`, { action: "list", ...options });
async function ids(options: JsonObject): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body }: Answer<Page> = await list({ ...options, cursor });
    found.push(...body.vectors.map(({ id }) => id));
    cursor = body.cursor;
  }
  return found;
}

test("[VZ320] ids are listed in the order of their bytes, by prefix, page by page", async () => {
  const all = ["a", "b", "b/1", "b/2", "b/\u{10ffff}", "c", "ü", "\u{1f600}"];
  expect((await list({})).body).toEqual({
    vectors: all.map((id) => ({ id, metadata: { n: expect.any(Number) } })),
    cursor: null,
  });
  for (const limit of [1, 3, 8]) expect(await ids({ limit })).toEqual(all);
  expect(await ids({ prefix: "b/", limit: 2 })).toEqual(["b/1", "b/2", "b/\u{10ffff}"]);
  expect((await list({ prefix: "b/", limit: 3 })).body.cursor).toBeNull();
  expect(await ids({ prefix: "x" })).toEqual([]);
  expect((await list({}, "none")).body).toEqual({ vectors: [], cursor: null });
});

test("[VZ320] [VZ10] what is no list is refused, and so is a key that may only write", async () => {
  for (const options of [{ limit: 0 }, { limit: 101 }, { prefix: 1 }, { after: "a" }]) {
    expect((await list(options)).status).toBe(400);
  }
  const answer = await platform.withKey(WRITER).post("/api/vectorize/small", { action: "list" });
  expect(answer.status).toBe(403);
});
