import { Type } from "typebox";
import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import type { RecordChange } from "../../db/index.ts";
import { answerBody } from "../../http/bodies/answer-body.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { QueryBody, queryOf } from "./query.ts";
import type { SqlService } from "./service.ts";

const Answer = Type.Object(
  {
    results: Type.Array(Type.Record(Type.String(), Type.Unknown())),
    meta: Type.Object({
      changes: Type.Integer({ description: "Rows inserted, updated or deleted" }),
      rows_read: Type.Integer({ description: "Rows returned" }),
      duration: Type.Number({ description: "Milliseconds" }),
    }),
  },
  { description: "The rows, and what the statement did" },
);

export function sqlEndpoints(
  services: ReadonlyMap<string, SqlService>,
  { clock, audit }: { clock: Clock; audit: RecordChange },
): readonly Endpoint[] {
  const query = endpoint(
    "POST /api/d1/:database",
    {
      tag: "SQL",
      summary: "Run one SQL statement",
      description:
        "Integers beyond 2^53 come back as strings, blobs as base64 strings. A query runs at most 30 s. Statements that would " +
        "leave the database's file, and transaction statements, are refused.",
      caller: "serviceKey",
      place: "namespace",
      path: { database: "A database declared under `d1`" },
      body: QueryBody,
      answers: { 200: Answer },
      errors: [404, 408, 503],
    },
    async ({ params: { database }, principal, callerName, signal, largeBody, body }) => {
      const service = services.get(database);
      if (service === undefined) throw notFound(`There is no database "${database}"`);
      requireServiceKey(principal, ["d1", "database", database, "*"]);
      const caller = { callerName, signal };
      const large = await largeBody();
      const query = large === null ? queryOf(await body()) : null;
      const answer = query === null ? await service.queryBody(large ?? [], caller) : await service.query(query, caller);
      try {
        // Values of parameters are not in the log: they may be secrets.
        const sql = query?.sql ?? answer.note;
        // The audit log is in another file: the entry is not in the statement's transaction, but on disk before the answer. [AL3]
        if (answer.isWrite) await audit({ action: "sql.query", target: `d1/${database}`, after: { sql } });
      } catch (cause) {
        answer.release();
        throw cause;
      }
      return new Response(answerBody(answer, clock), { headers: { "content-type": "application/json" } });
    },
  );
  return [query];
}
