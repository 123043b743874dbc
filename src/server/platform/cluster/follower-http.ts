import { systemClock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { createServiceKeys } from "../../access/keys/service-keys.ts";
import { createPrincipals } from "../../access/principals.ts";
import { createTokenVerifier } from "../../access/tokens.ts";
import { type Health, healthEndpoint } from "../../areas/system/endpoints.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { createCors } from "../../http/cors.ts";
import { createHttp } from "../../http/http.ts";
import { createClientAddress } from "../../http/listening/client-address.ts";
import { hstsHeaders } from "../../http/security-headers.ts";

export interface FollowerHttp {
  /** Answers the health of this node. */
  health(request: Request, peer: () => string): MaybePromise<Response>;
  /** Answers a thrown error. */
  failure(cause: unknown, request: Request): Response;
}

/** Creates what a follower answers without its files: its own health, and refusals. */
export function createFollowerHttp(
  config: PlatformConfig,
  {
    secrets,
    logger,
    health,
  }: { secrets: { jwtSecret: string; serviceKey: string }; logger: Logger; health: () => Promise<Health> },
): FollowerHttp {
  const clock = systemClock;
  const secret = secrets.jwtSecret;
  const peers = new WeakMap<Request, () => string>();
  const { trustProxy = false, clientAddressHeader, hsts } = config.server ?? {};
  const clientAddress = createClientAddress({ trustProxy, clientAddressHeader });
  const http = createHttp({
    clock,
    logger,
    cors: createCors(config.cors, hstsHeaders(hsts), { isCluster: true }),
    principals: createPrincipals({
      serviceKeys: createServiceKeys({
        rootKey: secrets.serviceKey,
        secret,
        declared: config.serviceKeys ?? {},
        clock,
      }),
      tokens: createTokenVerifier({ secret, keys: null, issuers: null, clock }),
      // Health is for service keys, and nothing else is asked here.
      sessions: { find: () => null },
      administrators: () => null,
      account: () => null,
    }),
    addressOf: (request) => clientAddress(request.headers, () => peers.get(request)?.() ?? ""),
    holdOpen() {},
    bodyMaxBytes: 0,
    globalLimit() {},
  });
  const answerHealth = http.endpoint(healthEndpoint({ health }));
  return {
    health(request, peer) {
      peers.set(request, peer);
      return answerHealth({ request, params: {}, route: "/api/health" });
    },
    failure: (cause, request) => http.failure(cause, request),
  };
}
