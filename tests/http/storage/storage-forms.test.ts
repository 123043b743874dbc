import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { bytesOnDisk, path, rawForm, type StoredFile, sendInPieces, until } from "./storage-support.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: `{ storage: { buckets: { files: {} } } }` });
});
afterAll(() => platform.stop());

const field = (name: string, value: string) =>
  `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = `--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: text/plain\r\n\r\nbytes\r\n`;
const headOf = (bodyLength: number) =>
  `POST /api/storage/files/upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Platform-Service-Key: ${platform.serviceKey}\r\nContent-Type: multipart/form-data; boundary=X\r\nContent-Length: ${bodyLength}\r\n\r\n`;

/** Long enough for the server to read the first piece by itself. */
const PAUSE_MS = 25;

test.each([
  ["file, key, metadata", (key: string) => [file, field("key", key), field("metadata", '{"a":"b"}')]],
  ["file, metadata, key", (key: string) => [file, field("metadata", '{"a":"b"}'), field("key", key)]],
  ["key, metadata, file", (key: string) => [field("key", key), field("metadata", '{"a":"b"}'), file]],
])("[ST100] a form that arrives in two chunks is stored whole: %s", async (order, partsOf) => {
  const name = order.replaceAll(/\W+/g, "-");
  const template = `${partsOf("KEY").join("")}--X--\r\n`;
  // Around the last content and the closing boundary each position, before them every tenth.
  const positions = Array.from({ length: template.length }, (_, at) => at).filter(
    (at) => at > template.length - 24 || at % 10 === 0,
  );
  const send = async (at: number): Promise<[number, string, unknown]> => {
    const key = `${name}-${at}`;
    const body = `${partsOf(key).join("")}--X--\r\n`;
    // Counted from the end, where it matters.
    const cut = body.length - (template.length - at);
    const answer = await sendInPieces(platform, [headOf(body.length) + body.slice(0, cut), body.slice(cut)], PAUSE_MS);
    const stored = await platform.service.fetch(`${path("files", key)}/metadata`);
    return [at, answer.slice(0, "HTTP/1.1 201".length), ((await stored.json()) as StoredFile).customMetadata];
  };
  for (let begin = 0; begin < positions.length; begin += 16) {
    const answers = await Promise.all(positions.slice(begin, begin + 16).map(send));
    expect(answers).toEqual(answers.map(([at]) => [at, "HTTP/1.1 201", { a: "b" }]));
  }
});

test("[ST101] the last part of a form is checked before anything is stored", async () => {
  const bad = [field("metadata", '{"a":1}'), field("metadata", "{"), field("key", "a/../b"), field("key", "other")];
  for (const [index, last] of bad.entries()) {
    const body = `${file}${field("key", `judged-${index}`)}${last}`;
    const pieces = [headOf(body.length + "--X--".length) + body, "--X--"];
    const answer = await sendInPieces(platform, pieces, PAUSE_MS);
    expect([last, answer.slice(0, "HTTP/1.1 400".length)]).toEqual([last, "HTTP/1.1 400"]);
    expect((await platform.service.fetch(path("files", `judged-${index}`))).status).toBe(404);
  }
  await until("nothing is left", () => bytesOnDisk(platform, "objects/incoming").length === 0);
});

test("[ST2] a part that ends within its headers is refused", async () => {
  const cut = '--X\r\nContent-Disposition: form-data; name="metadata"\r\n';
  for (const parts of [
    [field("key", "cut"), file, cut],
    [cut, field("key", "cut"), file],
    ["--X\r\n", field("key", "cut"), file],
  ]) {
    const answer = await rawForm(platform.service, "files", `${parts.join("")}--X--`);
    expect([parts, answer.status]).toEqual([parts, 400]);
  }
  expect((await platform.service.fetch(path("files", "cut"))).status).toBe(404);
});

test("[ST108] an unknown part of a form is 400 unknown_field in every place, and nothing is stored", async () => {
  const unknown = field("comment", "x");
  for (const [index, parts] of [
    [unknown, file, field("key", "unknown")],
    [file, field("key", "unknown"), unknown],
    [file, field("key", "unknown"), file.replace('name="file"', 'name="comment"')],
  ].entries()) {
    const answer = await rawForm(platform.service, "files", `${parts.join("")}--X--`);
    expect([index, answer.status]).toEqual([index, 400]);
    expect(await answer.json()).toMatchObject({ data: { comment: { code: "unknown_field" } } });
  }
  const text = file.replace('; filename="a"', "");
  const answer = await rawForm(platform.service, "files", `${text}${field("key", "unknown")}--X--`);
  expect(await answer.json()).toMatchObject({ code: 400, data: { file: { code: "invalid_type" } } });
  const long = await rawForm(platform.service, "files", `${field("n".repeat(5_000), "x")}--X--`);
  expect((await long.text()).length).toBeLessThan(1_000);
  expect((await platform.service.fetch(path("files", "unknown"))).status).toBe(404);
});

test("[ST108] an unknown member of a body is 400 unknown_field", async () => {
  const { body } = await platform.service.post<{ uploadId: string }>("/api/storage/files/multipart/create", {
    key: "m",
  });
  const named = { uploadId: body.uploadId, key: "m" };
  const bodies: [string, Record<string, JsonValue>][] = [
    ["delete-batch", { keys: ["a"] }],
    ["signed-url", { key: "a", expiresIn: 5 }],
    ["signed-urls", { keys: ["a"], expiresIn: "5m" }],
    ["signed-upload-url", { key: "a", contentType: "text/plain", expiresIn: 5 }],
    ["multipart/create", { key: "a", contentType: "text/plain", metadata: {} }],
    ["multipart/complete", { ...named, parts: [{ partNumber: 1, etag: "x" }] }],
    ["multipart/abort", named],
  ];
  for (const [endpoint, members] of bodies) {
    const answer = await platform.service.post(`/api/storage/files/${endpoint}`, { ...members, comment: 1 });
    expect([endpoint, answer.status, answer.body]).toMatchObject([
      ...[endpoint, 400],
      { data: { comment: { code: "unknown_field" } } },
    ]);
  }
  const parts = [{ partNumber: 1, etag: "x", comment: 5 }];
  const answer = await platform.service.post("/api/storage/files/multipart/complete", { ...named, parts });
  expect(answer.body).toMatchObject({ code: 400, data: { "parts.0.comment": { code: "unknown_field" } } });
  expect((await platform.service.post("/api/storage/files/multipart/abort", named)).status).toBe(200);
});
