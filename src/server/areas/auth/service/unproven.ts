import type { AccountWrite } from "../store/account-file.ts";
import { removePasskeys } from "./removal.ts";
import { deleteUnverifiedFactors } from "../statements/factors.ts";
import { deleteIdentitiesOfUser } from "../statements/identities.ts";
import { deleteSecretsOfUser } from "../statements/secrets.ts";
import { clearPassword } from "../statements/users.ts";

/**
 * Removes the credentials of an account whose address was not verified, for its owner, who has just read a mail to it: somebody
 * else may have signed up with the address before, and must not keep a way in. A verified factor stays, as every way of
 * signing in requires it. [AU24]
 */
export function clearUnproven(write: AccountWrite, userId: string): void {
  write.endSessions(userId, { except: null });
  deleteUnverifiedFactors.run(write.tx, { userId });
  deleteSecretsOfUser.run(write.tx, { userId });
  clearPassword.run(write.tx, { id: userId });
  deleteIdentitiesOfUser.run(write.tx, { userId });
  removePasskeys(write, userId);
}
