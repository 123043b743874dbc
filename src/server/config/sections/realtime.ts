import { type Static, Type } from "typebox";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { RuleContext } from "../context.ts";
import type { Auth } from "../identity.ts";
import { milliseconds, rule, whole } from "../shape/schema.ts";

type BroadcastRule = (auth: Auth, channel: string, event: string, context: RuleContext) => MaybePromise<boolean>;
type PresenceRule = (auth: Auth, channel: string, context: RuleContext) => MaybePromise<boolean>;

export const Realtime = Type.Object({
  access: Type.Optional(
    Type.Object({
      /** The rule to listen (`event` is empty then) and to send. Absent: any signed-in user. */
      broadcast: Type.Optional(rule<BroadcastRule>()),
      /** The rule to listen and to be tracked. Absent: any signed-in user. */
      presence: Type.Optional(rule<PresenceRule>()),
    }),
  ),
  /** Milliseconds; 5000 by default. */
  authTimeout: Type.Optional(milliseconds()),
  /** Unauthenticated connections per address; 50 by default. Further ones wait up to 2 s for a slot. */
  pendingPerAddress: Type.Optional(whole({ min: 1, unit: "connections" })),
  /** Milliseconds; 60000 by default. */
  presenceTtl: Type.Optional(milliseconds()),
  /** The number of changes of one channel by one request that are sent as one message; 10 by default. */
  batchThreshold: Type.Optional(whole({ min: 1 })),
  /** Messages per second and connection; 100 by default. */
  messageRate: Type.Optional(whole({ min: 1, unit: "messages per second" })),
});
export interface RealtimeConfig extends Static<typeof Realtime> {}
