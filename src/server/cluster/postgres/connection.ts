import net, { type Socket } from "node:net";
import tls from "node:tls";
import { ScramClient } from "./scram.ts";
import {
  goodbye,
  MessageReader,
  type Parameter,
  password,
  type Row,
  type ServerMessage,
  type StatementMessage,
  saslStart,
  startup,
  statement,
  tlsRequest,
} from "./wire.ts";

const DEFAULT_PORT = 5432;
/** Statements that a server keeps for a connection. */
const KEPT_MAX = 32;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Answer of one statement. A success with notices may prove less than it says. */
export interface StatementResult {
  rows: readonly Row[];
  notices: readonly string[];
}

export class PostgresError extends Error {
  readonly code: string;
  constructor(code: string, text: string) {
    super(`PostgreSQL says: ${text} (${code})`);
    this.code = code;
  }
}

export interface ConnectionOptions {
  url: string;
  /** Shown by pg_stat_activity: by it a taker finds the backends of the former owner. */
  applicationName: string;
  nonce: () => string;
  /** Called once, when it has ended by itself; statements under way have an unknown outcome. */
  closed: () => void;
}

/** A statement with its values. */
export interface AskedStatement {
  sql: string;
  parameters?: readonly Parameter[];
}

interface Asked {
  sql: string;
  rows: Row[];
  notices: string[];
  error: PostgresError | null;
  resolve: (result: StatementResult) => void;
  reject: (cause: Error) => void;
}

/**
 * One connection to PostgreSQL for the log. Unlike Bun's client it tells of notices, runs each statement by itself, never cancels one,
 * and keeps the order of what it is given. `sslmode` of the URL: `disable` (the default for an address of this machine), `require`
 * (without a look at the certificate), otherwise `verify-full`.
 */
export class PostgresConnection {
  readonly #socket: Socket;
  readonly #closed: () => void;
  readonly #reader = new MessageReader();
  readonly #asked: Asked[] = [];
  /** Names of the statements that the server keeps for this connection. */
  readonly #names = new Map<string, string>();
  #keptCount = 0;
  #handshake: ((message: ServerMessage) => void) | null = null;
  #isEnded = false;

  private constructor(socket: Socket, closed: () => void) {
    this.#socket = socket;
    this.#closed = closed;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", () => this.#end());
    socket.on("close", () => this.#end());
  }

  /** Errors: there is no such server, it refuses the account, or asks for a proof that is not known here. */
  static async open(options: ConnectionOptions): Promise<PostgresConnection> {
    const url = new URL(options.url);
    const socket = await secured(url, await connected(url));
    const connection = new PostgresConnection(socket, options.closed);
    try {
      await connection.#start(url, options);
    } catch (cause) {
      connection.close();
      throw cause;
    }
    return connection;
  }

  /** Runs a statement behind those that are under way. Errors: it failed, or the connection ended and the outcome is unknown. */
  run(sql: string, parameters: readonly Parameter[] = []): Promise<StatementResult> {
    return this.#ask({ sql, parameters, name: "", isKnown: false });
  }

  /**
   * Runs statements that are run often, each in a transaction of its own, behind those that are under way: the server keeps them with their
   * plans. All are sent at once. Errors: as `run`.
   */
  runKept(statements: readonly AskedStatement[]): Promise<StatementResult[]> {
    this.#socket.cork();
    const results = statements.map(({ sql, parameters = [] }) => {
      const known = this.#names.get(sql);
      const name = known ?? `kept_${++this.#keptCount}`;
      // There are as many as the protocol has, and a few.
      if (this.#names.size < KEPT_MAX) this.#names.set(sql, name);
      return this.#ask({ sql, parameters, name: this.#names.has(sql) ? name : "", isKnown: known !== undefined });
    });
    this.#socket.uncork();
    return Promise.all(results);
  }

  /** Ends it without waiting: a statement under way is not cancelled. */
  close(): void {
    if (this.#isEnded) return;
    this.#fail();
    this.#socket.end(goodbye());
    this.#socket.destroySoon();
  }

  async #start(url: URL, { applicationName, nonce }: ConnectionOptions): Promise<void> {
    const user = decodeURIComponent(url.username) || "postgres";
    const database = decodeURIComponent(url.pathname.slice(1)) || user;
    const scram = new ScramClient(decodeURIComponent(url.password), nonce());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#handshake = (message) => {
      try {
        if (message.kind === "ready") resolve();
        else if (message.kind === "error") reject(new PostgresError(message.code, message.text));
        else if (message.kind === "authentication") this.#prove(message, decodeURIComponent(url.password), scram);
      } catch (cause) {
        reject(cause);
      }
    };
    this.#socket.once("close", () => reject(new Error("PostgreSQL has closed the connection")));
    const names = { user, database, application_name: applicationName, client_encoding: "UTF8" };
    // A statement is never ended by a time limit: its outcome would be unknown for nothing.
    this.#socket.write(startup({ ...names, statement_timeout: "0", lock_timeout: "0", synchronous_commit: "on" }));
    await promise;
    this.#handshake = null;
  }

  #prove({ code, data }: { code: number; data: Uint8Array }, secret: string, scram: ScramClient): void {
    const text = decoder.decode(data);
    if (code === 0) return;
    if (code === 3) this.#socket.write(password(encoder.encode(`${secret}\0`)));
    else if (code === 10 && text.split("\0").includes("SCRAM-SHA-256"))
      this.#socket.write(saslStart("SCRAM-SHA-256", encoder.encode(scram.first())));
    else if (code === 11) this.#socket.write(password(encoder.encode(scram.final(text))));
    else if (code === 12) {
      if (!scram.isServer(text)) throw new Error("This PostgreSQL does not know the password");
    } else throw new Error(`PostgreSQL asks for a proof of kind ${code}, which is not supported`);
  }

