import { hkdfSync } from "node:crypto";
import type { Ids } from "../../../kernel/ids.ts";
import { NONCE_BYTES, openSealed, sealText } from "../../../kernel/sealing.ts";

/** Encrypts secrets of jobs with a key that is derived from the server's secret. A sealed text opens only for its own job. */
export interface JobSealing {
  seal(jobId: string, text: string): Uint8Array;
  /** null for what was sealed with another secret. */
  unseal(jobId: string, sealed: Uint8Array): string | null;
}

export function createJobSealing(secret: string, ids: Ids): JobSealing {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "platform/jobs", 32));
  return {
    seal(jobId, text) {
      const nonce = Buffer.from(ids.secret(NONCE_BYTES), "base64url");
      return sealText(text, { key, nonce, context: jobId });
    },
    unseal: (jobId, sealed) => openSealed(sealed, { key, context: jobId }),
  };
}
