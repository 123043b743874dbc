import { afterAll, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestClock, testClock } from "../../../../../tests/support/clock.ts";
import { until } from "../../../../../tests/support/until.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../kernel/time/duration.ts";
import {
  askForTokenKey,
  isTokenKeyAwaited,
  signingKeyId,
  TOKEN_KEYS_FILE,
} from "../../../config/secrets/token-rotation.ts";
import { TOKEN_KEYS_CHECK_MS, TOKEN_KEYS_MAX } from "../limits.ts";
import { Sealing } from "../store/sealing.ts";
import { TokenKeys } from "./token-keys.ts";

const SECRET = "a secret of the tests, 32 bytes long";
const directories: string[] = [];
afterAll(() => {
  for (const made of directories) rmSync(made, { recursive: true });
});

let directory = "";
let clock: TestClock;
let lines: string[] = [];
let logger: Logger;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "token-keys-"));
  directories.push(directory);
  clock = testClock();
  lines = [];
  const note = (message: string) => void lines.push(message);
  logger = { info() {}, warn: note, error: note };
});

const open = ({ secret = SECRET, tokenTtlMs = HOUR_MS } = {}) =>
  TokenKeys.open({
    dataDirectory: directory,
    sealing: new Sealing(secret),
    tokenTtlMs,
    rotateMs: 90 * DAY_MS,
    clock,
    logger,
  });
const idsOf = (keys: TokenKeys) => keys.published.map(({ kid }) => kid);
/** Advances, and waits until the keys are those of then. */
async function later(ms: number, keys: TokenKeys, count: number): Promise<void> {
  clock.advance(ms);
  await until(`there are ${count} keys`, () => {
    clock.advance(TOKEN_KEYS_CHECK_MS);
    return idsOf(keys).length === count;
  });
}

test("[AU321] a key is kept, sealed, in a file of its owner, and signs after a restart too", async () => {
  const keys = await open();
  const { kid } = keys.signing;
  const path = join(directory, TOKEN_KEYS_FILE);
  const text = readFileSync(path, "utf8");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(text).toContain(kid);
  expect(text).not.toContain('"d"');
  expect(keys.published).toEqual([
    { kty: "EC", crv: "P-256", x: expect.any(String), y: expect.any(String), kid, alg: "ES256", use: "sig" },
  ]);
  await keys.stop();
  const again = await open();
  expect(idsOf(again)).toEqual([kid]);
  await again.stop();
});

test("[AU321] after 90 days a new key signs, and the old one goes when its last token has expired", async () => {
  const keys = await open();
  const first = keys.signing.kid;
  clock.advance(89 * DAY_MS);
  expect(idsOf(keys)).toEqual([first]);
  await later(DAY_MS, keys, 2);
  const second = keys.signing.kid;
  expect(idsOf(keys)).toEqual([second, first]);
  expect(keys.publicKey(first)).not.toBeNull();
  expect(signingKeyId(directory)).toBe(second);
  await later(HOUR_MS + 5 * MINUTE_MS, keys, 1);
  expect(idsOf(keys)).toEqual([second]);
  expect(keys.publicKey(first)).toBeNull();
  await keys.stop();
});

test("[AU321] tokens that lived longer when they were signed are still good", async () => {
  const long = await open({ tokenTtlMs: 2 * DAY_MS });
  const first = long.signing.kid;
  await long.stop();
  const keys = await open({ tokenTtlMs: MINUTE_MS });
  await later(90 * DAY_MS, keys, 2);
  clock.advance(DAY_MS);
  expect(keys.publicKey(first)).not.toBeNull();
  await later(2 * DAY_MS, keys, 1);
  await keys.stop();
});

test("[AU322] a request makes a new key, also at a start, and no more than there is room for", async () => {
  askForTokenKey(directory);
  const keys = await open();
  expect(idsOf(keys)).toHaveLength(1);
  for (let count = 2; count <= TOKEN_KEYS_MAX; count++) {
    askForTokenKey(directory);
    await later(0, keys, count);
  }
  const newest = keys.signing.kid;
  await until("the last request is settled", () => {
    clock.advance(TOKEN_KEYS_CHECK_MS);
    return !isTokenKeyAwaited(directory);
  });
  askForTokenKey(directory);
  await until("it is refused", () => {
    clock.advance(TOKEN_KEYS_CHECK_MS);
    return !isTokenKeyAwaited(directory);
  });
  expect([keys.signing.kid, idsOf(keys).length]).toEqual([newest, TOKEN_KEYS_MAX]);
  expect(lines.join("\n")).toContain("No new key of access tokens");
  await keys.stop();
});

test("[AU321] keys of another secret, and a file that cannot be read, are replaced, and said so", async () => {
  const keys = await open();
  const first = keys.signing.kid;
  await keys.stop();
  const other = await open({ secret: "another secret of the tests, 32 bytes" });
  expect(idsOf(other)).toHaveLength(1);
  expect(other.signing.kid).not.toBe(first);
  await other.stop();
  expect(lines.join("\n")).toContain("sealed with another secret");
  for (const content of ["{", "[]", '{"keys":[{}]}', "null"]) {
    writeFileSync(join(directory, TOKEN_KEYS_FILE), content);
    const mended = await open();
    expect(idsOf(mended)).toHaveLength(1);
    await mended.stop();
  }
  expect(existsSync(join(directory, TOKEN_KEYS_FILE))).toBe(true);
});
