import { PostgresConnection } from "../postgres/connection.ts";
import { askLog } from "../postgres/log-channel.ts";
import { READ_POSITIONS_MAX } from "../protocol/limits.ts";
import type { LogEntry, Place } from "../protocol/statements.ts";
import type { FileSource } from "./follower-files.ts";
import { START } from "./follower-state.ts";

/** A log that is not the one in which this node has seen its place: nothing of it is used. */
export class OtherLog extends Error {}

/**
 * Fetches files from the log in PostgreSQL, which has each from its creation on. `nonce` is for the proof of the password;
 * `applicationName` is not that of the node's own connections, which others may end.
 */
export function createLogSource(options: { url: string; applicationName: string; nonce: () => string }): FileSource {
  return {
    async fetch() {
      return null;
    },
    entries: (file, upTo) => entriesUpTo(options, file, upTo),
  };
}

/** Reads on a connection of its own. What is read was shown by this node before: a place names everything that leads to it. */
async function* entriesUpTo(
  { url, applicationName, nonce }: { url: string; applicationName: string; nonce: () => string },
  file: string,
  upTo: Place,
): AsyncGenerator<LogEntry> {
  const connection = await PostgresConnection.open({ url, applicationName, nonce, closed: () => {} });
  try {
    // First: nothing is applied that another log has.
    const { entries: end } = await askLog(connection, { kind: "look", position: upTo.position });
    if (upTo.position > 0 && end[0]?.nonce !== upTo.nonce)
      throw new OtherLog(`the log has something else at position ${upTo.position}`);
    let last: Place = START;
    while (last.position < upTo.position) {
      const { entries } = await askLog(connection, {
        kind: "read",
        from: last.position + 1,
        limit: READ_POSITIONS_MAX,
      });
      for (const entry of entries) {
        if (entry.position > upTo.position) return;
        if (entry.position !== last.position + 1 || entry.previous !== last.nonce)
          throw new OtherLog(`the log does not go on from position ${last.position}`);
        last = { position: entry.position, nonce: entry.nonce };
        const body = entry.body.filter((row) => row.file === file);
        if (body.length > 0) yield { ...entry, body };
      }
      if (entries.length === 0) throw new OtherLog(`the log ends at position ${last.position}`);
    }
  } finally {
    connection.close();
  }
}