  #receive(chunk: Buffer): void {
    let messages: ServerMessage[];
    try {
      messages = this.#reader.read(chunk);
    } catch {
      this.#socket.destroy();
      return;
    }
    for (const message of messages) {
      if (this.#handshake !== null) this.#handshake(message);
      else this.#take(message);
    }
  }

  #take(message: ServerMessage): void {
    const asked = this.#asked[0];
    if (asked === undefined) return;
    if (message.kind === "row") asked.rows.push(message.values);
    else if (message.kind === "notice") asked.notices.push(message.text);
    else if (message.kind === "error") asked.error = new PostgresError(message.code, message.text);
    else if (message.kind === "ready") {
      this.#asked.shift();
      if (asked.error !== null) {
        // It may not have come so far as to be kept.
        this.#names.delete(asked.sql);
        asked.reject(asked.error);
      } else asked.resolve({ rows: asked.rows, notices: asked.notices });
    }
  }

  #ask(message: StatementMessage): Promise<StatementResult> {
    return new Promise((resolve, reject) => {
      if (this.#isEnded) {
        reject(new Error("The connection to PostgreSQL has ended"));
        return;
      }
      this.#asked.push({ sql: message.sql, rows: [], notices: [], error: null, resolve, reject });
      this.#socket.write(statement(message));
    });
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#fail();
    this.#closed();
  }

  #fail(): void {
    this.#isEnded = true;
    for (const { reject } of this.#asked.splice(0)) reject(new Error("The connection to PostgreSQL has ended"));
  }
}

function connected(url: URL): Promise<Socket> {
  const socket = net.connect({
    host: url.hostname,
    port: Number(url.port) || DEFAULT_PORT,
    noDelay: true,
    keepAlive: true,
  });
  return new Promise((resolve, reject) => {
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Asks for TLS first, where the URL does not say otherwise. */
async function secured(url: URL, socket: Socket): Promise<Socket> {
  const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  const mode = url.searchParams.get("sslmode") ?? (isLocal ? "disable" : "verify-full");
  if (mode === "disable") return socket;
  const reply = new Promise<Buffer>((resolve, reject) => {
    socket.once("data", resolve);
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("PostgreSQL has closed the connection")));
  });
  socket.write(tlsRequest());
  if ((await reply).toString() !== "S") {
    socket.destroy();
    throw new Error("PostgreSQL does not speak TLS: with sslmode=disable in its URL it is not asked to");
  }
  const host = net.isIP(url.hostname) === 0 ? { servername: url.hostname } : {};
  const secure = tls.connect({ socket, ...host, rejectUnauthorized: mode !== "require" });
  return new Promise((resolve, reject) => {
    secure.once("secureConnect", () => resolve(secure));
    secure.once("error", reject);
  });
}
