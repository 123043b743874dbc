import ipaddr from "ipaddr.js";

/** IPv4, or IPv6 that is no IPv4 in another form. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address, and how many of its first bits count. */
export type AddressRange = [address: Address, bits: number];

/** An IPv4-compatible address, which nobody uses any more. ipaddr.js takes it for the IPv4 address, and the same bits in hexadecimal not. */
const COMPATIBLE = /^::(\d+\.\d+\.\d+\.\d+)(?:%.*)?$/;

/**
 * The one way to read an address: IPv4 in four decimal parts, and IPv6, of which `::ffff:0:0/96` is IPv4. null: it is none.
 * ipaddr.js also reads `10.1` and `0x7f.1`, which different programs read differently.
 */
export function parseAddress(text: string): Address | null {
  if (!text.includes(":")) return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : null;
  const compatible = COMPATIBLE.exec(text)?.[1];
  const written = compatible === undefined ? text : `0:0:0:0:0:0:${compatible}`;
  if (!ipaddr.IPv6.isValid(written)) return null;
  const parsed = ipaddr.IPv6.parse(written);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed;
}

const MAPPED_BITS = 96;

/** An address, or a range in CIDR notation. A range of IPv4 in IPv6 form is one of IPv4. null: it is neither. */
export function parseRange(text: string): AddressRange | null {
  const [first = "", bits, ...more] = text.split("/");
  const address = first.includes("%") ? null : parseAddress(first);
  if (address === null || more.length > 0) return null;
  const isMapped = address.kind() === "ipv4" && first.includes(":");
  const most = first.includes(":") ? 128 : 32;
  const count = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (!(count <= most)) return null;
  if (!isMapped) return [address, count];
  return count < MAPPED_BITS ? null : [address, count - MAPPED_BITS];
}

/** The ranges among these texts. */
export const parseRanges = (texts: readonly string[]): AddressRange[] =>
  texts.map(parseRange).filter((range) => range !== null);

export const isWithin = (address: Address, ranges: readonly AddressRange[]): boolean =>
  ranges.some(([range, bits]) => address.kind() === range.kind() && address.match(range, bits));

/** The only part of IPv6 that is public, without what is set apart within it (the registry of RFC 6890). */
const PUBLIC_IPV6 = parseRanges(["2000::/3"]);
const SPECIAL = parseRanges(["2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20"]);
/** Addresses of clouds at which each machine reaches services of its own, though they look public. */
const OF_CLOUDS = parseRanges(["168.63.129.16"]);

/** Whether an address may be somebody else's on the internet: none of loopback, link-local, private, shared and reserved ones. */
export function isPublicAddress(address: Address): boolean {
  if (address.kind() === "ipv4") return address.range() === "unicast" && !isWithin(address, OF_CLOUDS);
  return isWithin(address, PUBLIC_IPV6) && !isWithin(address, SPECIAL);
}

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
