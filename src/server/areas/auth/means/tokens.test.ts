import { expect, test } from "bun:test";
import { REFRESH_GRACE_MS, REFRESH_ROTATIONS_KEPT } from "../limits.ts";
import { rotate } from "./tokens.ts";

test("[AU7] the current generation is replaced, recent ones are still accepted, older ones count as reused", () => {
  const session = { generation: 3, rotations: [100_000, 90_000, 60_000] };
  expect(rotate(session, 3, 110_000)).toEqual({
    kind: "rotated",
    generation: 4,
    rotations: [110_000, 100_000, 90_000],
  });
  expect(rotate(session, 2, 110_000)).toMatchObject({ kind: "grace", generation: 3 });
  expect(rotate(session, 1, 110_000)).toMatchObject({ kind: "grace", generation: 3 });
  expect(rotate(session, 0, 110_000)).toEqual({ kind: "reused" });
  expect(rotate(session, 2, 100_000 + REFRESH_GRACE_MS)).toMatchObject({ kind: "grace" });
  expect(rotate(session, 2, 100_000 + REFRESH_GRACE_MS + 1)).toEqual({ kind: "reused" });
});

test("[AU7] a generation of the future counts as reused", () => {
  expect(rotate({ generation: 3, rotations: [] }, 4, 0)).toEqual({ kind: "reused" });
});

test("[AU7] the memory of a session that is refreshed constantly is bounded", () => {
  let session = { generation: 0, rotations: [] as number[] };
  for (let now = 0; now < 500; now++) {
    const rotation = rotate(session, session.generation, now);
    if (rotation.kind !== "rotated") throw new Error(rotation.kind);
    session = rotation;
  }
  expect(session.rotations).toHaveLength(REFRESH_ROTATIONS_KEPT);
  expect(rotate(session, 500 - REFRESH_ROTATIONS_KEPT, 500)).toMatchObject({ kind: "grace", generation: 500 });
  expect(rotate(session, 499 - REFRESH_ROTATIONS_KEPT, 500)).toEqual({ kind: "reused" });
});
