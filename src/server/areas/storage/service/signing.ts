import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Static, TSchema } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { unauthorized } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Accounts } from "../../../access/accounts.ts";
import { authOfAccount } from "../../../access/acting.ts";
import type { ServiceKeys } from "../../../access/keys/service-keys.ts";
import { auditActorOf, type Principal, SERVER } from "../../../access/principal.ts";
import { factsOfNew, type Gates } from "../gates.ts";
import { SIGNED_URL_DEFAULT_SECONDS } from "../limits.ts";
import { parseContentType } from "../model/content.ts";
import { objectPath } from "../model/keys.ts";
import { type SignOne, type SignSeveral, type SignUpload, secondsOf } from "../model/schemas.ts";
import { factsOf, type GrantHolder, type UploadGrant } from "../model/types.ts";
import type { StorageStore } from "../store/store.ts";
import type { StorageService } from "./files.ts";

/** Bodies are read after credentials, bucket and rule have been checked. URLs begin with `origin`. */
export interface Signing {
  downloadUrl(principal: Principal, bucket: string, body: Body<typeof SignOne>, origin: string): Promise<SignedUrl>;
  downloadUrls(
    principal: Principal,
    bucket: string,
    body: Body<typeof SignSeveral>,
    origin: string,
  ): Promise<{ urls: { key: string; url: string; expiresAt: string }[] }>;
  uploadUrl(principal: Principal, bucket: string, body: Body<typeof SignUpload>, origin: string): Promise<SignedUrl>;
  /**
   * The caller that asked for the URL, with its present rights. null: a URL of an earlier version, which does not say. Errors:
   * 401, also when that user or service key does not exist any more.
   */
  verifyDownload(token: string, bucket: string, key: string): Principal | null;
  /**
   * The caller that asked for the URL, with its present rights, and the type that the upload has to declare. Errors: 401, also
   * when the URL has been used, and when that user or service key does not exist any more.
   */
  verifyUpload(
    token: string,
    bucket: string,
    key: string,
  ): { grant: UploadGrant; principal: Principal; contentType: string | null };
  /** When the bytes have arrived, which may take hours. Errors: 401 where that caller is gone, or has another role, by then. */
  requirePresent(grant: UploadGrant, principal: Principal): void;
}

type Body<Schema extends TSchema> = () => Promise<Static<Schema>>;
interface SignedUrl {
  url: string;
}

/** The caller with its present rights; null: a user who is disabled or deleted, a service key that is gone. */
export type PresentHolder = (holder: GrantHolder) => Principal | null;

/** The same for the text of a download URL. */
export type PresentSigner = (signer: string) => Principal | null;

const USER_SIGNER = "user:";
const KEY_SIGNER = "key:";

/** The caller in the text of a download URL. */
function signerOf(principal: Principal): string | null {
  if (principal.kind === "user") return USER_SIGNER + principal.auth.id;
  return principal.kind === "serviceKey" ? KEY_SIGNER + principal.name : null;
}

/** Looks users and service keys up at each use: their present rights count, not those when the URL was signed. */
export function createPresentHolder(deps: { account: Accounts["get"]; serviceKey: ServiceKeys["named"] }): {
  present: PresentHolder;
  presentSigner: PresentSigner;
} {
  const user = (userId: string): Principal | null => {
    const account = deps.account(userId);
    if (account === null || account.disabled) return null;
    return { kind: "user", auth: authOfAccount(account), sessionId: "" };
  };
  return {
    present(holder) {
      if (holder.kind === "server") return SERVER;
      return holder.kind === "serviceKey" ? deps.serviceKey(holder.name) : user(holder.auth.id);
    },
    presentSigner: (signer) =>
      signer.startsWith(USER_SIGNER)
        ? user(signer.slice(USER_SIGNER.length))
        : deps.serviceKey(signer.slice(KEY_SIGNER.length)),
  };
}

