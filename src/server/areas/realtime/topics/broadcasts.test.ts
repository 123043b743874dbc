import { expect, test } from "bun:test";
import { checkPayload } from "./broadcasts.ts";

test("[RT36] a payload has at most 256 KiB of JSON, for every sender", () => {
  const broadcast = (length: number) => ({ channel: "broadcast:x", event: "e", payload: { text: "x".repeat(length) } });
  const frameLength = JSON.stringify(broadcast(0).payload).length;
  checkPayload(broadcast(256 * 1024 - frameLength));
  expect(() => checkPayload(broadcast(256 * 1024 - frameLength + 1))).toThrow("at most 262144 bytes");
});
