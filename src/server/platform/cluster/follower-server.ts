import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { AppError, badRequest, clusterRefusal } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { roomBacklogMaxBytes, roomMessageMaxBytes } from "../../areas/rooms/index.ts";
import type { OwnerForwarding } from "../../cluster/node/owner-forwarding.ts";
import { CONSISTENCY_HEADER, LATEST, type Positions } from "../../cluster/node/positions.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { SYSTEM_FILE } from "../../db/index.ts";
import type { ReaderFile } from "../../db/readers/reader-file.ts";
import { createPageFile, SharedPage } from "../../db/readers/shared-page.ts";
import { HOST_DEFAULT, listenError, PORT_DEFAULT, type ServeHere } from "../../http/listening/listener.ts";
import { openWorkerPort } from "../../http/listening/worker-port.ts";
import type { LocalServing } from "../../http/workers/local-server.ts";
import { listenAsWorker } from "../../http/workers/worker-listener.ts";
import { BACKPRESSURE_MAX_BYTES, FRAME_MAX_BYTES } from "../../sockets/limits.ts";
import { type Answering, createAnswering } from "../workers/answering.ts";
import { createReports } from "../workers/reports.ts";
import type { FollowerHttp } from "./follower-http.ts";

/** Errors: the port is not available, described with its address. */
function listening(host: string, port: number, options: Parameters<typeof listenAsWorker>[0]) {
  try {
    return listenAsWorker(options);
  } catch (cause) {
    throw listenError(cause, host, port);
  }
}

export interface FollowerServerOptions {
  config: PlatformConfig;
  secrets: { jwtSecret: string; serviceKey: string };
  dataDirectory: string;
  logger: Logger;
  http: FollowerHttp;
  forwarding: OwnerForwarding;
  positions: Positions;
  /** The position that this node shows, and whether that may be answered. */
  shown: { position(): number; mayAnswer(): boolean };
}

/** A node's public port while it follows: answers reads from its files, and forwards everything else to the owner. */
export class FollowerServer {
  readonly #options: FollowerServerOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), "platform-"));
  #listener: ReturnType<typeof listenAsWorker> | null = null;
  #reading: { page: SharedPage; answer: Answering; files: ReaderFile[] } | null = null;
  #pages = 0;
  /** Moves whenever the files are closed: what was being opened before is closed as well. */
  #reads = 0;
  readonly #reports = createReports(systemClock, (answers) => this.#options.forwarding.report(answers));

  constructor(options: FollowerServerOptions) {
    this.#options = options;
  }

