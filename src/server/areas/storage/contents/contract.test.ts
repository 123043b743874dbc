import { afterAll, expect, test } from "bun:test";
import { temporaryDirectory } from "../../../../../tests/support/index.ts";
import { startS3Server } from "../../../../../tests/support/s3-server.ts";
import { systemClock } from "../../../../kernel/clock.ts";
import type { FileStore } from "../model/types.ts";
import { createLocalFiles } from "./local-files.ts";
import { createS3Files } from "./s3-files.ts";

const s3 = startS3Server("attic");
afterAll(() => s3.stop());
const backend = { endpoint: s3.endpoint, bucket: "attic", region: "x", accessKeyId: "id", secretAccessKey: "secret" };

const STORES: [string, () => FileStore][] = [
  ["a local directory", () => createLocalFiles(temporaryDirectory())],
  ["an S3-compatible store", () => createS3Files({ ...backend, prefix: `${crypto.randomUUID()}/` }, systemClock)],
];

const idsOf = async (files: FileStore): Promise<string[]> =>
  (await Array.fromAsync(files.ids()))
    .flat()
    .map(({ fileId }) => fileId)
    .sort();
const textOf = (body: Blob | ReadableStream<Uint8Array>) => new Response(body).text();

async function store(files: FileStore, content: Uint8Array[]): Promise<string> {
  const fileId = Bun.randomUUIDv7();
  const incoming = await files.create(fileId);
  for (const chunk of content) await incoming.write(chunk);
  await incoming.finish();
  return fileId;
}
const sizeOf = (chunks: Uint8Array[]): number => chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
const bytes = (text: string) => new TextEncoder().encode(text);

for (const [name, open] of STORES) {
  test(`[ST82] ${name}: a finished file is read back, whole and by range`, async () => {
    const files = open();
    const fileId = await store(files, [bytes("0123"), bytes(""), bytes("456789")]);
    expect(await (await files.blob(fileId, 10)).text()).toBe("0123456789");
    expect(await textOf(await files.body(fileId, { start: 0, end: 10, size: 10 }))).toBe("0123456789");
    expect(await textOf(await files.body(fileId, { start: 2, end: 5, size: 10 }))).toBe("234");
    expect(await textOf(await files.body(fileId, { start: 9, end: 10, size: 10 }))).toBe("9");
    const empty = await store(files, []);
    expect(await (await files.blob(empty, 0)).text()).toBe("");
  });

  test(`[ST82] ${name}: large files, in chunks of any size, are what was written`, async () => {
    const files = open();
    const content = Array.from({ length: 14 }, (_, index) => new Uint8Array(100_003 * (index + 1)).fill(index));
    const fileId = await store(files, content);
    const hash = (chunks: Uint8Array[]) => Bun.SHA256.hash(Buffer.concat(chunks), "hex");
    expect(hash([await (await files.blob(fileId, sizeOf(content))).bytes()])).toBe(hash(content));
  });

  test(`[ST82] ${name}: a discarded file leaves nothing, small or large`, async () => {
    const files = open();
    for (const sizeBytes of [3, 12 * 1024 * 1024]) {
      const incoming = await files.create(Bun.randomUUIDv7());
      for (let written = 0; written < sizeBytes; written += 1_000_000) {
        await incoming.write(new Uint8Array(Math.min(1_000_000, sizeBytes)));
      }
      await incoming.discard();
    }
    expect(await idsOf(files)).toEqual([]);
    expect(s3.openUploads).toBe(0);
  });

  test(`[ST82] ${name}: ids lists every file, and remove removes one, also where it does not exist`, async () => {
    const files = open();
    const made = [];
    for (let index = 0; index < 5; index++) made.push(await store(files, [bytes(`${index}`)]));
    expect(await idsOf(files)).toEqual(made.toSorted());
    await files.remove(made[2] ?? "");
    await files.remove(Bun.randomUUIDv7());
    expect(await idsOf(files)).toEqual(made.filter((_, index) => index !== 2).toSorted());
  });
}

test("[ST82] an S3-compatible store that fails is 503", async () => {
  const files = createS3Files(backend, systemClock);
  s3.failing = true;
  const incoming = await files.create(Bun.randomUUIDv7());
  await incoming.write(bytes("x"));
  expect(await incoming.finish().catch((problem: unknown) => problem)).toMatchObject({ status: 503 });
  expect(await files.remove("x").catch((problem: unknown) => problem)).toMatchObject({ status: 503 });
  s3.failing = false;
});

test("[ST83] a body of another size than its record is an error, not a shorter file", async () => {
  const files = createS3Files(backend, systemClock);
  const small = await store(files, [bytes("0123456789")]);
  const large = await store(files, [new Uint8Array(1_000_000)]);
  const problemOf = (work: Promise<unknown>) => work.catch((problem: unknown) => problem);
  for (const size of [9, 11]) {
    expect(await problemOf(files.body(small, { start: 0, end: size, size }))).toMatchObject({ status: 503 });
    expect(await problemOf(files.blob(small, size))).toMatchObject({ status: 503 });
  }
  for (const size of [999_999, 1_000_001]) {
    const body = await files.body(large, { start: 0, end: size, size });
    expect(await problemOf(new Response(body).bytes())).toMatchObject({ status: 503 });
  }
  expect(await problemOf(files.body(crypto.randomUUID(), { start: 0, end: 5, size: 5 }))).toMatchObject({
    status: 503,
  });
});
