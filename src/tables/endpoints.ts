import type { TSchema } from "typebox";
import type { TableAddress } from "../access/table-door.ts";
import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { created, OK } from "../http/reply.ts";
import { badField } from "../kernel/errors.ts";
import { chain } from "../kernel/maybe-promise.ts";
import { declareTableEndpoints, declareTransaction, type RecordSchemas } from "./api/declarations.ts";
import { AnyRecord, TransactionBody } from "./api/requests.ts";
import type { TableService } from "./service.ts";

const STATIC = "/api/db/:namespace/tables/:table";
const DYNAMIC = "/api/db/:namespace/:instance/tables/:table";
const PARAMETERS = { namespace: "A declared namespace", table: "A table of the namespace" };
export const DYNAMIC_NAMESPACE = { instance: "The instance id: 1 to 128 of A-Z a-z 0-9 _ -" };
export const DYNAMIC_PARAMETERS = {
  namespace: PARAMETERS.namespace,
  ...DYNAMIC_NAMESPACE,
  table: PARAMETERS.table,
};

const ANY_RECORDS = { answer: AnyRecord, insert: AnyRecord, update: AnyRecord };

/** Static and dynamic namespaces have the same endpoints below different paths. */
export const tableEndpoints = (service: TableService): readonly Endpoint[] => [
  ...Object.values(endpointsBelow(STATIC, PARAMETERS, ANY_RECORDS, service)),
  // This path has one parameter more, which `addressOf` reads.
  ...Object.values(endpointsBelow(DYNAMIC as typeof STATIC, DYNAMIC_PARAMETERS, ANY_RECORDS, service)),
];

const STATIC_TRANSACTION = "/api/db/:namespace/transaction";
const DYNAMIC_TRANSACTION = "/api/db/:namespace/:instance/transaction";

export const transactionEndpoints = (service: TableService): readonly Endpoint[] => {
  const { namespace } = PARAMETERS;
  const schemas = { body: TransactionBody, answer: AnyRecord };
  return [
    transactionAt(STATIC_TRANSACTION, { namespace }, schemas, service),
    // This path has one parameter more, which `addressOf` reads.
    transactionAt(
      DYNAMIC_TRANSACTION as typeof STATIC_TRANSACTION,
      { ...DYNAMIC_NAMESPACE, namespace },
      schemas,
      service,
    ),
  ];
};

/** The transactions at `path`. `schemas` are those of its body and of a record in its answer. */
export const transactionAt = (
  path: typeof STATIC_TRANSACTION,
  parameters: Readonly<Record<string, string>>,
  schemas: { body: typeof TransactionBody; answer: TSchema },
  service: TableService,
): Endpoint =>
  // `path` determines its parameters.
  endpoint(`POST ${path}`, declareTransaction(parameters as { namespace: string }, schemas), (context) => {
    const { namespace, instanceId } = addressOf(context.params);
    return service.transact(context.principal, { namespace, instanceId }, context.body, context);
  });

type Params = Readonly<Record<string, string>>;

const addressOf = (params: Params): TableAddress => ({
  namespace: params["namespace"] ?? "",
  instanceId: params["instance"] ?? null,
  table: params["table"] ?? "",
});

/** The endpoints of the tables at `base`. `records` are the schemas of bodies and answers. */
export function endpointsBelow(
  base: typeof STATIC,
  parameters: Readonly<Record<string, string>>,
  records: RecordSchemas<typeof AnyRecord>,
  service: TableService,
) {
  // `base` determines the parameters of the path.
  const declared = declareTableEndpoints(parameters as typeof PARAMETERS, records);
  return {
    list: endpoint(`GET ${base}`, declared.list, (context) =>
      service.list(context.principal, addressOf(context.params), context, context),
    ),
    count: endpoint(`GET ${base}/count`, declared.count, (context) =>
      service.count(context.principal, addressOf(context.params), context, context),
    ),
    aggregate: endpoint(`GET ${base}/aggregate`, declared.aggregate, (context) =>
      service.aggregate(context.principal, addressOf(context.params), context, context),
    ),
    search: endpoint(`GET ${base}/search`, declared.search, (context) =>
      service.search(context.principal, addressOf(context.params), context, context),
    ),
    get: endpoint(`GET ${base}/:id`, declared.get, (context) =>
      service.get(context.principal, addressOf(context.params), context.params.id, context, context),
    ),
    insert: endpoint(`POST ${base}`, declared.insert, async ({ principal, params, peek, body }) => {
      if (!isUpsert(peek)) return created(await service.insert(principal, addressOf(params), body));
      const conflictTarget = peek("conflictTarget") ?? "id";
      const done = await service.upsert(principal, addressOf(params), body, { conflictTarget });
      return done.isNew ? created(done.record) : done.record;
    }),
    update: endpoint(`PATCH ${base}/:id`, declared.update, ({ principal, params, peek, body }) =>
      service.update(principal, addressOf(params), params.id, body, { condition: peek("if") }),
    ),
    delete: endpoint(`DELETE ${base}/:id`, declared.delete, ({ principal, params, peek, query }) => {
      const options = { condition: peek("if"), checkForm: query };
      return chain(service.delete(principal, addressOf(params), params.id, options), () => OK);
    }),
    batch: endpoint(`POST ${base}/batch`, declared.batch, (context) => {
      const { principal, params, peek, body } = context;
      return service.batch(principal, addressOf(params), body, { upsert: isUpsert(peek) }, context);
    }),
    batchByFilter: endpoint(`POST ${base}/batch-by-filter`, declared.batchByFilter, (context) => {
      const { principal, params, body } = context;
      return service.batchByFilter(principal, addressOf(params), body, context);
    }),
  } satisfies Record<string, Endpoint>;
}

/** Read before the rights, because it decides which rights are needed. Errors: 400. */
function isUpsert(peek: (name: string) => string | null): boolean {
  const text = peek("upsert");
  if (text === null || text === "false") return false;
  if (text === "true") return true;
  throw badField("upsert", "invalid_value", `upsert must be true or false, got "${text}"`);
}
