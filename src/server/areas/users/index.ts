import type { Accounts } from "../../access/accounts.ts";
import type { UsersAccessor } from "../../config/app/index.ts";
import { PASSWORD_MIN_CHARACTERS } from "../../config/shapes/user-fields.ts";
import type { AuthConfig } from "../../config/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { createUsersAccessor } from "./accessor.ts";
import { userEndpoints } from "./endpoints.ts";

export { type FollowingRecords, followAccounts } from "./records/following.ts";
export { adminUser } from "./service.ts";

export interface UsersArea {
  readonly endpoints: readonly Endpoint[];
  readonly accessor: UsersAccessor;
}

/** Users, for administrators and for the server's own code. */
export function createUsersArea(deps: {
  accounts: Accounts;
  config: AuthConfig;
  /** Counts one request of this network in the rate limit group `auth`. */
  limit: (network: string) => void;
}): UsersArea {
  const { accounts, config, limit } = deps;
  const passwordMinLength = config.password?.minLength ?? PASSWORD_MIN_CHARACTERS;
  const providers = new Set(Object.keys(config.oauth ?? {}));
  return {
    endpoints: userEndpoints({ accounts, providers, passwordMinLength, limit }),
    accessor: createUsersAccessor(accounts, passwordMinLength),
  };
}
