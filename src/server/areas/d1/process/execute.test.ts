import { expect, test } from "bun:test";
import { RESULT_MAX_BYTES } from "../limits.ts";
import { RowWriter } from "./execute.ts";

/** A blob that cannot be encoded. */
class Unread extends Uint8Array {
  override get buffer(): ArrayBuffer {
    throw new Error("it was encoded");
  }
}

test("[DQ10] a row that is too large is refused before it becomes text", () => {
  const half = RESULT_MAX_BYTES / 2;
  const rows = new RowWriter(["a", "b", "b"]);
  rows.add(["x".repeat(half - 100), null, new Uint8Array(8)]);
  expect(() => rows.add(["x".repeat(100), null, new Unread(half)])).toThrow("use LIMIT");
  // Only columns in the answer count: of several with one name, the last one.
  rows.add([1, new Unread(RESULT_MAX_BYTES), new Uint8Array(0)]);
  expect(rows.count).toBe(2);
});
