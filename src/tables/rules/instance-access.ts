import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import { authOf, type Principal } from "../../access/principal.ts";
import type { DatabaseFile } from "../../db/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { badRequest } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { within } from "../../kernel/time/deadline.ts";
import type { Namespace } from "../namespaces.ts";
import { denied } from "./access.ts";

type Dynamic = Namespace & { kind: "dynamic" };

/** Rights to instances: to open an existing one, and to create one by its first write. [TB60] */
export interface InstanceRights {
  /** null: the instance does not exist yet. Errors: 400 for an invalid id, 401 or 403 by `open`. */
  open(principal: Principal, namespace: Dynamic, instanceId: string | null): MaybePromise<DatabaseFile | null>;
  /**
   * The first write that changes something creates the file of an instance. Errors: as `open`; for a new instance by
   * `create`.
   */
  openForWriting(principal: Principal, namespace: Dynamic, instanceId: string | null): MaybePromise<DatabaseFile>;
}

/** An id cannot contain a path, and cannot be `tables`, which is a segment of the endpoints' paths. */
const INSTANCE_ID = /^(?!tables$)[A-Za-z0-9_-]{1,128}$/;

export const isInstanceId = (id: string): boolean => INSTANCE_ID.test(id);

export function createInstanceRights(deps: { clock: Clock; logger: Logger }): InstanceRights {
  const allows = (
    principal: Principal,
    namespace: Dynamic,
    action: "create" | "open",
    instanceId: string,
  ): MaybePromise<boolean> => {
    // The scopes of a key are checked per table.
    if (principal.kind === "server" || principal.kind === "serviceKey") return true;
    const rule = namespace.config.access?.[action];
    if (typeof rule !== "function") return rule === true;
    const failed = (cause: unknown): false => {
      deps.logger.error("an access rule threw", { namespace: namespace.name, action, cause });
      return false;
    };
    try {
      const answer = rule(authOf(principal), instanceId);
      if (!isPromise(answer)) return answer === true;
      return within(deps.clock, RULE_TIMEOUT_MS, answer).then((settled) => settled === true, failed);
    } catch (cause) {
      return failed(cause);
    }
  };
  const checkedId = (instanceId: string | null): string => {
    if (instanceId !== null && isInstanceId(instanceId)) return instanceId;
    throw badRequest("An instance id has 1 to 128 characters of A-Z a-z 0-9 _ -, and cannot be tables");
  };
  const demand = (principal: Principal, allowed: MaybePromise<boolean>): MaybePromise<void> =>
    chain(allowed, (isAllowed) => {
      if (!isAllowed) throw denied(principal);
    });

  return {
    open(principal, namespace, instanceId) {
      const id = checkedId(instanceId);
      return chain(demand(principal, allows(principal, namespace, "open", id)), () =>
        namespace.instances.get(id, { create: false }),
      );
    },
    openForWriting(principal, namespace, instanceId) {
      const id = checkedId(instanceId);
      const exists = namespace.instances.exists(id);
      return chain(demand(principal, allows(principal, namespace, exists ? "open" : "create", id)), () => {
        const file = namespace.instances.get(id, { create: true });
        if (file === null) throw new Error(`instance ${id} was not made`);
        return file;
      });
    },
  };
}
