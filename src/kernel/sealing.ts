import { createCipheriv, createDecipheriv } from "node:crypto";

const CIPHER = "aes-256-gcm";
export const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a text with AES-256-GCM: nonce, tag, ciphertext. No two texts may share a nonce under one key. `context` must be
 * the same when it is opened.
 */
export function sealText(text: string, options: { key: Uint8Array; nonce: Uint8Array; context?: string }): Buffer {
  const { key, nonce, context = "" } = options;
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** Decrypts a sealed text; null if it was not sealed with this key and context. */
export function openSealed(bytes: Uint8Array, options: { key: Uint8Array; context?: string }): string | null {
  const { key, context = "" } = options;
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
    const sealed = bytes.subarray(NONCE_BYTES + TAG_BYTES);
    return decipher.update(sealed, undefined, "utf8") + decipher.final("utf8");
  } catch {
    return null;
  }
}
