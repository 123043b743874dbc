import { expect, test } from "bun:test";
import { createListCursors } from "./cursors.ts";

const cursors = createListCursors("a secret of 32 characters or more");

test("[ST46] a cursor gives its key back, does not reveal it, and is valid for its bucket only", () => {
  for (const key of ["a", "films/42.png", "ключ/😀", "x".repeat(1024)]) {
    const cursor = cursors.encode("films", key);
    expect(cursors.decode("films", cursor)).toBe(key);
    expect(cursors.encode("films", key)).toBe(cursor);
    if (key.length > 1) expect(Buffer.from(cursor, "base64url").includes(key)).toBe(false);
    expect(() => cursors.decode("other", cursor)).toThrow("cursor");
    expect(() => createListCursors("another secret, as long as that one").decode("films", cursor)).toThrow("cursor");
  }
});

test("[ST46] a cursor that was changed, cut off or made up is refused", () => {
  const cursor = cursors.encode("films", "films/42.png");
  const bytes = Buffer.from(cursor, "base64url");
  for (let at = 0; at < bytes.byteLength; at++) {
    const changed = bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
    expect(() => cursors.decode("films", Buffer.from(changed).toString("base64url"))).toThrow("cursor");
    expect(() => cursors.decode("films", bytes.subarray(0, at).toString("base64url"))).toThrow("cursor");
  }
  for (const text of ["", "!", "films/42.png", Buffer.from("films/42.png").toString("base64url"), "A".repeat(5_000)]) {
    expect(() => cursors.decode("films", text)).toThrow("cursor");
  }
});
