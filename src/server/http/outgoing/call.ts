import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { promisify } from "node:util";
import { brotliDecompress, unzip } from "node:zlib";
import { unlessAborted } from "../../../kernel/time/deadline.ts";
import { JsonScan } from "../bodies/json-scan.ts";
import { HOST_KNOWN_MS, HOSTS_KNOWN_MAX } from "../limits.ts";
import { mayLeave } from "./leaving.ts";

/** A request to another server. `signal` bounds its time, up to the last byte of the answer that is read. */
export type OutgoingRequest = Pick<BunFetchRequestInit, "method" | "headers" | "body" | "tls"> & {
  signal: AbortSignal;
};

/** The beginning of a body. `isCut`: the body exceeds the bound, the time is over, or the connection broke, with `cause` as the reason. */
interface Beginning {
  bytes: Uint8Array<ArrayBuffer>;
  isCut: boolean;
  cause?: unknown;
}

/** The head of an answer, whose body is read within a bound or not at all. */
export interface OutgoingAnswer {
  status: number;
  /** Whether the status is 200 to 299. */
  ok: boolean;
  headers: Headers;
  /** The body as sent, for a reader that bounds it itself. */
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Reads the first `maxBytes` bytes of the body, still encoded as `content-encoding` says, until `until` is aborted. Never rejects. */
  read(bounds: { maxBytes: number; until?: AbortSignal }): Promise<Beginning>;
  /**
   * Reads the answer with its body decoded, which has at most `maxBytes` bytes both as sent and decoded. Errors: a longer or
   * truncated body; JSON beyond the bounds of a request's; a content coding other than gzip, deflate and br; the signal's reason.
   */
  whole(bounds: { maxBytes: number }): Promise<Response>;
  /** Abandons the body. */
  drop(): void;
}

const DECODERS: Readonly<Record<string, (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>>> =
  {
    gzip: promisify(unzip),
    deflate: promisify(unzip),
    br: promisify(brotliDecompress),
  };
const [SPACE, OPENING_BRACKET, OPENING_BRACE] = [0x20, 0x5b, 0x7b];
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Sends a request and waits for the head of the answer: the only call of `fetch` to other servers. It follows no redirect, which
 * could lead into this network and carry credentials along, and decodes no body: a few bytes may become gigabytes. Errors: those of
 * `fetch`, `findHost` and `mayLeave`; the signal's reason.
 */
export async function outgoingCall(url: string, request: OutgoingRequest): Promise<OutgoingAnswer> {
  const headers = new Headers(request.headers);
  if (!headers.has("accept-encoding")) headers.set("accept-encoding", "identity");
  await findHost(url, request.signal);
  await mayLeave();
  const response = await fetch(url, { ...request, headers, redirect: "manual", decompress: false });
  const { status, ok, body } = response;
  const { host } = new URL(url);
  return {
    status,
    ok,
    headers: response.headers,
    body,
    read: (bounds) => beginningOf(body, bounds),
    async whole({ maxBytes }) {
      const { bytes, isCut, cause } = await beginningOf(body, { maxBytes });
      if (cause !== undefined) throw cause;
      if (isCut) throw new Error(`${host} answered more than ${maxBytes} bytes`);
      const headers = new Headers(response.headers);
      const decoded = await decode(bytes, { host, headers, maxBytes });
      requireFlat(decoded, host);
      for (const name of ["content-encoding", "content-length", "transfer-encoding"]) headers.delete(name);
      return new Response(BODILESS.has(status) ? null : decoded, { status, headers });
    },
    drop: () => void body?.cancel().catch(() => {}),
  };
}

/** Sends a request and reads the whole answer. Errors: those of `outgoingCall` and `whole`. */
export async function outgoingFetch(url: string, request: OutgoingRequest & { maxBytes: number }): Promise<Response> {
  const { maxBytes, ...call } = request;
  const answer = await outgoingCall(url, call);
  return answer.whole({ maxBytes });
}

/** Reads the first `maxBytes` bytes of a body, until `until` is aborted. Never rejects. */
export async function beginningOf(
  body: ReadableStream<Uint8Array> | null,
  { maxBytes, until }: { maxBytes: number; until?: AbortSignal },
): Promise<Beginning> {
  const reader = body?.getReader();
  if (reader === undefined) return { bytes: new Uint8Array(), isCut: false };
  const chunks: Uint8Array[] = [];
  let length = 0;
  const end = (): void => void reader.cancel().catch(() => {});
  // Ends a pending read.
  until?.addEventListener("abort", end, { once: true });
  let cause: unknown;
  try {
    while (length <= maxBytes && until?.aborted !== true) {
      const { value, done } = await reader.read();
      if (done) break;
      chunks.push(value);
      length += value.byteLength;
    }
  } catch (thrown) {
    cause = thrown ?? new Error("the connection broke off");
  } finally {
    until?.removeEventListener("abort", end);
    end();
  }
  const bytes = new Uint8Array(Buffer.concat(chunks).subarray(0, maxBytes));
  return { bytes, isCut: length > maxBytes || until?.aborted === true || cause !== undefined, cause };
}

/** Refuses JSON that nests deeper than a request's may: half a megabyte of brackets holds the parser for a quarter of a second. */
function requireFlat(bytes: Uint8Array, host: string): void {
  const first = bytes.find((byte) => byte > SPACE);
  if (first !== OPENING_BRACKET && first !== OPENING_BRACE) return;
  try {
    new JsonScan({ areValuesCounted: true }).take(bytes);
  } catch (cause) {
    throw new Error(`${host} answered JSON with too many levels or values`, { cause });
  }
}

/** Decodes a body. Servers are asked for `identity`; some encode regardless. */
async function decode(
  bytes: Uint8Array<ArrayBuffer>,
  { host, headers, maxBytes }: { host: string; headers: Headers; maxBytes: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const coding = (headers.get("content-encoding") ?? "").trim().toLowerCase().replace(/^x-/, "");
  if (coding === "" || coding === "identity" || bytes.byteLength === 0) return bytes;
  const decoder = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined;
  if (decoder === undefined) throw new Error(`${host} answered in the content coding "${coding}"`);
  try {
    return new Uint8Array(await decoder(bytes, { maxOutputLength: maxBytes }));
  } catch (cause) {
    throw new Error(`${host} answered what is not ${coding}, or is more than ${maxBytes} bytes`, { cause });
  }
}

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
async function findHost(url: string, signal?: AbortSignal | null): Promise<void> {
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
