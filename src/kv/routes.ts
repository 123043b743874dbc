import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import { requireAnyServiceKey, requireOneRight, requireServiceKey } from "../access/service-key-right.ts";
import type { Http } from "../http/http.ts";
import { operation, optional } from "../http/operation.ts";
import { JsonText, OK } from "../http/reply.ts";
import { notFound, unreachable } from "../kernel/errors.ts";
import { parseAction } from "./actions.ts";
import { BODY_MAX_BYTES, KEY_LENGTH_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, TTL_MAX_SECONDS } from "./limits.ts";
import type { KeyValueService } from "./service.ts";
import type { KeyValueAction } from "./types.ts";

export function createKeyValueRoutes(http: Http, services: ReadonlyMap<string, KeyValueService>): AnyElysia {
  /** Credentials, then the namespace, then whether the key may do anything here at all. */
  const enter = (principal: Principal, namespace: string): KeyValueService => {
    requireAnyServiceKey(principal);
    const service = services.get(namespace);
    if (service === undefined) throw notFound(`There is no key-value namespace "${namespace}"`);
    requireOneRight(principal, [right(namespace, "read"), right(namespace, "write")]);
    return service;
  };
  return new Elysia().post(
    "/api/kv/:namespace",
    http.route(
      async ({ params, principal, jsonObject }) => {
        const namespace = params["namespace"] ?? "";
        const service = enter(principal, namespace);
        const action = parseAction(await jsonObject());
        requireServiceKey(principal, right(namespace, isRead(action) ? "read" : "write"));
        return perform(service, action);
      },
      { bodyMaxBytes: BODY_MAX_BYTES },
    ),
    DESCRIPTION,
  );
}

const right = (namespace: string, action: "read" | "write") => ["kv", "namespace", namespace, action] as const;
const isRead = ({ action }: KeyValueAction): boolean => action === "get" || action === "list";

async function perform(service: KeyValueService, action: KeyValueAction): Promise<unknown> {
  switch (action.action) {
    case "get":
      return new JsonText(`{"value":${service.get(action.key)}}`);
    case "set":
      await service.set(action.key, action.value, action.ttlSeconds);
      return OK;
    case "delete":
      await service.delete(action.key);
      return OK;
    case "list":
      return service.list(action.query);
    default:
      return unreachable(action);
  }
}

const Key = Type.String({ minLength: 1, maxLength: KEY_LENGTH_MAX });

const DESCRIPTION = operation({
  tag: "Key-value",
  summary: "Get, set, delete or list keys",
  description: "`set` without `ttl` ends an earlier one. A missing or expired key is `{ value: null }`.",
  security: "serviceKey",
  path: { namespace: "A namespace declared under `kv`" },
  body: {
    schema: Type.Union([
      Type.Object({ action: Type.Literal("get"), key: Key }),
      Type.Object({
        action: Type.Literal("set"),
        key: Key,
        value: Type.Unknown({ description: "Any JSON value up to 1 MiB" }),
        ttl: optional(Type.Integer({ minimum: 1, maximum: TTL_MAX_SECONDS, description: "Seconds" })),
      }),
      Type.Object({ action: Type.Literal("delete"), key: Key }),
      Type.Object({
        action: Type.Literal("list"),
        prefix: optional(Type.String({ maxLength: KEY_LENGTH_MAX })),
        limit: optional(
          Type.Integer({ minimum: 1, default: LIST_LIMIT_DEFAULT, description: `More counts as ${LIST_LIMIT_MAX}` }),
        ),
        cursor: optional(Type.String()),
      }),
    ]),
  },
  answers: {
    200: {
      description: "What the action returns",
      schema: Type.Union([
        Type.Object({ value: Type.Unknown() }),
        Type.Object({ ok: Type.Literal(true) }),
        Type.Object({ keys: Type.Array(Type.String()), cursor: Type.Union([Type.String(), Type.Null()]) }),
      ]),
    },
  },
  errors: [400, 401, 403, 404, 413, 415],
});
