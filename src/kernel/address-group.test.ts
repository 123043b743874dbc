import { expect, test } from "bun:test";
import { addressGroup } from "./address-group.ts";

test("an IPv4 address is a client of its own, an IPv6 address shares one with its /64", () => {
  expect(addressGroup("203.0.113.7")).toBe("203.0.113.7");
  expect(addressGroup("::ffff:203.0.113.7")).toBe("203.0.113.7");
  expect(addressGroup("2001:db8:1:2:aaaa::1")).toBe(addressGroup("2001:db8:1:2:bbbb::2"));
  expect(addressGroup("2001:db8:1:2::1")).not.toBe(addressGroup("2001:db8:1:3::1"));
  expect(addressGroup("fe80::1%eth0")).toBe(addressGroup("fe80::2%eth0"));
  expect(addressGroup("unknown:")).toBe("unknown:");
});
