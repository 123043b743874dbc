import { expect, test } from "bun:test";
import { publicAddress } from "./public-address.ts";

const noLookup = async (hostname: string): Promise<string[]> => {
  throw new Error(`${hostname} was looked up`);
};

test("[PU25] private, loopback, link-local, shared and reserved addresses are refused, in every notation", async () => {
  const hosts = [
    ...["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"],
    ...["255.255.255.255", "224.0.0.1", "198.18.0.1", "240.0.0.1", "[::1]", "[::]", "[fe80::1]", "[fc00::1]"],
    ...["[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]"],
    ...["168.63.129.16", "[::ffff:a83f:8110]", "[::7f00:1]", "[::a9fe:a9fe]", "[::127.0.0.1]", "[::8.8.8.8]", "[::2]"],
    // Reserved or unassigned.
    ...["[2001:2::1]", "[2001:20::1]", "[3fff::1]", "[4000::1]", "[8000::1]", "[5f00::1]", "[100::1]", "[e000::1]"],
    // Hosts in decimal, octal and hexadecimal, as the URL parser normalises them.
    ...["2130706433", "0x7f.1", "017700000001"].map((text) => new URL(`https://${text}/`).hostname),
  ];
  for (const host of hosts) {
    expect([host, await publicAddress(host, noLookup).catch((error: Error) => error.message)]).toEqual([
      host,
      `The host ${host} is in a private network`,
    ]);
  }
});

test("[PU25] a public address is returned", async () => {
  expect(await publicAddress("93.184.216.34", noLookup)).toBe("93.184.216.34");
  expect(await publicAddress("[2606:4700::1111]", noLookup)).toBe("2606:4700::1111");
  expect(await publicAddress("push.example", async () => ["93.184.216.34", "2606:4700::1111"])).toBe("93.184.216.34");
});

test("[PU25] a name is refused if any of its addresses is private", async () => {
  const answers = [["10.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["93.184.216.34", "not an address"]];
  for (const addresses of answers) {
    await expect(publicAddress("push.example", async () => addresses)).rejects.toThrow("private network");
  }
  await expect(publicAddress("push.example", async () => [])).rejects.toThrow("no address");
});
