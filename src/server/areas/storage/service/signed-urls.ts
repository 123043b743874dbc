import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { unauthorized } from "../../../../kernel/errors.ts";

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
  /** Who asked for a download, as `signing.ts` writes it; null: a URL of an earlier version, and uploads. */
  signer: string | null;
}

export interface UrlSigner {
  sign(claim: SignedClaim): string;
  /** Errors: 401 `Invalid token`, `Token expired`. */
  verify(
    token: string,
    wanted: Pick<SignedClaim, "method" | "bucket" | "key">,
  ): Pick<SignedClaim, "grantId" | "contentType" | "signer">;
}

const KEY_BYTES = 32;
/** The last part is the longest of a user's id: of 256 characters, which have up to three bytes each. */
const TOKEN = /^(\d{1,12})\.([0-9a-f-]{0,36})\.([A-Za-z0-9_-]{43})(?:\.([A-Za-z0-9_-]{1,1100}))?$/;

/** The last member: what an upload has to declare, or who asked for a download. */
const lastOf = ({ method, contentType, signer }: Pick<SignedClaim, "method" | "contentType" | "signer">) =>
  method === "PUT" ? contentType : signer;

/** HMAC-SHA256 over method, bucket, key, expiry, grant and type or signer, with a key of its own derived from the server's secret. */
export function createUrlSigner(deps: { secret: string; nowMs: () => number }): UrlSigner {
  const key = Buffer.from(hkdfSync("sha256", deps.secret, "", "platform signed storage urls v1", KEY_BYTES));
  const macOf = (claim: SignedClaim): Buffer => {
    // JSON separates the members: another bucket and key never give the same text.
    const { method, bucket, key: objectKey, expiresAtSeconds, grantId } = claim;
    const members = [method, bucket, objectKey, expiresAtSeconds, grantId];
    const last = lastOf(claim);
    const text = JSON.stringify(last === null ? members : [...members, last]);
    return createHmac("sha256", key).update(text).digest();
  };
  return {
    sign(claim) {
      const { expiresAtSeconds, grantId } = claim;
      const last = lastOf(claim);
      const end = last === null ? "" : `.${Buffer.from(last).toString("base64url")}`;
      return `${expiresAtSeconds}.${grantId ?? ""}.${macOf(claim).toString("base64url")}${end}`;
    },
    verify(token, wanted) {
      const [, expiry = "", grant = "", mac = "", end = ""] = TOKEN.exec(token) ?? [];
      if (mac === "") throw unauthorized("Invalid token");
      const expiresAtSeconds = Number(expiry);
      const grantId = grant === "" ? null : grant;
      const last = end === "" ? null : Buffer.from(end, "base64url").toString("utf8");
      const contentType = wanted.method === "PUT" ? last : null;
      const signer = wanted.method === "GET" ? last : null;
      const given = Buffer.from(mac, "base64url");
      const right = macOf({ ...wanted, expiresAtSeconds, grantId, contentType, signer });
      if (given.byteLength !== right.byteLength || !timingSafeEqual(given, right)) throw unauthorized("Invalid token");
      if (expiresAtSeconds * 1000 <= deps.nowMs()) throw unauthorized("Token expired");
      return { grantId, contentType, signer };
    },
  };
}
