import ipaddr from "ipaddr.js";

/** The addresses of a host name. Errors: there are none. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

/**
 * An address of the host that lies outside of private networks: loopback, link-local, private, shared and reserved ranges
 * are refused, also inside IPv6, and also where only one of several addresses is such. Connect to the address itself: a
 * name that is looked up a second time may lead elsewhere. Errors: a private address, an unknown host.
 */
export async function publicAddress(hostname: string, lookup: Lookup): Promise<string> {
  const literal = hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = ipaddr.isValid(literal) ? [literal] : await lookup(hostname);
  const [first] = addresses;
  if (first === undefined) throw new Error(`The host ${hostname} has no address`);
  if (!addresses.every(isPublic)) throw new Error(`The host ${hostname} lies in a private network`);
  return first;
}

function isPublic(address: string): boolean {
  // `process` takes an IPv4 address out of ::ffff:0:0/96; the other ways to hide one are no unicast.
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "unicast";
}
