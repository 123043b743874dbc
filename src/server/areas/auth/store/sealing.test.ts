import { expect, test } from "bun:test";
import { Sealing } from "./sealing.ts";

test("[AU42] a sealed value is readable with its own secret only, and sealing it twice gives different texts", () => {
  const [mine, other] = [new Sealing("a".repeat(32)), new Sealing("b".repeat(32))];
  const sealed = mine.seal("the secret of a factor");
  expect(mine.unseal(sealed)).toBe("the secret of a factor");
  expect(mine.seal("the secret of a factor")).not.toBe(sealed);
  expect(other.unseal(sealed)).toBeNull();
  const changed = Buffer.from(sealed, "base64");
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  expect(mine.unseal(changed.toString("base64"))).toBeNull();
});

test("[AU42] hashes at rest depend on the secret and on the purpose", () => {
  const [mine, other] = [new Sealing("a".repeat(32)), new Sealing("b".repeat(32))];
  const hash = mine.digest("reset-password", "token");
  expect(mine.digest("reset-password", "token")).toEqual(hash);
  expect(mine.digest("magic-link", "token")).not.toEqual(hash);
  expect(other.digest("reset-password", "token")).not.toEqual(hash);
});
