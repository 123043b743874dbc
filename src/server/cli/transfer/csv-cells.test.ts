import { describe, expect, test } from "bun:test";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { formatCell, headFault, parseCell } from "../../../kernel/transfer/csv-cells.ts";
import type { FieldType } from "../../config/types.ts";
import { formatRows } from "./rows.ts";

const bare = (text: string) => ({ text, isQuoted: false });
const quoted = (text: string) => ({ text, isQuoted: true });

/** Returns the cell that a reader of the written row finds. */
function writtenCell(value: JsonValue, type: FieldType | undefined) {
  const row = formatRows([[formatCell(value, type)]]).slice(0, -"\r\n".length);
  const isQuoted = row.startsWith('"');
  return { text: isQuoted ? row.slice(1, -1).replaceAll('""', '"') : row, isQuoted };
}

describe("parseCell", () => {
  const CASES: [text: string, type: FieldType | undefined, value: JsonValue][] = [
    ["1.5", "number", 1.5],
    ["-3e2", "number", -300],
    ["007", "integer", 7],
    ["0x10", "integer", "0x10"],
    ["many", "integer", "many"],
    ["9007199254740993", "integer", "9007199254740993"],
    ["9".repeat(400), "number", "9".repeat(400)],
    ["-1152921504606847000", "number", -(2 ** 60)],
    ["00000000000000000007", "integer", 7],
    ["TRUE", "boolean", true],
    ["0", "boolean", false],
    ["yes", "boolean", "yes"],
    ['{"a":[1]}', "json", { a: [1] }],
    ["2024-01-01", "datetime", "2024-01-01"],
    ["2024-05-06", "date", "2024-05-06"],
    ["t", "boolean", true],
    ["F", "boolean", false],
    ["2024-05-06 04:00:00.12+02", "datetime", "2024-05-06 04:00:00.12+02:00"],
    ["2024-05-06 04:00:00", "datetime", "2024-05-06 04:00:00Z"],
    ["2024-05-06T04:00:00", "datetime", "2024-05-06T04:00:00"],
    ["2024-05-06 00:00:00", "date", "2024-05-06"],
    ["2024-05-06 01:00:00", "date", "2024-05-06 01:00:00"],
    ['{a,"b,\\"}",NULL,{1}}', "references", ["a", 'b,"}', null, ["1"]]],
    ["{1,-2.5e3,9007199254740993}", "json", [1, -2500, "9007199254740993"]],
    ["{}", "references", []],
    ["a/b.png", "file", "a/b.png"],
    ["42", "string", "42"],
    [" x ", "text", " x "],
    ["42", undefined, "42"],
  ];
  for (const [text, type, value] of CASES) {
    test(`[CL15] ${text} as ${type ?? "a field without a type"}`, () => {
      expect(parseCell(bare(text), type)).toEqual(value);
    });
  }

  test("[CL15] an empty cell is null, a quoted one an empty text where the field is text", () => {
    for (const type of ["string", "text", "number", "boolean", "json", "datetime", "date", undefined] as const) {
      expect(parseCell(bare(""), type)).toBeNull();
    }
    expect(parseCell(quoted(""), "string")).toBe("");
    expect(parseCell(quoted(""), undefined)).toBe("");
    expect(parseCell(quoted(""), "integer")).toBeNull();
  });

  test("[CL15] broken JSON is refused, since as text it would be another value", () => {
    for (const text of ["{a", '{"a":9007199254740993}', "[1e400]", "{a,}", "{a}}", "{a b", "{{{{{{{1}}}}}}}"]) {
      expect(() => parseCell(bare(text), "json")).toThrow(SyntaxError);
    }
  });
});

test("[CL17] a cell that was written is read as the same value", () => {
  const values: [JsonValue, FieldType | undefined][] = [
    [null, "string"],
    ["", "string"],
    ['a "b", c\nd', "text"],
    [" padded ", "text"],
    ["null", "json"],
    [{ a: ["x", null] }, "json"],
    [1e21, "number"],
    [false, "boolean"],
  ];
  for (const [value, type] of values) {
    expect(parseCell(writtenCell(value, type), type)).toEqual(value);
  }
  expect(formatRows([["a", "b,c", null, ""], [" d"]])).toBe('a,"b,c",,""\r\n" d"\r\n');
});

const FORMULAS = ["=1+1", "+49 30 123", "-5", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1"];

test("[CL115] a text that looks like a spreadsheet's formula is written as text, and read unchanged", () => {
  const texts = [
    ...FORMULAS,
    ...FORMULAS.map((text) => `'${text}`),
    ...FORMULAS.map((text) => `''${text}`),
    "'",
    "it's",
    "'quoted'",
  ];
  for (const type of ["string", "text", "datetime", undefined] as const) {
    for (const text of texts) {
      const cell = writtenCell(text, type);
      expect(cell.text).not.toMatch(/^[=+\-@\t\r\n\uff1d]/);
      expect(parseCell(cell, type)).toBe(text);
    }
  }
});

test("[CL115] numbers, negative ones too, and JSON stay as they are", () => {
  expect(formatCell(-5, "integer")).toBe("-5");
  expect(formatCell(-5, undefined)).toBe("-5");
  expect(formatCell(-5, "json")).toBe("-5");
  expect(formatCell("=1", "json")).toBe('"=1"');
  expect(parseCell(bare("-5"), "number")).toBe(-5);
});

test("[CL14] a repeated name is found among very many", () => {
  const names = Array.from({ length: 300_000 }, (_, at) => `field ${at}`);
  expect(headFault(names)).toBeNull();
  expect(headFault([...names, "field 299999"])).toBe("names the field field 299999 twice");
});
