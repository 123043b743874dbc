import { type AddressRange, isWithin, parseAddress, parseRanges } from "../../../kernel/network/addresses.ts";
import { FORWARDED_ENTRIES_MAX } from "../limits.ts";

export interface ProxyTrust {
  /** The trusted proxies. false: none; true: one; a number: as many, chained; a list: those with these addresses and ranges. */
  trustProxy: boolean | number | readonly string[];
  /** The header in which a trusted proxy sends the client's address; `X-Forwarded-For` by default. */
  clientAddressHeader?: string | undefined;
}

/** Resolves the client's address from the headers of a request and the address of its connection. [HT11] */
export type ClientAddress = (headers: Headers, connection: () => string) => string;

/**
 * Creates the resolver. Every header may come from the client itself: one that no trusted proxy has written, or without a valid
 * address, counts as absent.
 */
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

/** Returns the entry that the outermost of `hops` proxies wrote. Entries before it come from the client. */
function entryOf(forwarded: string, hops: number, own: string): string {
  const entries = lastEntries(forwarded, hops);
  return entries.length < hops ? own : (validAddress(entries[0] ?? "") ?? own);
}

/**
 * Finds the client in the list. Each proxy appends the address of its peer, so the list is read from its end: the first address
 * that is none of the proxies is the client. If all are proxies, the client is one of them.
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

/** Returns the last entries, at most `max`, without reading those before them: a client may send thousands. */
function lastEntries(text: string, max: number): string[] {
  const entries: string[] = [];
  let end = text.length;
  while (entries.length < max && end >= 0) {
    const comma = text.lastIndexOf(",", end - 1);
    // lastIndexOf treats a negative position as 0.
    const start = end === 0 ? -1 : comma;
    entries.unshift(text.slice(start + 1, end));
    end = start;
  }
  return entries;
}

/** Returns the address; null unless the text is exactly one address. */
function validAddress(text: string | null): string | null {
  if (text === null) return null;
  const address = bareAddress(text.trim());
  return parseAddress(address) === null ? null : address;
}

/** Removes the port that some proxies add. An IPv4-mapped IPv6 address becomes an IPv4 address. */
function bareAddress(text: string): string {
  const [, address = text] = /^\[(.+)\](?::\d+)?$/.exec(text) ?? /^([\d.]+):\d+$/.exec(text) ?? [];
  if (!/^::ffff:/i.test(address)) return address;
  const parsed = parseAddress(address);
  return parsed?.kind() === "ipv4" ? parsed.toString() : address;
}

function isOfProxy(text: string, ranges: readonly AddressRange[]): boolean {
  const address = parseAddress(text);
  return address !== null && isWithin(address, ranges);
}
