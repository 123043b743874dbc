/** Tests of what is reported of a file that cannot be written. */
import { expect, test } from "bun:test";
import { QueryError } from "../processes/query-error.ts";
import { FileFailures } from "./file-failures.ts";

test("[DB52] a full disk that the writer and other processes find is reported once, until a write succeeds", () => {
  const reported: unknown[] = [];
  const failures = new FileFailures((cause) => reported.push(cause));
  const own = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
  const checkpoint = new QueryError("database or disk is full", 13);
  const damage = new Error("disk I/O error");
  for (const cause of [own, checkpoint, damage, own, checkpoint]) failures.note(cause);
  expect(reported).toEqual([own, damage]);
  failures.written();
  for (const cause of [checkpoint, own]) failures.note(cause);
  expect(reported).toEqual([own, damage, checkpoint]);
});
