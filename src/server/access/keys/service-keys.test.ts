import { expect, test } from "bun:test";
import { testClock } from "../../../../tests/support/clock.ts";
import { createServiceKeys } from "./service-keys.ts";

const KEY = "declared-key-0123456789abcdefghijklmnop";
const ROOT = "root-key-0123456789abcdefghijklmnopqrst";

test("[AC9] a key becomes invalid at the moment it expires; the root key never expires", () => {
  const clock = testClock(Date.parse("2030-01-01T00:00:00Z") - 1);
  const keys = createServiceKeys({
    rootKey: ROOT,
    secret: "a-secret",
    declared: { short: { key: KEY, expiresAt: "2030-01-01T01:00:00+01:00" } },
    clock,
  });
  expect(keys.identify(KEY, () => "127.0.0.1")).toMatchObject({ kind: "serviceKey", name: "short" });
  clock.advance(1);
  expect(() => keys.identify(KEY, () => "127.0.0.1")).toThrow("Invalid service key");
  const zoneless = createServiceKeys({
    rootKey: ROOT,
    secret: "a-secret",
    declared: { short: { key: KEY, expiresAt: "2030-01-01T00:00:01" } },
    clock,
  });
  clock.advance(999);
  expect(zoneless.identify(KEY, () => "127.0.0.1")).toMatchObject({ name: "short" });
  clock.advance(1);
  expect(() => zoneless.identify(KEY, () => "127.0.0.1")).toThrow("Invalid service key");
  clock.advance(1_000 * 365 * 86_400_000);
  expect(keys.identify(ROOT, () => "127.0.0.1")).toMatchObject({ name: "root" });
});
