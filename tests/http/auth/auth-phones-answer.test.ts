import { expect, test } from "bun:test";
import { testPlatform, until } from "../../support/index.ts";

test("[AU374] a request for a code is answered before the sender runs, however long that keeps the loop", async () => {
  const starts: number[] = [];
  const receiver = Bun.serve({
    port: 0,
    fetch(request) {
      starts.push(Number(new URL(request.url).search.slice(1)));
      return new Response("ok");
    },
  });
  // The sender writes down when it began, and keeps the loop for a while.
  const platform = await testPlatform({
    config: `{ auth: { phones: { countries: ["AT"], send: async () => {
      const began = Date.now();
      while (Date.now() - began < 500);
      await fetch("${receiver.url}?" + began);
    } } } }`,
  });
  try {
    expect((await platform.post("/api/auth/signin/phone", { phone: "+436601234567" })).status).toBe(200);
    const answeredAt = Date.now();
    await until("the sender has run", () => starts.length > 0);
    // The loop was free when the answer left: an answer behind the sender would come 500 ms after its start.
    expect(answeredAt - (starts[0] ?? 0)).toBeLessThan(500);
  } finally {
    await platform.stop();
    await receiver.stop(true);
  }
});
