import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { noteStored, readStored, type StoredRow } from "../objects/stored-row.ts";
import { PostgresConnection } from "../postgres/connection.ts";
import { dropDetached, trimLog } from "../postgres/partitions.ts";
import { CORE } from "../postgres/schema.ts";
import type { Row } from "../postgres/wire.ts";
import type { Durability } from "../protocol/statements.ts";
import { SURVEY_MS, TRIM_STATEMENT_MAX_MS } from "./limits.ts";
import { durabilityProblem, makeRoom } from "./preparation.ts";

const decoder = new TextDecoder();
const textsOf = (row: Row): string[] => row.map((value) => decoder.decode(value ?? new Uint8Array(0)));

export interface Surveyed {
  /** Version and config of each node, by its URL. */
  facts: ReadonlyMap<string, { version: string; config: string }>;
  /** Bytes of the log in PostgreSQL. */
  logBytes: number;
  /** Why PostgreSQL is less durable than it has to be; null: it is as durable. */
  durabilityProblem: string | null;
  /** State of the object store; null: nothing is in it yet. */
  stored: StoredRow | null;
}

export interface SurveyOptions {
  postgres: string;
  durability: Durability;
  clock: Clock;
  ids: Ids;
  /** Whether this node makes room for the log. */
  isOwner: () => boolean;
  /** Returns how far this node, as the owner, may drop the log, as far as the object store has it; null: it is not the owner. */
  trimmed: () => { incarnation: string; upTo: number } | null;
  /** Returns the state of the object store where this node stores there; null: it does not, or has not yet. */
  stored: (connection: PostgresConnection) => Promise<StoredRow | null>;
  /** Told when PostgreSQL becomes less durable than it has to be, or as durable again. */
  onChange(problem: string | null): void;
}

/** Looks at what the protocol does not need to know, every SURVEY_MS, on a connection of its own. */
export class Survey {
  readonly #options: SurveyOptions;
  #last: Surveyed = { facts: new Map(), logBytes: 0, durabilityProblem: null, stored: null };
  #cancel: () => void = () => {};
  #isStopped = false;

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  get last(): Surveyed {
    return this.#last;
  }

  start(): void {
    void this.#look()
      // Without PostgreSQL nothing has changed; the member says that it is away.
      .catch(() => {})
      .finally(() => {
        if (!this.#isStopped) this.#cancel = this.#options.clock.after(SURVEY_MS, () => this.start());
      });
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  async #look(): Promise<void> {
    const { postgres, durability, ids, isOwner, onChange, stored, trimmed } = this.#options;
    const connection = await PostgresConnection.open({
      url: postgres,
      applicationName: "platform survey",
      nonce: () => ids.secret(18),
      closed() {},
    });
    try {
      const { rows } = await connection.run("SELECT node, version, config FROM platform.facts");
      const facts = rows.map((row) => {
        const [node = "", version = "", config = ""] = textsOf(row);
        return [node, { version, config }] as const;
      });
      const size = await connection.run(
        `SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::text FROM pg_inherits
         WHERE inhparent = 'platform.log'::regclass`,
      );
      const problem = await durabilityProblem(connection, durability);
      if (isOwner()) await makeRoom(connection);
      const own = await stored(connection);
      if (own !== null) await noteStored(connection, own);
      const known = await readStored(connection);
      if (problem !== this.#last.durabilityProblem) onChange(problem);
      const [bytes = "0"] = textsOf(size.rows[0] ?? []);
      this.#last = { facts: new Map(facts), logBytes: Number(bytes), durabilityProblem: problem, stored: known };
      const trim = trimmed();
      if (trim === null || own?.ok !== true) return;
      // A detachment waits for every transaction that has read the log. One that is cut off is gone on with at a later look.
      await connection.run(`SET statement_timeout = ${TRIM_STATEMENT_MAX_MS}`);
      await dropDetached(connection);
      await trimLog(connection, { ...trim, group: CORE, upTo: Math.min(trim.upTo, own.place.position) });
    } finally {
      connection.close();
    }
  }
}
