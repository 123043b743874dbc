import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import { requireAnyServiceKey, requireServiceKey } from "../access/service-key-right.ts";
import type { Http } from "../http/http.ts";
import { operation } from "../http/operation.ts";
import type { Clock } from "../kernel/clock.ts";
import { notFound } from "../kernel/errors.ts";
import { bodyOf } from "./large-answers.ts";
import { parseQueryBody } from "./query-request.ts";
import type { SqlService } from "./service.ts";

export function createSqlRoutes(http: Http, services: ReadonlyMap<string, SqlService>, clock: Clock): AnyElysia {
  return new Elysia().post(
    "/api/d1/:database",
    http.route(async ({ params, principal, callerName, signal, largeBody, jsonObject }) => {
      const database = params["database"] ?? "";
      requireAnyServiceKey(principal);
      const service = services.get(database);
      if (service === undefined) throw notFound(`There is no database "${database}"`);
      requireServiceKey(principal, ["d1", "database", database, "*"]);
      const caller = { callerName, signal };
      const large = await largeBody();
      const answer =
        large === null
          ? await service.query(parseQueryBody(await jsonObject()), caller)
          : await service.queryBody(large, caller);
      return new Response(bodyOf(answer, clock), { headers: { "content-type": "application/json" } });
    }),
    DESCRIPTION,
  );
}

const DESCRIPTION = operation({
  tag: "SQL",
  summary: "Run one SQL statement",
  description:
    "Integers beyond 2^53 come back as strings, blobs as base64 strings. A query runs at most 30 s. Statements that would " +
    "leave the database's file, and transaction statements, are refused.",
  security: "serviceKey",
  path: { database: "A database declared under `d1`" },
  body: {
    schema: Type.Object({
      query: Type.String({ description: "One statement" }),
      params: Type.Optional(
        Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]), {
          description: "Bound to the statement's `?` in order",
        }),
      ),
    }),
  },
  answers: {
    200: {
      description: "The rows, and what the statement did",
      schema: Type.Object({
        results: Type.Array(Type.Record(Type.String(), Type.Unknown())),
        meta: Type.Object({
          changes: Type.Integer({ description: "Rows inserted, updated or deleted" }),
          rows_read: Type.Integer({ description: "Rows returned" }),
          duration: Type.Number({ description: "Milliseconds" }),
        }),
      }),
    },
  },
  errors: [400, 401, 403, 404, 408, 413, 415, 503],
});
