import { join } from "node:path";
import { type Clock, systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { createServiceKeys } from "../../access/keys/service-keys.ts";
import { createPrincipals } from "../../access/principals.ts";
import { createTokenVerifier } from "../../access/tokens.ts";
import { pageEndpoints as dashboardEndpoints } from "../../areas/admin/pages.ts";
import { createAccountReads, createSessionReads } from "../../areas/auth/reading.ts";
import { createClientFilesArea } from "../../areas/client-files/index.ts";
import { createSite, welcomeOf } from "../../areas/site/index.ts";
import { createStorageReading } from "../../areas/storage/reading.ts";
import { configEndpoints } from "../../areas/system/reading.ts";
import { createTableReading, type ReadingEndpoints } from "../../areas/tables/reading.ts";
import { ownProduct } from "../../config/loading/product.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { SYSTEM_FILE } from "../../db/index.ts";
import type { ReadCut } from "../../db/readers/read-cut.ts";
import { ReaderFile } from "../../db/readers/reader-file.ts";
import { createCors, DRILL_HEADERS } from "../../http/cors.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { AnswerListener } from "../../http/http.ts";
import { createHttp, type Http } from "../../http/http.ts";
import { BODY_MAX_BYTES } from "../../http/limits.ts";
import { pageEndpoints as documentationPages } from "../../http/openapi/pages.ts";
import { hstsHeaders } from "../../http/security-headers.ts";
import type { FilesOrder } from "./messages.ts";

/** The endpoints that a worker may answer, and what answers them. */
export interface WorkerHttp {
  http: Http;
  /** Reads of tables, by what follows the table in their path. */
  tables: ReadingEndpoints;
  /** Downloads. */
  files: readonly Endpoint[];
  /** Endpoints that answer at once, and by the config alone. */
  described: readonly Endpoint[];
  /** Endpoints whose answers are files that no write changes. */
  packed: readonly Endpoint[];
  /** The site, and the first parts of paths that are not its own; null: another process answers for it. */
  site: { handle(context: { request: Request }): Response | null; others: ReadonlySet<string> } | null;
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
    instance,
    ...requests
  }: {
    order: FilesOrder;
    cut: ReadCut;
    onOpen: (file: ReaderFile) => void;
    instance: (namespace: string, instanceId: string, path: string) => ReaderFile | null;
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
  const declared = config.serviceKeys ?? {};
  const serviceKeys = createServiceKeys({ rootKey: secrets.serviceKey, secret, declared, clock });
  const systemFile = open(join(dataDirectory, SYSTEM_FILE));
  const principals = createPrincipals({
    serviceKeys,
    // Tokens that others verify or sign are left to the main process, which knows their keys.
    tokens: createTokenVerifier({ secret, keys: null, issuers: null, clock }),
    sessions: createSessionReads({ file: systemFile, clock }),
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
  const signers = { account: createAccountReads(systemFile), serviceKey: serviceKeys.named };
  const { endpoints: tables, lookups } = await createTableReading({
    ...signers,
    databases,
    directory: join(dataDirectory, "databases"),
    open,
    instance,
    spoil,
    clock,
    ids: systemIds,
    logger,
    secret,
    requirePresent: principals.requirePresent,
    publicUrl: server?.publicUrl?.replace(/\/$/, "") ?? null,
  });
  return {
    http,
    tables,
    files: createStorageReading({
      ...signers,
      buckets: config.storage?.buckets ?? {},
      dataDirectory,
      file: systemFile,
      secret,
      lookups,
      requirePresent: principals.requirePresent,
      clock,
      logger,
      spoil,
    }),
    described: configEndpoints(config),
    packed: [
      ...createClientFilesArea().endpoints,
      ...(config.admin === false ? [] : dashboardEndpoints()),
      ...(config.api?.docs === false ? [] : documentationPages()),
    ],
    site: createWorkerSite(config, { order, http, clock }),
    rest() {
      for (const file of files) file.rest();
    },
  };
}

function createWorkerSite(
  config: PlatformConfig,
  { order, http, clock }: { order: FilesOrder; http: Http; clock: Clock },
): WorkerHttp["site"] {
  if (order.notOfSite === null) return null;
  const site = createSite(config.site, {
    http: http.parts,
    clock,
    welcome: welcomeOf(config),
    packed: ownProduct()?.site ?? null,
    guide: null,
  });
  return {
    handle: ({ request }) => site.answer(request, new URL(request.url)),
    others: new Set(order.notOfSite),
  };
}
