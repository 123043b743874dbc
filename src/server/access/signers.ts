import { unauthorized } from "../../kernel/errors.ts";
import type { Accounts } from "./accounts.ts";
import { authOfAccount } from "./acting.ts";
import type { ServiceKeys } from "./keys/service-keys.ts";
import { ANONYMOUS, type Principal } from "./principal.ts";

// Who has signed a URL. It acts with the rights that its signer has when it is used.

const USER = "user:";
const KEY = "key:";
const NOBODY = "nobody";

export interface SignerDeps {
  account: Accounts["get"];
  serviceKey: ServiceKeys["named"];
}

/** Encodes the signer for a token; null for the server, and for callers without credentials. */
export function signerOf(principal: Principal): string | null {
  if (principal.kind === "user") return USER + principal.auth.id;
  return principal.kind === "serviceKey" ? KEY + principal.name : null;
}

/** Encodes the signer like `signerOf`, and callers without credentials as such. */
export const anySignerOf = (principal: Principal): string => signerOf(principal) ?? NOBODY;

/** Returns the signer with its present rights. Errors: 401 when that user or service key does not exist any more. */
export function principalOfSigner(deps: SignerDeps, signer: string): Principal {
  if (signer === NOBODY) return ANONYMOUS;
  return signer.startsWith(USER)
    ? presentUser(deps, signer.slice(USER.length))
    : presentKey(deps, signer.slice(KEY.length));
}

/** Errors: 401 for a user who is disabled or deleted. */
export function presentUser({ account: find }: SignerDeps, userId: string): Principal {
  const account = find(userId);
  if (account === null || account.disabled) throw gone();
  return { kind: "user", auth: authOfAccount(account), sessionId: "" };
}

/** Errors: 401 for a key that is gone. */
export function presentKey({ serviceKey: find }: SignerDeps, name: string): Principal {
  const key = find(name);
  if (key === null) throw gone();
  return key;
}

const gone = () => unauthorized("The user or service key that asked for this URL does not exist any more");
