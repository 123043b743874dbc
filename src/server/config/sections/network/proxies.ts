import { Type } from "typebox";
import { parseRange } from "../../../../kernel/network/addresses.ts";
import { PROXY_HOPS_MAX, PROXY_RANGES_MAX } from "../../limits.ts";
import { describe } from "../../shape/report.ts";
import { list, refined, textWith, whole } from "../../shape/schema.ts";

/** Lower-case header names: the characters of RFC 9110. */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** An address, or a range in CIDR notation, in the syntax of `parseRange`. */
export const addressRange = () =>
  textWith((value) =>
    parseRange(value) !== null ? null : `must be an address or a range such as 10.0.0.0/8, got ${describe(value)}`,
  );

const ranges = refined(list(addressRange()), (value, report) => {
  if (value.length > PROXY_RANGES_MAX) report.say(`must have at most ${PROXY_RANGES_MAX} entries, got ${value.length}`);
});

/** The trusted proxies in front of the server. */
export const trustProxy = Type.Union([Type.Boolean(), whole({ min: 1, max: PROXY_HOPS_MAX }), ranges]);

export const headerName = () =>
  textWith((value) => (HEADER_NAME.test(value) ? null : `must be the name of a header, got ${describe(value)}`));
