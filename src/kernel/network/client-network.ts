import ipaddr from "ipaddr.js";
import { parseAddress } from "./addresses.ts";

/** Bits of an IPv6 address that a provider assigns to one customer. */
const IPV6_NETWORK_BITS = 64;

/**
 * What limits per client count by: an IPv4 address itself, and of an IPv6 address its /64, because one client is usually
 * given a whole /64 and could use a new address for every request. An IPv4 address in IPv6 form is that IPv4 address. Text
 * that is not an address stays as it is.
 */
export function clientNetwork(address: string): string {
  const parsed = address.includes(":") ? parseAddress(address) : null;
  if (parsed === null) return address;
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, IPV6_NETWORK_BITS / 16).map((group) => group.toString(16));
  return `${network.join(":")}::/${IPV6_NETWORK_BITS}`;
}
