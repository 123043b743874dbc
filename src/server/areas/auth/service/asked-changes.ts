import type { AskedChange } from "../../../access/account-records.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { lastAsked, setLastAsked } from "../statements/asked-changes.ts";
import { userById } from "../statements/users.ts";
import { joinAccounts } from "./merging.ts";

/** Gives accounts what updates of their records have asked for, but for what they have had already. */
export const changeAsked = (deps: AuthDeps, asked: readonly AskedChange[]): Promise<void> =>
  deps.file.write((write) => {
    const done = lastAsked.get(write.tx, {})?.lastAsked ?? 0;
    for (const { seq, id, birth, changes, merge } of asked) {
      const account = seq > done ? userById.get(write.tx, { id }) : null;
      if (account?.seq !== birth) continue;
      if (merge === undefined) write.update(id, changes);
      else joinAccounts(deps, write, account, merge);
    }
    setLastAsked.run(write.tx, { lastAsked: Math.max(done, asked.at(-1)?.seq ?? 0) });
  });
