import { createHash, createHmac } from "node:crypto";
import { S3Client } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { S3_ANSWER_MAX_BYTES, S3_ANSWER_TIMEOUT_MS, S3_ERROR_MAX_BYTES, S3_NOTE_MAX_BYTES } from "../limits.ts";
import { type OutgoingAnswer, outgoingCall } from "./call.ts";

/** The access to an S3-compatible object store; without `region`, that of its endpoint applies. */
export interface ObjectStoreAccess {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region?: string | undefined;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** An error that a store answers with. `code` is the store's own, such as `NoSuchKey`. */
class S3Error extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message === "" ? code : `${code}: ${message}`);
    this.code = code;
  }
}

/** Codes with which a store answers that a condition of a write is not met. */
const CONDITION_CODES = new Set(["PreconditionFailed", "ConditionalRequestConflict"]);

interface S3Request {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** The object's key; empty: the bucket itself. */
  key: string;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array<ArrayBuffer> | string;
  /** The number of retries after no answer or 5xx. Default: 0. */
  retries?: number;
}

export interface S3Page {
  objects: { key: string; size: number; lastModified: string }[];
  /** The key to continue after; null: the last page. */
  next: string | null;
}

/** Options of a multipart upload; an object smaller than a part is one request. */
interface UploadOptions {
  type?: string;
  partBytes: number;
  /** Parts that are sent concurrently. */
  atOnce: number;
  retries: number;
  /** Whether the store compares what has arrived with a hash. */
  isChecked?: boolean;
}

/**
 * A bucket of an S3-compatible store. Its answers are bounded and redirects are not followed, as for every outgoing call. Objects
 * are addressed by path, as `ENDPOINT/BUCKET/KEY`. Errors of its methods: S3Error, and those of `outgoingCall`.
 */
export class S3Bucket {
  readonly #store: ObjectStoreAccess;
  readonly #region: string;
  readonly #clock: Clock;
  /** The buffer of a finished upload, reused by the next one: mapping a new one's pages costs as much as a small upload. */
  #spare: Buffer<ArrayBuffer> | null = null;

  constructor(store: ObjectStoreAccess, clock: Clock) {
    this.#store = store;
    this.#region = store.region ?? regionOf(store.endpoint);
    this.#clock = clock;
  }

  /** Reads the bytes from `start` up to `end` as a stream, which the reader bounds. */
  async read(
    key: string,
    range: { start: number; end: number } | null,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const headers: Record<string, string> = range === null ? {} : { range: `bytes=${range.start}-${range.end - 1}` };
    const { body } = await this.#timed((signal) => this.#ask({ method: "GET", key, headers }, signal));
    return body ?? new Blob([]).stream();
  }

