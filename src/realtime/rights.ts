import { authOf } from "../access/principal.ts";
import type { ReadAccess, TableDoor } from "../access/table-door.ts";
import type { RealtimeConfig } from "../config/types.ts";
import { AppError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { SignedIn } from "./connection.ts";
import type { TableChannel } from "./subscription.ts";

/** Asked by a broadcast rule's `event` where the question is whether one may listen: no broadcast has this name. */
export const LISTENING = "";

export interface Rights {
  /** null: denied. */
  readTable(principal: SignedIn, channel: TableChannel): MaybePromise<ReadAccess | null>;
  presence(principal: SignedIn, channel: string): MaybePromise<boolean>;
  broadcast(principal: SignedIn, channel: string, event: string): MaybePromise<boolean>;
}

/** Decisions 3 and 10: a rule that throws denies; absent rules of broadcast and presence allow any authenticated user. */
export function createRights(deps: {
  access: NonNullable<RealtimeConfig["access"]>;
  tables: TableDoor;
  logger: Logger;
}): Rights {
  const ask = (about: string, rule: () => MaybePromise<boolean>): MaybePromise<boolean> => {
    const failed = (cause: unknown): false => {
      deps.logger.error("an access rule threw", { rule: `realtime.access.${about}`, cause });
      return false;
    };
    try {
      const answer = rule();
      return isPromise(answer) ? answer.then((settled) => settled === true, failed) : answer === true;
    } catch (cause) {
      return failed(cause);
    }
  };
  return {
    readTable(principal, { address }) {
      const denied = (cause: unknown): null => {
        if (!(cause instanceof AppError)) deps.logger.error("a table's read access failed", { address, cause });
        return null;
      };
      try {
        const access = deps.tables.readAccess(principal, address);
        return isPromise(access) ? access.catch(denied) : access;
      } catch (cause) {
        return denied(cause);
      }
    },
    presence(principal, channel) {
      const rule = deps.access.presence ?? true;
      const auth = authOf(principal);
      return typeof rule === "boolean" || auth === null ? rule === true : ask("presence", () => rule(auth, channel));
    },
    broadcast(principal, channel, event) {
      const rule = deps.access.broadcast ?? true;
      const auth = authOf(principal);
      if (typeof rule === "boolean" || auth === null) return rule === true;
      return ask("broadcast", () => rule(auth, channel, event));
    },
  };
}
