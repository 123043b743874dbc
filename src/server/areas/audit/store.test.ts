import { expect, test } from "bun:test";
import { join } from "node:path";
import { auditLayout } from "../../../../schema/migrations/index.ts";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine, layOut } from "../../db/index.ts";
import { createAuditStore } from "./store.ts";

test("[DB340] rows that the log has already change nothing in its file, not even the sequence of ids", async () => {
  const engine = createStorageEngine({ clock: systemClock });
  const file = engine.open(join(temporaryDirectory(), "audit.db"), { migrate: layOut(auditLayout) });
  const store = createAuditStore(file);
  const state = () => [
    file.query('SELECT "seq" FROM "sqlite_sequence"').values(),
    file.query('SELECT "number" FROM "_platform_commit"').values(),
  ];
  const rows = ["a", "b"].map((id) => ({ seq: 0, id, kind: "change" as const, at: 1, entries: "[]" }));
  await store.insertRows(rows);
  const before = state();
  await store.insertRows(rows);
  expect(state()).toEqual(before);
  expect(before[0]).toEqual([[2]]);
  await file.close();
});
