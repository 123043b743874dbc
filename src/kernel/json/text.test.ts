import { expect, test } from "bun:test";
import { jsonTextFault } from "./text.ts";

const faultAt = (text: string) => jsonTextFault(text, JSON.parse(text))?.path ?? null;

test("[HT100] an integer that a double cannot hold exactly is found at its position", () => {
  expect(faultAt("9007199254740993")).toBe("");
  expect(faultAt(" -9007199254740993 ")).toBe("");
  expect(faultAt('{"a":[1,{"b":9007199254740993}]}')).toBe("a.1.b");
  expect(faultAt('{"x":"\\"[{","a\\"b": [ [], {"z":{}}, 1, -12345678901234567890 ]}')).toBe('a"b.3');
  expect(faultAt('{"a":1e300,"b":"1, 9007199254740993","c": 18446744073709551615}')).toBe("c");
  expect(faultAt("[9007199254740992,9007199254740994,\n\t9007199254740995]")).toBe("2");
});

test("[HT100] integers that a double holds, and other numbers, pass", () => {
  for (const text of [
    "9007199254740992",
    "[-9007199254740992, 1152921504606846976, 1000000000000000000000, 9007199254740994]",
    '["9007199254740993", 1e300, 0.1234567890123456789, 12345678901234567890.5, 9007199254740993e1, 1.5e-300]',
    '{"9007199254740993":"[9007199254740993,","b":"\\\\","c":"\\",9007199254740993",":d":-1e308}',
    `["${", 9007199254740993".repeat(1_000)}", 1e20]`,
  ]) {
    expect([text.slice(0, 60), faultAt(text)]).toEqual([text.slice(0, 60), null]);
  }
});

test("[HT100] numbers as the server writes them pass, so that an answer can be sent back", () => {
  for (let power = 50; power < 1_000; power += 7) {
    for (const value of [2 ** power, 1.1 * 2 ** power, -(1 + 2 ** -40) * 2 ** power]) {
      const text = JSON.stringify({ value });
      expect([text, faultAt(text)]).toEqual([text, null]);
    }
  }
});

test("[HT100] random integers pass if and only if their double is exact", () => {
  let refused = 0;
  for (let n = 0; n < 2_000; n++) {
    const bits = BigInt(50 + (n % 20));
    const integer = (1n << bits) + BigInt((n * 7_919) % 4_096) - 2_048n;
    const isExact = BigInt(Number(integer)) === integer || String(Number(integer)) === String(integer);
    expect([integer, faultAt(`{"n":[0,${integer}]}`)]).toEqual([integer, isExact ? null : "n.1"]);
    if (!isExact) refused++;
  }
  expect(refused).toBeGreaterThan(500);
});

test("[HT100] an integer of a million digits whose name occurs again is refused, and not computed", () => {
  expect(faultAt(`{"n":${"9".repeat(1_000_000)},"n":9007199254740992}`)).toBe("n");
});
