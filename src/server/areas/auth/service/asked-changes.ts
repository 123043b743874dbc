import type { AskedChange } from "../../../access/account-records.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { lastAsked, setLastAsked, userById } from "../statements/users.ts";
import { joinAccounts } from "./merging.ts";

/**
 * Applies the changes that updates of records have asked for to their accounts, each once. A merge is a commit of its own, or
 * several, where more files move than one commit gives to another user: what is asked stays until the last.
 */
export async function changeAsked(deps: AuthDeps, asked: readonly AskedChange[]): Promise<void> {
  for (let at = 0; at < asked.length; ) {
    const next = asked.findIndex(({ merge }, index) => index > at && merge !== undefined);
    const isMerge = asked[at]?.merge !== undefined;
    const end = isMerge ? at + 1 : next === -1 ? asked.length : next;
    if (await changeSome(deps, asked.slice(at, end))) at = end;
  }
}

/** Returns false if there is more to move first. */
const changeSome = (deps: AuthDeps, asked: readonly AskedChange[]): Promise<boolean> =>
  deps.file.write((write) => {
    const done = lastAsked.get(write.tx, {})?.lastAsked ?? 0;
    for (const { seq, id, birth, changes, merge } of asked) {
      const account = seq > done ? userById.get(write.tx, { id }) : null;
      if (account?.seq !== birth) continue;
      if (merge === undefined) write.update(id, changes);
      else if (!joinAccounts(deps, write, account, merge)) return false;
    }
    setLastAsked.run(write.tx, { lastAsked: Math.max(done, asked.at(-1)?.seq ?? 0) });
    return true;
  });
