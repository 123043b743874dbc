import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownChild } from "../children.ts";
import { temporaryDirectory } from "../platform.ts";
import { until } from "../until.ts";
import { createAuthority } from "./certificates.ts";

/** Debian's ACME test server, `apt-get install pebble`; null if it is not installed. */
const pebble = Bun.which("pebble");
const dnsServer = Bun.which("pebble-challtestsrv");
export const hasAcme = pebble !== null && dnsServer !== null;
if (!hasAcme) console.warn("SKIPPED: tests with a certificate authority, which need pebble (apt-get install pebble)");

export interface Acme {
  /** Address of its ACME directory. */
  readonly directory: string;
  /** Port on which it validates challenges. Every name resolves to 127.0.0.1. */
  readonly challengePort: number;
  /** Environment with which a server trusts its HTTPS. */
  readonly env: { NODE_EXTRA_CA_CERTS: string };
  /** Returns the authority of the certificates that it issues, in PEM. */
  root(): Promise<string>;
  /** Returns the number of orders received. */
  orders(): number;
  stop(): void;
}

/** Starts a certificate authority on this machine, with a DNS server. */
export async function startAcme(): Promise<Acme> {
  const directory = temporaryDirectory();
  const authority = await createAuthority(directory);
  const { cert, key } = await authority.sign();
  writeFileSync(join(directory, "cert.pem"), cert);
  writeFileSync(join(directory, "key.pem"), key);
  const [port, managementPort, challengePort, dnsPort, dnsManagementPort] = freePorts(5);
  const settings = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: "cert.pem",
    privateKey: "key.pem",
    httpPort: challengePort,
    tlsPort: challengePort,
  };
  writeFileSync(join(directory, "pebble.json"), JSON.stringify({ pebble: settings }));
  const dns = Bun.spawn(
    [
      ...[dnsServer ?? "", "-dns01", `127.0.0.1:${dnsPort}`, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""],
      ...["-http01", "", "-https01", "", "-tlsalpn01", "", "-management", `127.0.0.1:${dnsManagementPort}`],
    ],
    { stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  );
  const child = Bun.spawn([pebble ?? "", "-config", "pebble.json", "-dnsserver", `127.0.0.1:${dnsPort}`], {
    cwd: directory,
    env: { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "20" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  });
  ownChild(dns);
  ownChild(child);
  let log = "";
  const reading = async (): Promise<void> => {
    for await (const chunk of child.stdout) log += new TextDecoder().decode(chunk);
  };
  void reading();
  const url = `https://localhost:${port}/dir`;
  const tls = { ca: authority.cert };
  const isUp = () =>
    fetch(url, { tls }).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("the certificate authority", isUp);
  return {
    directory: url,
    challengePort: challengePort ?? 0,
    env: { NODE_EXTRA_CA_CERTS: authority.file },
    root: async () => (await fetch(`https://localhost:${managementPort}/roots/0`, { tls })).text(),
    orders: () => log.split("POST /order-plz").length - 1,
    stop() {
      child.kill();
      dns.kill();
    },
  };
}

/** Returns ports that are free now, for programs that cannot choose one. */
export function freePorts(count: number): number[] {
  const listeners = Array.from({ length: count }, () =>
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }),
  );
  for (const listener of listeners) listener.stop(true);
  return listeners.map(({ port }) => port);
}
