import { expect, test } from "bun:test";
import { SLICED_DATA_MIN_LENGTH } from "../limits.ts";
import { createDataParser } from "./dispatcher.ts";

const LONG = "x".repeat(SLICED_DATA_MIN_LENGTH);

test("[JB19] large data is parsed over several turns, and is what JSON.parse gives", async () => {
  const parse = createDataParser();
  const values = [
    { list: Array.from({ length: 30_000 }, (_, n) => ({ n, text: "y".repeat(20) })) },
    { text: LONG },
    [LONG, { a: null }],
  ];
  for (const value of values) {
    const text = JSON.stringify(value);
    const parsed = parse(text);
    expect(parsed).toBeInstanceOf(Promise);
    expect(await parsed).toEqual(value as never);
  }
  expect(parse('{"small":1}')).toEqual({ small: 1 });
  expect(parse(JSON.stringify(LONG))).toBe(LONG);
});

test("[JB19] data that no client may send is parsed all the same", async () => {
  const text = `{"long":"${LONG}","large":9007199254740993,"deep":${"[".repeat(100)}${"]".repeat(100)}}`;
  expect(await createDataParser()(text)).toEqual(JSON.parse(text));
});
