import type { TSchema } from "typebox";
import { badField } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { BatchResult } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { RequestBasics } from "../../../http/exchange/request-context.ts";
import { JsonText, OK } from "../../../http/reply.ts";
import { isForm } from "../files/form.ts";
import type { FormRequest } from "../files/form-writes.ts";
import type { SigningRequest } from "../files/signing.ts";
import type { OnceRequest } from "../idempotency/once.ts";
import type { Answer } from "../idempotency/replay.ts";
import { AnyRecord, type ReadRequest, TransactionBody } from "../model/requests.ts";
import { ListText } from "../query/kept-lists.ts";
import type { TableService, Upserted } from "../service.ts";
import type { TransactionResult } from "../transactions/transactions.ts";
import { declareTableEndpoints, declareTransaction, type RecordSchemas } from "./declarations.ts";
import { recordForm } from "./record-schemas.ts";

const STATIC = "/api/db/:namespace/tables/:table";
const DYNAMIC = "/api/db/:namespace/:instance/tables/:table";
const PARAMETERS = { namespace: "A declared namespace", table: "A table of the namespace" };
export const DYNAMIC_NAMESPACE = { instance: "The instance id: 1 to 128 of A-Z a-z 0-9 _ -" };
export const DYNAMIC_PARAMETERS = {
  namespace: PARAMETERS.namespace,
  ...DYNAMIC_NAMESPACE,
  table: PARAMETERS.table,
};

const ANY_FORM = recordForm(AnyRecord, []);
const ANY_RECORDS = {
  answer: AnyRecord,
  insert: AnyRecord,
  update: AnyRecord,
  forms: { insert: ANY_FORM, update: ANY_FORM },
};

/** Returns the endpoints of static and dynamic namespaces: the same ones below different paths. */
export const tableEndpoints = (service: TableService): readonly Endpoint[] => [
  ...Object.values(endpointsBelow(STATIC, PARAMETERS, ANY_RECORDS, service)),
  // The path has one more parameter, which `addressOf` reads.
  ...Object.values(endpointsBelow(DYNAMIC as typeof STATIC, DYNAMIC_PARAMETERS, ANY_RECORDS, service)),
];

/** Returns the endpoints that read tables of static and of dynamic namespaces, by what follows the table in their path. */
export function readingEndpoints(service: TableService) {
  const below = (base: string, parameters: Readonly<Record<string, string>>): ReadonlyMap<string, Endpoint> => {
    // As in `tableEndpoints`.
    const { list, count, aggregate, search, get } = endpointsBelow(
      base as typeof STATIC,
      parameters,
      ANY_RECORDS,
      service,
    );
    const all: readonly Endpoint[] = [list, count, aggregate, search, get];
    return new Map(all.map((one) => [one.route.slice(`GET ${base}/`.length), one]));
  };
  return { static: below(STATIC, PARAMETERS), dynamic: below(DYNAMIC, DYNAMIC_PARAMETERS) };
}

const STATIC_TRANSACTION = "/api/db/:namespace/transaction";
const DYNAMIC_TRANSACTION = "/api/db/:namespace/:instance/transaction";

export const transactionEndpoints = (service: TableService): readonly Endpoint[] => {
  const { namespace } = PARAMETERS;
  const schemas = { body: TransactionBody, answer: AnyRecord };
  return [
    transactionAt(STATIC_TRANSACTION, { namespace }, schemas, service),
    // The path has one more parameter, which `addressOf` reads.
    transactionAt(
      DYNAMIC_TRANSACTION as typeof STATIC_TRANSACTION,
      { ...DYNAMIC_NAMESPACE, namespace },
      schemas,
      service,
    ),
  ];
};

/** Returns the endpoint of transactions at `path`. `schemas` are those of its body and of a record in its answer. */
export const transactionAt = (
  path: typeof STATIC_TRANSACTION,
  parameters: Readonly<Record<string, string>>,
  schemas: { body: typeof TransactionBody; answer: TSchema },
  service: TableService,
): Endpoint =>
  // `path` determines its parameters.
  endpoint(`POST ${path}`, declareTransaction(parameters as { namespace: string }, schemas), (context) => {
    const { namespace, instanceId } = addressOf(context.params);
    const address = { namespace, instanceId, table: null };
    return service.once.run(
      context,
      { address, shape: "results", toAnswer: resultsAnswer, tablesOf: ({ tables }) => tables },
      (keep) => service.transact(context.principal, address, context.body, { caller: context, keep }),
    );
  });

type Params = Readonly<Record<string, string>>;

const addressOf = (params: Params): TableAddress => ({
  namespace: params["namespace"] ?? "",
  instanceId: params["instance"] ?? null,
  table: params["table"] ?? "",
});

/** Returns a function that reads, and signs the urls of files where the request asks for it. */
const createSigned =
  (service: TableService) =>
  <Values, T extends object>(
    context: SigningRequest<Values> & { readonly params: Params },
    read: (asked: ReadRequest<Values>, address: TableAddress) => MaybePromise<T>,
  ): MaybePromise<T> => {
    const address = addressOf(context.params);
    return service.signing.read(
      context,
      () => service.modelOf(address),
      (asked) => read(asked, address),
    );
  };

/** Returns the endpoints of the files of records. */
function fileEndpoints(
  base: typeof STATIC,
  declared: ReturnType<typeof declareTableEndpoints<typeof PARAMETERS, typeof AnyRecord>>,
  service: TableService,
) {
  return {
    file: endpoint(`GET ${base}/:id/files/:field/:fileId`, declared.file, (context) =>
      service.file(context, addressOf(context.params), context.params),
    ),
    fileHead: endpoint(`HEAD ${base}/:id/files/:field/:fileId`, declared.fileHead, (context) =>
      service.file(context, addressOf(context.params), context.params),
    ),
    signFile: endpoint(`POST ${base}/:id/files/:field/:fileId/signed-url`, declared.signFile, (context) =>
      service.signFile(context, addressOf(context.params), context.params),
    ),
  };
}

