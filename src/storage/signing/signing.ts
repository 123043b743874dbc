import type { Accounts } from "../../access/accounts.ts";
import { type Principal, SERVER } from "../../access/principal.ts";
import type { ServiceKeys } from "../../access/service-keys.ts";
import type { Clock } from "../../kernel/clock.ts";
import { parseDuration, SECOND_MS } from "../../kernel/duration.ts";
import { badField, unauthorized } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { refuseUnknownMembers } from "../../kernel/members.ts";
import type { Paces } from "../../kernel/pace.ts";
import { parseContentType } from "../content.ts";
import { objectPath, parseKey } from "../keys.ts";
import { SIGNED_URL_DEFAULT_SECONDS, SIGNED_URL_KEYS_MAX, SIGNED_URL_MAX_SECONDS } from "../limits.ts";
import { factsOf, factsOfNew, type Gates } from "../rights/gates.ts";
import { parseKeys, type StorageService } from "../service.ts";
import type { StorageStore } from "../store.ts";
import type { GrantHolder, UploadGrant } from "../types.ts";
import type { SignedClaim, UrlSigner } from "./signed-urls.ts";

export interface Signing {
  downloadUrl(principal: Principal, bucket: string, body: Body, origin: string): Promise<{ url: string }>;
  downloadUrls(
    principal: Principal,
    bucket: string,
    body: Body,
    origin: string,
  ): Promise<{ urls: { key: string; url: string; expiresAt: string }[] }>;
  uploadUrl(principal: Principal, bucket: string, body: Body, origin: string): Promise<{ url: string }>;
  /** Errors: 401. */
  verifyDownload(token: string, bucket: string, key: string): void;
  /**
   * Who asked for the URL as of now, for the rule to be asked about the file itself, and the type that it has to declare.
   * Errors: 401, also when it has been used, and when that user or service key is gone.
   */
  verifyUpload(
    token: string,
    bucket: string,
    key: string,
  ): { grant: UploadGrant; principal: Principal; contentType: string | null };
}

/** The body is read only once credentials, bucket and rule have been looked at. */
type Body = () => Promise<JsonObject>;

/** Who that is by now; null: a user who is disabled or deleted, a service key that is gone. */
export type PresentHolder = (holder: GrantHolder) => Principal | null;

