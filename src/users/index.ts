import type { AnyElysia } from "elysia";
import type { Accounts } from "../access/accounts.ts";
import { PASSWORD_MIN_CHARACTERS } from "../access/limits.ts";
import type { UsersAccessor } from "../config/app-access.ts";
import type { AuthConfig } from "../config/types.ts";
import type { Http } from "../http/http.ts";
import { userRoutes } from "./routes.ts";
import { createUsersService } from "./service.ts";

export interface UsersArea {
  routes(http: Http): AnyElysia;
  readonly accessor: UsersAccessor;
}

/** Users as administrators and the server's own code handle them. Spec: Administration endpoints. */
export function createUsersArea(deps: {
  accounts: Accounts;
  config: AuthConfig;
  /** Counts one request of this address in the group `auth`. */
  limit: (address: string) => void;
}): UsersArea {
  const passwordMinLength = deps.config.password?.minLength ?? PASSWORD_MIN_CHARACTERS;
  const users = createUsersService({ accounts: deps.accounts, passwordMinLength });
  return {
    routes: (http) => userRoutes(http, users, deps.limit),
    accessor: {
      async get(id) {
        const account = deps.accounts.get(id);
        if (account === null) return null;
        const { email, displayName, role, createdAt } = account;
        return { id, email, displayName, role, createdAt: new Date(createdAt).toISOString() };
      },
    },
  };
}
