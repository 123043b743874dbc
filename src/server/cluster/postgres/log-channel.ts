import type { ChannelPorts } from "../protocol/channel.ts";
import type {
  GroupRow,
  LogEntry,
  LogRow,
  LogServer,
  NodeRow,
  Settings,
  Statement,
  StatementAnswer,
} from "../protocol/statements.ts";
import { PostgresConnection, type StatementResult } from "./connection.ts";
import { applicationName, SETTINGS_AFTER, sqlOf } from "./statement-sql.ts";
import type { Row } from "./wire.ts";

const RETRY_MS = 300;
const NO_RESULT: StatementResult = { rows: [], notices: [] };
/** The time within which a connection has to be open: a machine that is gone does not refuse one. */
const OPEN_MAX_MS = 5_000;
const decoder = new TextDecoder();

/** Identity of the server, and whether it takes writes. The WAL's name begins with the timeline that is written. */
const SERVER = `SELECT system_identifier::text, pg_is_in_recovery()::text,
  CASE WHEN pg_is_in_recovery() THEN '0' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END
  FROM pg_control_system()`;

export interface LogChannelOptions {
  url: string;
  incarnation: string;
  nonce: () => string;
  after: (delayMs: number, run: () => void) => void;
  opened: (server: LogServer) => void;
  closed: () => void;
  answered: (answer: StatementAnswer) => void;
  /** Told why a connection could not be had, or why a statement failed. */
  failed: (cause: unknown) => void;
}

/** A node's connection to PostgreSQL: opens it again whenever it ends, and turns statements of the protocol into SQL. */
export class LogChannel implements ChannelPorts {
  readonly #options: LogChannelOptions;
  #connection: PostgresConnection | null = null;
  /** Counts connections: what an earlier one still says is nobody's answer. */
  #generation = 0;
  #isStopped = false;

  constructor(options: LogChannelOptions) {
    this.#options = options;
  }

  start(): void {
    const generation = ++this.#generation;
    this.#open(generation).catch((cause) => {
      this.#options.failed(cause);
      this.#startLater(generation);
    });
    this.#options.after(OPEN_MAX_MS, () => {
      if (generation === this.#generation && this.#connection === null && !this.#isStopped) this.reopen();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#drop();
  }

  send(statement: Statement): void {
    const connection = this.#connection;
    const generation = this.#generation;
    if (connection === null) return;
    askLog(connection, statement)
      .then((answer) => {
        if (generation === this.#generation) this.#options.answered(answer);
      })
      .catch((cause) => {
        if (generation !== this.#generation) return;
        this.#options.failed(cause);
        // Its outcome is unknown, like that of a statement whose connection ended.
        this.#options.closed();
        this.reopen();
      });
  }

  reopen(): void {
    this.#drop();
    this.#startLater(this.#generation);
  }

  #startLater(generation: number): void {
    this.#options.after(RETRY_MS, () => {
      if (generation === this.#generation && !this.#isStopped) this.start();
    });
  }

  #drop(): void {
    this.#generation += 1;
    this.#connection?.close();
    this.#connection = null;
  }

  async #open(generation: number): Promise<void> {
    const { url, incarnation, nonce } = this.#options;
    const closed = (): void => {
      if (generation !== this.#generation || this.#connection === null) return;
      this.#options.closed();
      this.reopen();
    };
    const connection = await PostgresConnection.open({
      url,
      applicationName: applicationName(incarnation),
      nonce,
      closed,
    });
    const server = serverOf(await connection.run(SERVER));
    if (generation !== this.#generation || this.#isStopped) {
      connection.close();
      return;
    }
    this.#connection = connection;
    this.#options.opened(server);
  }
}

/** Asks one statement. Errors: it failed, or the connection ended and the outcome is unknown. */
export async function askLog(connection: PostgresConnection, statement: Statement): Promise<StatementAnswer> {
  // Both are sent at once, and are transactions of their own.
  const [result = NO_RESULT, settings = NO_RESULT] = await connection.runKept([
    sqlOf(statement),
    { sql: SETTINGS_AFTER },
  ]);
  return answerOf(result, settings);
}

type StoredGroup = Omit<GroupRow, "isStopped" | "base"> & {
  name: string;
  stopped: boolean;
  base: number;
  base_nonce: string;
};

const textOf = (row: Row, at: number): string => decoder.decode(row[at] ?? new Uint8Array(0));
const settingsOf = (row: Row, at: number): Settings => ({
  standbyNames: textOf(row, at),
  loadedAt: textOf(row, at + 1),
});

function serverOf({ rows: [row = []] }: StatementResult): LogServer {
  const isStandby = textOf(row, 1) === "true";
  return { system: textOf(row, 0), timeline: Number.parseInt(textOf(row, 2), 16), isStandby };
}

function answerOf({ rows, notices }: StatementResult, settings: StatementResult): StatementAnswer {
  const [first = []] = rows;
  const [last = []] = settings.rows;
  // The statement itself has made these with row_to_json, from tables of this schema.
  const { name: _, stopped, base: position, base_nonce: nonce, ...group } = JSON.parse(textOf(first, 1)) as StoredGroup;
  const nodes = JSON.parse(textOf(first, 2)) as NodeRow[];
  return {
    isDone: textOf(first, 0) === "true",
    group: { ...group, isStopped: stopped, base: { position, nonce } },
    nodes,
    entries: entriesOf(rows),
    hasNotice: notices.length > 0 || settings.notices.length > 0,
    before: settingsOf(first, 3),
    after: settingsOf(last, 0),
  };
}

/** Rows of one position are one entry. */
function entriesOf(rows: readonly Row[]): LogEntry[] {
  const entries: { entry: LogEntry; body: LogRow[] }[] = [];
  for (const row of rows) {
    if (row[5] === null || row[5] === undefined) continue;
    const position = Number(textOf(row, 5));
    let last = entries.at(-1);
    if (last?.entry.position !== position) {
      const body: LogRow[] = [];
      const entry = { position, epoch: Number(textOf(row, 8)), nonce: textOf(row, 9), previous: textOf(row, 10), body };
      last = { entry, body };
      entries.push(last);
    }
    const content = new Uint8Array(Buffer.from(textOf(row, 11), "base64"));
    last.body.push({ file: textOf(row, 6), number: Number(textOf(row, 7)), content });
  }
  return entries.map(({ entry }) => entry);
}
