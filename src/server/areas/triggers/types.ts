import type { AcceptedInvitation, ChangedBy, FileFacts, Subject } from "../../config/types.ts";
import type { Actor, Transaction } from "../../db/index.ts";
import type { PassedJob } from "../../jobs/index.ts";

/** A file with an outbox: of tables, or system.db. */
export type Place = { kind: "tables"; namespace: string; instanceId: string | null } | { kind: "system" };

/** The data of a job that a change triggers: JSON in the outbox and in the queue. */
export interface Occurrence {
  /** Type, as webhooks name it: `shared.orders.update`, `bucket.avatars.upload`, `auth.signup`. */
  type: string;
  /** The last part of `type`. */
  event: string;
  before: Subject | null;
  after: Subject | null;
  by: ChangedBy;
  instanceId: string | null;
  /** Time of the change, in ISO 8601. */
  at: string;
  /** The accepted invitation; only for `hooks.afterAccept`. */
  invitation?: AcceptedInvitation;
  /** Number of trigger runs that led to the change. */
  depth: number;
  /** The id of what was triggered first. Jobs of earlier versions have none. */
  root?: string;
}

/** Adds all jobs in their order, and resolves when they are on disk. A job whose id is known is not added again. */
export type PassJobs = (jobs: readonly PassedJob[]) => Promise<void>;

/** Notifies triggers and webhooks of files in buckets. */
export interface FileNotes {
  /** Reports whether such events of the bucket trigger anything. */
  isWatched(bucket: string, event: "upload" | "delete"): boolean;
  note(
    tx: Transaction,
    change: {
      bucket: string;
      event: "upload" | "delete";
      by: Actor;
      before: FileFacts | null;
      after: FileFacts | null;
    },
  ): void;
}

/** Notifies triggers, webhooks and hooks of accounts. */
export interface AccountNotes {
  isWatched(event: "signup" | "delete" | "accept"): boolean;
  note(
    tx: Transaction,
    change: { event: "signup" | "delete" | "accept"; by: Actor; user: Subject; invitation?: AcceptedInvitation },
  ): void;
}
