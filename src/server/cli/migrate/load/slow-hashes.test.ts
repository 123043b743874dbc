import { expect, test } from "bun:test";
import { createRemarks } from "../remarks.ts";
import { tellSlowHashes } from "./slow-hashes.ts";

test("[MG32] hashes that take over 300 ms are counted by their cost, of which one is tried", async () => {
  const remarks = createRemarks();
  const tried: string[] = [];
  const hashes = [
    `$2b$10$${"a".repeat(53)}`,
    `$2b$14$${"b".repeat(53)}`,
    `$2b$14$${"c".repeat(53)}`,
    "pbkdf2_sha256$9000000$salt$aGFzaA==",
    "$scrypt$ln=17,r=8,p=1$c2FsdA$aGFzaA",
    "$firebase-scrypt$ln=14,r=8$c2FsdA==$$a2V5$aGFzaA==",
    "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA",
    `$6$rounds=900000$salt$${"x".repeat(86)}`,
  ];
  const slow = new Set([hashes[1], hashes[3], hashes[7]]);
  const accounts = [...hashes, null].map((passwordHash, index) => ({
    id: String(index),
    email: `${index}@example.com`,
    ...(passwordHash === null ? {} : { passwordHash }),
  }));
  await tellSlowHashes(accounts, remarks, async (hash) => {
    tried.push(hash);
    return slow.has(hash) ? 301 : 300;
  });
  expect(tried).toEqual(hashes.filter((_, index) => index !== 2));
  expect(remarks.toLookAt.map(({ text }) => text.slice(0, 38))).toEqual([
    "2 hashes ($2b$14) take 301 ms on this ",
    "1 hashes (pbkdf2_sha256$9000000) take ",
    "1 hashes ($6$rounds=900000) take 301 m",
  ]);
});
