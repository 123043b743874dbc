import { timingSafeEqual } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { ServiceKeyConfig } from "../config/types.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError, forbidden } from "../kernel/errors.ts";
import { parseIsoDateTime } from "../kernel/time/iso-datetime.ts";
import type { Principal } from "./principal.ts";
import { createScopes, EVERY_SCOPE } from "./scopes.ts";

export interface ServiceKeys {
  /**
   * Errors: 401 `Invalid service key` for an unknown, empty or expired key; 403 from an address outside its `ips`. `address`
   * is called only for keys with `ips`.
   */
  identify(key: string, address: () => string): Principal;
  /** The key with this name; null if the config no longer has it, or it has expired. */
  named(name: string): Principal | null;
}

interface KnownKey {
  digest: Uint8Array;
  expiresAtMs: number;
  ranges: readonly AddressRange[] | null;
  principal: Principal;
}

type AddressRange = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** All digests have the same length, so comparing them reveals nothing about a key, not even its length. */
const digestOf = (key: string, into = new Uint8Array(Bun.SHA256.byteLength)): Uint8Array => {
  Bun.SHA256.hash(key, into);
  return into;
};

export function createServiceKeys(deps: {
  rootKey: string;
  declared: Readonly<Record<string, ServiceKeyConfig>>;
  clock: Clock;
}): ServiceKeys {
  const root: KnownKey = {
    digest: digestOf(deps.rootKey),
    expiresAtMs: Number.POSITIVE_INFINITY,
    ranges: null,
    principal: { kind: "serviceKey", name: "root", scopes: EVERY_SCOPE },
  };
  const known = [root, ...Object.entries(deps.declared).map(([name, config]) => knownKey(name, config))];

  // Reused by all calls, which are synchronous: no allocation per request.
  const digest = new Uint8Array(Bun.SHA256.byteLength);
  return {
    identify(key, address) {
      digestOf(key, digest);
      // Compares with every key, even after a match, so that the time does not reveal which one matched.
      let found: KnownKey | null = null;
      for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) found = candidate;
      if (key === "" || found === null || found.expiresAtMs <= deps.clock.now()) {
        throw new InvalidServiceKey();
      }
      if (found.ranges !== null && !isWithin(address(), found.ranges)) throw forbidden();
      return found.principal;
    },
    named(name) {
      const key = known.find(({ principal }) => principal.kind === "serviceKey" && principal.name === name);
      return key === undefined || key.expiresAtMs <= deps.clock.now() ? null : key.principal;
    },
  };
}

/** A class of its own, because areas answer it with different statuses. [AC3] */
export class InvalidServiceKey extends AppError {
  constructor(status = 401) {
    super(status, "Invalid service key");
  }
}

function knownKey(name: string, config: ServiceKeyConfig): KnownKey {
  return {
    digest: digestOf(config.key),
    expiresAtMs: config.expiresAt === undefined ? Number.POSITIVE_INFINITY : parseIsoDateTime(config.expiresAt),
    ranges: config.ips?.map(parseRange) ?? null,
    principal: {
      kind: "serviceKey",
      name,
      scopes: config.scopes === undefined ? EVERY_SCOPE : createScopes(config.scopes),
    },
  };
}

function parseRange(text: string): AddressRange {
  if (text.includes("/")) return ipaddr.parseCIDR(text);
  const address = ipaddr.parse(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

function isWithin(text: string, ranges: readonly AddressRange[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  return ranges.some((range) => range[0].kind() === address.kind() && address.match(range));
}
