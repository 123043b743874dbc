import type { AnyElysia } from "elysia";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { mcpEndpoints } from "../areas/mcp/index.ts";
import type { OwnServer } from "../areas/mcp/requests.ts";
import { createSite, welcomeOf } from "../areas/site/index.ts";
import { ownProduct } from "../config/loading/product.ts";
import type { PlatformConfig } from "../config/types.ts";
import { createCors, DRILL_HEADERS } from "../http/cors.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { createAccessLog } from "../http/exchange/access-log.ts";
import { type AnswerListener, createHttp, type Http, type HttpParts } from "../http/http.ts";
import { BODY_MAX_BYTES } from "../http/limits.ts";
import type { NativeRoutes } from "../http/listening/requests.ts";
import { mountEndpoints } from "../http/mount.ts";
import { createApiDocument } from "../http/openapi/document.ts";
import { documentationEndpoints } from "../http/openapi/pages.ts";
import { createGlobalLimiter, RATE_LIMITS } from "../http/rate-limit.ts";
import { hstsHeaders } from "../http/security-headers.ts";
import { createServer } from "../http/server.ts";
import { groupWide } from "../http/wide-paths.ts";
import type { Areas } from "./areas.ts";
import type { Base } from "./base.ts";
import { answeredByWorker } from "./workers/answered.ts";
import type { WorkerAnswer } from "./workers/messages.ts";

const isServed = (area: object): area is { endpoints: readonly Endpoint[] } => "endpoints" in area;

/** Serves the endpoints of all areas as one server, with those that belong to none. */
export function serveAreas(
  config: PlatformConfig,
  base: Base,
  areas: Areas,
): {
  http: Http;
  server: AnyElysia;
  native: NativeRoutes;
  notOfSite: readonly string[] | null;
  count(answers: readonly WorkerAnswer[]): void;
} {
  const { clock, logger, isDrill, listener } = base;
  const isCluster = config.cluster !== undefined;
  const always = { ...(isDrill ? DRILL_HEADERS : {}), ...hstsHeaders(config.server?.hsts) };
  const cors = createCors(config.cors, always, { isCluster });
  const accessLog = createAccessLog({ logger, addressOf: (request) => http.parts.addressOf(request) });
  const onAnswer = both(both(areas.system.onAnswer, base.foreground.note), areas.analytics.onAnswer);
  const http: Http = createHttp({
    clock,
    logger,
    cors,
    principals: areas.access.principals,
    addressOf: listener.addressOf,
    holdOpen: listener.holdOpen,
    onAnswer: config.server?.accessLog === true ? both(onAnswer, accessLog) : onAnswer,
    bodyMaxBytes: config.server?.maxBodySize ?? BODY_MAX_BYTES,
    globalLimit: createGlobalLimiter(config.rateLimits?.global ?? RATE_LIMITS.global, clock, base.workers?.requests),
  });
  const count = (answers: readonly WorkerAnswer[]): void => {
    for (const answer of answers) http.parts.onAnswer?.(answeredByWorker(answer, areas.access.serviceKeys));
  };
  if (base.workers !== null) base.workers.onAnswers = count;
  const endpoints = Object.values(areas).flatMap((area: object) => (isServed(area) ? area.endpoints : []));
  const packed = ownProduct()?.site ?? null;
  const site = createSite(config.site, {
    http: http.parts,
    clock,
    welcome: welcomeOf(config),
    packed,
    guide: base.guide,
  });
  const server = createServer(http, cors, { site, isTls: base.isTls, wide: groupWide(endpoints) });
  mountEndpoints(server, http, endpoints);
  const own = { answer: async (request: Request) => server.fetch(request), inPlaceOf: http.inPlaceOf };
  mountEndpoints(server, http, areas.auth.pages(own));
  mountEndpoints(server, http, agentEndpoints(config, base, areas, { ...own, ...http.parts }));
  const { area: functions } = areas.functions;
  const served = functions?.serve(http.parts, cors) ?? null;
  if (served !== null) mountFunctions(server, served.answer);
  if (config.api?.docs !== false) {
    const tables = { schemaEndpoint: config.api?.schemaEndpoint ?? false, describe: areas.tables.describe };
    const document = createApiDocument({ endpoints, tables, functions: functions?.describe });
    mountEndpoints(server, http, documentationEndpoints(document));
  }
  server.compile();
  const notOfSite = base.guide === null ? firstParts(server) : null;
  return { http, server, native: served?.native ?? {}, notOfSite, count };
}

/** Returns the first parts of the paths of all routes; null: a route may begin with anything. */
function firstParts({ routes }: AnyElysia): readonly string[] | null {
  const parts = new Set(routes.map(({ path }) => path.split("/")[1] ?? ""));
  return [...parts].some((part) => /[:*]/.test(part)) ? null : [...parts];
}

/** Returns the endpoints for agents; none where the config and development have none. */
function agentEndpoints(
  config: PlatformConfig,
  { clock, secrets, audit, dataDirectory, development }: Base,
  { system }: Areas,
  own: OwnServer & Pick<HttpParts, "identify" | "requirePresent">,
): readonly Endpoint[] {
  const { publicUrl } = config.server ?? {};
  return mcpEndpoints({
    clock,
    dataDirectory,
    isDeclared: config.mcp === true,
    development: config.mcp === false ? null : development,
    rootKey: secrets.serviceKey,
    publicOrigin: publicUrl === undefined ? null : new URL(publicUrl).origin,
    limit: config.rateLimits?.mcp ?? RATE_LIMITS.mcp,
    own,
    identify: own.identify,
    requirePresent: own.requirePresent,
    schema: system.schema,
    schemaEndpoint: config.api?.schemaEndpoint ?? false,
    audit: (actor, act) => audit.recordAct(actor, act),
  });
}

/** Mounts everything below `/api/functions`, whatever its method: the routes there answer for themselves. */
function mountFunctions(server: AnyElysia, answer: (request: Request) => MaybePromise<Response>): void {
  for (const path of ["/api/functions", "/api/functions/*"]) {
    // Elysia detects which members of its context a handler names, and parses the body for one that takes them all.
    server.all(path, ({ request }) => answer(request), { detail: { hide: true } });
  }
}

function both(first: AnswerListener, second: AnswerListener | undefined): AnswerListener {
  if (second === undefined) return first;
  return (answer) => {
    first(answer);
    second(answer);
  };
}
