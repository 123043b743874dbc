import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { startS3Server } from "../../support/s3-server.ts";
import { png } from "./pictures.ts";
import { beginUpload, callMultipart, listParts, putPart } from "./storage-multipart-support.ts";
import { bytesOnDisk, path, randomBytes, type StoredFile, sendRaw, until, upload } from "./storage-support.ts";

// What a bucket promises wherever its bytes are kept: every test runs on files in the data directory and on files in an
// object store.

const MIB = 1024 * 1024;
const DAY_AND_MORE_MS = 25 * 60 * 60 * 1000;
const SERVER_TIMEOUT_MS = 120_000;
const ORPHAN = "00000000-0000-7000-8000-0000000000ab";

/** Place of the bytes of a server's buckets. */
interface Place {
  /** `backend` of a bucket's config; null: the data directory. */
  backend: JsonValue;
  /** The ids of stored files. */
  files(platform: TestPlatform): string[];
  /** Anything of an upload that is not finished. */
  unfinished(platform: TestPlatform): number;
  /** Leaves a file that no record names, as a crash does, old enough for the sweep of the next start. */
  plantOrphan(platform: TestPlatform): Promise<void>;
  /** Size of the file that the memory test moves. */
  largeMib: number;
  stop(): Promise<void>;
}

function openLocal(): Place {
  return {
    backend: null,
    files: (platform) => bytesOnDisk(platform, "objects"),
    unfinished: (platform) => bytesOnDisk(platform, "objects/incoming").length,
    async plantOrphan({ dataDirectory }) {
      const objects = join(dataDirectory, "storage/objects");
      mkdirSync(join(objects, "ab"), { recursive: true });
      writeFileSync(join(objects, "ab", ORPHAN), "orphan");
      writeFileSync(join(objects, "incoming/00000000-0000-7000-8000-0000000000cd"), "half");
      // What is not the server's own: a name that comes before and one that comes after the others.
      for (const folder of ["ab", "incoming"]) {
        for (const name of [".Trash-0", "lost+found"]) mkdirSync(join(objects, folder, name));
      }
    },
    largeMib: 1024,
    stop: async () => {},
  };
}

function openRemote(): Place {
  const s3 = startS3Server("attic");
  const access = { endpoint: s3.endpoint, bucket: "attic", region: "x", accessKeyId: "id", secretAccessKey: "s" };
  return {
    backend: { s3: { ...access, prefix: "films/" } },
    files: () => [...s3.objects.keys()].filter((key) => !key.endsWith("platform-owner.json")),
    unfinished: () => s3.openUploads,
    async plantOrphan() {
      const headers = { authorization: "AWS4-HMAC-SHA256" };
      await fetch(`${s3.endpoint}/attic/films/${ORPHAN}`, { method: "PUT", headers, body: "orphan" });
      s3.age(DAY_AND_MORE_MS);
    },
    // It is in the memory of this process, more than once.
    largeMib: 256,
    stop: () => s3.stop(),
  };
}

const configWith = (backend: JsonValue): string => `{
  storage: { buckets: ((bucket) => ({
    files: bucket({ maxFileSize: ${3 * 1024 * MIB}, thumbs: ["8x8"] }),
    small: bucket({ maxFileSize: 1000 }),
  }))((more) => ({
    ...(${JSON.stringify(backend)} === null ? {} : { backend: ${JSON.stringify(backend)} }),
    access: { read: true, write: true, delete: true },
    ...more,
  })) },
  databases: { shared: { tables: { calls: {
    schema: { method: { type: "string" }, arguments: { type: "json" }, outcome: { type: "json" } },
    hooks: { beforeInsert: async (auth, call, app) => {
      try {
        const outcome = await app.storage("files")[call.method](...call.arguments);
        return { ...call, outcome: { value: outcome instanceof Blob ? await outcome.text() : outcome } };
      } catch (cause) {
        return { ...call, outcome: { status: cause.status, message: cause.message } };
      }
    } },
  } } } },
}`;

const PLACES: [string, () => Place][] = [
  ["the data directory", openLocal],
  ["an object store", openRemote],
];

