import { badField } from "../../../kernel/errors.ts";
import { callerNameOf, type Principal } from "../../access/principal.ts";
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../limits.ts";

export const IDEMPOTENCY_KEY_HEADER = "idempotency-key";
/** The header of a replayed answer. */
export const REPLAYED = { "idempotent-replay": "true" } as const;
/** The header parameter of endpoints that take an idempotency key, for the OpenAPI document. */
export const IDEMPOTENCY_KEY = {
  name: "Idempotency-Key",
  description: `1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters of visible ASCII. The same request under the same key is carried out once in 24 hours, and answered again with Idempotent-Replay: true`,
};

const VISIBLE_ASCII = new RegExp(`^[!-~]{1,${IDEMPOTENCY_KEY_LENGTH_MAX}}$`);

/** An idempotency key and its caller. */
export interface CallerKey {
  /** The name of the user or the service key. */
  caller: string;
  key: string;
}

/** Parses the idempotency key. Errors: 400 for anonymous callers, whose keys anybody could use, and for a malformed key. [TB320] */
export function callerKeyOf(principal: Principal, key: string): CallerKey {
  const refuse = (message: string) => badField("idempotencyKey", "invalid_value", message);
  if (principal.kind === "anonymous") throw refuse("Idempotency-Key needs a signed-in user or a service key");
  if (!VISIBLE_ASCII.test(key)) {
    throw refuse(`Idempotency-Key must have 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters of visible ASCII`);
  }
  // Only anonymous callers are named by their address, so none is needed.
  return { caller: callerNameOf(principal, () => ""), key };
}
