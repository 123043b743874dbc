import ipaddr from "ipaddr.js";

/** Bits of an IPv6 address that its provider hands out; the others are the customer's to choose. */
const IPV6_PREFIX_BITS = 64;

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 one. Text that is no address stays as it is. */
export function addressGroup(address: string): string {
  if (!address.includes(":") || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${IPV6_PREFIX_BITS}`).toString()}/${IPV6_PREFIX_BITS}`;
}
