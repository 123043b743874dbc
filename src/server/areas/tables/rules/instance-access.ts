import type { Clock } from "../../../../kernel/clock.ts";
import { badRequest } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { askRule } from "../../../../kernel/observing/request-trace.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import { authOf, type Principal } from "../../../access/principal.ts";
import type { RuleContext } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { isInstanceId } from "../model/model.ts";
import type { Namespace } from "../records/namespaces.ts";
import { type Asker, denied } from "./access.ts";

/** Returns the user for whom a new instance counts; null for service keys and the server, which have no quota of instances. */
const creatorOf = (principal: Principal): string | null => (principal.kind === "user" ? principal.auth.id : null);

type Dynamic = Namespace & { kind: "dynamic" };

/** Rights to instances: to open an existing one, and to create one by its first write. [TB60] */
export type InstanceRights = ReturnType<typeof createInstanceRights>;

export function createInstanceRights(deps: { clock: Clock; logger: Logger }) {
  const allows = (
    { principal, rules }: Asker,
    namespace: Dynamic,
    action: "create" | "open",
    instanceId: string,
    /** Called when the rule has looked up other records. */
    looked: (askIn: (context: RuleContext) => MaybePromise<unknown>) => void = () => {},
  ): MaybePromise<boolean> => {
    // The scopes of a key are checked per table.
    if (principal.kind === "server" || principal.kind === "serviceKey") return true;
    const rule = namespace.config.access?.[action];
    if (typeof rule !== "function") return rule === true;
    const failed = (cause: unknown): false => {
      deps.logger.error("an access rule threw", { namespace: namespace.name, action, cause });
      return false;
    };
    const call = rules.call();
    const askIn = (context: RuleContext) => rule(authOf(principal), instanceId, context);
    const ask = (): MaybePromise<boolean> => {
      try {
        const answer = askRule(`${namespace.name} ${action}`, () => askIn(call.context));
        if (!isPromise(answer)) return answer === true;
        return within(deps.clock, RULE_TIMEOUT_MS, answer).then((settled) => settled === true, failed);
      } catch (cause) {
        return failed(cause);
      }
    };
    return chain(ask(), (isAllowed) => {
      rules.check();
      if (call.hasLooked) looked(askIn);
      return isAllowed;
    });
  };
  /** Evaluates `open`, and lets the write evaluate it again in its transaction. */
  const allowsToOpen = (asker: Asker, namespace: Dynamic, instanceId: string): MaybePromise<boolean> =>
    allows(asker, namespace, "open", instanceId, (askIn) => {
      asker.rules.reopen = askIn;
    });
  const checkedId = (instanceId: string | null): string => {
    if (instanceId !== null && isInstanceId(instanceId)) return instanceId;
    throw badRequest("An instance id has 1 to 128 characters of A-Z a-z 0-9 _ -, and cannot be tables");
  };
  const demand = (principal: Principal, allowed: MaybePromise<boolean>): MaybePromise<void> =>
    chain(allowed, (isAllowed) => {
      if (!isAllowed) throw denied(principal);
    });

  /**
   * Waits until the file can be read: for room among the open files, and for migrations of an instance's tables, which a caller
   * without rights must not set off. May take seconds, after which the right is evaluated again.
   */
  const whenReady = <F>(
    { principal, rules }: Asker,
    namespace: Dynamic,
    instanceId: string,
    file: F,
  ): MaybePromise<F> => {
    const ready = namespace.instances.ready(instanceId);
    if (ready === undefined) return file;
    const again = async () =>
      demand(principal, allowsToOpen({ principal, rules: rules.afresh() }, namespace, instanceId));
    return ready.then(again).then(() => file);
  };

  return {
    /** Opens an instance; null when it does not exist yet. Errors: 400 for an invalid id, 401 or 403 by `open`. */
    open(asker: Asker, namespace: Dynamic, instanceId: string | null): MaybePromise<DatabaseFile | null> {
      const id = checkedId(instanceId);
      // Opened before the rule is evaluated: its answer must not apply to an instance that is created after a deletion.
      const file = namespace.instances.get(id, { create: false });
      return chain(demand(asker.principal, allowsToOpen(asker, namespace, id)), () =>
        whenReady(asker, namespace, id, file),
      );
    },
    /**
     * Opens an instance for a write; the first one that changes something creates its file. Errors: as `open`; for a new instance
     * by `create`, and when another request has created it before the write, by `open` again.
     */
    openForWriting(asker: Asker, namespace: Dynamic, instanceId: string | null): MaybePromise<DatabaseFile> {
      const id = checkedId(instanceId);
      const { principal, rules } = asker;
      let isByLookup = false;
      const afresh = (): Asker => ({ principal, rules: rules.afresh() });
      const creation = {
        creator: creatorOf(principal),
        // Its lookups may have changed while the body arrived.
        mayCreate: () => (isByLookup ? demand(principal, allows(afresh(), namespace, "create", id)) : undefined),
        // Evaluated afresh, because the instance was empty for `create`.
        mayOpen: () => demand(principal, allows(afresh(), namespace, "open", id)),
      };
      const existing = namespace.instances.get(id, { create: false });
      const file = existing ?? namespace.instances.get(id, { create: true, creation });
      if (file === null) throw new Error(`instance ${id} was not made`);
      const noteLookup = (): void => {
        isByLookup = true;
      };
      const allowed =
        existing === null ? allows(asker, namespace, "create", id, noteLookup) : allowsToOpen(asker, namespace, id);
      return chain(demand(principal, allowed), () => whenReady(asker, namespace, id, file));
    },
  };
}
