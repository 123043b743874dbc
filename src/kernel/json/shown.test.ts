import { expect, test } from "bun:test";
import fc from "fast-check";
import { heapBytes } from "../../../tests/support/heap.ts";
import { SerialisedJson, shownJson } from "./shown.ts";

test("[AL4] secrets are hidden at any depth by the names of their members", () => {
  const value = {
    name: "ann",
    password: "p1",
    passwordHash: "p2",
    settings: { apiKey: "p3", api_key: "p4", refreshToken: "p5", list: [{ clientSecret: "p6", keep: 1 }] },
    secret: null,
    key: "a/b.txt",
  };
  expect(JSON.parse(shownJson(value, 16_384) ?? "")).toEqual({
    name: "ann",
    password: "[hidden]",
    passwordHash: "[hidden]",
    settings: {
      apiKey: "[hidden]",
      api_key: "[hidden]",
      refreshToken: "[hidden]",
      list: [{ clientSecret: "[hidden]", keep: 1 }],
    },
    secret: null,
    key: "a/b.txt",
  });
});

test("[AL4] a name that is too long is cut with what comes after it, and not remembered", () => {
  const shownWith = (name: string) => shownJson({ id: "a", password: "p", [name]: 1, after: 2 }, 16_384);
  const before = heapBytes();
  for (let index = 0; index < 200; index++) {
    const text = shownWith(`${index}${"n".repeat(256 * 1024)}`) ?? "";
    expect(JSON.parse(text)).toEqual({ id: "a", password: "[hidden]", "…": "…" });
  }
  expect(heapBytes() - before).toBeLessThan(10 * 1024 * 1024);
  const long = `password ${"n".repeat(1_000)}`;
  expect(JSON.parse(shownWith(long) ?? "")).toMatchObject({ [long]: "[hidden]", after: 2 });
});

test("[AL4] a value is cut to its bytes, and is JSON then too", () => {
  const long = { first: "kept", text: "ü".repeat(100_000), after: "cut" };
  const text = shownJson(long, 1_000) ?? "";
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_000);
  expect(JSON.parse(text)).toMatchObject({ first: "kept", text: expect.stringMatching(/^ü+…$/) });
  fc.assert(
    fc.property(fc.json({ maxDepth: 30 }), fc.integer({ min: 64, max: 400 }), (json, bytesMax) => {
      const shown = shownJson(JSON.parse(json), bytesMax);
      if (shown === null) return;
      expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(bytesMax);
      JSON.parse(shown);
    }),
    { seed: 20_261_122, numRuns: 500 },
  );
  expect([shownJson(null, 64), shownJson(undefined, 64), shownJson(0, 64)]).toEqual([null, null, "0"]);
});

test("[AL4] a member named __proto__ is shown like any other", () => {
  const text = '{"list":[{"__proto__":{"role":"admin"}}]}';
  expect(shownJson(JSON.parse(text), 300)).toBe(text);
});

test("[AL4] JSON text is shown as it is where it is short and has no secret", () => {
  const shown = (text: string) => shownJson(new SerialisedJson(text), 300);
  expect([shown('{"a":1}'), shown("null"), shown('"text"')]).toEqual(['{"a":1}', null, '"text"']);
  expect(shown('{"password":"p1","a":1}')).toBe('{"password":"[hidden]","a":1}');
  const long = shown(JSON.stringify({ text: '"'.repeat(10_000) })) ?? "";
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(300);
  expect(JSON.parse(long)).toMatch(/…$/);
  expect(shown(JSON.stringify({ apiKey: "p2".repeat(1_000) }))).toBe('"[hidden]"');
});
