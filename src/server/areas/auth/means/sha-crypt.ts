import { createHash, type Hash } from "node:crypto";

/** SHA-crypt, as `crypt(3)` of Linux has it: `$5$` with SHA-256, `$6$` with SHA-512. */
export const SHA_CRYPT = /^\$([56])\$(?:rounds=(\d{1,9})\$)?([^$]{0,16})\$([./0-9A-Za-z]{43}|[./0-9A-Za-z]{86})$/;

const DEFAULT_ROUNDS = 5_000;
const DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Rounds of one step: a few milliseconds at most. */
const STEP_ROUNDS = 500;

/** A hash of SHA-crypt by its parts. */
export interface ShaCrypt {
  algorithm: "sha256" | "sha512";
  rounds: number;
  salt: string;
  /** The text behind the salt. */
  expected: string;
}

/** Returns the parts of a hash; null for another one. */
export function shaCryptOf(encoded: string): ShaCrypt | null {
  const [, kind, rounds, salt, expected] = SHA_CRYPT.exec(encoded) ?? [];
  if (kind === undefined || salt === undefined || expected === undefined) return null;
  if (expected.length !== (kind === "5" ? 43 : 86)) return null;
  const algorithm = kind === "5" ? "sha256" : "sha512";
  return { algorithm, rounds: rounds === undefined ? DEFAULT_ROUNDS : Number(rounds), salt, expected };
}

/** Computes the text behind the salt, in steps between which the caller may pause. */
export function* shaCryptSteps(
  password: string,
  { algorithm, rounds, salt: saltText }: ShaCrypt,
): Generator<void, string> {
  const [key, salt] = [Buffer.from(password), Buffer.from(saltText)];
  const hash = (fill: (hash: Hash) => void): Buffer => {
    const made = createHash(algorithm);
    fill(made);
    return made.digest();
  };
  const alternate = hash((one) => one.update(key).update(salt).update(key));
  let digest = hash((one) => {
    one.update(key).update(salt).update(repeated(alternate, key.byteLength));
    for (let bits = key.byteLength; bits > 0; bits >>= 1) one.update(bits & 1 ? alternate : key);
  });
  const keyDigest = hash((one) => {
    for (let count = 0; count < key.byteLength; count += 1) one.update(key);
  });
  const first = digest[0] ?? 0;
  const saltDigest = hash((one) => {
    for (let count = 0; count < 16 + first; count += 1) one.update(salt);
  });
  const [p, s] = [repeated(keyDigest, key.byteLength), repeated(saltDigest, salt.byteLength)];
  for (let round = 0; round < rounds; round += 1) {
    const before = digest;
    digest = hash((one) => {
      one.update(round % 2 === 1 ? p : before);
      if (round % 3 !== 0) one.update(s);
      if (round % 7 !== 0) one.update(p);
      one.update(round % 2 === 1 ? before : p);
    });
    if (round % STEP_ROUNDS === STEP_ROUNDS - 1) yield;
  }
  return encoded(digest, algorithm);
}

/** Returns so many bytes of a digest, behind each other. */
const repeated = (digest: Buffer, length: number): Buffer =>
  Buffer.concat(Array.from({ length: Math.ceil(length / digest.byteLength) }, () => digest)).subarray(0, length);

/** Writes a digest in base64 of crypt, whose bytes are in an order of their own. */
function encoded(digest: Buffer, algorithm: ShaCrypt["algorithm"]): string {
  const third = algorithm === "sha256" ? 10 : 21;
  let text = "";
  const add = (bytes: readonly number[], digits: number): void => {
    let value = bytes.reduce((sum, index) => (sum << 8) | (digest[index] ?? 0), 0);
    for (let count = 0; count < digits; count += 1, value >>>= 6) text += DIGITS[value & 63] ?? "";
  };
  for (let group = 0; group < third; group += 1) {
    const indexes = [group, group + third, group + 2 * third];
    // The three are rotated from group to group, in the one form to the right, in the other one to the left.
    const turn = algorithm === "sha256" ? (3 - (group % 3)) % 3 : group % 3;
    add([...indexes.slice(turn), ...indexes.slice(0, turn)], 4);
  }
  if (algorithm === "sha256") add([31, 30], 3);
  else add([63], 2);
  return text;
}
