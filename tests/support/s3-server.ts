/** In-memory S3 on loopback, with what a bucket's backend uses: whole objects, ranges, lists, multipart uploads. */
export interface S3Server {
  readonly endpoint: string;
  readonly objects: ReadonlyMap<string, Uint8Array>;
  /** Number of uploads neither completed nor aborted. */
  readonly openUploads: number;
  /** While true, every request fails with 500. */
  failing: boolean;
  /** While true, reads return only the first half of an object. */
  halving: boolean;
  /** While true, conditions of writes are ignored. */
  weak: boolean;
  /** While true, objects cannot be removed, as under a lock. */
  locked: boolean;
  /** Backdates all objects by this time. */
  age(byMs: number): void;
  stop(): Promise<void>;
}

const xml = (body: string, status = 200) =>
  new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, {
    status,
    headers: { "content-type": "application/xml" },
  });

const etagOf = (bytes: Uint8Array): string => `"${Bun.hash(bytes).toString(16)}"`;

const notFound = () => xml("<Error><Code>NoSuchKey</Code><Message>missing</Message></Error>", 404);

/** Whether the conditions of a write are met by the object that is there. */
function meets(headers: Headers, present: Uint8Array | undefined): boolean {
  if (headers.get("if-none-match") === "*" && present !== undefined) return false;
  const tag = headers.get("if-match");
  return tag === null || (present !== undefined && etagOf(present) === tag);
}

export function startS3Server(bucket: string): S3Server {
  const objects = new Map<string, Uint8Array>();
  const writtenAt = new Map<string, number>();
  const put = (key: string, bytes: Uint8Array): void => {
    objects.set(key, bytes);
    writtenAt.set(key, Date.now());
  };
  const uploads = new Map<string, Map<number, Uint8Array>>();
  let uploadCount = 0;

  const list = (query: URLSearchParams): Response => {
    const max = Number(query.get("max-keys") ?? 1000);
    const after = query.get("continuation-token") ?? "";
    const keys = [...objects.keys()].filter((key) => key.startsWith(query.get("prefix") ?? "") && key > after).sort();
    const page = keys.slice(0, max);
    const entries = page.map((key) => {
      const modified = new Date(writtenAt.get(key) ?? 0).toISOString();
      return `<Contents><Key>${key}</Key><LastModified>${modified}</LastModified><Size>${objects.get(key)?.byteLength}</Size></Contents>`;
    });
    const isTruncated = keys.length > max;
    const next = isTruncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    return xml(
      `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated><KeyCount>${page.length}</KeyCount>${next}${entries.join("")}</ListBucketResult>`,
    );
  };

  const read = (request: Request, key: string): Response => {
    const whole = objects.get(key);
    if (whole === undefined) return notFound();
    const bytes = state.halving ? whole.slice(0, whole.byteLength / 2) : whole;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "");
    if (range === null) return new Response(new Uint8Array(bytes), { headers: { etag: etagOf(whole) } });
    const start = Number(range[1]);
    const end = range[2] === "" ? bytes.byteLength : Math.min(bytes.byteLength, Number(range[2]) + 1);
    const headers = { "content-range": `bytes ${start}-${end - 1}/${bytes.byteLength}`, etag: '"1"' };
    return new Response(new Uint8Array(bytes.slice(start, end)), { status: 206, headers });
  };

  const multipart = async (request: Request, key: string, query: URLSearchParams): Promise<Response> => {
    if (request.method === "POST" && query.has("uploads")) {
      const id = `upload-${++uploadCount}`;
      uploads.set(id, new Map());
      return xml(
        `<InitiateMultipartUploadResult><Bucket>${bucket}</Bucket><Key>${key}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    const id = query.get("uploadId") ?? "";
    const parts = uploads.get(id);
    if (parts === undefined) return notFound();
    if (request.method === "PUT") {
      const number = Number(query.get("partNumber"));
      parts.set(number, await request.bytes());
      return new Response(null, { headers: { etag: `"${number}"` } });
    }
    uploads.delete(id);
    if (request.method === "DELETE") return new Response(null, { status: 204 });
    const ordered = [...parts].sort(([one], [other]) => one - other).map(([, bytes]) => bytes);
    put(key, new Uint8Array(Buffer.concat(ordered)));
    return xml(`<CompleteMultipartUploadResult><Key>${key}</Key><ETag>"1"</ETag></CompleteMultipartUploadResult>`);
  };

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (state.failing) return xml("<Error><Code>InternalError</Code></Error>", 500);
      const { pathname, searchParams } = new URL(request.url);
      const key = decodeURIComponent(pathname.replace(`/${bucket}`, "").replace(/^\//, ""));
      if (!request.headers.get("authorization")?.startsWith("AWS4-HMAC-SHA256")) return xml("<Error/>", 403);
      if (searchParams.has("uploads") || searchParams.has("uploadId")) return multipart(request, key, searchParams);
      if (key === "" && request.method === "GET") return list(searchParams);
      if (request.method === "PUT") {
        const bytes = await request.bytes();
        if (!state.weak && !meets(request.headers, objects.get(key)))
          return xml("<Error><Code>PreconditionFailed</Code></Error>", 412);
        put(key, bytes);
        return new Response(null, { headers: { etag: etagOf(bytes) } });
      }
      if (request.method === "DELETE") {
        if (state.locked) return xml("<Error><Code>AccessDenied</Code><Message>locked</Message></Error>", 403);
        objects.delete(key);
        return new Response(null, { status: 204 });
      }
      return read(request, key);
    },
  });
  const state = {
    endpoint: server.url.origin,
    objects,
    get openUploads() {
      return uploads.size;
    },
    failing: false,
    halving: false,
    weak: false,
    locked: false,
    age(byMs: number) {
      for (const [key, time] of writtenAt) writtenAt.set(key, time - byMs);
    },
    stop: () => server.stop(true),
  };
  return state;
}
