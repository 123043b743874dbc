import { expect, test } from "bun:test";
import { libraryAt, libraryPath } from "./argon2.ts";
import { ARGON2_PREFIX, hashNow, hashOnThread } from "./hashing.ts";

const PASSWORDS = ["correct horse", "ü😀 ", "a".repeat(1024), "null\u0000inside"];
/** The library for this system, and Bun's own argon2. */
const LIBRARIES = [await libraryPath(), null];

test("[AU460] the library is there on Linux", () => {
  const isServed = process.platform === "linux" && ["x64", "arm64"].includes(process.arch);
  expect(libraryAt(LIBRARIES[0] ?? null) !== null).toBe(isServed);
});

test("[AU460] hashes of either argon2 are of one form, and each checks those of the other", async () => {
  for (const password of PASSWORDS) {
    for (const made of LIBRARIES) {
      const hashes = [
        String(await hashOnThread({ kind: "hash", argon2: made, password })),
        String(hashNow({ kind: "hash", argon2: made, password })),
      ];
      expect(new Set(hashes).size).toBe(2);
      for (const hash of hashes) {
        expect(hash).toStartWith(ARGON2_PREFIX);
        for (const library of LIBRARIES) {
          const check = (given: string) => ({ kind: "check", argon2: library, password: given, hash }) as const;
          const right = [await hashOnThread(check(password)), hashNow(check(password))];
          const wrong = [await hashOnThread(check(`${password} `)), hashNow(check("other"))];
          expect({ right, wrong }).toEqual({ right: [true, true], wrong: [false, false] });
        }
      }
    }
  }
});

test("[AU460] a file that is no library is none", () => {
  expect(libraryAt(import.meta.path)).toBeNull();
  expect(libraryAt(null)).toBeNull();
});
