import { expect, spyOn, test } from "bun:test";
import { Dicer } from "@fastify/busboy";
import { settle, testClock } from "../../../../../tests/support/index.ts";
import { bodyChunks } from "../../../http/bodies/body-chunks.ts";
import { UPLOAD_MIN_BYTES, UPLOAD_STALL_MS } from "../../../http/limits.ts";
import { FORM_PARTS_MAX } from "../limits.ts";
import { readUploadForm } from "./receiving.ts";

function bodyOf(): { request: Request; send(text: string): void; end(): void } {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  const body = new ReadableStream<Uint8Array>({
    start(opened) {
      controller = opened;
    },
  });
  return {
    request: new Request("http://localhost/", { method: "PUT", body }),
    send: (text) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
  };
}

test.each([
  ["of which nothing arrives for a minute", 0],
  ["that comes a byte a second", 60],
])("[ST4] a body %s is aborted, a slow one is not", async (_, byteCount) => {
  const clock = testClock();
  const { request, send } = bodyOf();
  let receivedCount = 0;
  const reading = (async () => {
    for await (const chunk of bodyChunks(request, clock)) receivedCount += chunk.byteLength;
  })().catch((problem: unknown) => problem);
  for (let minute = 0; minute < 5; minute++) {
    for (let part = 0; part < 4; part++) {
      send("x".repeat(UPLOAD_MIN_BYTES / 4));
      await settle();
      await clock.advanceAsync(UPLOAD_STALL_MS / 4);
    }
  }
  expect(receivedCount).toBe(5 * UPLOAD_MIN_BYTES);
  for (let n = 0; n < byteCount; n++) {
    send("x");
    await settle();
    await clock.advanceAsync(UPLOAD_STALL_MS / byteCount);
  }
  if (byteCount === 0) await clock.advanceAsync(UPLOAD_STALL_MS);
  expect(await reading).toMatchObject({ status: 408 });
  expect(clock.waiting).toBe(0);
});

test("[ST4] a body of another length than declared is refused", async () => {
  const request = new Request("http://localhost/", { method: "PUT", body: "abc", headers: { "content-length": "4" } });
  const problem = await Array.fromAsync(bodyChunks(request, testClock())).catch((cause: unknown) => cause);
  expect(problem).toMatchObject({ status: 400 });
});

test("[ST7] the memory of a chunk is freed when the next one is read", async () => {
  const { request, send, end } = bodyOf();
  send("one");
  send("two");
  end();
  const seen: [text: string, bytesLeftBefore: number | null][] = [];
  let before: Uint8Array | null = null;
  for await (const chunk of bodyChunks(request, testClock())) {
    seen.push([new TextDecoder().decode(chunk), before?.byteLength ?? null]);
    before = chunk;
  }
  expect(seen).toEqual([
    ["one", null],
    ["two", 0],
  ]);
});

const FIELDS = {
  file: 'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/Plain; charset=UTF-8\r\n',
  key: 'Content-Disposition: form-data; name="key"\r\n',
  metadata: "content-disposition: form-data; name=metadata\r\nContent-Type: application/json\r\n",
} as const;
type Name = keyof typeof FIELDS;

const ORDERS: readonly (readonly Name[])[] = [
  ["file", "key", "metadata"],
  ["file", "metadata", "key"],
  ["key", "file", "metadata"],
  ["key", "metadata", "file"],
  ["metadata", "file", "key"],
  ["metadata", "key", "file"],
];

/** Contents that resemble the ends of parts, and those that streams treat specially: none, one byte. */
const CONTENTS: readonly Record<Name, string>[] = [
  { file: "a file's bytes", key: "a/key ü", metadata: '{"a":"b"}' },
  { file: "", key: "k", metadata: "" },
  { file: "\r\n--\r\n--X\r\n-\r\n", key: "-", metadata: "--" },
];

interface Parsed {
  form: Awaited<ReturnType<typeof readUploadForm>>;
  bytes: string;
}

const BOUNDARY = "XYZ";
const ENDINGS = ["", "\r\n", "\r\nan epilogue\r\n--XYZ\r\n"];

function formOf(order: readonly Name[], contents: Record<Name, string>, ending: string): Uint8Array<ArrayBuffer> {
  const parts = order.map((name) => `--${BOUNDARY}\r\n${FIELDS[name]}\r\n${contents[name]}\r\n`);
  return new TextEncoder().encode(`${parts.join("")}--${BOUNDARY}--${ending}`);
}

/** Parses a form through the reader of bodies, which frees a chunk's memory once the next one is read. */
async function parse(chunks: readonly Uint8Array<ArrayBuffer>[]): Promise<Parsed> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk.slice());
      controller.close();
    },
  });
  const request = new Request("http://localhost/", { method: "POST", body });
  const taken: Uint8Array[] = [];
  const form = await readUploadForm(
    bodyChunks(request, testClock()),
    BOUNDARY,
    async (bytes) => void taken.push(Uint8Array.from(bytes)),
  );
  return { form, bytes: Buffer.concat(taken).toString() };
}

for (const [index, contents] of CONTENTS.entries()) {
  test.each(ORDERS.map((order) => [order.join(", "), order] as const))(
    `[ST100] a form split at any byte is the same form (contents ${index}): %s`,
    async (_, order) => {
      const whole: Parsed = {
        form: {
          key: contents.key,
          metadata: contents.metadata,
          file: { contentType: "text/Plain; charset=UTF-8" },
        },
        bytes: contents.file,
      };
      for (const ending of ENDINGS) {
        const form = formOf(order, contents, ending);
        expect(await parse([form])).toEqual(whole);
        for (let at = 0; at <= form.byteLength; at++) {
          expect([at, await parse([form.subarray(0, at), form.subarray(at)])]).toEqual([at, whole]);
        }
        const single = Array.from(form, (byte) => Uint8Array.of(byte));
        expect(await parse(single)).toEqual(whole);
      }
    },
  );
}

test("[ST100] a short form split into three chunks at any two places is the same form", async () => {
  const form = formOf(["file", "key"], { file: "f", key: "k", metadata: "" }, "\r\n");
  const whole = await parse([form]);
  for (let first = form.byteLength - 60; first < form.byteLength; first++) {
    for (let second = first + 1; second < form.byteLength; second++) {
      const chunks = [form.subarray(0, first), form.subarray(first, second), form.subarray(second)];
      expect([first, second, await parse(chunks)]).toEqual([first, second, whole]);
    }
  }
});

test("[ST2] a form that ends anywhere before its closing boundary is refused", async () => {
  const form = formOf(["file", "key", "metadata"], { file: "f", key: "k", metadata: "{}" }, "");
  for (let length = 0; length < form.byteLength; length++) {
    const problem = await parse([form.subarray(0, length)]).catch((cause: unknown) => cause);
    expect([length, problem]).toEqual([length, expect.objectContaining({ status: 400 })]);
  }
});

test("[ST2] a form of too many parts is refused at the first part too many", async () => {
  const emit = spyOn(Dicer.prototype, "emit");
  try {
    const flood = new TextEncoder().encode(`--${BOUNDARY}${`\r\n--${BOUNDARY}`.repeat(10_000)}`);
    const problem = await parse([flood]).catch((cause: unknown) => cause);
    expect(problem).toMatchObject({ status: 400, message: `The form must have at most ${FORM_PARTS_MAX} parts` });
    expect(emit.mock.calls.filter(([event]) => event === "part").length).toBe(FORM_PARTS_MAX + 1);
  } finally {
    emit.mockRestore();
  }
});
