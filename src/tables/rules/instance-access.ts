import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import { authOf, type Principal } from "../../access/principal.ts";
import type { DatabaseFile } from "../../db/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { within } from "../../kernel/deadline.ts";
import { badRequest } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Namespace } from "../namespaces.ts";
import { denied } from "./access.ts";

type Dynamic = Namespace & { kind: "dynamic" };

/** Rights to a whole instance: to use one that exists, to make one by the first write. Decisions 2 and 3. */
export interface InstanceDoor {
  /** null: not written to yet, so there is nothing in it. Errors: 400 for the id's form, 401/403 by `open`. */
  open(principal: Principal, namespace: Dynamic, instanceId: string | null): MaybePromise<DatabaseFile | null>;
  /** A new instance's file is made by its first write that changes something. Errors: as `open`, with `create` for that. */
  openForWriting(principal: Principal, namespace: Dynamic, instanceId: string | null): MaybePromise<DatabaseFile>;
}

/** Nothing in an id can leave the directory, and none is taken for the path's own `tables`. */
const INSTANCE_ID = /^(?!tables$)[A-Za-z0-9_-]{1,128}$/;

export const isInstanceId = (id: string): boolean => INSTANCE_ID.test(id);

export function createInstanceDoor(deps: { clock: Clock; logger: Logger }): InstanceDoor {
  const allows = (
    principal: Principal,
    namespace: Dynamic,
    action: "create" | "open",
    instanceId: string,
  ): MaybePromise<boolean> => {
    // A key's scopes are about tables, and are asked there.
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
    throw badRequest("An instance id has 1 to 128 characters of A-Z a-z 0-9 _ -, and is not tables");
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
