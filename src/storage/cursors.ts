import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import { badField } from "../kernel/errors.ts";

/** Where the next page of a list begins. Sealed: it may stand for a file whose name the caller may not know. */
export interface ListCursors {
  encode(bucket: string, key: string): string;
  /** Errors: 400 for what `encode` has not made for this bucket. */
  decode(bucket: string, cursor: string): string;
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function createListCursors(secret: string): ListCursors {
  const keyFor = (use: string) =>
    Buffer.from(hkdfSync("sha256", secret, "", `platform list cursors v1 ${use}`, KEY_BYTES));
  const [sealingKey, nonceKey] = [keyFor("sealing"), keyFor("nonce")];
  return {
    encode(bucket, key) {
      // Made from what is sealed: the same place has the same cursor, and no nonce is used for two texts.
      const nonce = createHmac("sha256", nonceKey)
        .update(JSON.stringify([bucket, key]))
        .digest()
        .subarray(0, NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, sealingKey, nonce).setAAD(Buffer.from(bucket));
      const sealed = Buffer.concat([cipher.update(key, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
    },
    decode(bucket, cursor) {
      const bytes = Buffer.from(cursor, "base64url");
      const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
      try {
        const nonce = bytes.subarray(0, NONCE_BYTES);
        const decipher = createDecipheriv(CIPHER, sealingKey, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(bucket)).setAuthTag(tag);
        const sealed = bytes.subarray(NONCE_BYTES + TAG_BYTES);
        return decipher.update(sealed, undefined, "utf8") + decipher.final("utf8");
      } catch {
        throw badField("cursor", "invalid_value", "cursor must be one that a list of this bucket has returned");
      }
    },
  };
}
