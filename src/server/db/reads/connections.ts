import { DatabaseSync } from "node:sqlite";
import { type BucketUnit, bucketLabel } from "../../../kernel/time/buckets.ts";
import { QUERY_LOCK_TIMEOUT_MS, READ_CONNECTIONS_MAX, READ_VALUE_BYTES_MAX } from "../limits.ts";
import { BUCKET_FUNCTION } from "./requests.ts";

/** The connections of one process to the files that it reads. */
export function createConnections() {
  /** Connections by path, the one used last at the end. */
  const open = new Map<string, DatabaseSync>();
  const close = (path: string): void => {
    open.get(path)?.close();
    open.delete(path);
  };
  return {
    close,
    /** Returns a read-only connection to `path`, from an LRU cache. */
    of(path: string, extensions: readonly string[]): DatabaseSync {
      const connection = open.get(path) ?? connect(path, extensions);
      open.delete(path);
      for (const oldest of open.keys()) if (open.size >= READ_CONNECTIONS_MAX) close(oldest);
      open.set(path, connection);
      return connection;
    },
  };
}

function connect(path: string, extensions: readonly string[]): DatabaseSync {
  const connection = new DatabaseSync(path, {
    readOnly: true,
    timeout: QUERY_LOCK_TIMEOUT_MS,
    allowExtension: extensions.length > 0,
    limits: { length: READ_VALUE_BYTES_MAX },
  });
  for (const extension of extensions) connection.loadExtension(extension);
  if (extensions.length > 0) connection.enableLoadExtension(false);
  connection.function(BUCKET_FUNCTION, { deterministic: true }, (text, unit, zone) =>
    // The statement is written by the server, with a unit and a zone that it has checked.
    typeof text === "string" ? bucketLabel(text, unit as BucketUnit, String(zone)) : null,
  );
  return connection;
}
