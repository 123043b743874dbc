import { expect, test } from "bun:test";
import { ANY_INSTANCE, type LookedAt } from "../../../access/lookups/lookups.ts";
import { LookupWatches } from "../../../access/lookups/watches.ts";
import { sightWatch } from "./askers.ts";

const OWN = { namespace: "teams", instanceId: "red" };
const looked = (place: Partial<LookedAt>): LookedAt => ({
  ...OWN,
  table: "members",
  fields: ["id"],
  values: ["ann"],
  ...place,
});

test("[AC202] a lookup by the user's id stands for all with that id, and any other for the whole table", () => {
  const noted: LookedAt[] = [];
  const watch = sightWatch({ lookedAt: (place) => void noted.push(place) }, OWN, "ann");
  watch.lookedAt(looked({}));
  watch.lookedAt(looked({ fields: ["projectId", "userId"], values: ["p1", "ann"] }));
  watch.lookedAt(looked({ table: "projects", values: ["p1"] }));
  watch.lookedAt(looked({ instanceId: "blue" }));
  watch.lookedAt(looked({ namespace: "shared", instanceId: null }));
  expect(noted).toEqual([
    looked({}),
    looked({ fields: ["userId"], values: ["ann"] }),
    looked({ table: "projects", fields: [], values: [] }),
    looked({ instanceId: ANY_INSTANCE }),
    looked({ namespace: "shared", instanceId: null }),
  ]);
});

test("[AC202] a watch of all instances is touched by each of them, and by no other namespace", () => {
  const watches = new LookupWatches<string>();
  const watch = watches.watch("ann");
  watch.lookedAt(looked({ instanceId: ANY_INSTANCE }));
  const change = [[{ table: "members", id: "ann", before: null, after: { id: "ann" } }]];
  const touched = (namespace: string, instanceId: string | null) => {
    const named: string[] = [];
    watches.touched({ namespace, instanceId }, change, (watcher) => named.push(watcher));
    return named;
  };
  expect([touched("teams", "red"), touched("teams", "blue")]).toEqual([["ann"], ["ann"]]);
  expect([touched("others", "red"), touched("teams", null)]).toEqual([[], []]);
  const named: string[] = [];
  watches.touchedFile({ namespace: "teams", instanceId: "red" }, (watcher) => named.push(watcher));
  expect(named).toEqual(["ann"]);
  watch.end();
  expect(watches.isUnwatched({ namespace: "teams", instanceId: "red" })).toBe(true);
});
