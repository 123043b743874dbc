import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Static, TSchema } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { unauthorized, unreachable } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Accounts } from "../../../access/accounts.ts";
import type { ServiceKeys } from "../../../access/keys/service-keys.ts";
import { auditActorOf, type Principal, SERVER } from "../../../access/principal.ts";
import { presentKey, presentUser, principalOfSigner, type SignerDeps, signerOf } from "../../../access/signers.ts";
import { factsOfNew, type Gates } from "../gates.ts";
import { SIGNED_URL_DEFAULT_SECONDS } from "../limits.ts";
import { parseContentType } from "../model/content.ts";
import { objectPath } from "../model/keys.ts";
import { type SignOne, type SignSeveral, type SignUpload, secondsOf } from "../model/schemas.ts";
import { factsOf, type GrantHolder, type UploadGrant } from "../model/types.ts";
import type { StorageStore } from "../store/store.ts";
import type { StorageService } from "./files.ts";

type Body<Schema extends TSchema> = () => Promise<Static<Schema>>;
interface SignedUrl {
  url: string;
}

interface SigningDeps {
  store: StorageStore;
  gates: Gates;
  service: StorageService;
  signer: UrlSigner;
  /** Looks up the present users and service keys: their current rights count, not those when the URL was signed. */
  account: Accounts["get"];
  serviceKey: ServiceKeys["named"];
  clock: Clock;
  ids: Ids;
  paces: () => Pace;
}

/**
 * Issues and verifies signed URLs, which begin with `origin`. Bodies are read after credentials, bucket and rule have been
 * checked.
 */
export class Signing {
  readonly #deps: SigningDeps;

  constructor(deps: SigningDeps) {
    this.#deps = deps;
  }

