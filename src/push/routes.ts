import { type AnyElysia, Elysia } from "elysia";
import type { Principal } from "../access/principal.ts";
import { requireServiceKey } from "../access/service-key-right.ts";
import type { Http, RequestContext } from "../http/http.ts";
import { requiredText, wholeNumber } from "../http/query.ts";
import { OK } from "../http/reply.ts";
import { unauthorized } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { BODY_MAX_BYTES, LOGS_LIMIT_DEFAULT, LOGS_LIMIT_MAX, SEND_MANY_BODY_MAX_BYTES } from "./limits.ts";
import { DESCRIPTIONS } from "./operations.ts";
import {
  parseBroadcast,
  parseMetadata,
  parseRegistration,
  parseSend,
  parseSendMany,
  parseSendToToken,
  parseSendToTopic,
  parseToken,
  parseTopic,
} from "./requests.ts";
import { type PushService, TOPIC_OF_ALL } from "./service.ts";
import { deviceRecord } from "./types.ts";

const SUCCESS = { success: true } as const;

export function createPushRoutes(http: Http, service: PushService): AnyElysia {
  return new Elysia().use(clientRoutes(http, service)).use(sendRoutes(http, service)).use(adminRoutes(http, service));
}

/** What an app does for the user who is signed in to it. */
function clientRoutes(http: Http, service: PushService): AnyElysia {
  const own = (handler: (userId: string, body: JsonObject) => Promise<unknown>) =>
    http.route(async ({ principal, jsonObject }) => handler(requireUser(principal), await jsonObject()), {
      bodyMaxBytes: BODY_MAX_BYTES,
    });

  return new Elysia()
    .post(
      "/api/push/register",
      own(async (userId, body) => {
        const device = await service.register(userId, parseRegistration(body));
        return { ...deviceRecord(device), userId };
      }),
      DESCRIPTIONS.register,
    )
    .post(
      "/api/push/unregister",
      own(async (userId, body) => {
        await service.unregister(userId, parseToken(body));
        return OK;
      }),
      DESCRIPTIONS.unregister,
    )
    .post(
      "/api/push/topic/subscribe",
      own(async (userId, body) => ({ ...OK, ...(await service.subscribe(userId, parseTopic(body))) })),
      DESCRIPTIONS.subscribe,
    )
    .post(
      "/api/push/topic/unsubscribe",
      own(async (userId, body) => ({ ...OK, ...(await service.unsubscribe(userId, parseTopic(body))) })),
      DESCRIPTIONS.unsubscribe,
    );
}

/** Without a service key 403, with a wrong one 401: the other way round than elsewhere. Spec: Errors. */
const guarded = (
  http: Http,
  action: "send" | "read" | "write",
  handler: (context: RequestContext) => MaybePromise<unknown>,
  bodyMaxBytes: number = BODY_MAX_BYTES,
) =>
  http.route(
    (context) => {
      requireServiceKey(context.principal, ["push", "*", "*", action], 403);
      return handler(context);
    },
    { bodyMaxBytes },
  );

function sendRoutes(http: Http, service: PushService): AnyElysia {
  const sending = (handler: (body: JsonObject) => MaybePromise<unknown>, bodyMaxBytes?: number) =>
    guarded(http, "send", async ({ jsonObject }) => handler(await jsonObject()), bodyMaxBytes);

  return new Elysia()
    .post(
      "/api/push/send",
      sending(async (body) => {
        const { userId, message } = parseSend(body);
        return { ...OK, ...(await service.send(userId, message)) };
      }),
      DESCRIPTIONS.send,
    )
    .post(
      "/api/push/send-many",
      sending(async (body) => {
        const { userIds, message } = parseSendMany(body);
        return { ...OK, ...(await service.sendMany(userIds, message)) };
      }, SEND_MANY_BODY_MAX_BYTES),
      DESCRIPTIONS.sendMany,
    )
    .post(
      "/api/push/send-to-token",
      sending((body) => {
        const { token, platform, message } = parseSendToToken(body);
        return service.sendToToken(token, platform, message);
      }),
      DESCRIPTIONS.sendToToken,
    )
    .post(
      "/api/push/send-to-topic",
      sending((body) => {
        const { topic, message } = parseSendToTopic(body);
        service.sendToTopic(topic, message);
        return SUCCESS;
      }),
      DESCRIPTIONS.sendToTopic,
    )
    .post(
      "/api/push/broadcast",
      sending((body) => {
        service.sendToTopic(TOPIC_OF_ALL, parseBroadcast(body));
        return SUCCESS;
      }),
      DESCRIPTIONS.broadcast,
    );
}

function adminRoutes(http: Http, service: PushService): AnyElysia {
  return new Elysia()
    .patch(
      "/api/push/tokens",
      guarded(http, "write", async ({ jsonObject }) => {
        const { userId, deviceId, metadata } = parseMetadata(await jsonObject());
        await service.setMetadata(userId, deviceId, metadata);
        return OK;
      }),
      DESCRIPTIONS.setMetadata,
    )
    .get(
      "/api/push/tokens",
      guarded(http, "read", ({ query }) => {
        const userId = requiredText(query(), "userId");
        return { tokens: service.devices(userId).map(deviceRecord) };
      }),
      DESCRIPTIONS.tokens,
    )
    .get(
      "/api/push/logs",
      guarded(http, "read", (context) => {
        const query = context.query();
        const limit = Math.min(wholeNumber(query, "limit", { min: 1, fallback: LOGS_LIMIT_DEFAULT }), LOGS_LIMIT_MAX);
        return { logs: service.logs({ userId: query.get("userId"), limit }) };
      }),
      DESCRIPTIONS.logs,
    );
}

/** A service key is nobody's phone. Errors: 401. */
function requireUser(principal: Principal): string {
  if (principal.kind !== "user") throw unauthorized();
  return principal.auth.id;
}
