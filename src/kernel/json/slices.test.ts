import { expect, test } from "bun:test";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { isTextWithinDepth, type JsonFault } from "./json.ts";
import { JsonRefused, parseInSlices } from "./slices.ts";
import { jsonTextFault } from "./text.ts";

type Outcome = { value: unknown } | { fault: JsonFault | null };

function inSlices(text: string): Outcome {
  const steps = parseInSlices(text);
  try {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return { value: step.value };
    }
  } catch (cause) {
    if (cause instanceof JsonRefused) return { fault: cause.fault };
    throw cause;
  }
}

/** The expected outcome. */
function atOnce(text: string): Outcome {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: null };
  }
  const fault = jsonTextFault(text, value);
  return fault === null ? { value } : { fault };
}

function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** JSON text, with blanks, about as long as `length`. */
function jsonText(random: (below: number) => number, length: number, depth = 0): string {
  const blank = () => ["", "", "", " ", "\n\t "][random(5)] ?? "";
  const string = () => JSON.stringify(["a", "", 'q"[{,', "\\", "é😀", "__proto__", "x".repeat(random(60))][random(7)]);
  const scalar = () => [string(), "0", "-1.5e3", "true", "null"][random(5)] ?? "0";
  if (depth > 5 || length < 8) return blank() + scalar() + blank();
  const isArray = random(2) === 0;
  const members: string[] = [];
  for (let left = length; left > 0; ) {
    const size = random(4) === 0 ? Math.floor(left / (1 + random(3))) : random(40);
    const member = jsonText(random, size, depth + 1);
    members.push(isArray ? member : `${blank()}${JSON.stringify(`k${random(1_000)}`)}${blank()}:${member}`);
    left -= member.length + 1;
  }
  return isArray ? `${blank()}[${members.join(",")}]${blank()}` : `${blank()}{${members.join(",")}}${blank()}`;
}

test("[HT80] a long text parsed in slices gives what JSON.parse gives, wherever it is cut", () => {
  const random = numbers(11);
  for (let round = 0; round < 30; round++) {
    const text = jsonText(random, 20_000 + random(300_000));
    if (!/^\s*[[{]/.test(text)) continue;
    expect(inSlices(text)).toEqual(atOnce(text));
  }
});

test("[HT80] a long text with one character changed, lost or more is refused as JSON.parse refuses it", () => {
  const random = numbers(13);
  const text = jsonText(numbers(17), 120_000);
  for (let round = 0; round < 150; round++) {
    const at = random(text.length);
    const instead = ["", ",", "]", "}", "[", '"', ":", "1", "\u0001", "\\"][random(10)] ?? "";
    const broken = text.slice(0, at) + instead + text.slice(at + random(2));
    if (!/^\s*[[{]/.test(broken)) continue;
    expect([at, instead, inSlices(broken)]).toEqual([at, instead, atOnce(broken)]);
  }
});

test("[HT80] commas, brackets and faults at the end of a slice", () => {
  const long = `"${"x".repeat(40_000)}"`;
  const row = `[${"1,".repeat(20_000)}1]`;
  for (const text of [
    ...[
      `[${long},]`,
      `[${long},,${long}]`,
      `[,${long}]`,
      `[${row},]`,
      `[${row}${row}]`,
      `[${row} 1,${row}]`,
      `[1 ${row}]`,
    ],
    ...[`{"a":${row},}`, `{"a":${row} "b":1}`, `{"a" ${row}}`, `{${row}}`, `{"a":1 "b":${row}}`, `{"a":${row},"a":1}`],
    ...[
      `${row}1`,
      `${row}]`,
      `1${row}`,
      `[${row}`,
      `{"a":${row}]`,
      `[${row},{"a":[1}]]`,
      `[${row}:1]`,
      `"${row}`,
      "",
      " ",
    ],
    ...[
      `{"__proto__":${row},"b":{"__proto__":1}}`,
      `[${row},[${row},{"k":{"\\ud800":1}}]]`,
      `{"a":[${row},[1,1e999]]}`,
      `{"a":{"b":[${row},9007199254740993,${row}]}}`,
      `[${row},{"c":-9007199254740993,"d":${row}}]`,
    ],
    ...[
      `{"a":{"b":[${row},"\\udc00",${row}]}}`,
      `[${row},1e999,${row}]`,
      `{"\\ud800":${row}}`,
      `[${"[],".repeat(50_000)}[]]`,
    ],
    ...[`[${" ".repeat(40_000)}]`, `[${" ".repeat(40_000)},]`, `{"a":${"[".repeat(63)}${long}${"]".repeat(63)}}`],
  ]) {
    expect([text.slice(0, 20), inSlices(text)]).toEqual([text.slice(0, 20), atOnce(text)]);
  }
});

test("[HT80] a text that nests too deep is refused at that position", () => {
  for (const depth of [JSON_DEPTH_MAX, JSON_DEPTH_MAX + 1]) {
    const text = `${"[".repeat(depth)}"${"x".repeat(40_000)}"${"]".repeat(depth)}`;
    const outcome = inSlices(text);
    expect("fault" in outcome ? outcome.fault?.message : null).toBe(
      isTextWithinDepth(text) ? null : `nests deeper than ${JSON_DEPTH_MAX} levels`,
    );
  }
});

test("[HT80] an object of more than 50,000 members is refused, and named", () => {
  const object = (count: number) => `{${Array.from({ length: count }, (_, n) => `"k${n}":${n}`).join(",")}}`;
  expect(inSlices(`{"a":[1,${object(50_000)}]}`)).toHaveProperty("value");
  expect(inSlices(`{"a":[1,${object(50_001)}]}`)).toEqual({
    fault: { path: "a.1", message: "has more than 50000 members" },
  });
});
