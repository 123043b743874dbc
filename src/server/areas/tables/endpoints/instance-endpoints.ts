import { Type } from "typebox";
import { badField, badRequest, notFound } from "../../../../kernel/errors.ts";
import { nullable } from "../../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import type { InstancesAccessor } from "../../../config/app/index.ts";
import type { RecordChange } from "../../../db/index.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { INSTANCES_LISTED_DEFAULT, INSTANCES_LISTED_MAX } from "../limits.ts";
import { isInstanceId } from "../model/model.ts";
import type { Namespace } from "../records/namespaces.ts";

const Instance = Type.Object({
  id: Type.String(),
  bytes: Type.Integer({ description: "On the disk" }),
  createdAt: Type.String({ format: "date-time" }),
  writtenAt: Type.String({ format: "date-time", description: "The last write, or a little later" }),
});
const NAMESPACE = { namespace: "A declared namespace with instances" };
const of = { tag: "Administration", caller: "serviceKey", place: "namespace" } as const;

/** Endpoints that administer instances, for service keys with a scope for the whole namespace. */
export const instanceEndpoints = (
  instances: (namespace: string) => InstancesAccessor,
  audit: RecordChange,
): readonly Endpoint[] => [
  endpoint(
    "GET /api/admin/instances/:namespace",
    {
      ...of,
      summary: "List the instances of a namespace, by id",
      path: NAMESPACE,
      query: {
        prefix: Type.Optional(Type.String({ description: "Ids that begin so" })),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            description: `Instances: ${INSTANCES_LISTED_DEFAULT} by default, ${INSTANCES_LISTED_MAX} at most`,
          }),
        ),
        after: Type.Optional(Type.String({ description: "Ids after this one: the cursor of the page before" })),
      },
      answers: {
        200: Type.Object(
          { instances: Type.Array(Instance), cursor: nullable(Type.String()) },
          { description: "A page of instances; the cursor of the last page is null" },
        ),
      },
      errors: [400, 404],
    },
    ({ principal, params, query }) => {
      requireServiceKey(principal, ["db", params.namespace, "*", "read"]);
      return instances(params.namespace).list(query());
    },
  ),
  endpoint(
    "DELETE /api/admin/instances/:namespace/:id",
    {
      ...of,
      place: "instance",
      summary: "Delete an instance with all of its records",
      description: "Its subscriptions and queries end, and its file is removed when this is answered.",
      path: { ...NAMESPACE, id: "The instance id" },
      answers: { 200: Type.Object({ ok: Type.Literal(true) }, { description: "The instance is deleted" }) },
      errors: [400, 404, 503],
    },
    async ({ principal, params, query }) => {
      requireServiceKey(principal, ["db", params.namespace, "*", "delete"]);
      const own = instances(params.namespace);
      query();
      if (!(await own.delete(params.id))) throw notFound(`There is no instance "${params.id}"`);
      await audit({ action: "instance.delete", target: `db/${params.namespace}/${params.id}` });
      return OK;
    },
  ),
];

/** Returns the instances of a namespace, for administrators. Errors: 404 for a namespace without instances. [TB440] */
export function instancesOf(namespaces: ReadonlyMap<string, Namespace>, name: string): InstancesAccessor {
  const files = () => {
    const namespace = namespaces.get(name);
    if (namespace === undefined) throw notFound(`There is no namespace "${name}"`);
    if (namespace.kind !== "dynamic") throw notFound(`The namespace "${name}" has no instances`);
    return namespace.instances;
  };
  const checked = (id: string): string => {
    if (isInstanceId(id)) return id;
    throw badRequest("An instance id has 1 to 128 characters of A-Z a-z 0-9 _ -, and cannot be tables");
  };
  return {
    async list({ prefix = "", limit = INSTANCES_LISTED_DEFAULT, after = "" } = {}) {
      const own = files();
      if (!Number.isInteger(limit) || limit < 1) throw badField("limit", "too_small", "limit must be at least 1");
      const most = Math.min(limit, INSTANCES_LISTED_MAX);
      const { instances, hasMore } = await own.list({ prefix, limit: most, after });
      return { instances, cursor: hasMore ? (instances.at(-1)?.id ?? null) : null };
    },
    exists: async (id) => files().exists(checked(id)),
    delete: async (id) => files().delete(checked(id)),
  };
}
