import ipaddr from "ipaddr.js";
import { Type } from "typebox";
import { PROXY_HOPS_MAX, PROXY_RANGES_MAX } from "../../limits.ts";
import { describe } from "../../shape/report.ts";
import { list, refined, textWith, whole } from "../../shape/schema.ts";

/** Header names without their upper case: the characters of RFC 9110. */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** An address, or a range in CIDR notation. */
export const addressRange = () =>
  textWith((value) =>
    isAddressOrRange(value) ? null : `must be an address or a range such as 10.0.0.0/8, got ${describe(value)}`,
  );

/** ipaddr.js also reads `10.1`, `0x7f.1` and one number, which different programs read differently. */
function isAddressOrRange(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  if (more.length > 0) return false;
  const isFour = ipaddr.IPv4.isValidFourPartDecimal(address);
  if (!isFour && !(address.includes(":") && ipaddr.IPv6.isValid(address) && !address.includes("%"))) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isFour ? 32 : 128));
}

const ranges = refined(list(addressRange()), (value, report) => {
  if (value.length > PROXY_RANGES_MAX) report.say(`must have at most ${PROXY_RANGES_MAX} entries, got ${value.length}`);
});

/** Which proxies in front of the server are believed. */
export const trustProxy = Type.Union([Type.Boolean(), whole({ min: 1, max: PROXY_HOPS_MAX }), ranges]);

export const headerName = () =>
  textWith((value) => (HEADER_NAME.test(value) ? null : `must be the name of a header, got ${describe(value)}`));
