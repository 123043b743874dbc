import { expect, test } from "bun:test";
import { createDraft } from "immer";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { adoptState, SYNCED, stateBytes, stored, UNSYNCED } from "./state.ts";

test("[RM25] a key set to null or undefined is absent; null in an array stays", () => {
  expect(adoptState({ a: null, b: { c: null, d: undefined }, e: [null, { f: null }] }, SYNCED)).toEqual({
    b: {},
    e: [null, {}],
  });
});

test("[RM29] in unsynced states an array's objects keep null, and their size is that of their JSON", () => {
  const given = { a: null, e: [null, { f: null, g: { h: null, i: undefined } }, [{ j: null }]] };
  const state = adoptState(given, UNSYNCED);
  const wanted = { e: [null, { f: null, g: { h: null } }, [{ j: null }]] };
  expect(JSON.stringify(state)).toBe(JSON.stringify(wanted));
  expect(stateBytes(state, UNSYNCED)).toBe(JSON.stringify(wanted).length);
  // The same object outside of arrays is a state like any other.
  const moved = adoptState({ out: (state["e"] as JsonObject[])[1] ?? {} }, UNSYNCED);
  expect(JSON.stringify(moved)).toBe('{"out":{"g":{}}}');
});

test("[RM25] keys with a dot and __proto__ are refused, also when they are null or deep down", () => {
  expect(() => adoptState({ "a.b": null }, SYNCED)).toThrow('must not contain a dot, got "a.b"');
  expect(() => adoptState({ a: [{ "x.y": 1 }] }, SYNCED)).toThrow("must not contain a dot");
  expect(() => adoptState(JSON.parse('{"a":{"__proto__":1}}'), SYNCED)).toThrow("__proto__");
  expect(adoptState({ "mail@example.com": 1 }, UNSYNCED)).toEqual({ "mail@example.com": 1 });
});

test("[RM25] a part of the server state is checked for dots when it becomes part of a synced state", () => {
  const server = adoptState({ inner: { "a.b": 1 } }, UNSYNCED);
  expect(() => adoptState({ copy: server["inner"] }, SYNCED)).toThrow("must not contain a dot");
});

test("[RM25] values that JSON does not have are refused", () => {
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, 1n, () => 1, new Map(), new Set(), Symbol("s"), /x/]) {
    expect(() => adoptState({ wrong }, SYNCED)).toThrow("State is JSON");
  }
  for (const wrong of [null, 1, [], "text", Promise.resolve({})]) expect(() => adoptState(wrong, SYNCED)).toThrow();
  expect(adoptState({ at: new Date(0), zero: -0 }, SYNCED)).toEqual({ at: "1970-01-01T00:00:00.000Z", zero: 0 });
});

test("[RM25] nesting is bounded, also when it grows step by step, and in cycles", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  expect(() => adoptState(cycle, SYNCED)).toThrow("nest deeper than 64");
  let state: JsonObject = adoptState({}, SYNCED);
  const wrap = () => {
    for (let level = 0; level < 100; level++) state = adoptState({ child: state }, SYNCED);
  };
  expect(wrap).toThrow("nest deeper than 64");
});

test("[RM25] unchanged parts are shared and frozen, and later changes to a draft or an object have no effect", () => {
  const before = adoptState({ big: { a: [1, 2] }, n: 1 }, SYNCED);
  const draft = createDraft(before);
  draft["n"] = 2;
  const after = adoptState(draft, SYNCED);
  expect(after).toEqual({ big: { a: [1, 2] }, n: 2 });
  expect(after["big"]).toBe(before["big"] ?? null);
  draft["n"] = 3;
  expect(after["n"]).toBe(2);
  expect(() => {
    if (isJsonObject(after["big"])) after["big"]["a"] = 9;
  }).toThrow(TypeError);
  const own = { list: [1] };
  const taken = adoptState(own, SYNCED);
  own.list.push(2);
  expect(taken).toEqual({ list: [1] });
  expect(stateBytes(taken, SYNCED)).toBe('{"list":[1]}'.length);
});

test("[RM25] a spread of a draft is adopted with its changed parts", () => {
  const before = adoptState({ inner: { n: 1 }, other: { m: 1 } }, SYNCED);
  const draft = createDraft(before);
  if (isJsonObject(draft["inner"])) draft["inner"]["n"] = 2;
  const after = adoptState({ ...draft, k: true }, SYNCED);
  expect(after).toEqual({ inner: { n: 2 }, other: { m: 1 }, k: true });
  expect(after["other"]).toBe(before["other"] ?? null);
});

test("[RM100] an object or array has at most 10,000 members, unless it comes from the file with more", () => {
  const wide = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));
  const list = (count: number) => ({ items: Array(count).fill(0) });
  for (const make of [wide, list]) {
    expect(() => adoptState(make(10_000), SYNCED)).not.toThrow();
    expect(() => adoptState(make(10_001), SYNCED)).toThrow("at most 10000 members, got 10001");
    const old = adoptState(make(12_000), stored(SYNCED));
    expect(() => adoptState(make(11_999), SYNCED, old)).not.toThrow();
    expect(() => adoptState(make(12_001), SYNCED, old)).toThrow("at most 10000 members");
  }
});
