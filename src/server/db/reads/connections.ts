import { DatabaseSync } from "node:sqlite";
import { type BucketUnit, bucketLabel } from "../../../kernel/time/buckets.ts";
import { QUERY_LOCK_TIMEOUT_MS, READ_CONNECTIONS_MAX, READ_VALUE_BYTES_MAX } from "../limits.ts";
import { loadVectorExtension } from "../vectors/load.ts";
import { BUCKET_FUNCTION, type QueryRequest } from "./requests.ts";

/** The connections of one process to the files that it reads. */
export function createConnections() {
  /** Connections by path and library, the one used last at the end. */
  const open = new Map<string, { path: string; connection: DatabaseSync }>();
  const end = (key: string): void => {
    open.get(key)?.connection.close();
    open.delete(key);
  };
  return {
    /** Closes the connections to a file. */
    close(path: string): void {
      for (const [key, one] of open) if (one.path === path) end(key);
    },
    /** Returns a read-only connection to a file, with the functions of a library, from an LRU cache. */
    of({ path, library }: Pick<QueryRequest, "path" | "library">): DatabaseSync {
      const key = `${path}\0${library ?? ""}`;
      const connection = open.get(key)?.connection ?? connect(path, library);
      open.delete(key);
      for (const oldest of open.keys()) if (open.size >= READ_CONNECTIONS_MAX) end(oldest);
      open.set(key, { path, connection });
      return connection;
    },
  };
}

function connect(path: string, library: string | null): DatabaseSync {
  const connection = new DatabaseSync(path, {
    readOnly: true,
    timeout: QUERY_LOCK_TIMEOUT_MS,
    allowExtension: library !== null,
    limits: { length: READ_VALUE_BYTES_MAX },
  });
  if (library !== null) {
    loadVectorExtension(connection, library);
    connection.enableLoadExtension(false);
  }
  connection.function(BUCKET_FUNCTION, { deterministic: true }, (text, unit, zone) =>
    // The statement is written by the server, with a unit and a zone that it has checked.
    typeof text === "string" ? bucketLabel(text, unit as BucketUnit, String(zone)) : null,
  );
  return connection;
}
