import { forbidden, notFound, unauthorized } from "../../kernel/errors.ts";
import { frozenJson } from "../../kernel/json/frozen.ts";
import type { Auth } from "../config/types.ts";
import type { Account } from "./accounts.ts";
import { ROOT_KEY_NAME } from "./keys/service-keys.ts";
import type { ActedBy, Principal } from "./principal.ts";

export const ACT_AS_HEADER = "x-platform-act-as";
const NOBODY = "anonymous";

/** Returns the user as rules see them, with the current claims. */
export function authOfAccount(account: Account): Auth {
  const { id, email, emailVerified, phone, role, isAnonymous, customClaims } = account;
  return frozenJson({ id, email, emailVerified, phone, role, isAnonymous, custom: customClaims, invitation: null });
}

/**
 * Returns the principal of the user, or of nobody, whom the root key's holder acts as. Errors: 401 without credentials, 403 for any
 * other caller, 404 for a user who does not exist.
 */
export function actAs(caller: Principal, target: string, account: (id: string) => Account | null): Principal {
  const actedBy = requireActing(caller);
  if (target === NOBODY) return { kind: "anonymous", actedBy };
  const user = account(target);
  if (user === null) throw notFound(`X-Platform-Act-As: there is no user "${target}"`);
  return { kind: "user", auth: authOfAccount(user), sessionId: "", actedBy };
}

/** Requires the root key's holder, who alone may act as others. Errors: 401, 403. */
export function requireActing(caller: Principal): ActedBy {
  if (caller.kind === "anonymous") throw unauthorized();
  // Compares the name: a declared key without scopes is not the root key.
  if (caller.kind !== "serviceKey" || caller.name !== ROOT_KEY_NAME) throw forbidden();
  return { key: caller.name, session: caller.session };
}
