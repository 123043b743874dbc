import { type AddressRange, isWithin, parseAddress, parseRanges } from "../../../kernel/network/addresses.ts";
import { FORWARDED_ENTRIES_MAX } from "../limits.ts";

export interface ProxyTrust {
  /** false: nobody; true: one proxy; a number: as many, one behind another; a list: those with these addresses and ranges. */
  trustProxy: boolean | number | readonly string[];
  /** The header in which a trusted proxy sends the client's address; `X-Forwarded-For` by default. */
  clientAddressHeader?: string | undefined;
}

/** Gives the client's address for the headers of a request and the address of its connection. [HT11] */
export type ClientAddress = (headers: Headers, connection: () => string) => string;

/** Every header may come from the client itself. What a trusted proxy has not written, or no address, counts as absent. */
export function createClientAddress({ trustProxy, clientAddressHeader }: ProxyTrust): ClientAddress {
  if (trustProxy === false) return (_, connection) => bareAddress(connection());
  const ranges = typeof trustProxy === "object" ? parseRanges(trustProxy) : null;
  const hops = typeof trustProxy === "number" ? trustProxy : 1;
  return (headers, connection) => {
    const own = bareAddress(connection());
    if (ranges !== null && !isOfProxy(own, ranges)) return own;
    if (clientAddressHeader !== undefined) return validAddress(headers.get(clientAddressHeader)) ?? own;
    const forwarded = headers.get("x-forwarded-for");
    if (forwarded === null) return own;
    return ranges === null ? entryOf(forwarded, hops, own) : firstUntrusted(forwarded, ranges, own);
  };
}

/** The entry that the outermost of so many proxies wrote. Entries before it come from the client. */
function entryOf(forwarded: string, hops: number, own: string): string {
  const entries = lastEntries(forwarded, hops);
  return entries.length < hops ? own : (validAddress(entries[0] ?? "") ?? own);
}

/**
 * Each proxy adds the address that it was called from, so the list is read from its end: the first address that is none of the
 * proxies is the client. If all are proxies, the client is one of them.
 */
function firstUntrusted(forwarded: string, ranges: readonly AddressRange[], own: string): string {
  let client = own;
  for (const entry of lastEntries(forwarded, FORWARDED_ENTRIES_MAX).reverse()) {
    const address = validAddress(entry);
    if (address === null) return client;
    client = address;
    if (!isOfProxy(address, ranges)) return client;
  }
  return client;
}

/** The last entries, at most `max`, without reading what is before them: a client may send thousands. */
function lastEntries(text: string, max: number): string[] {
  const entries: string[] = [];
  let end = text.length;
  while (entries.length < max && end >= 0) {
    const comma = text.lastIndexOf(",", end - 1);
    // lastIndexOf treats a negative position like 0.
    const start = end === 0 ? -1 : comma;
    entries.unshift(text.slice(start + 1, end));
    end = start;
  }
  return entries;
}

/** null for what is not exactly one address. */
function validAddress(text: string | null): string | null {
  if (text === null) return null;
  const address = bareAddress(text.trim());
  return parseAddress(address) === null ? null : address;
}

/** The address without the port that some proxies add. An IPv4 address in IPv6 form becomes an IPv4 address. */
export function bareAddress(text: string): string {
  const [, address = text] = /^\[(.+)\](?::\d+)?$/.exec(text) ?? /^([\d.]+):\d+$/.exec(text) ?? [];
  if (!/^::ffff:/i.test(address)) return address;
  const parsed = parseAddress(address);
  return parsed?.kind() === "ipv4" ? parsed.toString() : address;
}

function isOfProxy(text: string, ranges: readonly AddressRange[]): boolean {
  const address = parseAddress(text);
  return address !== null && isWithin(address, ranges);
}
