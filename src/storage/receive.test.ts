import { expect, test } from "bun:test";
import { settle, testClock } from "../../tests/support/index.ts";
import { UPLOAD_STALL_MS } from "./limits.ts";
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

test("[ST4] a body of which nothing arrives for a minute is given up, one that trickles is not", async () => {
  const clock = testClock();
  const { request, send } = bodyOf();
  const received: string[] = [];
  const reading = (async () => {
    for await (const chunk of bodyChunks(request, clock)) received.push(new TextDecoder().decode(chunk));
  })().catch((problem: unknown) => problem);
  for (let index = 0; index < 5; index++) {
    send(`${index}`);
    await settle();
    await clock.advanceAsync(UPLOAD_STALL_MS - 1);
  }
  expect(received).toEqual(["0", "1", "2", "3", "4"]);
  await clock.advanceAsync(2);
  expect(await reading).toMatchObject({ status: 408 });
  expect(clock.waiting).toBe(0);
});

test("[ST4] a body that is not as long as it says is refused", async () => {
  const request = new Request("http://localhost/", { method: "PUT", body: "abc", headers: { "content-length": "4" } });
  const problem = await Array.fromAsync(bodyChunks(request, testClock())).catch((cause: unknown) => cause);
  expect(problem).toMatchObject({ status: 400 });
});
