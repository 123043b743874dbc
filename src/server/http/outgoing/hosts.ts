import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { unlessAborted } from "../../../kernel/time/deadline.ts";
import { HOST_KNOWN_MS, HOSTS_KNOWN_MAX } from "../limits.ts";

/** Whether Bun's `fetch` uses a proxy, which resolves the hosts itself: this machine may know none of them. */
const isProxied = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"].some((name) => process.env[name]);

/** The time at which each host has to be looked up again. */
const known = new Map<string, number>();
const underWay = new Map<string, Promise<void>>();
let latest: Promise<void> = Promise.resolve();

/**
 * Waits until the system has resolved the host of a URL; to be awaited before a connection to it. A lookup occupies one of the
 * threads that sync writes to the disk, of which there may be two, for many seconds where no name server answers. Only one runs at
 * a time, so that writes continue. For hosts that the config names: one that a user names, and whose name server is silent, would
 * block the others. Errors: the host is not found; the signal's reason.
 */
export async function findHost(url: string, signal?: AbortSignal | null): Promise<void> {
  const { hostname } = new URL(url);
  if (isProxied || isIP(hostname.replace(/^\[|\]$/g, "")) !== 0 || (known.get(hostname) ?? 0) > performance.now())
    return;
  let finding = underWay.get(hostname);
  if (finding === undefined) {
    finding = latest.then(() => find(hostname)).finally(() => underWay.delete(hostname));
    underWay.set(hostname, finding);
    latest = finding.catch(() => {});
  }
  await (signal === undefined || signal === null ? finding : unlessAborted(finding, signal));
}

async function find(hostname: string): Promise<void> {
  await lookup(hostname);
  if (known.size >= HOSTS_KNOWN_MAX) known.clear();
  known.set(hostname, performance.now() + HOST_KNOWN_MS);
}
