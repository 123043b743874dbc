import { createCipheriv, scrypt, scryptSync } from "node:crypto";
import { promisify } from "node:util";
import { SCRYPT_MAX_BYTES } from "../limits.ts";
import { equalsConstantTime } from "../store/sealing.ts";

const BASE64 = "[A-Za-z0-9+/]+={0,2}";
/** scrypt in the form of passlib: logarithm of the cost, block size, parallelism, salt and hash. */
const SCRYPT = new RegExp(`^\\$scrypt\\$ln=(\\d{1,2}),r=(\\d{1,4}),p=(\\d{1,4})\\$(${BASE64})\\$(${BASE64})$`);
/** scrypt of Firebase, with the parameters of its project: salt, separator, key of the signer, and hash. */
const FIREBASE = new RegExp(
  `^\\$firebase-scrypt\\$ln=(\\d{1,2}),r=(\\d{1,4})\\$(${BASE64})\\$((?:${BASE64})?)\\$(${BASE64})\\$(${BASE64})$`,
);
/** Memory that scrypt needs beside its blocks. */
const MARGIN_BYTES = 1024 * 1024;

const deriveKey = promisify<string, Buffer, number, object, Buffer>(scrypt);

/** A hash of scrypt by its parts. */
export interface ScryptHash {
  /** Logarithm of the cost. */
  logarithm: number;
  blockSize: number;
  parallelism: number;
  salt: Buffer;
  expected: Buffer;
  /** The key that Firebase encrypts with the derived one; null: the hash is the derived key. */
  signerKey: Buffer | null;
}

/** Returns the parts of a hash; null for another one. */
export function scryptOf(encoded: string): ScryptHash | null {
  const bytes = (text = ""): Buffer => Buffer.from(text, "base64");
  const plain = SCRYPT.exec(encoded);
  if (plain !== null) {
    const [, logarithm, blockSize, parallelism, salt, hash] = plain;
    const numbers = { logarithm: Number(logarithm), blockSize: Number(blockSize), parallelism: Number(parallelism) };
    return { ...numbers, salt: bytes(salt), expected: bytes(hash), signerKey: null };
  }
  const firebase = FIREBASE.exec(encoded);
  if (firebase === null) return null;
  const [, logarithm, blockSize, salt, separator, signerKey, hash] = firebase;
  return {
    logarithm: Number(logarithm),
    blockSize: Number(blockSize),
    parallelism: 1,
    salt: Buffer.concat([bytes(salt), bytes(separator)]),
    expected: bytes(hash),
    signerKey: bytes(signerKey),
  };
}

/** Returns the memory that a hash takes. */
export const scryptBytes = ({ logarithm, blockSize }: ScryptHash): number => 128 * 2 ** logarithm * blockSize;

const FIREBASE_KEY_BYTES = 32;

function optionsOf({ logarithm, blockSize, parallelism }: ScryptHash): object {
  const maxmem = SCRYPT_MAX_BYTES + 128 * blockSize * parallelism + MARGIN_BYTES;
  return { N: 2 ** logarithm, r: blockSize, p: parallelism, maxmem };
}

const lengthOf = ({ signerKey, expected }: ScryptHash): number =>
  signerKey === null ? expected.byteLength : FIREBASE_KEY_BYTES;

/** Compares a password on a thread of this process. */
export const isScryptOf = async (password: string, hash: ScryptHash): Promise<boolean> =>
  isExpected(await deriveKey(password, hash.salt, lengthOf(hash), optionsOf(hash)), hash);

/** Compares a password at once, in a process that does nothing else. */
export const isScryptOfNow = (password: string, hash: ScryptHash): boolean =>
  isExpected(scryptSync(password, hash.salt, lengthOf(hash), optionsOf(hash)), hash);

function isExpected(key: Buffer, { signerKey, expected }: ScryptHash): boolean {
  if (signerKey === null) return equalsConstantTime(key, expected);
  const cipher = createCipheriv("aes-256-ctr", key, Buffer.alloc(16));
  return equalsConstantTime(Buffer.concat([cipher.update(signerKey), cipher.final()]), expected);
}
