import { Type } from "typebox";
import type { Clock } from "../../../kernel/clock.ts";
import { notFound, unreachable } from "../../../kernel/errors.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { actorOf } from "../../access/principal.ts";
import { requireOneRight, requireServiceKey } from "../../access/service-key-right.ts";
import type { Actor, AnswerText, ReadCaller } from "../../db/index.ts";
import { answerBody } from "../../http/bodies/answer-body.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { Action, listQuery, searchQuery, storedVectors } from "./actions.ts";
import type { VectorService } from "./service.ts";

const Values = Type.Array(Type.Number());
const Metadata = Type.Record(Type.String(), Type.Unknown());
const Match = Type.Object({
  id: Type.String(),
  score: Type.Number(),
  metadata: Metadata,
  values: Type.Optional(Values),
});
const Answer = Type.Union(
  [
    Type.Object({ ok: Type.Literal(true), count: Type.Integer() }),
    Type.Object({ matches: Type.Array(Match), count: Type.Integer() }),
    Type.Object({ vectors: Type.Array(Type.Object({ id: Type.String(), values: Values, metadata: Metadata })) }),
    Type.Object({
      vectors: Type.Array(Type.Object({ id: Type.String(), metadata: Metadata })),
      cursor: nullable(Type.String()),
    }),
    Type.Object({ vectorCount: Type.Integer(), dimensions: Type.Integer(), metric: Type.String() }),
  ],
  { description: "What the action returns" },
);

export function vectorEndpoints(services: ReadonlyMap<string, VectorService>, clock: Clock): readonly Endpoint[] {
  const actions = endpoint(
    "POST /api/vectorize/:index",
    {
      tag: "Vectors",
      summary: "Upsert, search, delete, read, list or describe vectors",
      description:
        "`score` is the similarity for `cosine` and the product for `dot-product` (higher is nearer), the distance for " +
        "`euclidean` (lower is nearer). Matches come nearest first.",
      caller: "serviceKey",
      place: "namespace",
      path: { index: "An index declared under `vectorize`" },
      body: Action,
      answers: { 200: Answer },
      errors: [404, 408, 503],
    },
    async ({ params, principal, callerName, signal, body }) => {
      const { index } = params;
      const service = services.get(index);
      if (service === undefined) throw notFound(`There is no vector index "${index}"`);
      // A key without any right here learns nothing about the request's form.
      requireOneRight(principal, [right(index, "read"), right(index, "write")]);
      const action = await body();
      requireServiceKey(principal, right(index, isWrite(action) ? "write" : "read"));
      return perform({ service, action, by: actorOf(principal), caller: { callerName, signal }, clock });
    },
  );
  return [actions];
}

const right = (index: string, action: "read" | "write") => ["vectorize", "index", index, action] as const;
const isWrite = ({ action }: Action): boolean => action === "upsert" || action === "delete";

async function perform(asked: {
  service: VectorService;
  action: Action;
  by: Actor;
  caller: ReadCaller;
  clock: Clock;
}): Promise<unknown> {
  const { service, action, by, caller, clock } = asked;
  const json = (answer: AnswerText): Response =>
    new Response(answerBody(answer, clock), { headers: { "content-type": "application/json" } });
  switch (action.action) {
    case "upsert":
      return { ok: true, count: await service.upsert(await storedVectors(service.index, action), by) };
    case "search":
      return json(await service.search(searchQuery(service.index, action), caller));
    case "delete":
      return { ok: true, count: await service.delete(action.ids, by) };
    case "getByIds":
      return json(await service.getByIds(action.ids, caller));
    case "list":
      return json(await service.list(listQuery(action), caller));
    case "describe":
      return service.describe();
    default:
      return unreachable(action);
  }
}
