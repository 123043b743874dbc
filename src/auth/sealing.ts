import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { NONCE_BYTES, openSealed, sealText } from "../kernel/envelope.ts";

/** What needs the server's secret: hashes at rest that a stolen file does not let anyone guess, and encryption at rest. */
export interface Sealing {
  /** Keyed hash; `purpose` keeps equal texts of different uses apart. */
  digest(purpose: string, text: string): Buffer;
  seal(plaintext: string): string;
  /** null for what was not sealed with this secret: it may have been replaced. */
  unseal(sealed: string): string | null;
}

export function createSealing(secret: string): Sealing {
  const derive = (info: string) => Buffer.from(hkdfSync("sha256", secret, "", `platform/${info}`, 32));
  const digestKey = derive("digest");
  const sealKey = derive("seal");
  return {
    digest: (purpose, text) => createHmac("sha256", digestKey).update(`${purpose}\0${text}`).digest(),
    seal(plaintext) {
      return sealText(plaintext, { key: sealKey, nonce: randomBytes(NONCE_BYTES) }).toString("base64");
    },
    unseal: (sealed) => openSealed(Buffer.from(sealed, "base64"), { key: sealKey }),
  };
}

/** In constant time; texts of different length differ at once, which the formats compared here tell anyway. */
export function equalsConstantTime(left: Uint8Array, right: Uint8Array): boolean {
  return left.byteLength === right.byteLength && timingSafeEqual(left, right);
}
