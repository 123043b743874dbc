import { PostgresConnection } from "../postgres/connection.ts";
import { askLog } from "../postgres/log-channel.ts";
import { READ_POSITIONS_MAX } from "../protocol/limits.ts";
import type { LogEntry, Place } from "../protocol/statements.ts";
import type { FetchedFile, FileSource, ListedFile } from "./file-source.ts";

/** A log that is not the one in which this node has seen its place: nothing of it is used. */
export class OtherLog extends Error {}

/** A place of the log that all copies in the object store have reached. */
export interface CopiedPlace extends Place {
  history: number;
}

/** Full copies in the object store, and what follows them there. Errors: it cannot be reached, or what it has is damaged. */
export interface CopyStore {
  /** Returns all files; null: there are none. */
  list(): Promise<{ place: CopiedPlace; files: ListedFile[] } | null>;
  /** Writes the newest state of a file to `target`. null: it has no such file. */
  fetch(file: string, target: string): Promise<{ place: CopiedPlace; path: string } | null>;
}

export interface LogConnection {
  url: string;
  /** Name of the connection: not that of the node's own ones, which others may end. */
  applicationName: string;
  /** Makes a nonce for the proof of the password. */
  nonce: () => string;
}

export interface LogSourceOptions extends LogConnection {
  copies: CopyStore;
}

/** Fetches files from their copies in the object store and from the log in PostgreSQL, which has what follows them. */
export function createLogSource(options: LogSourceOptions): FileSource {
  const { copies } = options;
  return {
    async list() {
      const listed = await copies.list();
      if (listed === null) throw new OtherLog("the object store has no copies yet");
      await connected(options, (connection) => requirePlace(connection, listed.place));
      return listed.files;
    },
    async fetch(file, target): Promise<FetchedFile | null> {
      const base = await connected(options, baseOf);
      // A log that is whole has each file from its creation on.
      if (base.position === 0) return null;
      const fetched = await copies.fetch(file, target);
      if (fetched === null) return null;
      const reached = await connected(options, (connection) => requirePlace(connection, fetched.place));
      return { path: fetched.path, after: fetched.place, reached };
    },
    entries: (file, range) => entriesIn(options, file, range),
  };
}

/** Returns the place at which the log ends. */
export function endOf(options: LogConnection): Promise<Place> {
  return connected(options, async (connection) => {
    const { group } = await askLog(connection, { kind: "look", position: 0 });
    return { position: group.position, nonce: group.nonce };
  });
}

async function connected<T>(
  { url, applicationName, nonce }: LogConnection,
  work: (connection: PostgresConnection) => Promise<T>,
): Promise<T> {
  const connection = await PostgresConnection.open({ url, applicationName, nonce, closed: () => {} });
  try {
    return await work(connection);
  } finally {
    connection.close();
  }
}

async function baseOf(connection: PostgresConnection): Promise<Place> {
  return (await askLog(connection, { kind: "look", position: 0 })).group.base;
}

/** Checks that the log has a place, or begins behind it. Returns the position at which the log ends. Errors: OtherLog. */
async function requirePlace(connection: PostgresConnection, place: Place & { history?: number }): Promise<number> {
  const { group, entries } = await askLog(connection, { kind: "look", position: place.position });
  if (place.history !== undefined && place.history !== group.history)
    throw new OtherLog("the copies are of a history before a loss that was accepted");
  const { base } = group;
  if (place.position < base.position)
    throw new OtherLog(`position ${place.position} is before the begin of the log, ${base.position}`);
  const nonce = place.position === base.position ? base.nonce : entries[0]?.nonce;
  if (place.position > 0 && nonce !== place.nonce)
    throw new OtherLog(`the log has something else at position ${place.position}`);
  return group.position;
}

/**
 * Reads the entries about a file, null: about all, on a connection of its own. A place names everything that leads to it. Errors:
 * OtherLog, this one has something else there, or a gap.
 */
export async function* entriesIn(
  { url, applicationName, nonce }: LogConnection,
  file: string | null,
  { after, upTo }: { after: Place | null; upTo: Place },
): AsyncGenerator<LogEntry> {
  const connection = await PostgresConnection.open({ url, applicationName, nonce, closed: () => {} });
  try {
    // First: nothing is applied that another log has.
    await requirePlace(connection, upTo);
    if (after !== null) await requirePlace(connection, after);
    let last = after ?? (await baseOf(connection));
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
        const body = file === null ? entry.body : entry.body.filter((row) => row.file === file);
        if (body.length > 0) yield { ...entry, body };
      }
      if (entries.length === 0) throw new OtherLog(`the log ends at position ${last.position}`);
    }
  } finally {
    connection.close();
  }
}
