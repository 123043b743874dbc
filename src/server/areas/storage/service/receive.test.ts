import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/index.ts";
import { UPLOAD_MIN_BYTES, UPLOAD_STALL_MS } from "../limits.ts";
import { bodyChunks } from "./receive.ts";

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
