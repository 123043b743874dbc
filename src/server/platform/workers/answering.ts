import { isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { SERVICE_KEY_HEADER } from "../../access/principals.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { INSTANCE_CACHE_KIB, INSTANCE_STATEMENTS_MAX } from "../../db/limits.ts";
import { BorrowedFiles } from "../../db/readers/borrowed-files.ts";
import type { LentId } from "../../db/readers/lent-files.ts";
import { ReadCut } from "../../db/readers/read-cut.ts";
import { ReaderFile } from "../../db/readers/reader-file.ts";
import type { SharedPage } from "../../db/readers/shared-page.ts";
import type { Answered } from "../../http/exchange/request-context.ts";
import { createClientAddress } from "../../http/listening/client-address.ts";
import { isTightLimit, RATE_LIMITS } from "../../http/rate-limit.ts";
import { createFinding, type Found } from "./finding.ts";
import type { FilesOrder, WorkerAnswer } from "./messages.ts";
import { createWorkerHttp } from "./worker-http.ts";

/** Statuses that a worker answers with: whole, in part, and "you have it". Everything else is the main process's word. */
const GIVEN: ReadonlySet<number> = new Set([200, 206, 304]);
/** Tries of a request whose reads were not of one moment, before the main process answers it. */
const TRIES_MAX = 3;
/** The duration from which the request log may want to know more of a request. */
const DETAILED_MS = 100;

/** Answers requests. */
export interface Answering {
  /** Answers a request; null: the main process is to. `peer` returns the address of the connection. */
  (request: Request, peer: () => string): MaybePromise<Response | null>;
  /** The files of instances that are lent to this process; null: none are. */
  readonly instances: BorrowedFiles<ReaderFile> | null;
  /** Gives back memory that only makes later answers cheaper. */
  rest(): void;
}

/**
 * Creates what answers requests in a worker: reads of tables and downloads by users, service keys and anybody, if all of it can be read at
 * once, from one moment, and is a success; pages, packed files and the site, which no write changes. Everything else is the main process's, whose word is the only refusal that a client gets.
 */
export async function createAnswering(
  config: PlatformConfig,
  {
    order,
    page,
    onAnswer,
    onOpen = () => {},
    lending = null,
  }: {
    order: FilesOrder;
    page: SharedPage;
    onAnswer: (answer: WorkerAnswer) => void;
    /** Called with each file that is opened. */
    onOpen?: (file: ReaderFile) => void;
    /** Asks for files of instances, and tells of those that are given back; null: none are lent. */
    lending?: { ask(namespace: string, instanceId: string): void; returned(id: LentId): void } | null;
  },
): Promise<Answering> {
  const cut = new ReadCut(page);
  const instances = lending === null ? null : createBorrowing(cut, lending);
  const answers = new WeakMap<Request, Answered>();
  const { peers, addressOf } = createAddresses(config);
  const served = await createWorkerHttp(config, {
    order,
    cut,
    addressOf,
    onOpen,
    instance: (...asked) => instances?.of(...asked) ?? null,
    onAnswer: (answer) => void answers.set(answer.request, answer),
  });
  const find = createFinding(config, served);
  const limit = config.rateLimits?.global ?? RATE_LIMITS.global;
  // A limit that one client can reach is counted by client, in the main process.
  const mayCount = isTightLimit(limit) ? () => false : () => page.requests.count() < limit.requests;
  const isLogged = config.server?.accessLog === true;

  const send = (request: Request, response: Response): Response => {
    const answer = answers.get(request);
    // Requests with a valid key are not limited.
    if (answer?.principal.kind !== "serviceKey") page.requests.add();
    if (answer !== undefined) onAnswer(reportOf(answer, { isLogged, addressOf }));
    // Its headers may stand beside those that Bun sends: see `emptyAnswer`.
    if (request.method === "HEAD") return new Response(null, { status: response.status, headers: response.headers });
    return response;
  };

  const given = (request: Request, response: Response | null): Response | null => {
    if (response !== null && GIVEN.has(response.status)) return send(request, response);
    void response?.body?.cancel().catch(() => {});
    return null;
  };

  /** Answers what no write changes: it may take its time. */
  const answerConstant = (request: Request, found: Found): MaybePromise<Response | null> => {
    if (!page.mayAnswer()) return null;
    try {
      const response = found.handle({ request, params: found.params, route: found.pattern });
      if (!isPromise(response)) return given(request, response);
      return response.then((late) => given(request, late)).catch(() => null);
    } catch {
      return null;
    }
  };

  const attempt = (request: Request, found: Found, triesLeft: number): MaybePromise<Response | null> => {
    const id = cut.enter();
    if (id === null) return null;
    let isOver = false;
    const judge = (response: Response | null): MaybePromise<Response | null> => {
      if (!isOver && cut.stands(id)) return given(request, response);
      void response?.body?.cancel().catch(() => {});
      return !isOver && triesLeft > 1 && cut.mayRepeat(id) ? attempt(request, found, triesLeft - 1) : null;
    };
    try {
      const response = found.handle({ request, params: found.params, route: found.pattern });
      if (!isPromise(response)) return judge(response);
      // What waits for anything ends in another turn, with which its cut has ended: the main process does not wait for that too.
      const turn = new Promise<null>((resolve) => {
        setImmediate(() => {
          isOver = true;
          resolve(null);
        });
      });
      return Promise.race([response.then(judge, () => null), turn]);
    } catch {
      // The main process fails in the same way, and logs it.
      return null;
    }
  };

  const answer = (request: Request, peer: () => string): MaybePromise<Response | null> => {
    const found = find(request);
    if (found === null || !(request.headers.has(SERVICE_KEY_HEADER) || mayCount())) return null;
    peers.set(request, peer);
    return found.isOfMoment ? attempt(request, found, TRIES_MAX) : answerConstant(request, found);
  };
  return Object.assign(answer, {
    instances: instances?.files ?? null,
    rest(): void {
      served.rest();
      instances?.files.giveBack();
    },
  });
}

/** Returns the files of instances that are lent, and how one is asked for that is not. */
function createBorrowing(
  cut: ReadCut,
  lending: { ask(namespace: string, instanceId: string): void; returned(id: LentId): void },
) {
  const files = new BorrowedFiles<ReaderFile>({
    open(path) {
      try {
        return new ReaderFile(path, cut, { cacheKiB: INSTANCE_CACHE_KIB, statementsMax: INSTANCE_STATEMENTS_MAX });
      } catch {
        // Another state of the file than its writer has: the main process answers for it.
        return null;
      }
    },
    close: (file) => file.closeNow(),
    returned: lending.returned,
    atEndOfTurn: (work) => void setImmediate(work),
  });
  return {
    files,
    of(namespace: string, instanceId: string, path: string): ReaderFile | null {
      const file = files.get(path);
      if (file === null && files.mayAsk(path, performance.now())) lending.ask(namespace, instanceId);
      return file;
    },
  };
}

/** Returns the addresses of clients, and where those of their connections are noted. */
function createAddresses({ server }: PlatformConfig) {
  const peers = new WeakMap<Request, () => string>();
  const { trustProxy = false, clientAddressHeader } = server ?? {};
  const clientAddress = createClientAddress({ trustProxy, clientAddressHeader });
  const peerOf = (request: Request): string => peers.get(request)?.() ?? "";
  return { peers, addressOf: (request: Request): string => clientAddress(request.headers, () => peerOf(request)) };
}

/** Returns what the main process counts of an answer. */
function reportOf(
  { request, requestId, route, params, status, durationMs, principal }: Answered,
  { isLogged, addressOf }: { isLogged: boolean; addressOf: (request: Request) => string },
): WorkerAnswer {
  return {
    requestId,
    route: route ?? "",
    params,
    method: request.method,
    status,
    durationMs,
    userId: principal.kind === "user" ? principal.auth.id : null,
    key: principal.kind === "serviceKey" ? principal.name : null,
    request: isLogged || durationMs >= DETAILED_MS ? { url: request.url, address: addressOf(request) } : null,
  };
}
