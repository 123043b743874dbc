import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../../kernel/clock.ts";
import { S3_ANSWER_MAX_BYTES } from "../limits.ts";
import { S3Bucket } from "./object-store.ts";

let answer: (request: Request) => Response = () => new Response();
/** Copies of the requests: a request is empty once it is answered. */
const requests: { url: string; headers: Headers }[] = [];
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    requests.push({ url: request.url, headers: new Headers(request.headers) });
    return answer(request);
  },
});
afterAll(() => server.stop(true));

const store = { endpoint: server.url.origin, bucket: "attic", accessKeyId: "id", secretAccessKey: "secret" };
const bucketAt = (time: number) => new S3Bucket(store, { ...systemClock, now: () => time });
const bucket = new S3Bucket(store, systemClock);

test("requests are signed as by Bun's own client", async () => {
  answer = () => new Response("x");
  for (const key of ["plain", "folder/a b+c", "ü(1)'*!~.txt"]) {
    await new Bun.S3Client(store).file(key).text();
    const expected = requests.at(-1);
    const [, day, time] = /(\d{8})T(\d{6})Z/.exec(expected?.headers.get("x-amz-date") ?? "") ?? [];
    const iso = `${day}T${time}`.replace(/^(....)(..)(..)T(..)(..)(..)$/, "$1-$2-$3T$4:$5:$6Z");
    await new Response(await bucketAt(Date.parse(iso)).read(key, null)).text();
    const found = requests.at(-1);
    expect([key, found?.url, found?.headers.get("authorization")]).toEqual([
      key,
      expected?.url,
      expected?.headers.get("authorization"),
    ]);
  }
});

test("a redirect is an error and not followed", async () => {
  answer = () => new Response(null, { status: 307, headers: { location: `${server.url}elsewhere` } });
  const before = requests.length;
  await expect(bucket.readNote("note")).rejects.toThrow("redirects are not followed");
  await expect(bucket.sizeOf("note")).rejects.toThrow("redirects are not followed");
  await expect(bucket.list("", { after: null, keysMax: 10 })).rejects.toThrow("redirects are not followed");
  expect(requests.length - before).toBe(3);
});

test("an answer that does not end is given up at its bound", async () => {
  let sentBytes = 0;
  const endless = () =>
    new ReadableStream({
      pull(controller) {
        sentBytes += 65_536;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
  answer = () => new Response(endless());
  await expect(bucket.list("", { after: null, keysMax: 10 })).rejects.toThrow(`more than ${S3_ANSWER_MAX_BYTES} bytes`);
  answer = () => new Response(endless(), { status: 500 });
  await expect(bucket.remove("key")).rejects.toThrow("HTTP500");
  expect(sentBytes).toBeLessThan(4 * S3_ANSWER_MAX_BYTES);
});

test("a compressed answer is given up at the bound of its decoded bytes", async () => {
  const bomb = Bun.gzipSync(new Uint8Array(64 * 1024 * 1024));
  answer = () => new Response(bomb, { headers: { "content-encoding": "gzip" } });
  await expect(bucket.list("", { after: null, keysMax: 10 })).rejects.toThrow("more than");
});

test("a list is read with its entities, and continues where the page before ended", async () => {
  const entry =
    "<Contents><Key>a&amp;b&#x3c;&#62;</Key><LastModified>2026-01-31T02:00:00Z</LastModified><Size>7</Size></Contents>";
  const next = "<IsTruncated>true</IsTruncated><NextContinuationToken>t&quot;1</NextContinuationToken>";
  answer = () => new Response(`<ListBucketResult>${next}${entry}</ListBucketResult>`);
  const page = await bucket.list("a", { after: null, keysMax: 10 });
  expect(page).toEqual({ objects: [{ key: "a&b<>", size: 7, lastModified: "2026-01-31T02:00:00Z" }], next: 't"1' });
  answer = () => new Response("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  expect(await bucket.list("a", { after: page.next, keysMax: 10 })).toEqual({ objects: [], next: null });
  expect(new URL(requests.at(-1)?.url ?? "").searchParams.get("continuation-token")).toBe('t"1');
});

test("a part is sent again after 5xx, and an upload that the store cannot join fails", async () => {
  const seen: string[] = [];
  answer = ({ method, url }) => {
    const { searchParams } = new URL(url);
    seen.push(`${method} ${[...searchParams.keys()].join()}`);
    if (searchParams.has("uploads")) return new Response("<UploadId>u</UploadId>");
    if (method === "PUT")
      return new Response(null, { status: seen.length === 2 ? 503 : 200, headers: { etag: '"1"' } });
    return new Response("<Error><Code>InternalError</Code><Message>later</Message></Error>");
  };
  const upload = bucket.upload("key", { partBytes: 10, atOnce: 1, retries: 1 });
  await upload.write(new Uint8Array(15));
  await expect(upload.finish()).rejects.toThrow("InternalError: later");
  const part = "PUT partNumber,uploadId";
  expect(seen).toEqual(["POST uploads", part, part, part, "POST uploadId"]);
});
