import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

const METRICS = ["cosine", "euclidean", "dot-product"] as const;
const DIMENSIONS = 4;
const SEED = Number(process.env["FUZZ_SEED"] ?? 20_260_101);
const VECTOR_STEPS = 40;
/** Enough for several chunks, which deletions then thin out. */
const VECTOR_IDS = 4_000;
const KEY_STEPS = 150;

let platform: TestPlatform;
beforeAll(async () => {
  const index = (metric: string): JsonObject => ({ dimensions: DIMENSIONS, metric });
  const vectorize = Object.fromEntries(METRICS.map((metric) => [metric, index(metric)]));
  platform = await testPlatform({ config: { vectorize, kv: { keys: {} } } });
});
afterAll(() => platform.stop());

/** A linear congruential generator: the same numbers for the same seed, from 0 up to but not including `below`. */
function seeded(seed: number): (below: number) => number {
  let state = seed % 2_147_483_648;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    // The low bits of such a generator repeat soon.
    return Math.floor((state / 2_147_483_648) * below);
  };
}

interface Stored {
  values: number[];
  group: number;
}

function score(metric: string, a: readonly number[], b: readonly number[]): number {
  const product = a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  if (metric === "cosine") return product / (Math.hypot(...a) * Math.hypot(...b));
  if (metric === "dot-product") return product;
  return Math.hypot(...a.map((value, index) => value - (b[index] ?? 0)));
}

for (const metric of METRICS) {
  test(`[VZ1] [VZ2] [VZ4] [VZ7] [VZ8] random upserts, deletes and searches agree with a model: ${metric}`, async () => {
    const random = seeded(SEED);
    const model = new Map<string, Stored>();
    const ask = async <T = JsonObject>(body: JsonObject) => {
      const answer = await platform.service.post<T>(`/api/vectorize/${metric}`, body);
      expect(answer.status).toBe(200);
      return answer.body;
    };
    const randomValues = () => Array.from({ length: DIMENSIONS }, () => random(2_001) - 1_000 + 0.5);
    const someIds = () => Array.from({ length: 1 + random(1_000) }, () => `${random(VECTOR_IDS)}`);

    for (let step = 0; step < VECTOR_STEPS; step++) {
      if (random(5) < 3) {
        const vectors = someIds().map((id) => ({ id, values: randomValues(), metadata: { group: random(5) } }));
        for (const { id, values, metadata } of vectors) model.set(id, { values, group: metadata.group });
        expect(await ask({ action: "upsert", vectors })).toEqual({ ok: true, count: vectors.length });
      } else {
        const ids = someIds();
        const count = ids.filter((id) => model.delete(id)).length;
        expect(await ask({ action: "delete", ids })).toEqual({ ok: true, count });
      }
      expect((await ask({ action: "describe" }))["vectorCount"]).toBe(model.size);

      const vector = randomValues();
      const filter = random(2) === 0 ? null : { group: random(5) };
      const { matches } = await ask<{ matches: { id: string; score: number }[] }>({
        ...{ action: "search", vector, topK: 20, filter },
      });
      const kept = [...model.values()].filter(({ group }) => filter === null || group === filter.group);
      const wanted = kept.map(({ values }) => score(metric, vector, values));
      wanted.sort((a, b) => (metric === "euclidean" ? a - b : b - a));
      const tolerance = metric === "dot-product" ? 1e-6 : metric === "euclidean" ? 0.01 : 1e-5;
      expect([step, matches.length]).toEqual([step, Math.min(20, kept.length)]);
      for (const [rank, match] of matches.entries()) {
        expect(Math.abs(match.score - (wanted[rank] ?? Number.NaN))).toBeLessThan(tolerance);
        const own = score(metric, vector, model.get(match.id)?.values ?? []);
        expect(Math.abs(match.score - own)).toBeLessThan(tolerance);
      }
    }
  });
}

test("[KV1] [KV2] [KV4] [KV5] random sets, deletes and lists agree with a model", async () => {
  const random = seeded(SEED);
  const model = new Map<string, number>();
  const letters = ["a", "b", "/", "é", "\u{1f600}", "\ue000", "\u{10ffff}", "\0", "~"];
  const randomKey = () => Array.from({ length: 1 + random(4) }, () => letters[random(letters.length)]).join("");
  const ask = async <T>(body: JsonObject) => (await platform.service.post<T>("/api/kv/keys", body)).body;
  const inByteOrder = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

  for (let step = 0; step < KEY_STEPS; step++) {
    const key = randomKey();
    if (random(3) < 2) {
      model.set(key, step);
      await ask({ action: "set", key, value: step });
    } else {
      model.delete(key);
      await ask({ action: "delete", key });
    }
    const asked = random(2) === 0 ? key : randomKey();
    expect(await ask<{ value: unknown }>({ action: "get", key: asked })).toEqual({ value: model.get(asked) ?? null });

    const prefix = randomKey().slice(0, random(3));
    if (!prefix.isWellFormed()) continue;
    const wanted = [...model.keys()].filter((one) => one.startsWith(prefix)).sort(inByteOrder);
    const got: string[] = [];
    let cursor: string | null = null;
    do {
      const page: { keys: string[]; cursor: string | null } = await ask({
        ...{ action: "list", prefix, limit: 1 + random(7), cursor },
      });
      got.push(...page.keys);
      cursor = page.cursor;
    } while (cursor !== null && got.length <= wanted.length);
    expect([step, prefix, got]).toEqual([step, prefix, wanted]);
  }
});
