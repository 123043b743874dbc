import type { AccountWrite } from "../store/account-file.ts";
import { deletePasskeysOfUser } from "../statements/passkeys.ts";

/** What becomes of passkeys is in the audit log, whoever does it. [AL6] */
export const notePasskey = ({ tx }: AccountWrite, userId: string, action: "factor.add" | "factor.delete"): void =>
  tx.auditBy({ kind: "user", name: userId }, { action, target: `users/${userId}`, after: { type: "passkey" } });

/** All of the user's. */
export function removePasskeys(write: AccountWrite, userId: string): void {
  if (deletePasskeysOfUser.run(write.tx, { userId }) > 0) notePasskey(write, userId, "factor.delete");
}
