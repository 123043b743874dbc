import { expect, test } from "bun:test";
import type { Player } from "../../../config/types.ts";
import type { RoomConnection } from "../types.ts";
import { Members } from "./members.ts";

/** Set of connections that fails when it is iterated. */
class Untouched extends Set<RoomConnection> {
  override [Symbol.iterator](): never {
    throw new Error("the connections of another user were looked at");
  }
}

test("[RM26] a message to one user looks at no other's connections, as a handler may send one to each player", () => {
  const members = new Members(() => null);
  const add = (userId: string) => members.add({ player: { userId } as Player, sessionId: userId });
  for (const userId of ["ann", "cem"]) Object.assign(add(userId), { connections: new Untouched() });
  const own = [{}, {}] as RoomConnection[];
  Object.assign(add("bob"), { connections: new Set(own) });
  expect([...members.reached("bob", [])]).toEqual(own);
  expect([...members.reached("stranger", [])]).toEqual([]);
  expect(() => [...members.reached(null, ["bob"])]).toThrow("another user");
  expect([...members.reached(null, ["ann", "cem"])]).toEqual(own);
});
