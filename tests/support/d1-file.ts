import { systemClock } from "../../src/kernel/clock.ts";
import { systemIds } from "../../src/kernel/ids.ts";
import { SqlFile } from "../../src/server/areas/d1/database-file.ts";
import type { NextMark } from "../../src/server/areas/d1/process/execute.ts";
import { createStorageEngine } from "../../src/server/db/index.ts";

/** Opens a database of users as the server does. */
export const openSqlFile = (path: string): SqlFile =>
  new SqlFile(path, { engine: createStorageEngine({ clock: systemClock }), ids: systemIds });

/** Numbers commits of a connection without a server. */
export function countedMarks(): NextMark {
  let number = 0;
  return async () => {
    number += 1;
    return { number, nonce: 1, at: 0, place: number, file: "test" };
  };
}
