import ipaddr from "ipaddr.js";

/** IPv4, or IPv6 that is no IPv4 in another form. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address, and how many of its first bits count. */
export type AddressRange = [address: Address, bits: number];

/**
 * Matches an IPv4-compatible address, an obsolete form. ipaddr.js reads it as the IPv4 address, but not the same bits in
 * hexadecimal.
 */
const COMPATIBLE = /^::(\d+\.\d+\.\d+\.\d+)(?:%.*)?$/;

/**
 * Parses an address: IPv4 in four decimal parts, or IPv6, of which `::ffff:0:0/96` is IPv4. null for anything else. No other code
 * parses addresses: ipaddr.js also accepts `10.1` and `0x7f.1`, which different programs read differently.
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

/** Parses an address, or a range in CIDR notation. A range of IPv4 in IPv6 form becomes one of IPv4. null for anything else. */
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

/** Returns the ranges among these texts and drops the others. */
export const parseRanges = (texts: readonly string[]): AddressRange[] =>
  texts.map(parseRange).filter((range) => range !== null);

export const isWithin = (address: Address, ranges: readonly AddressRange[]): boolean =>
  ranges.some(([range, bits]) => address.kind() === range.kind() && address.match(range, bits));

/** The only public part of IPv6, and the reserved blocks within it (the registry of RFC 6890). */
const PUBLIC_IPV6 = parseRanges(["2000::/3"]);
const SPECIAL = parseRanges(["2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20"]);
/** Cloud addresses at which each machine reaches services of its own, although they look public. */
const OF_CLOUDS = parseRanges(["168.63.129.16"]);

/** Reports whether an address is this machine's own. */
export const isLoopbackAddress = (address: string): boolean => parseAddress(address)?.range() === "loopback";

/**
 * Reports whether an address may belong to somebody else on the internet: not loopback, link-local, private, shared or reserved.
 */
export function isPublicAddress(address: Address): boolean {
  if (address.kind() === "ipv4") return address.range() === "unicast" && !isWithin(address, OF_CLOUDS);
  return isWithin(address, PUBLIC_IPV6) && !isWithin(address, SPECIAL);
}

/** Bits of an IPv6 address that a provider assigns to one customer. */
const IPV6_NETWORK_BITS = 64;

/**
 * Returns the key of per-client limits: an IPv4 address itself, or the /64 of an IPv6 address, because one client is usually given
 * a whole /64 and could use a new address for every request. An IPv4 address in IPv6 form counts as that IPv4 address. Text that is
 * not an address is returned unchanged.
 */
export function clientNetwork(address: string): string {
  const parsed = address.includes(":") ? parseAddress(address) : null;
  if (parsed === null) return address;
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, IPV6_NETWORK_BITS / 16).map((group) => group.toString(16));
  return `${network.join(":")}::/${IPV6_NETWORK_BITS}`;
}
