import { hostname } from "node:os";
import type { Clock } from "../../kernel/clock.ts";
import { isJsonObject } from "../../kernel/json/json.ts";

/** A data directory as the owner of a place outside of it, such as a prefix of an object store. */
export interface Owner {
  /** See `ownerIdOf`. */
  id: string;
  /** Path of the data directory, for messages. */
  directory: string;
}

/** Marker that the owner of a place leaves there. */
export interface OwnerMarker {
  owner: string;
  directory: string;
  host: string;
  since: string;
}

export function markerText({ id, directory }: Owner, clock: Clock): string {
  const since = new Date(clock.now()).toISOString();
  const marker: OwnerMarker = { owner: id, directory, host: hostname(), since };
  return `${JSON.stringify(marker)}\n`;
}

/** Parses a marker; null for null. A marker that cannot be parsed belongs to an unknown owner. */
export function parseMarker(text: string | null): OwnerMarker | null {
  if (text === null) return null;
  const unknown: OwnerMarker = { owner: "", directory: "unknown", host: "unknown", since: "unknown" };
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return unknown;
    const member = (name: keyof OwnerMarker): string => (typeof value[name] === "string" ? value[name] : unknown[name]);
    return { owner: member("owner"), directory: member("directory"), host: member("host"), since: member("since") };
  } catch {
    return unknown;
  }
}

export const describeOwner = ({ directory, host, since }: OwnerMarker): string =>
  `the data directory ${directory} on ${host} (since ${since})`;
