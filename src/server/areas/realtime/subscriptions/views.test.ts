import { expect, test } from "bun:test";
import type { ReadAccess } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import { type View, Views, viewOf } from "./views.ts";

const CERTAIN = { isDoubtful: false };
const view = (key: string): View => ({ place: "ann in realtime:shared:t", key });

test("[RT39] a view covers what was sent while there was no other view", () => {
  const views = new Views();
  expect(views.covers(view("a"), 10)).toBe(false);
  views.begin(view("a"), 10);
  views.end(view("a"), 20, CERTAIN);
  expect([9, 10, 20].map((since) => views.covers(view("a"), since))).toEqual([false, true, true]);
  expect(views.covers(view("b"), 20)).toBe(false);
  views.begin(view("b"), 20);
  expect(views.covers(view("a"), 20)).toBe(false);
  // A client of the earlier view may have had this change too.
  expect([20, 21].map((since) => views.covers(view("b"), since))).toEqual([false, true]);
  views.end(view("b"), 30, CERTAIN);
  views.begin(view("a"), 30);
  expect([30, 31].map((since) => views.covers(view("a"), since))).toEqual([false, true]);
});

test("[RT39] a subscription that returns to an earlier view cannot tell what was sent in between", () => {
  const views = new Views();
  views.begin(view("a"), 10);
  views.begin(view("b"), 20);
  views.end(view("a"), 30, CERTAIN);
  expect([21, 30, 31].map((since) => views.covers(view("b"), since))).toEqual([false, false, true]);
});

test("[RT39] a view whose client may have records of another one covers nothing that it was sent", () => {
  const views = new Views();
  views.begin(view("a"), 10);
  views.end(view("a"), 20, { isDoubtful: true });
  views.begin(view("a"), 20);
  expect([20, 21].map((since) => views.covers(view("a"), since))).toEqual([false, true]);
});

test("[RT39] users, and one user with other claims, have views of their own", () => {
  const access: ReadAccess = { kind: "filter", filter: { key: "f", matches: () => true } };
  const placeOf = (auth: object | null): string | undefined => {
    const principal = auth === null ? { kind: "anonymous" } : { kind: "user", auth };
    return viewOf(principal as unknown as Visiting, "realtime:shared:t", access)?.place; // the parts that are read
  };
  const places = [null, { id: "ann" }, { id: "bob" }, { id: "ann", claims: { team: "red" } }].map(placeOf);
  expect(new Set(places).size).toBe(4);
  expect(placeOf({ id: "ann" })).toBe(places[1]);
  expect(viewOf({ kind: "anonymous" }, "c", { kind: "all", saidBy: "config" })).toBeNull();
});
