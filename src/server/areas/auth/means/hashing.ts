import { pbkdf2, pbkdf2Sync } from "node:crypto";
import { promisify } from "node:util";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import { ARGON2_MEMORY_KIB, ARGON2_PASSES, BCRYPT_MAX_BYTES } from "../limits.ts";
import { equalsConstantTime } from "../store/sealing.ts";
import { libraryAt, libraryOptions } from "./argon2.ts";
import { isScryptOf, isScryptOfNow, scryptOf } from "./scrypt.ts";
import { SHA_CRYPT, type ShaCrypt, shaCryptOf, shaCryptSteps } from "./sha-crypt.ts";

export const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
export const PBKDF2 = /^pbkdf2:sha256:(\d+):([A-Za-z0-9+/_-]+={0,2}):([A-Za-z0-9+/_-]+={0,2})$/;
/** PBKDF2 in the form of Django, whose salt is a text. */
export const DJANGO = /^pbkdf2_sha256\$(\d+)\$([^$]+)\$([A-Za-z0-9+/]+={0,2})$/;
/** argon2 in the form of its own reference: memory in KiB, passes, lanes, salt and hash. */
export const ARGON2_FORM =
  /^\$argon2(?:id|i)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

const ARGON2 = { algorithm: "argon2id", memoryCost: ARGON2_MEMORY_KIB, timeCost: ARGON2_PASSES } as const;

/** The beginning of the hashes that are made here. */
export const ARGON2_PREFIX = `$argon2id$v=19$m=${ARGON2_MEMORY_KIB},t=${ARGON2_PASSES},p=1$`;
const LIBRARY_OPTIONS = libraryOptions(ARGON2);

/**
 * Work that takes a processor for milliseconds: to make a hash, or to compare a password with one. `argon2`: the path of the library
 * that makes hashes, in a third of the time; null: Bun does.
 */
export type HashWork = { argon2: string | null; password: string } & (
  | { kind: "hash" }
  | { kind: "check"; hash: string }
);

const deriveKey = promisify(pbkdf2);

/** Works on a thread of this process. Returns the hash, or whether the password is right. */
export async function hashOnThread(work: HashWork): Promise<string | boolean> {
  const library = libraryAt(work.argon2);
  if (work.kind === "hash")
    return library?.hash(work.password, LIBRARY_OPTIONS) ?? Bun.password.hash(work.password, ARGON2);
  const { password, hash } = work;
  if (library !== null && hash.startsWith(ARGON2_PREFIX)) return library.verify(hash, password);
  const crypt = shaCryptOf(hash);
  if (crypt !== null) return isShaCryptOf(password, crypt);
  const scrypt = scryptOf(hash);
  if (scrypt !== null) return isScryptOf(password, scrypt);
  const derived = derivedKeyOf(hash);
  if (derived === null) return Bun.password.verify(bytesOf(password, hash), hash);
  const { salt, iterations, expected } = derived;
  return equalsConstantTime(await deriveKey(password, salt, iterations, expected.byteLength, "sha256"), expected);
}

/** Works at once, in a process that does nothing else. */
export function hashNow(work: HashWork): string | boolean {
  const library = libraryAt(work.argon2);
  if (work.kind === "hash")
    return library?.hashSync(work.password, LIBRARY_OPTIONS) ?? Bun.password.hashSync(work.password, ARGON2);
  const { password, hash } = work;
  if (library !== null && hash.startsWith(ARGON2_PREFIX)) return library.verifySync(hash, password);
  const crypt = shaCryptOf(hash);
  if (crypt !== null) return isExpected(lastOf(shaCryptSteps(password, crypt)), crypt);
  const scrypt = scryptOf(hash);
  if (scrypt !== null) return isScryptOfNow(password, scrypt);
  const derived = derivedKeyOf(hash);
  if (derived === null) return Bun.password.verifySync(bytesOf(password, hash), hash);
  const { salt, iterations, expected } = derived;
  return equalsConstantTime(pbkdf2Sync(password, salt, iterations, expected.byteLength, "sha256"), expected);
}

/** Compares a password of SHA-crypt, which no thread does: in steps, between which the event loop turns. */
async function isShaCryptOf(password: string, crypt: ShaCrypt): Promise<boolean> {
  const steps = shaCryptSteps(password, crypt);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return isExpected(step.value, crypt);
    await nextTurn();
  }
}

function lastOf(steps: Generator<void, string>): string {
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

const isExpected = (text: string, { expected }: ShaCrypt): boolean =>
  equalsConstantTime(Buffer.from(text), Buffer.from(expected));

/** Whether a hash is computed beside the event loop by a process alone. */
export const needsProcess = (work: HashWork): boolean => work.kind === "check" && SHA_CRYPT.test(work.hash);

const bytesOf = (password: string, hash: string): string | Buffer =>
  BCRYPT.test(hash) ? Buffer.from(password).subarray(0, BCRYPT_MAX_BYTES) : password;

/** PBKDF2 by its parts. */
export interface DerivedKey {
  salt: Buffer;
  iterations: number;
  expected: Buffer;
}

/** Returns the parts of a hash of PBKDF2; null for another one. */
export function derivedKeyOf(encoded: string): DerivedKey | null {
  const django = DJANGO.exec(encoded);
  const [, iterations, salt, hash] = django ?? PBKDF2.exec(encoded) ?? [];
  if (iterations === undefined || salt === undefined || hash === undefined) return null;
  return {
    salt: Buffer.from(salt, django === null ? "base64" : "utf8"),
    iterations: Number(iterations),
    expected: Buffer.from(hash, "base64"),
  };
}
