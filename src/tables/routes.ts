import { type AnyElysia, Elysia } from "elysia";
import type { TableAddress } from "../access/table-door.ts";
import type { Http } from "../http/http.ts";
import type { Query } from "../http/query.ts";
import { created, OK } from "../http/reply.ts";
import { badField } from "../kernel/errors.ts";
import { chain } from "../kernel/maybe-promise.ts";
import { describeTables } from "./operations.ts";
import type { TableService } from "./service.ts";

type Params = Readonly<Record<string, string>>;

/** Spec: Table endpoints. Static and dynamic namespaces differ in the path alone. */
export function createTableRoutes(http: Http, service: TableService): AnyElysia {
  return new Elysia()
    .use(mount(http, service, "static", "/api/db/:namespace/tables/:table"))
    .use(mount(http, service, "dynamic", "/api/db/:namespace/:instance/tables/:table"));
}

const addressOf = (params: Params): TableAddress => ({
  namespace: params["namespace"] ?? "",
  instanceId: params["instance"] ?? null,
  table: params["table"] ?? "",
});
const idOf = (params: Params): string => params["id"] ?? "";

function mount(http: Http, service: TableService, family: "static" | "dynamic", path: string): AnyElysia {
  const describe = describeTables(family);
  return new Elysia({ prefix: path })
    .get(
      "/",
      http.route((context) => {
        const { principal, params, query } = context;
        return service.list(principal, addressOf(params), query(), context);
      }),
      describe.list,
    )
    .get(
      "/count",
      http.route((context) => {
        const { principal, params, query } = context;
        return service.count(principal, addressOf(params), query(), context);
      }),
      describe.count,
    )
    .get(
      "/search",
      http.route((context) => {
        const { principal, params, query } = context;
        return service.search(principal, addressOf(params), query(), context);
      }),
      describe.search,
    )
    .get(
      "/:id",
      http.route(({ principal, params, query }) => service.get(principal, addressOf(params), idOf(params), query())),
      describe.get,
    )
    .post(
      "/",
      http.route(async ({ principal, params, query, jsonObject }) => {
        if (!isUpsert(query())) return created(await service.insert(principal, addressOf(params), jsonObject));
        const conflictTarget = query().peek("conflictTarget") ?? "id";
        const done = await service.upsert(principal, addressOf(params), jsonObject, { conflictTarget });
        return done.isNew ? created(done.record) : done.record;
      }),
      describe.insert,
    )
    .patch(
      "/:id",
      http.route(({ principal, params, jsonObject }) =>
        service.update(principal, addressOf(params), idOf(params), jsonObject),
      ),
      describe.update,
    )
    .delete(
      "/:id",
      http.route(({ principal, params, query }) =>
        chain(
          service.delete(principal, addressOf(params), idOf(params), () => query().refuseUnknown()),
          () => OK,
        ),
      ),
      describe.delete,
    )
    .post(
      "/batch",
      http.route((context) => {
        const { principal, params, query, jsonObject } = context;
        return service.batch(principal, addressOf(params), jsonObject, { upsert: isUpsert(query()) }, context);
      }),
      describe.batch,
    )
    .post(
      "/batch-by-filter",
      http.route((context) => {
        const { principal, params, jsonObject } = context;
        return service.batchByFilter(principal, addressOf(params), jsonObject, context);
      }),
      describe.batchByFilter,
    );
}

function isUpsert(query: Query): boolean {
  const text = query.peek("upsert");
  if (text === null || text === "false") return false;
  if (text === "true") return true;
  throw badField("upsert", "invalid_value", `upsert must be true or false, got "${text}"`);
}
