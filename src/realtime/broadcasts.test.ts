import { expect, test } from "bun:test";
import { checkBroadcast } from "./broadcasts.ts";

test("[RT36] a payload has at most 256 KiB of JSON, whoever sends it", () => {
  const payload = (length: number) => ({ text: "x".repeat(length) });
  const frame = JSON.stringify(payload(0)).length;
  expect(checkBroadcast("broadcast:x", "e", payload(256 * 1024 - frame)).event).toBe("e");
  expect(() => checkBroadcast("broadcast:x", "e", payload(256 * 1024 - frame + 1))).toThrow("at most 262144 bytes");
});
