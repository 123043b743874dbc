import type { Clock } from "../../../../kernel/clock.ts";
import { describeOwner, markerText, type Owner, parseMarker } from "../../../disk/owner-marker.ts";
import { BackupError } from "../types.ts";
import { type Destination, MARKER } from "./destinations.ts";

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

/** Errors: BackupError if the destination belongs to another data directory. */
export async function requireOwned(destination: Destination, owner: Owner): Promise<void> {
  const marker = parseMarker(await destination.readNote(MARKER));
  if (marker?.owner === owner.id) return;
  throw taken(destination, marker === null ? "no data directory any more" : describeOwner(marker));
}

const taken = ({ name }: Destination, owner: string): BackupError =>
  new BackupError(
    `${name} belongs to ${owner}. Two servers with one destination would delete each other's backups: give each its own. To take it over, when the other server is no longer used, start once with --take-over.`,
  );
