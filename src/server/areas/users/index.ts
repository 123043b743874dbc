import type { AnswerGate } from "../../../kernel/answer-gate.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Accounts } from "../../access/accounts.ts";
import type { Principals } from "../../access/principals.ts";
import { PASSWORD_MIN_CHARACTERS } from "../../config/shapes/user-fields.ts";
import type { AuthConfig } from "../../config/types.ts";
import { createUsersAccessor } from "./accessor.ts";
import { userEndpoints } from "./endpoints.ts";
import { type ExportSources, Exports } from "./export.ts";
import { exportEndpoints } from "./export-endpoints.ts";

export { type FollowingRecords, followAccounts } from "./records/following.ts";
export { adminUser } from "./service.ts";

export type UsersArea = ReturnType<typeof createUsersArea>;

/** Users, for administrators and for the server's own code. */
export function createUsersArea(deps: {
  accounts: Accounts;
  config: AuthConfig;
  /** Counts one request of this network in the rate limit group `auth`. */
  limit: (network: string) => void;
  /** The records and files of an export. */
  sources: ExportSources;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  gate: AnswerGate | null;
}) {
  const { accounts, config, limit, sources, requirePresent, clock, gate } = deps;
  const exports = new Exports({ ...sources, requirePresent, clock, gate });
  const passwordMinLength = config.password?.minLength ?? PASSWORD_MIN_CHARACTERS;
  const providers = new Set(Object.keys(config.oauth ?? {}));
  return {
    endpoints: [
      ...userEndpoints({ accounts, providers, passwordMinLength, limit }),
      ...exportEndpoints({ accounts, exports, limit }),
    ],
    accessor: createUsersAccessor(accounts, passwordMinLength),
  };
}
