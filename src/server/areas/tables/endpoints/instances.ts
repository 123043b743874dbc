import { badField, badRequest, notFound } from "../../../../kernel/errors.ts";
import type { InstancesAccessor } from "../../../config/app/index.ts";
import { INSTANCES_LISTED_DEFAULT, INSTANCES_LISTED_MAX } from "../limits.ts";
import { isInstanceId } from "../model/instance-id.ts";
import type { Namespace } from "../records/namespaces.ts";

/** The instances of a namespace, for administrators. Errors: 404 for a namespace without instances. [TB440] */
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