  /** Reads a small text with the tag of this version of the object; null: no such object. Errors: also a longer text. */
  async readTagged(key: string): Promise<{ text: string; tag: string } | null> {
    try {
      return await this.#timed(async (signal) => {
        const answer = await this.#ask({ method: "GET", key }, signal);
        const text = await (await answer.whole({ maxBytes: S3_NOTE_MAX_BYTES })).text();
        const tag = answer.headers.get("etag");
        // An answer of something else in between must not pass for an empty object.
        if (tag === null) throw new Error("Unexpected response from the object store: no ETag");
        return { text, tag };
      });
    } catch (cause) {
      if (cause instanceof S3Error && cause.code === "NoSuchKey") return null;
      throw cause;
    }
  }

  /** Replaces the version of an object with this tag; null: stores it if there is none. false: there is another version. */
  async putIf(key: string, body: Uint8Array<ArrayBuffer>, tag: string | null, { retries = 0 } = {}): Promise<boolean> {
    const condition: Record<string, string> = tag === null ? { "if-none-match": "*" } : { "if-match": tag };
    try {
      await this.#done({ method: "PUT", key, body, headers: { ...condition, "content-md5": md5(body) }, retries });
      return true;
    } catch (cause) {
      if (cause instanceof S3Error && CONDITION_CODES.has(cause.code)) return false;
      throw cause;
    }
  }

  /** Reads a small text; null: no such object. Errors: also a longer text. */
  async readNote(key: string): Promise<string | null> {
    try {
      return await this.#textOf({ method: "GET", key }, S3_NOTE_MAX_BYTES);
    } catch (cause) {
      if (cause instanceof S3Error && cause.code === "NoSuchKey") return null;
      throw cause;
    }
  }

  /** Returns the size of an object in bytes. */
  async sizeOf(key: string): Promise<number> {
    return Number((await this.#done({ method: "HEAD", key })).get("content-length"));
  }

  /** Stores an object. `isChecked`: the store compares what has arrived with a hash, as buckets with object lock ask for. */
  async put(
    key: string,
    body: Uint8Array<ArrayBuffer> | string,
    { type = "", retries = 0, isChecked = false } = {},
  ): Promise<void> {
    const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
    if (isChecked) headers["content-md5"] = md5(body);
    await this.#done({ method: "PUT", key, body, headers, retries });
  }

  /** Removes an object; does nothing if it does not exist. */
  async remove(key: string): Promise<void> {
    await this.#done({ method: "DELETE", key });
  }

  /** Lists a page of the objects whose keys begin with `prefix`. `after`: `next` of the previous page. */
  async list(prefix: string, { after, keysMax }: { after: string | null; keysMax: number }): Promise<S3Page> {
    const page = { "list-type": "2", prefix, "max-keys": String(keysMax) };
    const query = after === null ? page : { ...page, "continuation-token": after };
    const text = await this.#textOf({ method: "GET", key: "", query }, S3_ANSWER_MAX_BYTES);
    const objects = [...text.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, entry = ""]) => ({
      key: memberOf(entry, "Key"),
      size: Number(memberOf(entry, "Size")),
      lastModified: memberOf(entry, "LastModified"),
    }));
    const isTruncated = memberOf(text, "IsTruncated") === "true";
    return { objects, next: isTruncated ? memberOf(text, "NextContinuationToken") : null };
  }

  /** Begins an upload. Nothing is sent before the first part is full. */
  upload(key: string, options: UploadOptions): S3Upload {
    return new S3Upload(options, {
      buffer: () => {
        const spare = this.#spare;
        this.#spare = null;
        return spare?.byteLength === options.partBytes ? spare : Buffer.allocUnsafeSlow(options.partBytes);
      },
      release: (buffer) => {
        this.#spare = buffer;
      },
      put: (body) => this.put(key, body, options),
      begin: async () => {
        const headers: Record<string, string> = options.type === undefined ? {} : { "content-type": options.type };
        const begin = { method: "POST", key, query: { uploads: "" }, headers } as const;
        return memberOf(await this.#textOf(begin, S3_ANSWER_MAX_BYTES), "UploadId");
      },
      part: async (uploadId, partNumber, body) => {
        const query = { partNumber: String(partNumber), uploadId };
        const headers: Record<string, string> = options.isChecked === true ? { "content-md5": md5(body) } : {};
        return (
          (await this.#done({ method: "PUT", key, query, body, headers, retries: options.retries })).get("etag") ?? ""
        );
      },
      complete: async (uploadId, etags) => {
        const parts = etags.map((etag, n) => `<Part><PartNumber>${n + 1}</PartNumber><ETag>${etag}</ETag></Part>`);
        const body = `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
        const answer = await this.#textOf({ method: "POST", key, query: { uploadId }, body }, S3_ANSWER_MAX_BYTES);
        // The store sends the status before it joins the parts.
        if (answer.includes("<Error>")) throw errorOf(answer, 200);
      },
      abort: async (uploadId) => void (await this.#done({ method: "DELETE", key, query: { uploadId } })),
    });
  }

  #textOf(request: S3Request, maxBytes: number): Promise<string> {
    return this.#timed(async (signal) => {
      const answer = await this.#ask(request, signal);
      return (await answer.whole({ maxBytes })).text();
    });
  }

  /** Sends a request whose answer has no relevant body; resolves to the headers. */
  #done(request: S3Request): Promise<Headers> {
    return this.#timed(async (signal) => {
      const answer = await this.#ask(request, signal);
      answer.drop();
      return answer.headers;
    });
  }

  async #timed<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const timeout = new AbortController();
    const reason = new Error(`The object store has not answered within ${S3_ANSWER_TIMEOUT_MS / SECOND_MS} s`);
    const cancel = this.#clock.after(S3_ANSWER_TIMEOUT_MS, () => timeout.abort(reason));
    try {
      return await work(timeout.signal);
    } finally {
      cancel();
    }
  }

  /** Sends a request; resolves to the head of a 2xx answer. */
  async #ask(request: S3Request, signal: AbortSignal): Promise<OutgoingAnswer> {
    for (let left = request.retries ?? 0; ; left--) {
      try {
        const answer = await this.#send(request, signal);
        if (answer.ok) return answer;
        const { bytes } = await answer.read({ maxBytes: S3_ERROR_MAX_BYTES });
        const failure = errorOf(new TextDecoder().decode(bytes), answer.status);
        if (answer.status < 500 || left <= 0) throw failure;
      } catch (cause) {
        if (cause instanceof S3Error || signal.aborted || left <= 0) throw cause;
      }
    }
  }

  #send({ method, key, query = {}, headers = {}, body }: S3Request, signal: AbortSignal): Promise<OutgoingAnswer> {
    const { endpoint, bucket } = this.#store;
    const url = new URL(endpoint);
    const names = key === "" ? [bucket] : [bucket, ...key.split("/")];
    const path = [url.pathname.replace(/\/$/, ""), ...names.map(encoded)].join("/");
    const pairs = Object.entries(query).map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
    const search = pairs.sort().join("&");
    const signed = this.#signed({ method, host: url.host, path, search });
    return outgoingCall(`${url.origin}${path}${search === "" ? "" : `?${search}`}`, {
      method,
      headers: { ...headers, ...signed },
      ...(body === undefined ? {} : { body }),
      signal,
    });
  }

  /** Returns the headers of AWS Signature Version 4. Bodies are not signed: TLS protects them, and they need not be read twice. */
  #signed({ method, host, path, search }: Record<"method" | "host" | "path" | "search", string>) {
    const { accessKeyId, secretAccessKey } = this.#store;
    const time = new Date(this.#clock.now()).toISOString().replace(/[-:]|\.\d+/g, "");
    const scope = `${time.slice(0, 8)}/${this.#region}/s3/aws4_request`;
    const payload = "UNSIGNED-PAYLOAD";
    const names = "host;x-amz-content-sha256;x-amz-date";
    const canonical = `${method}\n${path}\n${search}\nhost:${host}\nx-amz-content-sha256:${payload}\nx-amz-date:${time}\n\n${names}\n${payload}`;
    const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash("sha256").update(canonical).digest("hex")}`;
    const key = scope
      .split("/")
      .reduce<string | Buffer>((secret, part) => hmac(secret, part), `AWS4${secretAccessKey}`);
    const signature = hmac(key, text).toString("hex");
    return {
      "x-amz-date": time,
      "x-amz-content-sha256": payload,
      authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
    };
  }
}

/** Returns an object that is read on demand, by Bun's own client: no other API creates such a Blob. */
export function lazyObject(
  { endpoint, bucket, region, accessKeyId, secretAccessKey }: ObjectStoreAccess,
  key: string,
): Blob {
  const access = { endpoint, bucket, accessKeyId, secretAccessKey };
  return new S3Client(region === undefined ? access : { ...access, region }).file(key);
}

interface UploadCalls {
  buffer(): Buffer<ArrayBuffer>;
  /** Takes back a buffer whose bytes have been sent. */
  release(buffer: Buffer<ArrayBuffer>): void;
  put(body: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Begins the multipart upload; resolves to its id. */
  begin(): Promise<string>;
  /** Sends a part; resolves to its ETag. */
  part(uploadId: string, partNumber: number, body: Uint8Array<ArrayBuffer>): Promise<string>;
  complete(uploadId: string, etags: readonly string[]): Promise<void>;
  abort(uploadId: string): Promise<void>;
}

/** A multipart upload. The last call is either `finish` or `abort`. */
class S3Upload {
  readonly #options: UploadOptions;
  readonly #calls: UploadCalls;
  #buffer: Buffer<ArrayBuffer> | null = null;
  #waitingBytes = 0;
  #uploadId: Promise<string> | null = null;
  readonly #parts: Promise<string>[] = [];

  constructor(options: UploadOptions, calls: UploadCalls) {
    this.#options = options;
    this.#calls = calls;
  }

  /** Copies the chunk; resolves when there is room for more. */
  async write(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.byteLength; ) {
      const some = chunk.subarray(at, at + this.#options.partBytes - this.#waitingBytes);
      this.#buffer ??= this.#calls.buffer();
      this.#buffer.set(some, this.#waitingBytes);
      this.#waitingBytes += some.byteLength;
      at += some.byteLength;
      if (this.#waitingBytes === this.#options.partBytes) await this.#sendPart();
    }
  }

  /** Sends the rest; resolves when the object is stored. */
  async finish(): Promise<void> {
    if (this.#uploadId === null) return this.#sent(this.#calls.put);
    if (this.#waitingBytes > 0) await this.#sendPart();
    await this.#calls.complete(await this.#uploadId, await Promise.all(this.#parts));
  }

  /** Aborts the upload and discards its parts. */
  async abort(): Promise<void> {
    if (this.#uploadId === null) return;
    await Promise.allSettled(this.#parts);
    await this.#calls.abort(await this.#uploadId);
  }

  async #sendPart(): Promise<void> {
    this.#uploadId ??= this.#calls.begin();
    const uploadId = await this.#uploadId;
    const partNumber = this.#parts.length + 1;
    const part = this.#sent((bytes) => this.#calls.part(uploadId, partNumber, bytes));
    // A later part or the end awaits it.
    part.catch(() => {});
    this.#parts.push(part);
    await this.#parts.at(-this.#options.atOnce);
  }

  /** Sends the content of the buffer. */
  async #sent<T>(send: (bytes: Uint8Array<ArrayBuffer>) => Promise<T>): Promise<T> {
    const buffer = this.#buffer;
    const bytes = buffer?.subarray(0, this.#waitingBytes) ?? new Uint8Array();
    this.#buffer = null;
    this.#waitingBytes = 0;
    const result = await send(bytes);
    if (buffer !== null) this.#calls.release(buffer);
    return result;
  }
}

const md5 = (body: Uint8Array | string): string => createHash("md5").update(body).digest("base64");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** Encodes by RFC 3986: everything but unreserved characters. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** Returns the region, which Amazon's endpoints name. */
function regionOf(endpoint: string): string {
  const { hostname } = new URL(endpoint);
  if (!hostname.endsWith(".amazonaws.com")) return "auto";
  return /(?:^|\.)s3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com$/.exec(hostname)?.[1] ?? "us-east-1";
}

function errorOf(text: string, status: number): S3Error {
  if (status >= 300 && status < 400) return new S3Error(`HTTP${status}`, "redirects are not followed");
  // A HEAD has no body.
  const code = memberOf(text, "Code") || (status === 404 ? "NoSuchKey" : `HTTP${status}`);
  return new S3Error(code, memberOf(text, "Message"));
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Returns the text of the first element of this name; empty: there is none. */
function memberOf(xml: string, name: string): string {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? "";
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, entity) => {
    if (entity !== undefined) return ENTITIES[entity] ?? whole;
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}
