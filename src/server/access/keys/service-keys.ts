import { timingSafeEqual } from "node:crypto";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import { AppError, forbidden } from "../../../kernel/errors.ts";
import { type AddressRange, isWithin, parseAddress, parseRanges } from "../../../kernel/network/addresses.ts";
import { parseIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import type { ServiceKeyConfig } from "../../config/types.ts";
import type { Principal } from "../principal.ts";
import { createScopes, EVERY_SCOPE } from "./scopes.ts";

export type ServiceKeyPrincipal = Extract<Principal, { kind: "serviceKey" }>;

/** The name of the data directory's root key. */
export const ROOT_KEY_NAME = "root";

interface KnownKey {
  digest: Uint8Array;
  expiresAtMs: number;
  ranges: readonly AddressRange[] | null;
  principal: ServiceKeyPrincipal;
  lastUsedAt: Millis | null;
}

/** Hashes a key. All digests have the same length, so comparing them reveals nothing about a key, not even its length. */
const digestOf = (key: string, into = new Uint8Array(Bun.SHA256.byteLength)): Uint8Array => {
  Bun.SHA256.hash(key, into);
  return into;
};

export type ServiceKeys = ReturnType<typeof createServiceKeys>;

export function createServiceKeys(deps: {
  rootKey: string;
  /** The server's secret. */
  secret: string;
  declared: Readonly<Record<string, ServiceKeyConfig>>;
  clock: Clock;
}) {
  const { clock } = deps;
  const root: KnownKey = {
    digest: digestOf(deps.rootKey),
    expiresAtMs: Number.POSITIVE_INFINITY,
    ranges: null,
    principal: { kind: "serviceKey", name: ROOT_KEY_NAME, scopes: EVERY_SCOPE },
    lastUsedAt: null,
  };
  const known = [root, ...Object.entries(deps.declared).map(([name, config]) => knownKey(name, config))];

  const find = (name: string): KnownKey | null => {
    const key = known.find(({ principal }) => principal.name === name);
    return key === undefined || key.expiresAtMs <= clock.now() ? null : key;
  };

  // One buffer for all calls, which are synchronous: no allocation per request.
  const digest = new Uint8Array(Bun.SHA256.byteLength);
  return {
    /**
     * Identifies a key. Errors: 401 `Invalid service key` for an unknown, empty or expired key; 403 from an address outside its
     * `ips`. `address` is called only for keys with `ips`.
     */
    identify(key: string, address: () => string): ServiceKeyPrincipal {
      digestOf(key, digest);
      // Compares with every key, even after a match, so that the time does not reveal which one matched.
      let found: KnownKey | null = null;
      for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) found = candidate;
      if (key === "" || found === null || found.expiresAtMs <= clock.now()) {
        throw new InvalidServiceKey();
      }
      requireAddress(found, address);
      found.lastUsedAt = clock.now();
      return found.principal;
    },
    /** Notes that another process has answered a request with the key of this name. Returns the key; null as for `named`. */
    use(name: string): ServiceKeyPrincipal | null {
      const key = find(name);
      if (key !== null) key.lastUsedAt = clock.now();
      return key?.principal ?? null;
    },
    /** Returns the key with this name; null if the config no longer has it, or it has expired. */
    named: (name: string): ServiceKeyPrincipal | null => find(name)?.principal ?? null,
    /**
     * Returns a hash of the key with this name, which changes with the key and is useless without the server's secret; null as for
     * `named`.
     */
    stampOf(name: string): string | null {
      const key = find(name);
      if (key === null) return null;
      return new Bun.CryptoHasher("sha256", deps.secret).update(key.digest).digest("base64url");
    },
    /** Returns when the key with this name was last used since the start; null: not since then, or no such key. */
    lastUsed: (name: string): Millis | null =>
      known.find(({ principal }) => principal.name === name)?.lastUsedAt ?? null,
    /** Checks that the key with this name may be used from this address. `address` is called only for keys with `ips`. Errors: 403. */
    checkAddress(name: string, address: () => string): void {
      const key = find(name);
      if (key !== null) requireAddress(key, address);
    },
  };
}

function requireAddress({ ranges }: KnownKey, address: () => string): void {
  if (ranges === null) return;
  const from = parseAddress(address());
  if (from === null || !isWithin(from, ranges)) throw forbidden();
}

/** The error of an invalid service key. It has its own class, because areas answer it with different statuses. [AC3] */
export class InvalidServiceKey extends AppError {
  constructor(status = 401) {
    super(status, "Invalid service key");
  }
}

function knownKey(name: string, config: ServiceKeyConfig): KnownKey {
  return {
    digest: digestOf(config.key),
    expiresAtMs: config.expiresAt === undefined ? Number.POSITIVE_INFINITY : parseIsoDateTime(config.expiresAt),
    ranges: config.ips === undefined ? null : parseRanges(config.ips),
    principal: {
      kind: "serviceKey",
      name,
      scopes: config.scopes === undefined ? EVERY_SCOPE : createScopes(config.scopes),
    },
    lastUsedAt: null,
  };
}