export function createSigning(deps: {
  store: StorageStore;
  gates: Gates;
  service: StorageService;
  signer: UrlSigner;
  clock: Clock;
  ids: Ids;
  present: PresentHolder;
  presentSigner: PresentSigner;
  paces: () => Pace;
}): Signing {
  const { store, gates, service, signer, clock, ids } = deps;
  const expiryAfter = (seconds: number): number => Math.floor(clock.now() / SECOND_MS) + seconds;
  const urlOf = (claim: SignedClaim, origin: string) => `${origin}${objectPath(claim)}?token=${signer.sign(claim)}`;
  const downloadOf = (principal: Principal, bucket: string, key: string, expiresAtSeconds: number): SignedClaim => ({
    method: "GET",
    bucket,
    key,
    expiresAtSeconds,
    grantId: null,
    contentType: null,
    signer: signerOf(principal),
  });
  /** Errors: 401. */
  const presentOf = (principal: Principal | null): Principal => {
    if (principal !== null) return principal;
    throw unauthorized("The user or service key that asked for this URL does not exist any more");
  };

  return {
    async downloadUrl(principal, bucket, body, origin) {
      await gates.enter(principal, bucket, "read");
      const { key, expiresIn } = await body();
      await service.find(principal, bucket, key);
      const expiresAtSeconds = expiryAfter(expiresIn ?? SIGNED_URL_DEFAULT_SECONDS);
      return { url: urlOf(downloadOf(principal, bucket, key, expiresAtSeconds), origin) };
    },

    async downloadUrls(principal, bucket, body, origin) {
      const gate = await gates.enter(principal, bucket, "read");
      const { keys, expiresIn } = await body();
      const expiresAtSeconds = expiryAfter(secondsOf(expiresIn ?? null) ?? SIGNED_URL_DEFAULT_SECONDS);
      const expiresAt = new Date(expiresAtSeconds * SECOND_MS).toISOString();
      const urls = [];
      const pace = deps.paces();
      await pace.next();
      for (const key of keys) {
        if (pace.isDue()) await pace.next();
        const object = store.find({ bucket, key });
        if (object === null) continue;
        if (gate.verdict === null) gate.enforce(await gate.ask(factsOf(object)));
        urls.push({ key, url: urlOf(downloadOf(principal, bucket, key, expiresAtSeconds), origin), expiresAt });
      }
      return { urls };
    },

    async uploadUrl(principal, bucket, body, origin) {
      const gate = await gates.enter(principal, bucket, "write");
      const { key, expiresIn, contentType: named } = await body();
      const contentType = named === undefined || named === null || named === "" ? null : parseContentType(named);
      const expected = { key, size: 0, contentType: parseContentType(contentType) };
      // The rule is asked again about the file that is uploaded. This spares the caller a URL that can only be refused.
      if (gate.verdict === null) gate.enforce(await gate.ask(factsOfNew(expected, store.find({ bucket, key }))));
      const expiresAtSeconds = expiryAfter(expiresIn ?? SIGNED_URL_DEFAULT_SECONDS);
      const grant = {
        id: ids.uuid(),
        bucket,
        key,
        ...askerOf(principal),
        expiresAt: expiresAtSeconds * SECOND_MS,
      };
      await store.write((storage) => storage.insertGrant(grant));
      const claim: SignedClaim = {
        method: "PUT",
        bucket,
        key,
        expiresAtSeconds,
        grantId: grant.id,
        contentType,
        signer: null,
      };
      return { url: urlOf(claim, origin) };
    },

    verifyDownload(token, bucket, key) {
      const { signer: who } = signer.verify(token, { method: "GET", bucket, key });
      return who === null ? null : presentOf(deps.presentSigner(who));
    },

    verifyUpload(token, bucket, key) {
      const { grantId, contentType } = signer.verify(token, { method: "PUT", bucket, key });
      const grant = grantId === null ? null : store.findGrant(grantId);
      if (grant === null) throw usedUp();
      return { grant, principal: presentOf(deps.present(grant.holder)), contentType };
    },

    requirePresent(grant, principal) {
      const present = presentOf(deps.present(grant.holder));
      if (roleOf(present) !== roleOf(principal)) throw unauthorized("The user who asked for this URL has another role");
    },
  };
}

const askerOf = (principal: Principal): Pick<UploadGrant, "holder" | "actor"> => ({
  holder: holderOf(principal),
  actor: auditActorOf(principal),
});

/** Callers without credentials get no URLs. */
function holderOf(principal: Principal): GrantHolder {
  if (principal.kind === "user") return { kind: "user", auth: principal.auth };
  return principal.kind === "serviceKey" ? { kind: "serviceKey", name: principal.name } : { kind: "server" };
}

const roleOf = (principal: Principal): string | null => (principal.kind === "user" ? principal.auth.role : null);

export const usedUp = () => unauthorized("This upload URL has been used");

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
