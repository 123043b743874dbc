import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { isPublicAddress, parseAddress } from "../../../../kernel/network/addresses.ts";
import { LOOKUP_TIMEOUT_MS, LOOKUP_TRIES } from "../limits.ts";

/** Looks up the addresses of a host name. Errors: none found. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

/**
 * Returns a public address of the host. Loopback, link-local, private, shared and reserved addresses are refused, also as
 * IPv4-mapped IPv6, and also if only one of several addresses is private. Callers must connect to the returned address: a second
 * lookup may return a different one (DNS rebinding). Errors: a private address, an unknown host. [PU25]
 */
export async function publicAddress(hostname: string, lookup: Lookup): Promise<string> {
  const literal = hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = parseAddress(literal) !== null ? [literal] : await lookup(hostname);
  const [first] = addresses;
  if (first === undefined) throw new Error(`The host ${hostname} has no address`);
  if (!addresses.every(isPublic)) throw new Error(`The host ${hostname} is in a private network`);
  return first;
}

function isPublic(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && isPublicAddress(address);
}

/** Names of this machine itself (RFC 6761), which no name server has to know. */
const LOCAL = /(?:^|\.)localhost\.?$/i;

/**
 * Looks up the addresses of a host name in DNS, of the families that this machine has, IPv4 first. `dns.lookup` is not used: each
 * call would hold one of the few threads that sync writes to disk until the host's name server answers, and an attacker's may
 * never answer. A new resolver each time notices a changed `/etc/resolv.conf`. Errors: no address found.
 */
export async function systemLookup(hostname: string): Promise<string[]> {
  if (LOCAL.test(hostname)) return ["127.0.0.1"];
  const resolver = new Resolver({ timeout: LOOKUP_TIMEOUT_MS, tries: LOOKUP_TRIES });
  const { hasIPv4, hasIPv6 } = ownFamilies();
  const answers = await Promise.allSettled([
    ...(hasIPv4 ? [resolver.resolve4(hostname)] : []),
    ...(hasIPv6 ? [resolver.resolve6(hostname)] : []),
  ]);
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const failed = answers.find((answer) => answer.status === "rejected");
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  return found;
}

/** Returns the address families of this machine. A machine with neither, which reaches nobody, counts as having IPv4. */
function ownFamilies(): { hasIPv4: boolean; hasIPv6: boolean } {
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  const reaching = own.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const hasIPv6 = reaching.some(({ family }) => family === "IPv6");
  return { hasIPv4: !hasIPv6 || reaching.some(({ family }) => family === "IPv4"), hasIPv6 };
}
