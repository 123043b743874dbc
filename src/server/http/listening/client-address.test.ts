import { describe, expect, test } from "bun:test";
import { createClientAddress, type ProxyTrust } from "./client-address.ts";

const PEER = "10.0.0.1";

/** [case, trust, X-Forwarded-For, the connection's address, the client's address] */
const CASES: [what: string, trust: ProxyTrust["trustProxy"], forwarded: string | null, peer: string, client: string][] =
  [
    ["no proxy: the header is not read", false, "192.0.2.1", PEER, PEER],
    ["one proxy: the last entry", true, "6.6.6.6, 192.0.2.1", PEER, "192.0.2.1"],
    ["one proxy, no header", true, null, PEER, PEER],
    ["two proxies: the last but one", 2, "6.6.6.6, 192.0.2.1, 10.0.0.2", PEER, "192.0.2.1"],
    ["two proxies, one entry: somebody calls the inner proxy directly", 2, "192.0.2.1", PEER, PEER],
    ["two proxies, an empty header", 2, "", PEER, PEER],
    ["one proxy, commas alone", true, ",,,", PEER, PEER],
    ["one proxy that writes no address", true, "6.6.6.6, unknown", PEER, PEER],
    ["one proxy, an address in a notation that no proxy writes", true, "0x7f.1", PEER, PEER],
    ["a port", true, "192.0.2.1:4711", PEER, "192.0.2.1"],
    ["an IPv6 address with a port", true, "[2001:db8::1]:4711", PEER, "2001:db8::1"],
    ["an IPv4 address in IPv6 form, in upper case", true, "::FFFF:192.0.2.1", PEER, "192.0.2.1"],
    ["what only looks like that form", true, "::ffff:1", PEER, "::ffff:1"],
    [
      "ranges: a connection from elsewhere is believed nothing",
      ["10.0.0.0/8"],
      "192.0.2.1",
      "203.0.113.5",
      "203.0.113.5",
    ],
    [
      "ranges: the first address from the end that is no proxy",
      ["10.0.0.0/8"],
      "6.6.6.6, 192.0.2.1, 10.9.9.9",
      PEER,
      "192.0.2.1",
    ],
    ["ranges: a proxy's address that the client sends", ["10.0.0.0/8"], "10.6.6.6, 192.0.2.1", PEER, "192.0.2.1"],
    ["ranges: all are proxies", ["10.0.0.0/8"], "10.6.6.6, 10.7.7.7", PEER, "10.6.6.6"],
    ["ranges: garbage before a proxy", ["10.0.0.0/8"], "6.6.6.6, garbage, 10.7.7.7", PEER, "10.7.7.7"],
    ["ranges: no header", ["10.0.0.0/8"], null, PEER, PEER],
    ["ranges: one address", ["10.0.0.1"], "192.0.2.1", PEER, "192.0.2.1"],
    ["ranges: the address beside it", ["10.0.0.2"], "192.0.2.1", PEER, PEER],
    ["ranges: IPv6", ["2001:db8::/32"], "192.0.2.1", "2001:db8:1::9", "192.0.2.1"],
    ["ranges: a connection by IPv4 on an IPv6 socket", ["10.0.0.0/8"], "192.0.2.1", "::ffff:10.0.0.1", "192.0.2.1"],
  ];

describe("[HT11] the client's address", () => {
  test.each(CASES)("%s", (_, trustProxy, forwarded, peer, client) => {
    const headers = new Headers(forwarded === null ? {} : { "x-forwarded-for": forwarded });
    expect(createClientAddress({ trustProxy })(headers, () => peer)).toBe(client);
  });

  test("thousands of entries within the ranges: only the last ones are looked at", () => {
    const forwarded = `192.0.2.1, ${"10.0.0.9, ".repeat(6_000)}10.0.0.8`;
    const address = createClientAddress({ trustProxy: ["10.0.0.0/8"] });
    expect(address(new Headers({ "x-forwarded-for": forwarded }), () => PEER)).toBe("10.0.0.9");
  });
});

test("[HT301] a header with the client's address counts from trusted proxies only, and only with exactly one address", () => {
  const address = (headers: Record<string, string>, peer: string): string =>
    createClientAddress({ trustProxy: ["10.0.0.0/8"], clientAddressHeader: "CF-Connecting-IP" })(
      new Headers(headers),
      () => peer,
    );
  expect(address({ "cf-connecting-ip": "192.0.2.1" }, PEER)).toBe("192.0.2.1");
  expect(address({ "cf-connecting-ip": "192.0.2.1" }, "203.0.113.5")).toBe("203.0.113.5");
  expect(address({ "cf-connecting-ip": "192.0.2.1, 6.6.6.6" }, PEER)).toBe(PEER);
  expect(address({ "cf-connecting-ip": "nobody" }, PEER)).toBe(PEER);
  expect(address({ "x-forwarded-for": "6.6.6.6" }, PEER)).toBe(PEER);
});
