import { type TSchema, Type } from "typebox";
import { documentedPath, operationOf } from "../../../http/openapi/operation.ts";
import type { TableModel } from "../model/model.ts";
import { tableOperations, transactionBody } from "../model/requests.ts";
import type { Namespace } from "../records/namespaces.ts";
import type { TableService } from "../service.ts";
import { DYNAMIC_NAMESPACE, DYNAMIC_PARAMETERS, endpointsBelow, transactionAt } from "./endpoints.ts";
import {
  answeredRecord,
  insertedRecord,
  OPERATOR_SCHEMAS,
  recordForm,
  schemaRef,
  updatedRecord,
} from "./record-schemas.ts";

/** Declared tables in OpenAPI's form: paths and components of the document. */
export interface DescribedTables {
  paths: Record<string, Record<string, object>>;
  schemas: Record<string, object>;
}

/** Describes each declared table with its own endpoints and record types, so that generated clients are typed. [TB160] */
export function describeTables(namespaces: ReadonlyMap<string, Namespace>, service: TableService): DescribedTables {
  const described: DescribedTables = { paths: {}, schemas: {} };
  for (const namespace of namespaces.values()) {
    const { tables, kind } = namespace;
    for (const { model } of tables.values()) describeTable(described, model, endpointsOf(model, kind, service));
    if ([...tables.values()].some(({ model }) => model.view === null))
      describeTransaction(described, namespace, service);
  }
  if (Object.keys(described.schemas).length > 0) Object.assign(described.schemas, OPERATOR_SCHEMAS);
  return described;
}

/** Operations of a view. */
const OF_VIEWS: readonly string[] = ["list", "count", "aggregate", "get"];

const nameOf = ({ namespace, name }: TableModel): string => `${namespace}.${name}`;

type TableEndpoints = ReturnType<typeof endpointsBelow>;

/** Returns the endpoints of one table, to be described and not mounted. */
function endpointsOf(model: TableModel, kind: Namespace["kind"], service: TableService): TableEndpoints {
  const instance = kind === "dynamic" ? "/:instance" : "";
  // The path has the names of this table and its namespace in place of parameters.
  const base = `/api/db/${model.namespace}${instance}/tables/${model.name}` as Parameters<typeof endpointsBelow>[0];
  const path = kind === "dynamic" ? { instance: DYNAMIC_PARAMETERS.instance } : {};
  const [answer, insert, update] = ["", ".insert", ".update"].map((part) => schemaRef(nameOf(model) + part));
  const formOf = (record: unknown) => recordForm(record as TSchema, model.files);
  const forms = model.files.length === 0 ? null : { insert: formOf(insert), update: formOf(update) };
  // References are schemas like any other.
  const records = { answer, insert, update, forms } as unknown as Parameters<typeof endpointsBelow>[2];
  return endpointsBelow(base, path, records, service);
}

/** Describes the transactions of one namespace, whose operations are those of its tables. */
function describeTransaction(
  { paths }: DescribedTables,
  { name, kind, tables }: Namespace,
  service: TableService,
): void {
  const path = `/api/db/${name}${kind === "dynamic" ? "/:instance" : ""}/transaction`;
  const names = [...tables.values()].map(({ model }) => model).filter(({ view }) => view === null);
  const operations = names.flatMap((model) =>
    tableOperations(
      Type.Literal(model.name),
      schemaRef(`${nameOf(model)}.insert`),
      schemaRef(`${nameOf(model)}.update`),
    ),
  );
  const answers = [...names.map((model) => schemaRef(nameOf(model))), Type.Object({ id: Type.String() })];
  const schemas = { body: transactionBody(Type.Union(operations)), answer: Type.Union(answers) };
  const described = transactionAt(
    path as Parameters<typeof transactionAt>[0], // The path has values in place of parameters.
    kind === "dynamic" ? DYNAMIC_NAMESPACE : {},
    schemas as unknown as Parameters<typeof transactionAt>[2], // References are schemas like any other.
    service,
  );
  paths[documentedPath(described)] = { post: { ...operationOf(described), operationId: `${name}.transaction` } };
}

function describeTable({ paths, schemas }: DescribedTables, model: TableModel, endpoints: TableEndpoints): void {
  const name = nameOf(model);
  schemas[name] = answeredRecord(model);
  if (model.view === null) {
    schemas[`${name}.insert`] = insertedRecord(model);
    schemas[`${name}.update`] = updatedRecord(model);
  }
  for (const [operationName, endpoint] of Object.entries(endpoints)) {
    const isOfFiles = ["file", "fileHead", "signFile"].includes(operationName);
    if (isOfFiles && model.files.length === 0) continue;
    if (model.view !== null && !OF_VIEWS.includes(operationName)) continue;
    // Records of users come and go with their accounts. [TB782]
    if (model.isUsers && ["insert", "delete"].includes(operationName)) continue;
    const operation = { ...operationOf(endpoint), operationId: `${name}.${operationName}` };
    const path = documentedPath(endpoint);
    const method = endpoint.route.slice(0, endpoint.route.indexOf(" ")).toLowerCase();
    paths[path] = { ...paths[path], [method]: withoutFields(operation) };
  }
}

/** Removes `fields`, which makes records partial: only the paths of every table have it, whose records have no type. */
function withoutFields(operation: Record<string, unknown>): Record<string, unknown> {
  const parameters = operation["parameters"] as readonly { name: string }[]; // As built by `operationOf`.
  return { ...operation, parameters: parameters.filter(({ name }) => name !== "fields") };
}