/** Returns the endpoints of the tables at `base`. `records` are the schemas of bodies and answers. */
export function endpointsBelow(
  base: typeof STATIC,
  parameters: Readonly<Record<string, string>>,
  records: RecordSchemas<typeof AnyRecord>,
  service: TableService,
) {
  // `base` determines the parameters of the path.
  const declared = declareTableEndpoints(parameters as typeof PARAMETERS, records);
  const { once } = service;
  const signed = createSigned(service);
  return {
    list: endpoint(`GET ${base}`, declared.list, (context) =>
      chain(
        signed(context, (asked, address) => service.listed(asked, address)),
        (answer) => (answer instanceof ListText ? new JsonText(answer.text) : answer),
      ),
    ),
    count: endpoint(`GET ${base}/count`, declared.count, (context) =>
      service.count(context, addressOf(context.params)),
    ),
    aggregate: endpoint(`GET ${base}/aggregate`, declared.aggregate, (context) =>
      service.aggregate(context, addressOf(context.params)),
    ),
    search: endpoint(`GET ${base}/search`, declared.search, (context) =>
      signed(context, (asked, address) => service.search(asked, address)),
    ),
    get: endpoint(`GET ${base}/:id`, declared.get, (context) =>
      signed(context, (asked, address) => service.get(asked, address, context.params.id)),
    ),
    nearest: endpoint(`GET ${base}/:id/nearest`, declared.nearest, (context) =>
      signed(context, (asked, address) => service.nearest(asked, address, context.params.id)),
    ),
    insert: endpoint(`POST ${base}`, declared.insert, (context) => {
      const { principal, params, peek, body } = context;
      const address = addressOf(params);
      const request = formRequest(context, service);
      const asked = request?.asked ?? context;
      if (!isUpsert(peek)) {
        return once.run(asked, { address, shape: "record", toAnswer: insertedAnswer }, (keep) =>
          request === null
            ? service.insert(principal, address, body, keep)
            : service.insertForm(request, address, keep),
        );
      }
      const conflictTarget = peek("conflictTarget") ?? "id";
      return once.run(asked, { address, shape: "record", toAnswer: upsertedAnswer }, (keep) =>
        request === null
          ? service.upsert(principal, address, body, { conflictTarget, keep })
          : service.upsertForm(request, address, { conflictTarget, keep }),
      );
    }),
    update: endpoint(`PATCH ${base}/:id`, declared.update, (context) => {
      const { principal, params, peek, body } = context;
      const address = addressOf(params);
      const request = formRequest(context, service);
      return once.run(request?.asked ?? context, { address, shape: "record", toAnswer: recordAnswer }, (keep) => {
        const options = { condition: peek("if"), keep };
        return request === null
          ? service.update(principal, address, params.id, body, options)
          : service.updateForm(request, address, params.id, options);
      });
    }),
    ...fileEndpoints(base, declared, service),
    delete: endpoint(`DELETE ${base}/:id`, declared.delete, ({ principal, params, peek, query }) => {
      const options = { condition: peek("if"), checkForm: query };
      return chain(service.delete(principal, addressOf(params), params.id, options), () => OK);
    }),
    batch: endpoint(`POST ${base}/batch`, declared.batch, (context) => {
      const { principal, params, peek, body } = context;
      const [address, upsert] = [addressOf(params), isUpsert(peek)];
      return once.run(context, { address, shape: "batch", toAnswer: batchAnswer }, (keep) =>
        service.batch(principal, address, body, { upsert, caller: context, keep }),
      );
    }),
    batchByFilter: endpoint(`POST ${base}/batch-by-filter`, declared.batchByFilter, (context) => {
      const { principal, params, body } = context;
      const address = addressOf(params);
      return once.run(context, { address, shape: "counts", toAnswer: recordAnswer }, (keep) =>
        service.batchByFilter(principal, address, body, { caller: context, keep }),
      );
    }),
  } satisfies Record<string, Endpoint>;
}

type WriteContext = RequestBasics &
  OnceRequest & { readonly principal: Principal; readonly params: Params; query(): unknown };

/** Returns the request of a form, and what an idempotency key compares of it; null for a JSON body. */
function formRequest(context: WriteContext, service: TableService): (FormRequest & { asked: OnceRequest }) | null {
  const { principal, request, query } = context;
  // To other tables a form is a body of a wrong type, as everywhere.
  if (!isForm(request) || service.modelOf(addressOf(context.params)).files.length === 0) return null;
  context.holdOpen();
  const form = service.formOf(context);
  return { principal, form, checkForm: query, asked: { principal, request, digestBody: (of) => form.digestBody(of) } };
}

const insertedAnswer = (record: TableRecord): Answer => ({ status: 201, body: record });
const upsertedAnswer = ({ record, isNew }: Upserted): Answer => ({ status: isNew ? 201 : 200, body: record });
const recordAnswer = (body: JsonObject): Answer => ({ status: 200, body });
const batchAnswer = ({ inserted, updated, deleted }: BatchResult): Answer => ({
  status: 200,
  body: { inserted, updated, deleted },
});
const resultsAnswer = ({ results }: TransactionResult): Answer => ({ status: 200, body: { results } });

/** Whether the request asks for an upsert. Read before the rights, because it decides which rights are needed. Errors: 400. */
function isUpsert(peek: (name: string) => string | null): boolean {
  const text = peek("upsert");
  if (text === null || text === "false") return false;
  if (text === "true") return true;
  throw badField("upsert", "invalid_value", `upsert must be true or false, got "${text}"`);
}
