import type { Accounts } from "../../access/accounts.ts";
import { PASSWORD_MIN_CHARACTERS } from "../../access/limits.ts";
import type { UsersAccessor } from "../../config/app/index.ts";
import type { AuthConfig } from "../../config/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { createUsersAccessor } from "./accessor.ts";
import { userEndpoints } from "./endpoints.ts";
import { createUsersService } from "./service.ts";

export { adminUser } from "./types.ts";

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
  const passwordMinLength = deps.config.password?.minLength ?? PASSWORD_MIN_CHARACTERS;
  const users = createUsersService({
    accounts: deps.accounts,
    providers: new Set(Object.keys(deps.config.oauth ?? {})),
  });
  return {
    endpoints: userEndpoints({ users, passwordMinLength, limit: deps.limit }),
    accessor: createUsersAccessor({ accounts: deps.accounts, users, passwordMinLength }),
  };
}