  /** Listens. Returns the port. Errors: it is not available. */
  listen({
    host = HOST_DEFAULT,
    port = PORT_DEFAULT,
  }: {
    host?: string | undefined;
    port?: number | undefined;
  }): number {
    const { config, forwarding, http } = this.#options;
    const rooms = config.rooms ?? {};
    const listener = listening(host, port, {
      clock: systemClock,
      host,
      port,
      isShared: false,
      openPort: openWorkerPort,
      tls: null,
      forwarding,
      link: () => forwarding.link(),
      answer: (request, peer) => this.#answer(request, peer),
      failure: (cause, request) => http.failure(this.#refusal(cause, request), request),
      messageMaxBytes: Math.max(FRAME_MAX_BYTES, roomMessageMaxBytes(rooms)),
      waitingMaxBytes: Math.max(BACKPRESSURE_MAX_BYTES, roomBacklogMaxBytes(rooms)),
    });
    this.#listener = listener;
    return listener.port;
  }

  /** Lets the platform of this node answer on the port, until that is stopped. */
  readonly serve: ServeHere = ({ fetch: answer, ...serving }) => {
    if (this.#listener === null) throw new Error("The node does not listen");
    const marked: LocalServing["fetch"] = (request, receiver) => this.asOwner(request, () => answer(request, receiver));
    return this.#listener.serve({ ...serving, fetch: marked }).asServer;
  };

  /** Answers a request as the owner: names the position that the answer shows. */
  asOwner(request: Request, answer: () => MaybePromise<Response>): MaybePromise<Response> {
    const { positions, shown } = this.#options;
    const consistency = request.headers.get(CONSISTENCY_HEADER);
    if (consistency !== null && consistency !== LATEST) return this.#inconsistent(request);
    return chain(answer(), (response) => positions.mark(response, shown.position()));
  }

  #inconsistent(request: Request): Response {
    return this.#options.http.failure(badRequest(`${CONSISTENCY_HEADER} must be "${LATEST}"`), request);
  }

  /** Requests that were forwarded since this port is open. */
  get requests(): number {
    return this.#listener?.forwarded ?? 0;
  }

  /** Notes that the owner leaves, for whom WebSockets are held. */
  ownerLeaves(): void {
    this.#listener?.leave();
  }

  hold(request: Request, isHeld: boolean): void {
    this.#listener?.hold(request, isHeld);
  }

  /** Makes the page on which the applier counts what becomes visible. */
  makePage(): SharedPage {
    const path = join(this.#directory, `page-${++this.#pages}`);
    createPageFile(path);
    return new SharedPage(path, { apart: join(this.#options.dataDirectory, SYSTEM_FILE) });
  }

  /** Reads from the files from now on, unless they are closed meanwhile. Errors: a file is missing, or is not what this config needs. */
  async read(page: SharedPage): Promise<void> {
    await this.stopReading();
    const turn = this.#reads;
    const { config, secrets, dataDirectory } = this.#options;
    const files: ReaderFile[] = [];
    const order = { secrets, dataDirectory, isDrill: false, notOfSite: null };
    try {
      const onOpen = (file: ReaderFile): void => void files.push(file);
      const answer = await createAnswering(config, { order, page, onAnswer: this.#reports.add, onOpen });
      if (turn === this.#reads) {
        this.#reading = { page, answer, files };
        return;
      }
      page.close();
      for (const file of files) await file.close();
    } catch (cause) {
      for (const file of files) await file.close();
      throw cause;
    }
  }

  /** Forwards everything from now on, and closes the files. */
  async stopReading(): Promise<void> {
    const reading = this.#reading;
    this.#reading = null;
    this.#reads++;
    reading?.page.close();
    for (const file of reading?.files ?? []) await file.close();
  }

  /** Accepts nothing more, and resolves when everything that was begun is answered. */
  async stop(): Promise<void> {
    await this.#listener?.stop();
    this.#reports.flush();
    await this.stopReading();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #answer(request: Request, peer: () => string): MaybePromise<Response | null> {
    const { headers, method, url } = request;
    const pathAt = url.indexOf("/", url.indexOf("//") + 2);
    const { http, positions } = this.#options;
    if ((method === "GET" || method === "HEAD") && /^\/api\/health\/?(?:\?|$)/.test(url.slice(pathAt)))
      return http.health(request, peer);
    const consistency = headers.get(CONSISTENCY_HEADER);
    if (consistency !== null) return consistency === LATEST ? null : this.#inconsistent(request);
    if (this.#reading === null || method !== "GET") return null;
    const required = positions.required(request);
    if (required <= this.#options.shown.position()) return this.#read(request, peer);
    const isThere = (): boolean => required <= this.#options.shown.position();
    return positions.wait(isThere).then((isReached) => (isReached ? this.#read(request, peer) : null));
  }

  #read(request: Request, peer: () => string): MaybePromise<Response | null> {
    const { shown, positions } = this.#options;
    if (this.#reading === null || !shown.mayAnswer()) return null;
    // What is read is at least this, and shows no more than what is shown when the answer leaves.
    const pass = (response: Response | null): Response | null => {
      if (response === null || !shown.mayAnswer()) return null;
      return positions.mark(response, shown.position());
    };
    const response = this.#reading.answer(request, peer);
    return response === null || response instanceof Response ? pass(response) : response.then(pass);
  }

  /** Says why a read is not answered: nobody has it, or this node may not show what it has. */
  #refusal(thrown: unknown, { method }: Request): unknown {
    // Whatever else fails is a link to an owner that has gone.
    const cause = thrown instanceof AppError ? thrown : clusterRefusal("no_owner", thrown);
    const isNobody = cause instanceof AppError && cause.data?.["cluster"]?.code === "no_owner";
    const isStale = isNobody && method === "GET" && !this.#options.shown.mayAnswer();
    return isStale ? clusterRefusal("stale", cause) : cause;
  }
}
