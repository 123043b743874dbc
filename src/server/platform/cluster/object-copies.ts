import type { StoredLog } from "../../areas/backup/continuous/index.ts";
import type { ClusterMember } from "../../cluster/membership/member.ts";
import { ARCHIVE_EVERY_MS } from "../../cluster/objects/limits.ts";
import { placeOfCopies, type StoredPlace } from "../../cluster/objects/stored-place.ts";
import { compareStored, type StoredRow } from "../../cluster/objects/stored-row.ts";
import type { PostgresConnection } from "../../cluster/postgres/connection.ts";
import type { ClusterConfig, ContinuousConfig } from "../../config/types.ts";
import type { ClusterSeams } from "../base.ts";

type Passed = Parameters<StoredLog["stored"]>[0];

/** Brings what the log has acknowledged, and no more, to the object store, while this node is the owner. */
export class ObjectCopies {
  readonly #config: ContinuousConfig;
  readonly #cluster: string;
  readonly #member: Pick<ClusterMember, "announcement" | "history" | "seen">;
  #passed: Passed | null = null;
  #failure: string | null = null;
  /** Problem of what was in the store before; null: there is none. undefined: it has not been compared. */
  #alarm: string | null | undefined;

  constructor(
    { objects, keepDays }: Pick<ClusterConfig, "objects" | "keepDays">,
    cluster: string,
    member: Pick<ClusterMember, "announcement" | "history" | "seen">,
  ) {
    const to = placeOfCopies(objects, cluster);
    this.#config = { to, everyMs: ARCHIVE_EVERY_MS, ...(keepDays === undefined ? {} : { keepDays }) };
    this.#cluster = cluster;
    this.#member = member;
  }

  get config(): ContinuousConfig {
    return this.#config;
  }

  /** Begins as the owner of an epoch. */
  begin(): NonNullable<ClusterSeams["store"]> {
    [this.#passed, this.#failure, this.#alarm] = [null, null, undefined];
    const member = this.#member;
    const log: Omit<StoredLog, "settled"> = {
      cluster: this.#cluster,
      epoch: member.seen?.group.epoch ?? 0,
      place: () => (member.announcement === null ? null : { history: member.history, ...member.announcement }),
      stored: (passed) => {
        this.#passed = passed;
        this.#failure = null;
      },
      failed: (reason) => {
        this.#failure = reason;
      },
    };
    return { config: this.#config, log };
  }

  /** Ends it: another node stores from now on. */
  end(): void {
    this.#passed = null;
  }

  /** Returns the state of the store; null: this node has stored nothing there as the owner. */
  async state(connection: PostgresConnection): Promise<StoredRow | null> {
    const passed = this.#passed;
    const place: StoredPlace | undefined = passed?.covered?.log;
    if (passed === null || place === undefined) return null;
    if (this.#alarm === undefined) {
      const found = passed.found?.log;
      this.#alarm = found === undefined ? null : await compareStored(connection, found);
    }
    const message = this.#alarm ?? this.#failure;
    return { ok: message === null, message, place, lastCopyAt: passed.lastCopyAt };
  }
}
