import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FieldTypes } from "./client.ts";
import { readRecords, type SourceRecord } from "./records.ts";
import { type Format, formatOf } from "./target.ts";

const root = mkdtempSync(join(tmpdir(), "platform-records-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function read(name: string, content: string, types: FieldTypes | null = null): Promise<SourceRecord[]> {
  const file = join(root, name);
  writeFileSync(file, content);
  return Array.fromAsync(readRecords(file, formatOf(file, ["json", "ndjson", "csv"]), types));
}

const places = (records: SourceRecord[]) => records.map(({ place, record }) => [place, record]);

describe("readRecords", () => {
  test("[CL13] NDJSON: one record a line, by its number in the file; empty lines and the last line's end do not count", async () => {
    const records = await read("a.ndjson", '\ufeff{"a":1}\r\n\n{"a":"ü\\n"}');
    expect(places(records)).toEqual([
      ["line 1", { a: 1 }],
      ["line 3", { a: "ü\n" }],
    ]);
  });

  test("[CL13] NDJSON: records that lie across the pieces a file is read in", async () => {
    const lines = Array.from({ length: 3000 }, (_, n) => ({ n, text: "ä".repeat(n % 97) }));
    const text = lines.map((line) => JSON.stringify(line)).join("\n");
    const records = await read("long.jsonl", text);
    expect(records.map(({ record }) => record)).toEqual(lines);
    expect(records.at(-1)?.bytesRead).toBe(Buffer.byteLength(text));
  });

  test("[CL14] NDJSON: a broken line is named, and so is a value that is not an object", async () => {
    await expect(read("a.ndjson", '{"a":1}\n{"a":')).rejects.toThrow("line 2: is not valid JSON");
    await expect(read("a.ndjson", '{"a":1}\n{"a":9007199254740993}')).rejects.toThrow("line 2: a is an integer");
    await expect(read("a.ndjson", '{"a":1}\n\n[1]')).rejects.toThrow("line 3: must be a JSON object");
  });

  test("[CL13] a JSON array: one record an element, read piece by piece", async () => {
    const elements = Array.from({ length: 3000 }, (_, n) => ({ n, nested: { list: [n, null, "x"] }, text: "]}" }));
    const records = await read("a.json", `\ufeff \n${JSON.stringify(elements, null, 2)}\n`);
    expect(records.map(({ record }) => record)).toEqual(elements);
    expect(records.at(-1)?.place).toBe("element 3000");
    expect(await read("a.json", "[]")).toEqual([]);
  });

  test.each(["ndjson", "json", "csv"])("[CL14] %s: a file in another encoding is refused", async (format) => {
    const file = join(root, `latin1.${format}`);
    const record = { ndjson: '{"name":"Zoë"}', json: '[{"name":"Zoë"}]', csv: "name\nZoë" }[format] ?? "";
    writeFileSync(file, Buffer.from(record, "latin1"));
    await expect(Array.fromAsync(readRecords(file, format as Format, null))).rejects.toThrow("is not encoded as UTF-8");
  });

  test("[CL14] a JSON array: what comes before a mistake is read, and the element at fault is named", async () => {
    const file = join(root, "broken.json");
    writeFileSync(file, '[{"a":1},{"a":2},{"a"}]');
    const seen: string[] = [];
    const reading = async () => {
      for await (const { place } of readRecords(file, "json", null)) seen.push(place);
    };
    await expect(reading()).rejects.toThrow("element 3: is not valid JSON");

    expect(seen).toEqual(["element 1", "element 2"]);
    await expect(read("a.json", '[{"a":1}')).rejects.toThrow(
      "element 2: is not valid JSON (the file ends before the array does)",
    );
    await expect(read("a.json", '{"a":1}')).rejects.toThrow("must contain a JSON array");
    await expect(read("a.json", '[{"a":1},5]')).rejects.toThrow("element 2: must be a JSON object");
    for (const number of ["9007199254740993", "-9007199254740993", "1e400"]) {
      await expect(read("a.json", `[{"a":${Number.MAX_SAFE_INTEGER}},{"a":[${number}]}]`)).rejects.toThrow(
        `element 2: is not valid JSON (${number} is`,
      );
    }
    expect(places(await read("a.json", '[{"a":[-1.5e3,1152921504606847000]}]'))).toEqual([
      ["element 1", { a: [-1500, 2 ** 60] }],
    ]);
  });

  test("[CL15] CSV: names from the first line, values by type, lines counted through cells of several", async () => {
    const types: FieldTypes = new Map([
      ["id", "string"],
      ["stars", "integer"],
      ["text", "text"],
      ["createdAt", "datetime"],
    ]);
    const records = await read(
      "a.csv",
      'id,stars,"text",createdAt\r\na,5,"two\r\nlines",\r\n\r\n,,"",2024-01-01\r\n',
      types,
    );
    expect(places(records)).toEqual([
      ["line 2", { id: "a", stars: 5, text: "two\r\nlines" }],
      ["line 5", { stars: null, text: "", createdAt: "2024-01-01" }],
    ]);
  });

  test("[CL13] CSV: a column is part of the record, whatever its name", async () => {
    const [first] = await read("a.csv", "a,__proto__,constructor\n1,2,3\n");
    expect(JSON.stringify(first?.record)).toBe('{"a":"1","__proto__":"2","constructor":"3"}');
  });

  test("[CL14] CSV: a line with another number of cells, and broken JSON, are named", async () => {
    await expect(read("a.csv", "a,b\n1,2\n1\n")).rejects.toThrow(
      "line 3: has 1 cell, but the first line names 2 fields",
    );
    await expect(read("a.csv", "a,b, a\n1,2,3\n")).rejects.toThrow("names the field a twice");
    await expect(read("a.csv", "a;b\n1;2\n")).rejects.toThrow("the first line has semicolons between its names");
    await expect(read("a.csv", "a\tb\n1\t2\n")).rejects.toThrow("the first line has tabs between its names");
    await expect(read("a.csv", 'a,b\n1,"2\n')).rejects.toThrow("Quote Not Closed");
    await expect(read("a.csv", "a,b\n1,{x\n", new Map([["b", "json"]]))).rejects.toThrow(
      "line 2: b: is not valid JSON",
    );
  });
});
