import { expect, test } from "bun:test";
import { matchesJson, vectorsJson } from "./search-job.ts";

const bytes = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);

test("[VZ2] values come back as the shortest decimals that are the stored numbers", () => {
  const values = [0.1, -1.1, 1 / 3, 3.4e38, 1e-45, 16777216, 0, 123456.789, 0.30000001192092896];
  const [{ values: got }] = JSON.parse(matchesJson([["a", 0.5, "{}", bytes(...values)]])).matches;
  expect(got.map(Math.fround)).toEqual(values.map(Math.fround));
  expect(got.slice(0, 2)).toEqual([0.1, -1.1]);
  for (let seed = 1; seed < 2_000; seed++) {
    const value = Math.fround(Math.sin(seed) * 10 ** (seed % 30));
    expect(Math.fround(JSON.parse(vectorsJson([["a", "{}", bytes(value)]])).vectors[0].values[0])).toBe(value);
  }
});

test("[VZ2] matches carry their metadata, and values only where they were asked for", () => {
  const text = matchesJson([['q"', 1, '{"a":[1]}', null]]);
  expect(JSON.parse(text)).toEqual({ matches: [{ id: 'q"', score: 1, metadata: { a: [1] } }], count: 1 });
  expect(JSON.parse(matchesJson([]))).toEqual({ matches: [], count: 0 });
});