/** Asks for users and service keys at each use: their rights are those of now, not those of when the URL was signed. */
export function createPresentHolder(deps: {
  account: Accounts["get"];
  serviceKey: ServiceKeys["named"];
}): PresentHolder {
  return (holder) => {
    if (holder.kind === "server") return SERVER;
    if (holder.kind === "serviceKey") return deps.serviceKey(holder.name);
    const account = deps.account(holder.auth.id);
    if (account === null || account.disabled) return null;
    const { id, role, email, emailVerified, isAnonymous, customClaims: custom } = account;
    return { kind: "user", auth: { id, role, email, emailVerified, isAnonymous, custom }, sessionId: "" };
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
  paces: Paces;
}): Signing {
  const { store, gates, service, signer, clock, ids } = deps;
  const expiryAfter = (seconds: number): number => Math.floor(clock.now() / SECOND_MS) + seconds;
  const urlOf = (claim: SignedClaim, origin: string) => `${origin}${objectPath(claim)}?token=${signer.sign(claim)}`;
  const downloadOf = (bucket: string, key: string, expiresAtSeconds: number): SignedClaim => ({
    ...{ method: "GET", bucket, key, expiresAtSeconds, grantId: null, contentType: null },
  });

  return {
    async downloadUrl(principal, bucket, body, origin) {
      await gates.enter(principal, bucket, "read");
      const fields = await body();
      refuseUnknownMembers(fields, ["key", "expiresIn"], "signed-url");
      const key = parseKey(fields["key"]);
      const seconds = parseSeconds(fields["expiresIn"]);
      await service.find(principal, bucket, key);
      return { url: urlOf(downloadOf(bucket, key, expiryAfter(seconds)), origin) };
    },

    async downloadUrls(principal, bucket, body, origin) {
      const gate = await gates.enter(principal, bucket, "read");
      const fields = await body();
      refuseUnknownMembers(fields, ["keys", "expiresIn"], "signed-urls");
      const keys = parseKeys(fields["keys"], SIGNED_URL_KEYS_MAX);
      const expiresAtSeconds = expiryAfter(parseDurationSeconds(fields["expiresIn"]));
      const expiresAt = new Date(expiresAtSeconds * SECOND_MS).toISOString();
      const urls = [];
      const pace = deps.paces();
      await pace.next();
      for (const key of keys) {
        if (pace.isDue()) await pace.next();
        const object = store.find({ bucket, key });
        if (object === null) continue;
        if (gate.verdict === null) gate.enforce(await gate.ask(factsOf(object)));
        urls.push({ key, url: urlOf(downloadOf(bucket, key, expiresAtSeconds), origin), expiresAt });
      }
      return { urls };
    },

    async uploadUrl(principal, bucket, body, origin) {
      const gate = await gates.enter(principal, bucket, "write");
      const fields = await body();
      refuseUnknownMembers(fields, ["key", "expiresIn", "contentType"], "signed-upload-url");
      const key = parseKey(fields["key"]);
      const seconds = parseSeconds(fields["expiresIn"]);
      const named = fields["contentType"] ?? "";
      const contentType = named === "" ? null : parseContentType(named);
      const expected = { key, size: 0, contentType: parseContentType(contentType) };
      // The file itself is asked about when it comes; this spares the caller a URL that can only be refused.
      if (gate.verdict === null) gate.enforce(await gate.ask(factsOfNew(expected, store.find({ bucket, key }))));
      const expiresAtSeconds = expiryAfter(seconds);
      const grant = {
        id: ids.uuid(),
        bucket,
        key,
        holder: holderOf(principal),
        expiresAt: expiresAtSeconds * SECOND_MS,
      };
      await store.write((storage) => storage.insertGrant(grant));
      return {
        url: urlOf({ method: "PUT", bucket, key, expiresAtSeconds, grantId: grant.id, contentType }, origin),
      };
    },

    verifyDownload(token, bucket, key) {
      signer.verify(token, { method: "GET", bucket, key });
    },

    verifyUpload(token, bucket, key) {
      const { grantId, contentType } = signer.verify(token, { method: "PUT", bucket, key });
      const grant = grantId === null ? null : store.findGrant(grantId);
      if (grant === null) throw usedUp();
      const principal = deps.present(grant.holder);
      if (principal === null) throw unauthorized("Who asked for this upload URL is not known any more");
      return { grant, principal, contentType };
    },
  };
}

/** Rules see users as they were; anonymous callers get no URLs. */
function holderOf(principal: Principal): GrantHolder {
  if (principal.kind === "user") return { kind: "user", auth: principal.auth };
  return principal.kind === "serviceKey" ? { kind: "serviceKey", name: principal.name } : { kind: "server" };
}

export const usedUp = () => unauthorized("This upload URL has been used");

function parseSeconds(value: unknown): number {
  if (value === undefined || value === null) return SIGNED_URL_DEFAULT_SECONDS;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    throw badField("expiresIn", "invalid_type", "expiresIn must be a whole number of seconds");
  }
  return boundedSeconds(value);
}

function parseDurationSeconds(value: unknown): number {
  if (value === undefined || value === null) return SIGNED_URL_DEFAULT_SECONDS;
  const milliseconds = typeof value === "string" ? parseDuration(value) : null;
  if (milliseconds === null) throw badField("expiresIn", "invalid_type", 'expiresIn must be a duration such as "1h"');
  return boundedSeconds(milliseconds / SECOND_MS);
}

function boundedSeconds(seconds: number): number {
  if (seconds < 1) throw badField("expiresIn", "too_small", `expiresIn must be at least 1 second, got ${seconds}`);
  if (seconds <= SIGNED_URL_MAX_SECONDS) return seconds;
  const message = `expiresIn must be at most ${SIGNED_URL_MAX_SECONDS} seconds (7 days), got ${seconds}`;
  throw badField("expiresIn", "too_large", message);
}
