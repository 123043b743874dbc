import { expect, test } from "bun:test";
import { testClock } from "../../../../tests/support/clock.ts";
import { systemClock } from "../../../kernel/clock.ts";
import type { AnswerText } from "../../db/index.ts";
import { STALLED_CLIENT_TIMEOUT_MS } from "../limits.ts";
import { answerBody } from "./answer-body.ts";

test("[DQ103] a large answer is sent piece by piece, and its room released", async () => {
  let releases = 0;
  const partsOf = () => Array.from({ length: 40 }, (_, n) => new Uint8Array(1024 * 1024).fill(n));
  const release = () => {
    releases += 1;
  };
  const answer = (): AnswerText => ({ parts: partsOf(), sizeBytes: 40 * 1024 * 1024, note: null, release });
  const server = Bun.serve({ port: 0, fetch: () => new Response(answerBody(answer(), systemClock)) });
  const response = await fetch(server.url);
  expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(partsOf()))).toBe(true);
  expect(releases).toBe(1);
  await server.stop();
});

test("[DQ103] a client that does not read a large answer is disconnected", async () => {
  const clock = testClock();
  const released = Promise.withResolvers<void>();
  const parts = Array.from({ length: 4 }, () => new Uint8Array(1024 * 1024));
  const stream = answerBody({ parts, sizeBytes: 4 * 1024 * 1024, note: null, release: released.resolve }, clock);
  if (!(stream instanceof ReadableStream)) throw new Error("large ones are streams");
  const reader = stream.getReader();
  await reader.read();
  clock.advance(STALLED_CLIENT_TIMEOUT_MS);
  await released.promise;
  await expect(reader.read()).rejects.toThrow("reads nothing");
});
