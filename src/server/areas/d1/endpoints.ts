import { type Static, Type } from "typebox";
import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import { requireActing } from "../../access/acting.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import type { AnswerText, RecordChange } from "../../db/index.ts";
import { answerBody } from "../../http/bodies/answer-body.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { type Query, QueryBody, queryOf } from "./query.ts";
import type { QueryCaller, SqlService } from "./service.ts";

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

/** Converts the rows, sent as the client reads them. */
const sent = (answer: AnswerText, clock: Clock): Response =>
  new Response(answerBody(answer, clock), { headers: { "content-type": "application/json" } });

export const sqlEndpoints = (
  services: ReadonlyMap<string, SqlService>,
  { clock, audit }: { clock: Clock; audit: RecordChange },
): readonly Endpoint[] => [
  endpoint(
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
      return sent(answer, clock);
    },
  ),
];

/** Runs one query of the tables in a namespace, or in an instance of it. Errors: 404 where there is none. */
export type QueryTables = (
  address: { namespace: string; instanceId: string | null },
  query: Query,
  caller: QueryCaller,
) => Promise<AnswerText>;

/** Endpoints that query the tables of namespaces, for the root key alone: no rule is asked. [DQ20] */
export function tableQueryEndpoints(
  queryTables: QueryTables,
  { clock, audit }: { clock: Clock; audit: RecordChange },
): readonly Endpoint[] {
  const declaration = {
    tag: "Administration",
    description:
      "For the root key. Reads the declared tables with the limits, the body and the answer of `POST /api/d1/:database`; everything " +
      "else is refused. Each query is in the audit log.",
    caller: "serviceKey",
    refusesScopedKeys: true,
    body: QueryBody,
    answers: { 200: Answer },
    errors: [404, 408, 413, 503],
  } as const;
  const namespace = "A declared namespace";
  const answered = async (
    address: Parameters<QueryTables>[0],
    { largeBody, body, callerName, signal }: Asked,
  ): Promise<Response> => {
    const large = await largeBody();
    const query: Query =
      large === null ? { kind: "parsed", query: queryOf(await body()) } : { kind: "body", blocks: large };
    const answer = await queryTables(address, query, { callerName, signal });
    try {
      const target = ["db", address.namespace, ...(address.instanceId === null ? [] : [address.instanceId])].join("/");
      // Values of parameters are not in the log: they may be secrets.
      await audit({ action: "sql.query", target, after: { sql: answer.note } });
    } catch (cause) {
      answer.release();
      throw cause;
    }
    return sent(answer, clock);
  };
  return [
    endpoint(
      "POST /api/admin/sql/:namespace",
      { ...declaration, summary: "Query the tables of a namespace by SQL", place: "namespace", path: { namespace } },
      (exchange) => {
        requireActing(exchange.principal);
        return answered({ namespace: exchange.params.namespace, instanceId: null }, exchange);
      },
    ),
    endpoint(
      "POST /api/admin/sql/:namespace/:instance",
      {
        ...declaration,
        summary: "Query the tables of an instance by SQL",
        place: "instance",
        path: { namespace, instance: "An instance of it" },
      },
      (exchange) => {
        requireActing(exchange.principal);
        const { namespace: name, instance } = exchange.params;
        return answered({ namespace: name, instanceId: instance }, exchange);
      },
    ),
  ];
}

/** The parts of a request that a query of tables uses. */
interface Asked {
  largeBody(): Promise<readonly Uint8Array<ArrayBuffer>[] | null>;
  body(): Promise<Static<typeof QueryBody>>;
  callerName: string;
  signal: AbortSignal | undefined;
}
