import { createHmac, hkdfSync } from "node:crypto";
import { badField } from "../../../../kernel/errors.ts";
import { NONCE_BYTES, openSealed, sealText } from "../../../../kernel/sealing.ts";

const KEY_BYTES = 32;

/** Cursors of lists: where the next page begins. Sealed, since that may be a file whose name the caller may not know. */
export type ListCursors = ReturnType<typeof createListCursors>;

export function createListCursors(secret: string) {
  const keyFor = (use: string) =>
    Buffer.from(hkdfSync("sha256", secret, "", `platform list cursors v1 ${use}`, KEY_BYTES));
  const [sealingKey, nonceKey] = [keyFor("sealing"), keyFor("nonce")];
  return {
    encode(bucket: string, key: string): string {
      // Derived from the plaintext: the same place has the same cursor, and no nonce is used for two texts.
      const digest = createHmac("sha256", nonceKey)
        .update(JSON.stringify([bucket, key]))
        .digest();
      const nonce = digest.subarray(0, NONCE_BYTES);
      return sealText(key, { key: sealingKey, nonce, context: bucket }).toString("base64url");
    },
    /** Returns the place that `encode` sealed. Errors: 400 for a cursor that was not encoded for this bucket. */
    decode(bucket: string, cursor: string): string {
      const key = openSealed(Buffer.from(cursor, "base64url"), { key: sealingKey, context: bucket });
      if (key === null)
        throw badField("cursor", "invalid_value", "cursor must be one that a list of this bucket has returned");
      return key;
    },
  };
}
