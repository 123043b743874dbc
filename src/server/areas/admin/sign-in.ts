import type { Clock } from "../../../kernel/clock.ts";
import { badField, unauthorized } from "../../../kernel/errors.ts";
import { clientNetwork } from "../../../kernel/network/client-network.ts";
import { ROOT_KEY_NAME, type ServiceKeyPrincipal, type ServiceKeys } from "../../access/keys/service-keys.ts";
import type { RateLimiter } from "../../http/rate-limit.ts";
import { useLinkCode } from "./links.ts";

interface Credentials {
  key?: string | null;
  code?: string | null;
}

/**
 * The service key that these credentials stand for. Errors: 400 without any; 401 for wrong ones; 403 for a key used from
 * an address outside its `ips`; 429 after too many wrong ones of one network.
 */
export type SignIn = (credentials: Credentials, address: () => string) => Promise<ServiceKeyPrincipal>;

export function createSignIn(deps: {
  dataDirectory: string;
  serviceKeys: ServiceKeys;
  clock: Clock;
  /** By client network. */
  failures: RateLimiter;
  /** Writes a failure down in the audit log; resolves when that is on disk. */
  failed: (way: "key" | "code") => Promise<void>;
}): SignIn {
  const { serviceKeys, clock, failures } = deps;
  const identify = ({ key, code }: Credentials, address: () => string): ServiceKeyPrincipal => {
    if (typeof key === "string") return serviceKeys.identify(key, address);
    const isGood = typeof code === "string" && useLinkCode(deps.dataDirectory, code, { clock });
    const root = isGood ? serviceKeys.named(ROOT_KEY_NAME) : null;
    if (root === null) throw unauthorized("The link has been used, or is too old");
    return root;
  };
  return async (credentials, address) => {
    checkForm(credentials);
    const network = clientNetwork(address());
    failures.check(network);
    try {
      return identify(credentials, address);
    } catch (cause) {
      failures.count(network);
      await deps.failed(typeof credentials.key === "string" ? "key" : "code");
      throw cause;
    }
  };
}

/** Errors: 400 unless there is one of the two. */
function checkForm({ key = null, code = null }: Credentials): void {
  if (key === null && code === null) throw badField("key", "required", "key is required, or code");
  if (key !== null && code !== null) throw badField("code", "invalid_value", "code: it takes the place of key");
}
