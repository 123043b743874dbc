import { type AnyElysia, Elysia } from "elysia";
import { type TSchema, Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import { requireAnyServiceKey, requireOneRight, requireServiceKey } from "../access/service-key-right.ts";
import type { ReadCaller } from "../db/index.ts";
import type { Http } from "../http/http.ts";
import { operation } from "../http/operation.ts";
import { JsonText } from "../http/reply.ts";
import { notFound, unreachable } from "../kernel/errors.ts";
import { parseAction } from "./actions.ts";
import { TOP_K_DEFAULT, TOP_K_MAX, VECTORS_MAX } from "./limits.ts";
import type { VectorService } from "./service.ts";
import type { VectorAction } from "./types.ts";

export function createVectorRoutes(http: Http, services: ReadonlyMap<string, VectorService>): AnyElysia {
  /** Credentials, then the index, then whether the key may do anything here at all. */
  const enter = (principal: Principal, index: string): VectorService => {
    requireAnyServiceKey(principal);
    const service = services.get(index);
    if (service === undefined) throw notFound(`There is no vector index "${index}"`);
    requireOneRight(principal, [right(index, "read"), right(index, "write")]);
    return service;
  };
  return new Elysia().post(
    "/api/vectorize/:index",
    http.route(async ({ params, principal, callerName, signal, jsonObject }) => {
      const name = params["index"] ?? "";
      const service = enter(principal, name);
      const action = parseAction(service.index, await jsonObject());
      requireServiceKey(principal, right(name, isWrite(action) ? "write" : "read"));
      return perform(service, action, { callerName, signal });
    }),
    DESCRIPTION,
  );
}

const right = (index: string, action: "read" | "write") => ["vectorize", "index", index, action] as const;
const isWrite = ({ action }: VectorAction): boolean => action === "upsert" || action === "delete";

async function perform(service: VectorService, action: VectorAction, caller: ReadCaller): Promise<unknown> {
  switch (action.action) {
    case "upsert":
      return { ok: true, count: await service.upsert(action.vectors) };
    case "search":
      return new JsonText(await service.search(action.query, caller));
    case "delete":
      return { ok: true, count: await service.delete(action.ids) };
    case "getByIds":
      return new JsonText(await service.getByIds(action.ids, caller));
    case "describe":
      return service.describe();
    default:
      return unreachable(action);
  }
}

const Values = Type.Array(Type.Number(), { description: "As many numbers as the index has dimensions" });
const Metadata = Type.Record(Type.String(), Type.Unknown());
const Ids = Type.Array(Type.String(), { maxItems: VECTORS_MAX });
const Vector = Type.Object({ id: Type.String(), values: Values, metadata: Type.Optional(Metadata) });

const REQUEST: TSchema = Type.Union([
  Type.Object({ action: Type.Literal("upsert"), vectors: Type.Array(Vector, { maxItems: VECTORS_MAX }) }),
  Type.Object({
    action: Type.Literal("search"),
    vector: Values,
    topK: Type.Optional(Type.Integer({ minimum: 1, maximum: TOP_K_MAX, default: TOP_K_DEFAULT })),
    filter: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Metadata that must be equal, or `{ $eq, $ne, $in, $gt, $gte, $lt, $lte }`",
      }),
    ),
    returnValues: Type.Optional(Type.Boolean({ default: false })),
  }),
  Type.Object({ action: Type.Literal("delete"), ids: Ids }),
  Type.Object({ action: Type.Literal("getByIds"), ids: Ids }),
  Type.Object({ action: Type.Literal("describe") }),
]);

const Match = Type.Object({
  id: Type.String(),
  score: Type.Number(),
  metadata: Metadata,
  values: Type.Optional(Values),
});

const ANSWER: TSchema = Type.Union([
  Type.Object({ ok: Type.Literal(true), count: Type.Integer() }),
  Type.Object({ matches: Type.Array(Match), count: Type.Integer() }),
  Type.Object({ vectors: Type.Array(Vector) }),
  Type.Object({ vectorCount: Type.Integer(), dimensions: Type.Integer(), metric: Type.String() }),
]);

const DESCRIPTION = operation({
  tag: "Vectors",
  summary: "Upsert, search, delete, read or describe vectors",
  description:
    "`score` is the similarity for `cosine` and the product for `dot-product` (higher is nearer), the distance for " +
    "`euclidean` (lower is nearer). Matches come nearest first.",
  security: "serviceKey",
  path: { index: "An index declared under `vectorize`" },
  body: { schema: REQUEST },
  answers: { 200: { description: "What the action returns", schema: ANSWER } },
  errors: [400, 401, 403, 404, 413, 415, 503],
});
