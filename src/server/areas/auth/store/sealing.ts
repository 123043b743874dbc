import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { NONCE_BYTES, openSealed, sealText } from "../../../../kernel/sealing.ts";

/** Hashes and encryption at rest with the server's secret: a stolen file alone allows neither guessing nor reading. */
export class Sealing {
  readonly #digestKey: Buffer;
  readonly #sealKey: Buffer;

  constructor(secret: string) {
    const derive = (info: string) => Buffer.from(hkdfSync("sha256", secret, "", `platform/${info}`, 32));
    this.#digestKey = derive("digest");
    this.#sealKey = derive("seal");
  }

  /** Returns a keyed hash; equal texts with different purposes have different hashes. */
  digest(purpose: string, text: string): Buffer {
    return createHmac("sha256", this.#digestKey).update(`${purpose}\0${text}`).digest();
  }

  seal(plaintext: string): string {
    return sealText(plaintext, { key: this.#sealKey, nonce: randomBytes(NONCE_BYTES) }).toString("base64");
  }

  /** Returns null for a text sealed with another secret. */
  unseal(sealed: string): string | null {
    return openSealed(Buffer.from(sealed, "base64"), { key: this.#sealKey });
  }
}

/** Compares in constant time for equal lengths; the length of the compared texts is no secret. */
export function equalsConstantTime(left: Uint8Array, right: Uint8Array): boolean {
  return left.byteLength === right.byteLength && timingSafeEqual(left, right);
}
