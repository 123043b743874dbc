import { isPublicAddress, parseAddress } from "../../../../kernel/network/addresses.ts";

/** The addresses of a host name. Errors: none found. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

/**
 * A public address of the host. Loopback, link-local, private, shared and reserved addresses are refused, also as IPv4 inside
 * of IPv6, and also if only one of several addresses is private. Callers must connect to the returned address: a second lookup
 * of the name may give another one. Errors: a private address, an unknown host. [PU25]
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
