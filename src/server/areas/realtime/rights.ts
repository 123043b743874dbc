import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { within } from "../../../kernel/time/deadline.ts";
import type { ServiceKeyPrincipal } from "../../access/keys/service-keys.ts";
import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import type { Lookups, LookupWatch } from "../../access/lookups/lookups.ts";
import { authOf } from "../../access/principal.ts";
import type { AccessOptions, ReadAccess, TableDoor } from "../../access/table-door.ts";
import type { RealtimeConfig, RuleContext } from "../../config/types.ts";
import type { Visiting } from "../../sockets/connection.ts";
import type { TableChannel } from "./channel.ts";

/** The `event` of the broadcast rule when a client subscribes: no broadcast has this name. [RT16] */
export const LISTENING = "";

interface RightsDeps {
  access: NonNullable<RealtimeConfig["access"]>;
  tables: TableDoor;
  lookups: Lookups;
  clock: Clock;
  logger: Logger;
}

/**
 * Evaluates rules. One that throws or takes too long denies. Broadcast and presence are for users: absent rules allow every user,
 * and a connection without a user is denied. For service keys scopes decide. [RT16, RT40, RT220, RT250]
 */
export class Rights {
  readonly #deps: RightsDeps;

  constructor(deps: RightsDeps) {
    this.#deps = deps;
  }

  /** Evaluates the read rule of a table; null when it denies. `options`: as for `TableDoor.readAccess`. */
  readTable(principal: Visiting, { address }: TableChannel, options?: AccessOptions): MaybePromise<ReadAccess | null> {
    const { tables, clock, logger } = this.#deps;
    const denied = (cause: unknown): null => {
      if (!(cause instanceof AppError)) logger.error("realtime: the read access of a table failed", { address, cause });
      return null;
    };
    const onSlow = (cause: unknown): void =>
      logger.error("realtime: the read rule of a table failed", { address, cause });
    const bounded = (access: ReadAccess): ReadAccess =>
      access.kind === "record" ? boundedAccess(access, clock, onSlow) : access;
    try {
      const access = tables.readAccess(principal, address, options);
      return isPromise(access) ? within(clock, RULE_TIMEOUT_MS, access).then(bounded).catch(denied) : bounded(access);
    } catch (cause) {
      return denied(cause);
    }
  }

  /** Evaluates the rule of presence, and reports its lookups to `watch`. */
  presence(principal: Visiting, channel: string, watch?: LookupWatch): MaybePromise<boolean> {
    if (principal.kind === "serviceKey") return mayAsKey(principal, "read");
    const rule = this.#deps.access.presence ?? true;
    const auth = authOf(principal);
    if (auth === null) return false;
    return typeof rule === "boolean" ? rule : this.#ask("presence", () => rule(auth, channel, this.#context(watch)));
  }

  /** Evaluates the rule of broadcasts, and reports its lookups to `watch`. */
  broadcast(principal: Visiting, channel: string, event: string, watch?: LookupWatch): MaybePromise<boolean> {
    if (principal.kind === "serviceKey") return mayAsKey(principal, event === LISTENING ? "read" : "broadcast");
    const rule = this.#deps.access.broadcast ?? true;
    const auth = authOf(principal);
    if (auth === null) return false;
    if (typeof rule === "boolean") return rule;
    return this.#ask("broadcast", () => rule(auth, channel, event, this.#context(watch)));
  }

  #ask(about: string, rule: () => MaybePromise<boolean>): MaybePromise<boolean> {
    const { clock, logger } = this.#deps;
    const failed = (cause: unknown): false => {
      logger.error("An access rule threw", { rule: `realtime.access.${about}`, cause });
      return false;
    };
    try {
      const answer = rule();
      if (!isPromise(answer)) return answer === true;
      return within(clock, RULE_TIMEOUT_MS, answer).then((settled) => settled === true, failed);
    } catch (cause) {
      return failed(cause);
    }
  }

  #context(watch: LookupWatch | undefined): RuleContext {
    return this.#deps.lookups.begin({ for: "subscription", ...(watch === undefined ? {} : { watch }) }).context(null);
  }
}

const mayAsKey = ({ scopes }: ServiceKeyPrincipal, action: "read" | "broadcast"): boolean =>
  scopes.allows("realtime", "*", "*", action);

/** Denies a change when the rule has not answered in time, and logs that once. [RT40] */
function boundedAccess(
  access: ReadAccess & { kind: "record" },
  clock: Clock,
  onSlow: (cause: unknown) => void,
): ReadAccess {
  let isLogged = false;
  const deny = (cause: unknown): false => {
    if (!isLogged) onSlow(cause);
    isLogged = true;
    return false;
  };
  return {
    kind: "record",
    allows(record) {
      const answer = access.allows(record);
      return isPromise(answer) ? within(clock, RULE_TIMEOUT_MS, answer).catch(deny) : answer;
    },
  };
}
