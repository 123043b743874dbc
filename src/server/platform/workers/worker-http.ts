import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { createServiceKeys } from "../../access/keys/service-keys.ts";
import { createPrincipals } from "../../access/principals.ts";
import { createTokenVerifier } from "../../access/tokens.ts";
import { createSessionReads } from "../../areas/auth/reading.ts";
import { createTableReading, type ReadingEndpoints } from "../../areas/tables/reading.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { SYSTEM_FILE } from "../../db/index.ts";
import type { ReadCut } from "../../db/readers/read-cut.ts";
import { ReaderFile } from "../../db/readers/reader-file.ts";
import { createCors, DRILL_HEADERS } from "../../http/cors.ts";
import type { AnswerListener } from "../../http/http.ts";
import { createHttp, type Http } from "../../http/http.ts";
import { BODY_MAX_BYTES } from "../../http/limits.ts";
import { hstsHeaders } from "../../http/security-headers.ts";
import type { WorkerOrder } from "./messages.ts";

/** The endpoints that a worker may answer, and what answers them. */
export interface WorkerHttp {
  http: Http;
  endpoints: ReadingEndpoints;
  /** Gives back memory that only makes later reads cheaper. */
  rest(): void;
}

/**
 * Creates the endpoints of a worker, from the files that the main process has open. Callers are anybody, service
 * keys, and users by their tokens: their sessions are those of the same moment as the records.
 */
export async function createWorkerHttp(
  config: PlatformConfig,
  {
    order,
    cut,
    onOpen,
    ...requests
  }: {
    order: Pick<WorkerOrder, "secrets" | "dataDirectory" | "isDrill">;
    cut: ReadCut;
    onOpen: (file: ReaderFile) => void;
    addressOf: (request: Request) => string;
    onAnswer: AnswerListener;
  },
): Promise<WorkerHttp> {
  const clock = systemClock;
  const { secrets, dataDirectory, isDrill } = order;
  const { server, cors, databases = {} } = config;
  const files: ReaderFile[] = [];
  const open = (path: string): ReaderFile => {
    const file = new ReaderFile(path, cut);
    files.push(file);
    onOpen(file);
    return file;
  };
  const spoil = (): never => cut.spoil();
  // A request that is worth a line of the log is the main process's, which writes it.
  const logger = { info: spoil, warn: spoil, error: spoil };
  const secret = secrets.jwtSecret;
  const principals = createPrincipals({
    serviceKeys: createServiceKeys({ rootKey: secrets.serviceKey, secret, declared: config.serviceKeys ?? {}, clock }),
    // Tokens that others verify or sign are left to the main process, which knows their keys.
    tokens: createTokenVerifier({ secret, keys: null, issuers: null, clock }),
    sessions: createSessionReads({ file: open(join(dataDirectory, SYSTEM_FILE)), clock }),
    administrators: () => null,
    account: spoil,
  });
  const http = createHttp({
    ...requests,
    clock,
    logger,
    cors: createCors(
      cors,
      { ...(isDrill ? DRILL_HEADERS : {}), ...hstsHeaders(server?.hsts) },
      { isCluster: config.cluster !== undefined },
    ),
    principals,
    holdOpen() {},
    bodyMaxBytes: server?.maxBodySize ?? BODY_MAX_BYTES,
    // The shared page counts requests, when they are answered.
    globalLimit() {},
  });
  const endpoints = await createTableReading({
    databases,
    directory: join(dataDirectory, "databases"),
    open,
    spoil,
    requirePresent: principals.requirePresent,
    clock,
    ids: systemIds,
    logger,
    secret,
    publicUrl: server?.publicUrl?.replace(/\/$/, "") ?? null,
  });
  return {
    http,
    endpoints,
    rest() {
      for (const file of files) file.rest();
    },
  };
}
