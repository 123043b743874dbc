import type { DatabaseFile } from "../../db/types.ts";

/** What both a transaction and the file offer: stores read through either, and write through a transaction only. */
export type Sql = Pick<DatabaseFile, "query">;
