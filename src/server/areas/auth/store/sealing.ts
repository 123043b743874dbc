import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { NONCE_BYTES, openSealed, sealText } from "../../../../kernel/sealing.ts";

/** Hashes and encryption at rest with the server's secret: a stolen file alone allows neither guessing nor reading. */
export interface Sealing {
  /** Keyed hash; equal texts with different purposes have different hashes. */
  digest(purpose: string, text: string): Buffer;
  seal(plaintext: string): string;
  /** null for a text sealed with another secret. */
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

/** In constant time for equal lengths; the length of the compared texts is no secret. */
export function equalsConstantTime(left: Uint8Array, right: Uint8Array): boolean {
  return left.byteLength === right.byteLength && timingSafeEqual(left, right);
}
