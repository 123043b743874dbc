import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemIds } from "../../../kernel/ids.ts";
import { resolveSecrets, rotateServiceKey, SecretsError, storedServiceKey } from "./secrets.ts";

const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

function directory(): string {
  const root = mkdtempSync(join(tmpdir(), "platform-secrets-"));
  roots.push(root);
  return root;
}

const resolve = (dataDirectory: string, environment: Record<string, string | undefined> = {}) =>
  resolveSecrets({ dataDirectory, environment, ids: systemIds });
const fileOf = (dataDirectory: string) => join(dataDirectory, "secrets.json");
const KEY = "environment-key-0123456789";
const JWT_SECRET = "0123456789abcdef0123456789abcdef";

describe("resolveSecrets", () => {
  test("[CF30] both from the environment: nothing is written", () => {
    const data = directory();
    const { secrets, newServiceKey } = resolve(data, { PLATFORM_SERVICE_KEY: KEY, PLATFORM_JWT_SECRET: JWT_SECRET });
    expect(secrets).toEqual({ serviceKey: KEY, jwtSecret: JWT_SECRET });
    expect(newServiceKey).toBeNull();
    expect(existsSync(fileOf(data))).toBe(false);
  });

  test("[CF31][CF32] an unset secret is generated once, shown once, and stays", () => {
    const data = directory();
    const first = resolve(data);
    expect(first.newServiceKey).toBe(first.secrets.serviceKey);
    expect(Buffer.byteLength(first.secrets.jwtSecret)).toBeGreaterThanOrEqual(32);
    expect(resolve(data)).toEqual({ secrets: first.secrets, newServiceKey: null, warnings: [] });
    expect(statSync(fileOf(data)).mode & 0o777).toBe(0o600);
    expect(readdirSync(data)).toEqual(["secrets.json"]);
  });

  test("[CF31] a missing directory is created", () => {
    const data = join(directory(), "a", "b");
    expect(resolve(data).newServiceKey).not.toBeNull();
    expect(existsSync(fileOf(data))).toBe(true);
  });

  test("[CF30] one from the environment: only the other is kept, and empty counts as unset", () => {
    const data = directory();
    const first = resolve(data, { PLATFORM_SERVICE_KEY: KEY, PLATFORM_JWT_SECRET: "" });
    expect(first.secrets.serviceKey).toBe(KEY);
    expect(first.newServiceKey).toBeNull();
    expect(JSON.parse(readFileSync(fileOf(data), "utf8"))).toEqual({ jwtSecret: first.secrets.jwtSecret });
    const later = resolve(data);
    expect(later.secrets.jwtSecret).toBe(first.secrets.jwtSecret);
    expect(later.newServiceKey).toBe(later.secrets.serviceKey);
  });

  test("[CF30] the environment takes precedence over the file, which is not changed", () => {
    const data = directory();
    const kept = resolve(data).secrets.serviceKey;
    expect(resolve(data, { PLATFORM_SERVICE_KEY: KEY }).secrets.serviceKey).toBe(KEY);
    expect(resolve(data).secrets.serviceKey).toBe(kept);
  });

  test("[CF33] a token secret under 32 bytes is refused, counted in bytes", () => {
    expect(() => resolve(directory(), { PLATFORM_JWT_SECRET: "x".repeat(31) })).toThrow(
      new SecretsError("PLATFORM_JWT_SECRET must be at least 32 bytes long, got 31"),
    );
    expect(resolve(directory(), { PLATFORM_JWT_SECRET: "é".repeat(16) }).secrets.jwtSecret).toBe("é".repeat(16));
  });

  test("[CF33] a service key that no header can carry is refused, and not shown", () => {
    for (const key of ["a b and so on, up to many", "ключ".repeat(6), "line\nbreak and so on, up to many"]) {
      const attempt = () => resolve(directory(), { PLATFORM_SERVICE_KEY: key });
      expect(attempt).toThrow(SecretsError);
      expect(attempt).not.toThrow(key);
    }
  });

  test("[CF33] a service key under 20 characters is refused, and not shown", () => {
    for (const key of ["k", "0123456789abcdefghi"]) {
      const attempt = () => resolve(directory(), { PLATFORM_SERVICE_KEY: key });
      expect(attempt).toThrow(`PLATFORM_SERVICE_KEY must have at least 20 characters, got ${key.length}`);
      expect(attempt).not.toThrow(`"${key}"`);
    }
    const key = "0123456789abcdefghij";
    expect(resolve(directory(), { PLATFORM_SERVICE_KEY: key }).secrets.serviceKey).toBe(key);
  });

  test("[CF33] a broken file is refused and not changed", () => {
    for (const text of ['{"serviceKey":', "[]", '{"serviceKey":5}', '{"jwtSecret":"short"}']) {
      const data = directory();
      writeFileSync(fileOf(data), text, { mode: 0o600 });
      expect(() => resolve(data)).toThrow(SecretsError);
      expect(readFileSync(fileOf(data), "utf8")).toBe(text);
    }
  });

  test("[CF34] a file that other accounts can read is made private, with a warning", () => {
    const data = directory();
    resolve(data);
    chmodSync(fileOf(data), 0o644);
    const { warnings } = resolve(data);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("mode 644");
    expect(statSync(fileOf(data)).mode & 0o777).toBe(0o600);
  });
});

describe("rotateServiceKey", () => {
  test("[CF35] replaces the key and leaves the token secret", () => {
    const data = directory();
    const before = resolve(data).secrets;
    const key = rotateServiceKey(data, systemIds);
    expect(key).not.toBe(before.serviceKey);
    expect(storedServiceKey(data)).toBe(key);
    expect(resolve(data).secrets).toEqual({ serviceKey: key, jwtSecret: before.jwtSecret });
  });

  test("[CF35] a directory without a key has none to show", () => {
    expect(storedServiceKey(directory())).toBeNull();
  });
});