describe.each(PLACES)("files in %s", (_, open) => {
  let place: Place;
  let platform: TestPlatform;
  let user: SignedIn;
  beforeAll(async () => {
    place = open();
    platform = await testPlatform({ config: configWith(place.backend) });
    user = await signIn(platform);
  });
  afterAll(async () => {
    await platform.stop();
    await place.stop();
  });

  const read = (key: string, headers: Record<string, string> = {}) => platform.fetch(path("files", key), { headers });
  const textOf = async (key: string): Promise<string> => (await read(key)).text();
  const isStored = async (key: string, content: Uint8Array): Promise<boolean> =>
    Buffer.from(await (await read(key)).arrayBuffer()).equals(content);
  const fileCount = (): number => place.files(platform).length;

  test("[ST82] a file is stored in the object store only, and read back whole", async () => {
    for (const [key, size] of [
      ["whole/empty", 0],
      ["whole/byte", 1],
      ["whole/small", 300_000],
      ["whole/large", 12 * MIB + 1],
    ] as const) {
      const content = randomBytes(size);
      const before = fileCount();
      const answer = await upload(user, "files", key, content, { type: "image/gif" });
      expect([answer.status, answer.body.size, fileCount() - before]).toEqual([201, size, 1]);
      const head = await platform.head(path("files", key));
      const whole = await read(key);
      for (const { status, headers } of [head, whole]) {
        expect([key, status, headers.get("content-type")]).toEqual([key, 200, "image/gif"]);
        expect(headers.get("etag")).toMatch(/^"[^"]+"$/);
      }
      expect([key, head.headers.get("content-length")]).toEqual([key, String(size)]);
      expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
    }
  });

  test("[ST82] a range is read from the beginning, the middle and the end, of small and large files", async () => {
    for (const size of [10, 300_000, 6_000_000]) {
      const key = `ranges/${size}`;
      const content = randomBytes(size);
      await upload(user, "files", key, content);
      const ranges = [
        [0, 1],
        [0, size],
        [2, 5],
        [size - 5, size],
        [size >> 1, size - 1],
      ] as const;
      for (const [start, end] of ranges) {
        const answer = await read(key, { range: `bytes=${start}-${end - 1}` });
        const bytes = Buffer.from(await answer.arrayBuffer());
        const about = [size, start, answer.status, answer.headers.get("content-range")];
        expect(about).toEqual([size, start, 206, `bytes ${start}-${end - 1}/${size}`]);
        expect(bytes.equals(content.subarray(start, end))).toBe(true);
      }
      const suffix = await read(key, { range: "bytes=-3" });
      expect([suffix.status, Buffer.from(await suffix.arrayBuffer()).equals(content.subarray(-3))]).toEqual([
        206,
        true,
      ]);
      expect((await read(key, { range: `bytes=${size}-` })).status).toBe(416);
    }
  });

  test("[ST3] a file over the limit is not stored, one of exactly the limit is", async () => {
    const before = fileCount();
    expect((await upload(user, "small", "fits", "x".repeat(1000))).status).toBe(201);
    expect((await upload(user, "small", "over", "x".repeat(1001))).status).toBe(413);
    expect((await upload(user, "small", "over", randomBytes(6_000_000))).status).toBe(413);
    expect((await platform.head(path("small", "over"))).status).toBe(404);
    await until("nothing is left", () => fileCount() === before + 1 && place.unfinished(platform) === 0);
  });

  test("[ST4] a body that ends too early stores nothing and leaves nothing", async () => {
    const before = fileCount();
    const head = (length: number) =>
      `POST /api/storage/files/upload HTTP/1.1\r\nHost: localhost\r\nX-Platform-Service-Key: ${platform.serviceKey}\r\nContent-Type: multipart/form-data; boundary=X\r\nContent-Length: ${length}\r\n\r\n`;
    const form = `--X\r\nContent-Disposition: form-data; name="key"\r\n\r\nbroken\r\n--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${"x".repeat(5000)}`;
    await sendRaw(platform, head(1_000_000) + form, 150);
    await sendRaw(platform, head(form.length + 9) + form, 150);
    await until("nothing is left", () => fileCount() === before && place.unfinished(platform) === 0);
    expect((await read("broken")).status).toBe(404);
  });

  test("[ST5] a reader during overwrites gets one of the files, complete, and old bytes are removed", async () => {
    const versions = Array.from({ length: 20 }, (_, index) => String.fromCharCode(97 + index).repeat(300_000));
    await upload(user, "files", "overwritten", versions[0] ?? "");
    const before = fileCount();
    let isWriting = true;
    const writing = (async () => {
      for (const version of versions) expect((await upload(user, "files", "overwritten", version)).status).toBe(201);
    })().finally(() => {
      isWriting = false;
    });
    let reads = 0;
    while (isWriting) {
      const answer = await read("overwritten");
      expect([answer.status, versions.includes(await answer.text())]).toEqual([200, true]);
      reads += 1;
    }
    await writing;
    expect(reads).toBeGreaterThan(3);
    await until("the old bytes are gone", () => fileCount() === before);
    expect(await textOf("overwritten")).toBe(versions.at(-1) ?? "");
  });

  test("[ST6] 200 uploads in parallel are all stored, each whole", async () => {
    const contents = Array.from({ length: 200 }, (_, index) => `${index}:`.repeat(2000));
    const answers = await Promise.all(
      contents.map((content, index) => upload(user, "files", `many/${index}`, content)),
    );
    expect(answers.every(({ status }) => status === 201)).toBe(true);
    expect(await Promise.all(contents.map((_, index) => textOf(`many/${index}`)))).toEqual(contents);
  });

  test("[ST30] a deleted file is gone, and its bytes are removed", async () => {
    await upload(user, "files", "deleted", "x");
    const before = fileCount();
    expect(await user.delete(path("files", "deleted"))).toMatchObject({ status: 200, body: { ok: true } });
    expect((await user.delete(path("files", "deleted"))).status).toBe(404);
    expect((await read("deleted")).status).toBe(404);
    await until("the bytes are gone", () => fileCount() === before - 1);
  });

  test("[ST31] delete-batch removes the bytes of each file", async () => {
    const before = fileCount();
    const keys = ["batch/1", "batch/2", "batch/3"];
    for (const key of keys) await upload(user, "files", key, key);
    expect(await user.post("/api/storage/files/delete-batch", { keys })).toMatchObject({
      status: 200,
      body: { deleted: keys, failed: [] },
    });
    await until("the bytes are gone", () => fileCount() === before);
  });

  test("[ST20] a download that has begun outlives its file", async () => {
    const content = randomBytes(8 * MIB);
    const before = fileCount();
    await upload(user, "files", "long", content);
    const answer = await read("long");
    await user.delete(path("files", "long"));
    expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true);
    // Later tests count files: none may still wait for its removal.
    await until("the bytes are gone", () => fileCount() === before);
  });

  test("[ST52] a PUT to a signed URL stores the file", async () => {
    const signed = await user.post<{ url: string }>("/api/storage/files/signed-upload-url", { key: "signed" });
    const { pathname, search } = new URL(signed.body.url);
    const content = randomBytes(6_000_000);
    expect((await platform.fetch(pathname + search, { method: "PUT", body: content })).status).toBe(200);
    expect(await isStored("signed", content)).toBe(true);
  });

  test("[ST60] [ST63] parts in any order become one file, and their bytes are removed", async () => {
    const key = "parts/film";
    const contents = Array.from({ length: 12 }, (_, index) => randomBytes(600_000 + index));
    const before = bytesOnDisk(platform, "parts").length;
    const uploadId = await beginUpload(user, key, { contentType: "video/mp4", metadata: { a: "b" } });
    const order = contents.map((_, index) => index).toReversed();
    const parts = await Promise.all(
      order.map(async (index) => (await putPart(user, { uploadId, key }, index + 1, contents[index] ?? "")).body),
    );
    expect((await listParts(user, uploadId, key)).body.parts.length).toBe(12);
    expect((await read(key)).status).toBe(404);
    const files = fileCount();
    const inOrder = parts.toSorted((one, other) => one.partNumber - other.partNumber);
    const done = await callMultipart(user, "complete", { uploadId, key, parts: inOrder });
    const whole = Buffer.concat(contents);
    expect(done).toMatchObject({ status: 200, body: { key, size: whole.byteLength } });
    expect([fileCount() - files, await isStored(key, whole)]).toEqual([1, true]);
    expect((await user.get<StoredFile>(`${path("files", key)}/metadata`)).body).toMatchObject({
      httpMetadata: { contentType: "video/mp4" },
      customMetadata: { a: "b" },
    });
    await until("the parts are gone", () => bytesOnDisk(platform, "parts").length === before);
  });

  test("[ST63] an aborted upload leaves neither parts nor a file", async () => {
    const key = "parts/aborted";
    const before = [bytesOnDisk(platform, "parts").length, fileCount()];
    const uploadId = await beginUpload(user, key);
    await putPart(user, { uploadId, key }, 1, "x");
    expect((await callMultipart(user, "abort", { uploadId, key })).status).toBe(200);
    await until("the parts are gone", () => bytesOnDisk(platform, "parts").length === before[0]);
    expect(fileCount()).toBe(before[1] ?? 0);
  });

  test("[ST70] a thumbnail is made of a picture, and is removed with it", async () => {
    await upload(user, "files", "picture", png(40, 20), { type: "image/png" });
    const thumb = await platform.fetch(`${path("files", "picture")}?thumb=8x8`);
    expect([thumb.status, thumb.headers.get("content-type")]).toEqual([200, "image/webp"]);
    expect(await new Bun.Image(await thumb.bytes()).metadata()).toMatchObject({ width: 8, height: 4 });
    expect(bytesOnDisk(platform, "thumbs").length).toBe(1);
    await user.delete(path("files", "picture"));
    await until("the thumbnail is gone", () => bytesOnDisk(platform, "thumbs").length === 0);
  });

  test("[ST81] app.storage puts, reads, lists and deletes files", async () => {
    const call = async (method: string, ...args: JsonValue[]): Promise<JsonValue> => {
      const row = { method, arguments: args };
      const answer = await platform.service.post<{ outcome: JsonValue }>("/api/db/shared/tables/calls", row);
      expect(answer.status).toBe(201);
      return answer.body.outcome;
    };
    await upload(user, "files", "app/a", "far away", { type: "image/gif", metadata: '{"by":"ann"}' });
    expect(await call("get", "app/a")).toEqual({ value: "far away" });
    expect(await call("head", "app/a")).toMatchObject({
      value: { key: "app/a", size: 8, httpMetadata: { contentType: "image/gif" }, customMetadata: { by: "ann" } },
    });
    expect([await call("get", "app/none"), await call("head", "app/none")]).toEqual([{ value: null }, { value: null }]);
    for (const key of ["app/b", "app/c"]) await upload(user, "files", key, key);
    expect(await call("list", { prefix: "app/", limit: 2 })).toMatchObject({
      value: { objects: [{ key: "app/a" }, { key: "app/b" }], truncated: true },
    });
    expect([await call("delete", "app/a"), await call("delete", "app/a")]).toEqual([{ value: true }, { value: false }]);
    expect((await read("app/a")).status).toBe(404);
    expect(await call("put", "../x", "no bytes")).toMatchObject({ status: 400 });
  });

  test(
    "[ST80] acknowledged files survive a crash, and bytes without a record are removed",
    async () => {
      const content = randomBytes(300_000);
      const acknowledged: string[] = [];
      const writing = (async () => {
        for (let index = 0; index < 200; index++) {
          const answer = await upload(platform.service, "files", `crash/${index}`, content).catch(() => null);
          if (answer?.status === 201) acknowledged.push(answer.body.key);
          if (answer === null) return;
        }
      })();
      await until("some are stored", () => acknowledged.length >= 10);
      await platform.kill("SIGKILL");
      await writing;
      await place.plantOrphan(platform);
      await platform.restart();
      for (const key of acknowledged) expect([key, await isStored(key, content)]).toEqual([key, true]);
      await until("the orphan is gone", () => !place.files(platform).some((name) => name.endsWith(ORPHAN)));
      await until("nothing is half-written", () => place.unfinished(platform) === 0);
      const list = (bucket: string) =>
        platform.service.get<{ objects: unknown[] }>(`/api/storage/${bucket}`, { query: { limit: 1000 } });
      const records = (await list("files")).body.objects.length + (await list("small")).body.objects.length;
      await until("there are as many files as records", () => fileCount() === records);
    },
    SERVER_TIMEOUT_MS,
  );

  test(
    "[ST7] a large file up and down raises memory by at most 64 MB",
    async () => {
      await upload(user, "files", "warm", randomBytes(8 * MIB));
      await (await read("warm")).arrayBuffer();
      const baseMib = residentMib(platform);
      let peakMib = 0;
      const watch = setInterval(() => {
        peakMib = Math.max(peakMib, residentMib(platform));
      }, 5);
      const chunk = randomBytes(MIB);
      const head = `--X\r\nContent-Disposition: form-data; name="key"\r\n\r\nbig\r\n--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`;
      let sentMib = 0;
      const body = new ReadableStream<Uint8Array>({
        type: "bytes",
        start: (controller) => controller.enqueue(Buffer.from(head)),
        pull(controller) {
          const isLast = sentMib === place.largeMib;
          controller.enqueue(isLast ? Buffer.from("\r\n--X--\r\n") : chunk.slice());
          if (isLast) controller.close();
          sentMib++;
        },
      });
      const headers = { "content-type": "multipart/form-data; boundary=X" };
      const stored = await user.fetch("/api/storage/files/upload", { method: "POST", headers, body });
      expect([stored.status, ((await stored.json()) as StoredFile).size]).toEqual([201, place.largeMib * MIB]);
      let received = 0;
      for await (const part of (await read("big")).body ?? []) received += part.byteLength;
      clearInterval(watch);
      expect(received).toBe(place.largeMib * MIB);
      expect(peakMib).toBeGreaterThan(0);
      expect(peakMib - baseMib).toBeLessThanOrEqual(64);
      expect((await user.delete(path("files", "big"))).status).toBe(200);
    },
    SERVER_TIMEOUT_MS,
  );
});

const residentMib = (platform: TestPlatform): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${platform.process.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
