import { expect, test } from "bun:test";
import { systemClock } from "../../../kernel/clock.ts";
import { POSITION_HEADER, Positions } from "./positions.ts";

// What answers say of the log's position.

const URL = "http://node/api";

test("[CLU84] a refusal names no position, so that whoever has seen more does not go back behind it", () => {
  const positions = new Positions({ clock: systemClock, cluster: "one", history: () => 0 });
  const written = new Request(URL, { method: "POST", headers: { authorization: "Bearer one" } });
  const read = new Request(URL, { headers: { authorization: "Bearer one" } });

  const seen = positions.mark(new Response(null, { status: 201 }), 7);
  positions.answered(written, seen);
  expect(positions.read(seen.headers.get(POSITION_HEADER))).toBe(7);
  expect(positions.required(read)).toBe(7);

  // A former owner knows less than its caller.
  const refused = positions.mark(new Response(null, { status: 503 }), 6);
  positions.answered(written, refused);
  expect(refused.headers.has(POSITION_HEADER)).toBe(false);
  expect(positions.required(read)).toBe(7);
});