  async downloadUrl(
    principal: Principal,
    bucket: string,
    body: Body<typeof SignOne>,
    origin: string,
  ): Promise<SignedUrl> {
    const { gates, service } = this.#deps;
    await gates.enter(principal, bucket, "read");
    const { key, expiresIn } = await body();
    await service.find(principal, bucket, key);
    const expiresAtSeconds = this.#expiryAfter(expiresIn ?? SIGNED_URL_DEFAULT_SECONDS);
    return { url: this.#urlOf(downloadOf(principal, bucket, key, expiresAtSeconds), origin) };
  }

  async downloadUrls(
    principal: Principal,
    bucket: string,
    body: Body<typeof SignSeveral>,
    origin: string,
  ): Promise<{ urls: { key: string; url: string; expiresAt: string }[] }> {
    const { store, gates, paces } = this.#deps;
    const gate = await gates.enter(principal, bucket, "read");
    const { keys, expiresIn } = await body();
    const expiresAtSeconds = this.#expiryAfter(secondsOf(expiresIn ?? null) ?? SIGNED_URL_DEFAULT_SECONDS);
    const expiresAt = new Date(expiresAtSeconds * SECOND_MS).toISOString();
    const urls = [];
    const pace = paces();
    await pace.next();
    for (const key of keys) {
      if (pace.isDue()) await pace.next();
      const object = store.find({ bucket, key });
      if (object === null) continue;
      await gate.require(() => factsOf(object));
      urls.push({ key, url: this.#urlOf(downloadOf(principal, bucket, key, expiresAtSeconds), origin), expiresAt });
    }
    return { urls };
  }

  /** Returns the URL of a file that the caller may read. */
  urlOf(
    principal: Principal,
    { bucket, key }: { bucket: string; key: string },
    seconds: number,
    origin: string,
  ): string {
    return this.#urlOf(downloadOf(principal, bucket, key, this.#expiryAfter(seconds)), origin);
  }

  async uploadUrl(
    principal: Principal,
    bucket: string,
    body: Body<typeof SignUpload>,
    origin: string,
  ): Promise<SignedUrl> {
    const { store, gates, ids } = this.#deps;
    const gate = await gates.enter(principal, bucket, "write");
    const { key, expiresIn, contentType: named } = await body();
    const contentType = named === undefined || named === null || named === "" ? null : parseContentType(named);
    const expected = { key, size: 0, contentType: parseContentType(contentType) };
    // The rule is evaluated again for the uploaded file. This spares the caller a URL that can only be refused.
    await gate.require(() => factsOfNew(expected, store.find({ bucket, key })));
    const expiresAtSeconds = this.#expiryAfter(expiresIn ?? SIGNED_URL_DEFAULT_SECONDS);
    const grant = {
      id: ids.uuid(),
      bucket,
      key,
      holder: holderOf(principal),
      actor: auditActorOf(principal),
      expiresAt: expiresAtSeconds * SECOND_MS,
    };
    await store.write((storage) => storage.insertGrant(grant));
    const claim = { bucket, key, expiresAtSeconds, grantId: grant.id, contentType };
    return { url: this.#urlOf({ method: "PUT", ...claim, signer: null }, origin) };
  }

  /**
   * Returns the caller that asked for the URL, with its present rights; null for a URL of an earlier version, which does
   * not say. Errors: 401, also when that user or service key no longer exists.
   */
  verifyDownload(token: string, bucket: string, key: string): Principal | null {
    return verifiedDownload(this.#deps, token, { bucket, key });
  }

  /**
   * Returns the caller that asked for the URL, with its present rights, and the type that the upload must declare. Errors:
   * 401, also when the URL has been used, and when that user or service key no longer exists.
   */
  verifyUpload(
    token: string,
    bucket: string,
    key: string,
  ): { grant: UploadGrant; principal: Principal; contentType: string | null } {
    const { store, signer } = this.#deps;
    const { grantId, contentType } = signer.verify(token, { method: "PUT", bucket, key });
    const grant = grantId === null ? null : store.findGrant(grantId);
    if (grant === null) throw usedUp();
    return { grant, principal: this.#holder(grant.holder), contentType };
  }

  /**
   * Checks the caller again when the bytes have arrived, which may take hours. Errors: 401 when that caller is gone, or has
   * another role, by then.
   */
  requirePresent(grant: UploadGrant, principal: Principal): void {
    if (roleOf(this.#holder(grant.holder)) !== roleOf(principal)) {
      throw unauthorized("The user who asked for this URL has another role");
    }
  }

  #expiryAfter(seconds: number): number {
    return Math.floor(this.#deps.clock.now() / SECOND_MS) + seconds;
  }

  #urlOf(claim: SignedClaim, origin: string): string {
    return `${origin}${objectPath(claim)}?token=${this.#deps.signer.sign(claim)}`;
  }

  #holder(holder: GrantHolder): Principal {
    switch (holder.kind) {
      case "server":
        return SERVER;
      case "serviceKey":
        return presentKey(this.#deps, holder.name);
      case "user":
        return presentUser(this.#deps, holder.auth.id);
      default:
        return unreachable(holder);
    }
  }
}

/** Verifies a token: see `Signing.verifyDownload`. */
export function verifiedDownload(
  deps: SignerDeps & { signer: UrlSigner },
  token: string,
  address: { bucket: string; key: string },
): Principal | null {
  const { signer } = deps.signer.verify(token, { method: "GET", ...address });
  return signer === null ? null : principalOfSigner(deps, signer);
}

const downloadOf = (principal: Principal, bucket: string, key: string, expiresAtSeconds: number): SignedClaim => ({
  method: "GET",
  bucket,
  key,
  expiresAtSeconds,
  grantId: null,
  contentType: null,
  signer: signerOf(principal),
});

/** Returns the caller as holder of a grant. Callers without credentials get no URLs. */
function holderOf(principal: Principal): GrantHolder {
  if (principal.kind === "user") return { kind: "user", auth: principal.auth };
  return principal.kind === "serviceKey" ? { kind: "serviceKey", name: principal.name } : { kind: "server" };
}

const roleOf = (principal: Principal): string | null => (principal.kind === "user" ? principal.auth.role : null);

export const usedUp = () => unauthorized("This upload URL has been used");

/** Rights of a signed URL. The token of an upload names the grant that it consumes; that of a download has none. */
export interface SignedClaim {
  method: "GET" | "PUT";
  bucket: string;
  key: string;
  /** Seconds since 1970. */
  expiresAtSeconds: number;
  grantId: string | null;
  /** Content type that an upload must declare; null: any type. */
  contentType: string | null;
  /** Caller that asked for a download, as encoded by `signerOf`; null for uploads and for a URL of an earlier version. */
  signer: string | null;
}

const KEY_BYTES = 32;
/** The length of the last part allows the longest id of a user: 256 characters of up to three bytes each. */
const TOKEN = /^(\d{1,12})\.([0-9a-f-]{0,36})\.([A-Za-z0-9_-]{43})(?:\.([A-Za-z0-9_-]{1,1100}))?$/;

/** Returns the last member of a token: the type that an upload must declare, or who asked for a download. */
const lastOf = ({ method, contentType, signer }: Pick<SignedClaim, "method" | "contentType" | "signer">) =>
  method === "PUT" ? contentType : signer;

/**
 * Signs and verifies tokens: HMAC-SHA256 over method, bucket, key, expiry, grant and type or signer, with a key of its own
 * derived from the server's secret.
 */
export class UrlSigner {
  readonly #key: Buffer;
  readonly #nowMs: () => number;

  constructor({ secret, nowMs }: { secret: string; nowMs: () => number }) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "platform signed storage urls v1", KEY_BYTES));
    this.#nowMs = nowMs;
  }

  sign(claim: SignedClaim): string {
    const { expiresAtSeconds, grantId } = claim;
    const last = lastOf(claim);
    const end = last === null ? "" : `.${Buffer.from(last).toString("base64url")}`;
    return `${expiresAtSeconds}.${grantId ?? ""}.${this.#macOf(claim).toString("base64url")}${end}`;
  }

  /** Returns the grant, content type and signer of a valid token. Errors: 401 `Invalid token`, `Token expired`. */
  verify(
    token: string,
    wanted: Pick<SignedClaim, "method" | "bucket" | "key">,
  ): Pick<SignedClaim, "grantId" | "contentType" | "signer"> {
    const [, expiry = "", grant = "", mac = "", end = ""] = TOKEN.exec(token) ?? [];
    if (mac === "") throw unauthorized("Invalid token");
    const expiresAtSeconds = Number(expiry);
    const grantId = grant === "" ? null : grant;
    const last = end === "" ? null : Buffer.from(end, "base64url").toString("utf8");
    const contentType = wanted.method === "PUT" ? last : null;
    const signer = wanted.method === "GET" ? last : null;
    const given = Buffer.from(mac, "base64url");
    const right = this.#macOf({ ...wanted, expiresAtSeconds, grantId, contentType, signer });
    if (given.byteLength !== right.byteLength || !timingSafeEqual(given, right)) throw unauthorized("Invalid token");
    if (expiresAtSeconds * SECOND_MS <= this.#nowMs()) throw unauthorized("Token expired");
    return { grantId, contentType, signer };
  }

  #macOf(claim: SignedClaim): Buffer {
    const { method, bucket, key, expiresAtSeconds, grantId } = claim;
    const members = [method, bucket, key, expiresAtSeconds, grantId];
    const last = lastOf(claim);
    // JSON separates the members unambiguously: another bucket and key never make the same text.
    const text = JSON.stringify(last === null ? members : [...members, last]);
    return createHmac("sha256", this.#key).update(text).digest();
  }
}
