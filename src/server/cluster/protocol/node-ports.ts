import type { ChannelPorts } from "./channel.ts";
import type { GroupRow, LogEntry, Place } from "./statements.ts";

/** The two connections of a node: appends wait on one, and renewals go on beside them. */
export type ChannelName = "appends" | "leases";

/** Disk of a node: the last place that it knew to be acknowledged, and the place that its file is at. */
export interface KeptOnDisk {
  history: number;
  noted: Place;
  file: Place;
}

export interface NodePorts {
  appends: ChannelPorts;
  leases: ChannelPorts;
  nonce(): string;
  /** Writes to the disk, before it returns, what is known to be acknowledged. */
  note(history: number, place: Place): void;
  /** Applies entries of the log to the file. They may be shown. */
  apply(entries: readonly LogEntry[]): void;
  /** Puts the file aside, and begins another at the start of the log. */
  setAside(): void;
  /** Goes on from a place behind which the log begins, with what the object store has of before. */
  rebase(base: Place): void;
  /** Whether more entries can be taken: what was given is not applied yet. */
  hasRoom(): boolean;
  /** The owner's commits up to here are in the log. */
  acknowledged(place: Place, isWeak: boolean): void;
  /** The node is the owner from now on, or no longer: then what waits has an unknown outcome. */
  owns(isOwner: boolean): void;
  /** The log lacks what was acknowledged. Nothing goes on before an operator has accepted that. */
  alarm(group: GroupRow): void;
}
