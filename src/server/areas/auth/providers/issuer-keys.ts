import { createRemoteJWKSet, type JWTVerifyGetKey, customFetch as joseFetch } from "jose";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { IssuerConfig } from "../../../config/types.ts";
import {
  ISSUER_KEYS_PAUSE_MS,
  ISSUER_KEYS_TTL_MS,
  PROVIDER_METADATA_TTL_MS,
  PROVIDER_TIMEOUT_SECONDS,
} from "../limits.ts";
import { providerFetch } from "./provider-fetch.ts";

const timeLimit = () => AbortSignal.timeout(PROVIDER_TIMEOUT_SECONDS * SECOND_MS);
const read = (url: string, headers: Record<string, string> = {}, signal: AbortSignal = timeLimit()) =>
  providerFetch(url, { method: "GET", headers, body: undefined, signal, redirect: "manual" });

/** Returns the address of an issuer's keys, as its metadata names it. Errors: it names none, or another issuer. */
async function keysUrlOf(issuer: string): Promise<string> {
  const response = await read(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const metadata: unknown = response.ok ? await response.json() : null;
  if (!isJsonObject(metadata)) throw new Error(`the issuer's metadata is not there: ${response.status}`);
  const { issuer: named, jwks_uri: url } = metadata;
  const keys = typeof url === "string" ? URL.parse(url) : null;
  if (named !== issuer || keys === null) throw new Error("the issuer's metadata names another issuer, or no keys");
  // On the way somebody could replace them.
  if (keys.protocol !== "https:" && keys.origin !== new URL(issuer).origin)
    throw new Error("the keys are not at https");
  return keys.href;
}

/**
 * Returns a function that gives the keys of an issuer. They are read when the first token comes, when one has an unknown key, at most
 * every five seconds, and after ten minutes. Errors: the metadata cannot be read; again for five seconds without a try.
 */
export function createIssuerKeys({ issuer, jwksUrl }: IssuerConfig, clock: Clock): () => Promise<JWTVerifyGetKey> {
  let known: { keys: JWTVerifyGetKey; readAt: Millis } | null = null;
  let reading: Promise<JWTVerifyGetKey> | null = null;
  let failed: { cause: unknown; at: Millis } | null = null;

  const load = async (): Promise<JWTVerifyGetKey> => {
    const keys = createRemoteJWKSet(new URL(jwksUrl ?? (await keysUrlOf(issuer))), {
      timeoutDuration: PROVIDER_TIMEOUT_SECONDS * SECOND_MS,
      cooldownDuration: ISSUER_KEYS_PAUSE_MS,
      cacheMaxAge: ISSUER_KEYS_TTL_MS,
      [joseFetch]: (address, { headers, signal }) => read(address, Object.fromEntries(headers), signal),
    });
    known = { keys, readAt: clock.now() };
    return keys;
  };
  const isRecent = (at: Millis, ms: number): boolean => Math.abs(clock.now() - at) < ms;

  return async () => {
    if (known !== null && isRecent(known.readAt, PROVIDER_METADATA_TTL_MS)) return known.keys;
    if (failed !== null && isRecent(failed.at, ISSUER_KEYS_PAUSE_MS)) throw failed.cause;
    reading ??= load()
      .catch((cause: unknown) => {
        failed = { cause, at: clock.now() };
        throw cause;
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  };
}
