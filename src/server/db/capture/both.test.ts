/** Two takers of the same commits. */
import { expect, test } from "bun:test";
import { bothCaptures } from "./both.ts";
import type { CommitCapture } from "./types.ts";

/** Returns a taker that notes what it is told. `isTaken`: it says that it has taken whole contents. */
function taker(name: string, told: string[], { isTaken }: { isTaken: boolean }): CommitCapture {
  const note = (what: string) => (): void => void told.push(`${name} ${what}`);
  return {
    opening: () => ({
      left: note("left"),
      opened: () => {
        told.push(`${name} opened`);
        return isTaken;
      },
      frames: note("frames"),
      broken: note("broken"),
      closed: note("closed"),
    }),
    removing: note("removing"),
  };
}

test("[CLU100] both takers hear of everything, and the second one of what the first has taken whole", () => {
  const told: string[] = [];
  const first = taker("one", told, { isTaken: true });
  const both = bothCaptures(first, taker("two", told, { isTaken: false }));
  const file = both.opening("a.db");
  // Facts and frames are passed on as they are.
  expect(file.opened({} as never)).toBe(true);
  expect(told.splice(0)).toEqual(["one opened", "two opened", "two broken"]);
  file.left({} as never, {} as never);
  file.frames({} as never);
  file.broken();
  file.closed();
  both.removing("a.db");
  const each = ["left", "frames", "broken", "closed", "removing"];
  expect(told).toEqual(each.flatMap((what) => [`one ${what}`, `two ${what}`]));
  expect(both.durable).toBeUndefined();
  const durable = (): void => {};
  expect(bothCaptures({ ...first, durable }, first).durable).toBe(durable);
});
