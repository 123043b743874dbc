import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { unauthorized } from "../../kernel/errors.ts";

/** What a signed URL allows. The token of an upload names the grant that it uses up; that of a download has none. */
export interface SignedClaim {
  method: "GET" | "PUT";
  bucket: string;
  key: string;
  /** Seconds since 1970. */
  expiresAtSeconds: number;
  grantId: string | null;
  /** What an upload has to declare; null: any type. */
  contentType: string | null;
}

export interface UrlSigner {
  sign(claim: SignedClaim): string;
  /** Errors: 401 `Invalid token`, `Token expired`. */
  verify(
    token: string,
    wanted: Pick<SignedClaim, "method" | "bucket" | "key">,
  ): Pick<SignedClaim, "grantId" | "contentType">;
}

const KEY_BYTES = 32;
const TOKEN = /^(\d{1,12})\.([0-9a-f-]{0,36})\.([A-Za-z0-9_-]{43})(?:\.([A-Za-z0-9_-]{1,340}))?$/;

/** HMAC-SHA256 over method, bucket, key, expiry, grant and type, with a key of its own derived from the server's secret. */
export function createUrlSigner(deps: { secret: string; nowMs: () => number }): UrlSigner {
  const key = Buffer.from(hkdfSync("sha256", deps.secret, "", "platform signed storage urls v1", KEY_BYTES));
  const macOf = (claim: SignedClaim): Buffer => {
    // JSON separates the members: another bucket and key never give the same text.
    const { method, bucket, key: objectKey, expiresAtSeconds, grantId, contentType } = claim;
    const members = [method, bucket, objectKey, expiresAtSeconds, grantId];
    const text = JSON.stringify(contentType === null ? members : [...members, contentType]);
    return createHmac("sha256", key).update(text).digest();
  };
  return {
    sign(claim) {
      const { expiresAtSeconds, grantId, contentType } = claim;
      const type = contentType === null ? "" : `.${Buffer.from(contentType).toString("base64url")}`;
      return `${expiresAtSeconds}.${grantId ?? ""}.${macOf(claim).toString("base64url")}${type}`;
    },
    verify(token, wanted) {
      const [, expiry = "", grant = "", mac = "", type = ""] = TOKEN.exec(token) ?? [];
      if (mac === "") throw unauthorized("Invalid token");
      const expiresAtSeconds = Number(expiry);
      const grantId = grant === "" ? null : grant;
      const contentType = type === "" ? null : Buffer.from(type, "base64url").toString("utf8");
      const given = Buffer.from(mac, "base64url");
      const right = macOf({ ...wanted, expiresAtSeconds, grantId, contentType });
      if (given.byteLength !== right.byteLength || !timingSafeEqual(given, right)) throw unauthorized("Invalid token");
      if (expiresAtSeconds * 1000 <= deps.nowMs()) throw unauthorized("Token expired");
      return { grantId, contentType };
    },
  };
}
