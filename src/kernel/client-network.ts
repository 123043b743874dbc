const IPV6_GROUPS = 8;
/** Groups of 16 bits in a /64. */
const NETWORK_GROUPS = 4;

/**
 * What limits per client count by: an IPv4 address itself, and of an IPv6 address its /64, because one client is usually
 * given a whole /64 and could use a new address for every request. An IPv4 address in IPv6 form is that IPv4 address. Text
 * that is not an address stays as it is.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(":")) return address;
  const [text = ""] = address.toLowerCase().split("%");
  const [, ipv4] = /^(?:0*:)*:?ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(text) ?? [];
  if (ipv4 !== undefined) return ipv4;
  const [left = "", right, ...more] = text.split("::");
  const head = groupsOf(left);
  const tail = groupsOf(right ?? "");
  const missing = IPV6_GROUPS - head.length - tail.length;
  const isWhole = right === undefined ? missing === 0 : missing >= 0;
  if (!isWhole || more.length > 0) return address;
  const groups = [...head, ...Array<string>(missing).fill("0"), ...tail].slice(0, NETWORK_GROUPS);
  if (!groups.every((group) => /^[\da-f]{1,4}$/.test(group))) return address;
  return `${groups.map((group) => group.replace(/^0+(?=.)/, "")).join(":")}::/64`;
}

/** An IPv4 address at the end stands for two groups, and is never among the first four. */
const groupsOf = (text: string): string[] =>
  text === "" ? [] : text.split(":").flatMap((group) => (group.includes(".") ? ["0", "0"] : [group]));
