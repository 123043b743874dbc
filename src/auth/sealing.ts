import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

/** What needs the server's secret: hashes at rest that a stolen file does not let anyone guess, and encryption at rest. */
export interface Sealing {
  /** Keyed hash; `purpose` keeps equal texts of different uses apart. */
  digest(purpose: string, text: string): Buffer;
  seal(plaintext: string): string;
  /** null for what was not sealed with this secret: it may have been replaced. */
  unseal(sealed: string): string | null;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function createSealing(secret: string): Sealing {
  const derive = (info: string) => Buffer.from(hkdfSync("sha256", secret, "", `platform/${info}`, 32));
  const digestKey = derive("digest");
  const sealKey = derive("seal");
  return {
    digest: (purpose, text) => createHmac("sha256", digestKey).update(`${purpose}\0${text}`).digest(),
    seal(plaintext) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", sealKey, nonce);
      const sealed = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64");
    },
    unseal(sealed) {
      const bytes = Buffer.from(sealed, "base64");
      const decipher = createDecipheriv("aes-256-gcm", sealKey, bytes.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString();
      } catch {
        return null;
      }
    },
  };
}

/** In constant time; texts of different length differ at once, which the formats compared here tell anyway. */
export function equalsConstantTime(left: Uint8Array, right: Uint8Array): boolean {
  return left.byteLength === right.byteLength && timingSafeEqual(left, right);
}
