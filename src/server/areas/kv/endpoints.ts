import { Type } from "typebox";
import { notFound, unreachable } from "../../../kernel/errors.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { actorOf } from "../../access/principal.ts";
import { requireOneRight, requireServiceKey } from "../../access/service-key-right.ts";
import type { Actor, ReadCaller } from "../../db/index.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { JsonText, OK } from "../../http/reply.ts";
import { Action } from "./actions.ts";
import { BODY_MAX_BYTES } from "./limits.ts";
import type { KeyValueService } from "./service.ts";

const Value = Type.Object({ value: Type.Unknown() });
const Ok = Type.Object({ ok: Type.Literal(true) });
const Keys = Type.Object({ keys: Type.Array(Type.String()), cursor: nullable(Type.String()) });

export function keyValueEndpoints(services: ReadonlyMap<string, KeyValueService>): readonly Endpoint[] {
  const actions = endpoint(
    "POST /api/kv/:namespace",
    {
      tag: "Key-value",
      summary: "Get, set, delete or list keys",
      description: "`set` without `ttl` removes an earlier one. A missing or expired key is `{ value: null }`.",
      caller: "serviceKey",
      place: "namespace",
      path: { namespace: "A namespace declared under `kv`" },
      body: Action,
      bodyMaxBytes: BODY_MAX_BYTES,
      answers: { 200: Type.Union([Value, Ok, Keys], { description: "What the action returns" }) },
      errors: [404, 408, 503],
    },
    async ({ params, principal, callerName, signal, body }) => {
      const { namespace } = params;
      const service = services.get(namespace);
      if (service === undefined) throw notFound(`There is no key-value namespace "${namespace}"`);
      // A key without any right here learns nothing about the request's form.
      requireOneRight(principal, [right(namespace, "read"), right(namespace, "write")]);
      const action = await body();
      requireServiceKey(principal, right(namespace, isRead(action) ? "read" : "write"));
      return perform({ service, action, by: actorOf(principal), caller: { callerName, signal } });
    },
  );
  return [actions];
}

const right = (namespace: string, action: "read" | "write") => ["kv", "namespace", namespace, action] as const;
const isRead = ({ action }: Action): boolean => action === "get" || action === "list";

async function perform(asked: {
  service: KeyValueService;
  action: Action;
  by: Actor;
  caller: ReadCaller;
}): Promise<unknown> {
  const { service, action, by, caller } = asked;
  switch (action.action) {
    case "get":
      return new JsonText(`{"value":${service.get(action.key)}}`);
    case "set":
      await service.set(action.key, action.value, { ttlSeconds: action.ttl ?? null, by });
      return OK;
    case "delete":
      await service.delete(action.key, by);
      return OK;
    case "list":
      return service.list(action, caller);
    default:
      return unreachable(action);
  }
}
