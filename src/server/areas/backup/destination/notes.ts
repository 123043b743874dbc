import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { describeOwner, markerText, type Owner, parseMarker } from "../../../disk/owner-marker.ts";
import { BackupError } from "../types.ts";
import { type Destination, MARKER, VERIFIED_NOTE } from "./destinations.ts";
import { isBackupName, isFailedName, timeOfName } from "./names.ts";

/**
 * Marks the destination as belonging to this data directory. Two servers with one destination would overwrite and, by `keep`,
 * delete each other's backups. `takeOver` replaces the marker of another data directory. Errors: BackupError if the
 * destination belongs to another one. [BK102]
 */
export async function claimDestination(
  destination: Destination,
  { owner, clock, takeOver }: { owner: Owner; clock: Clock; takeOver: boolean },
): Promise<void> {
  const present = parseMarker(await destination.readNote(MARKER));
  if (present?.owner === owner.id) return;
  if (present === null || takeOver) {
    await destination.writeNote(MARKER, markerText(owner, clock));
    // If two servers claim it concurrently, the later marker is valid.
    await requireOwned(destination, owner);
    return;
  }
  throw taken(destination, describeOwner(present));
}

/** Checks the marker. Errors: BackupError if the destination belongs to another data directory. */
export async function requireOwned(destination: Destination, owner: Owner): Promise<void> {
  const marker = parseMarker(await destination.readNote(MARKER));
  if (marker?.owner === owner.id) return;
  throw taken(destination, marker === null ? "no data directory any more" : describeOwner(marker));
}

const taken = ({ name }: Destination, owner: string): BackupError =>
  new BackupError(
    `${name} belongs to ${owner}. Two servers with one destination would delete each other's backups: give each its own. To take it over, when the other server is no longer used, start once with --take-over.`,
  );

/** Verification times of the backups at a destination. */
export interface Verified {
  /** Time of the last successful verification; null: none. */
  at: Millis | null;
  /** Time of each backup's last successful verification, by backup name. */
  byName: ReadonlyMap<string, Millis>;
}

/** Reads the verification note; empty when it is missing or was written by something else. Errors: those of the destination. */
export async function readVerified(destination: Destination): Promise<Verified> {
  return parseNote(await destination.readNote(VERIFIED_NOTE));
}

/** Records a successful verification. Errors: those of the destination. */
export async function noteVerified(destination: Destination, name: string, at: Millis): Promise<void> {
  const { byName } = await readVerified(destination);
  const present = new Set((await destination.backups()).map((backup) => backup.name));
  const kept = [...byName].filter(([one]) => present.has(one));
  const backups = Object.fromEntries([...kept, [name, at]]);
  await destination.writeNote(VERIFIED_NOTE, JSON.stringify({ name, at, backups }));
}

function parseNote(note: string | null): Verified {
  try {
    const { name, at, backups = { [String(name)]: at } } = JSON.parse(note ?? "{}");
    const times = Object.entries(backups).filter((entry): entry is [string, Millis] => Number.isSafeInteger(entry[1]));
    return { at: Number.isSafeInteger(at) ? at : null, byName: new Map(times) };
  } catch {
    return { at: null, byName: new Map() };
  }
}

export interface PresentBackups {
  /** The newest backup by name; null: none. */
  newest: { at: Millis; sizeBytes: number } | null;
  /** Time of the last verification; null: never. */
  verifiedAt: Millis | null;
  /** Whether a backup that could not be verified is newer than all others. */
  hasLastFailed: boolean;
}

/** Reads the state that earlier backups left at the destination. Errors: those of the destination. */
export async function presentBackups(destination: Destination): Promise<PresentBackups> {
  const present = await destination.backups();
  const newest = present.findLast(({ name }) => isBackupName(name));
  const at = newest === undefined ? null : timeOfName(newest.name);
  const failed = present.findLast(({ name }) => isFailedName(name));
  return {
    newest: newest === undefined || at === null ? null : { at, sizeBytes: newest.sizeBytes },
    verifiedAt: (await readVerified(destination)).at,
    hasLastFailed: failed !== undefined && (newest === undefined || failed.name > newest.name),
  };
}
