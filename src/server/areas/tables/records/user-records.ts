import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { AccountMembers, AccountRecords, RecordsSeen, RecordsTx } from "../../../access/account-records.ts";
import { type DatabaseFile, quoteIdentifier, type Transaction } from "../../../db/index.ts";
import { ADDRESS_COLUMN, BIRTH_COLUMN, type TableModel } from "../model/model.ts";
import { mergeReferences } from "../write/account-merge.ts";
import { type AccountSteps, createAccountSteps } from "../write/account-steps.ts";
import { leavingOf } from "../write/leaving.ts";
import { askedIn, birthOf, lastAskedIn, numberIn, setMeta, settleAsked } from "./asked-changes.ts";
import { decided, newRecord } from "./fill-users.ts";
import type { Table } from "./namespaces.ts";

type Queries = Pick<Transaction, "query">;

/** Names in the file's metadata of what it has seen. */
const COUNT = "users_count";
const MARK = "users_mark";
const ADDRESS = quoteIdentifier(ADDRESS_COLUMN);
const BIRTH = quoteIdentifier(BIRTH_COLUMN);

/** Returns the records of the accounts in the table of users. */
export function createAccountRecords(deps: {
  file: DatabaseFile;
  users: Table;
  tableOf(model: TableModel): Table;
  clock: Clock;
  countFar: AccountRecords["countFar"];
}): AccountRecords {
  const { file, users: table, clock } = deps;
  const { model } = table;
  const now = () => new Date(clock.now()).toISOString();
  const steps = createAccountSteps({ ...deps, now });
  const idsSql = `SELECT "id" FROM ${model.sql} WHERE "id" > ? ORDER BY "id" LIMIT ?`;
  return {
    async ready() {
      for (let opening = file.ready(); opening !== undefined; opening = file.ready()) {
        // A request would be refused by now; the start waits on.
        await opening.catch((cause: unknown) => {
          if (!(cause instanceof AppError) || cause.status !== 503) throw cause;
        });
      }
    },
    write: (work) =>
      file
        .write<{ result: unknown }>((tx) => ({ result: work(recordsTx(tx, table, steps)) }))
        .then(
          // As `work` has returned it.
          ({ result }) => result as ReturnType<typeof work>,
        ),
    seen: () => seenIn(file),
    isCopy(id, account) {
      const stored = table.store.get(file, id);
      if (stored === null || account === null) return stored === account;
      const { birth, address } = hiddenOf(file, model, id);
      if (birth !== account.birth || address !== account.email) return false;
      return Object.entries(decided(account)).every(([name, value]) => stored[name] === value);
    },
    ids: ({ after, limit }) =>
      file
        .query(idsSql)
        .values(after, limit)
        .map(([id]) => String(id)),
    asked: (limit) => askedIn(file, limit),
    lastAsked: () => lastAskedIn(file),
    isReferred(id, account) {
      // An import asks for a thousand new accounts.
      const birth = model.incoming.length === 0 ? null : birthOf(file, model, id);
      return birth !== null && birth !== account()?.birth && steps.isReferred(file, id);
    },
    isHeld: (id) => leavingOf(table).has(id),
    merge: (asked, options) => mergeReferences({ ...deps, now }, asked, options),
    countFar: deps.countFar,
    hold: (id) => steps.hold(id),
    refuseRestricted: (id) => steps.refuseRestricted(id),
    clear: steps.clear,
  };
}

function recordsTx(tx: Transaction, table: Table, { isReferred }: AccountSteps): RecordsTx {
  const { model, store } = table;
  const remove = (id: string): boolean => {
    const stored = store.get(tx, id);
    if (stored === null) return true;
    if (isReferred(tx, id)) return false;
    store.delete(tx, id);
    tx.change({ table: model.name, id, before: stored, after: null });
    return true;
  };
  const insert = (account: AccountMembers): true => {
    const record = newRecord(model, account);
    store.insert(tx, record);
    setHidden(tx, model, account);
    tx.change({ table: model.name, id: account.id, before: null, after: record });
    return true;
  };
  return {
    put(account) {
      const { id } = account;
      const stored = store.get(tx, id);
      if (stored === null) return insert(account);
      const { birth, address } = hiddenOf(tx, model, id);
      if (birth !== account.birth) {
        return remove(id) && insert(account);
      }
      const changes = Object.fromEntries(
        Object.entries(decided(account)).filter(([name, value]) => stored[name] !== value),
      );
      const isShown = Object.keys(changes).length > 0;
      if (!isShown && address === account.email) return true;
      const next = isShown ? { ...stored, ...changes } : stored;
      store.update(tx, id, changes, next);
      setHidden(tx, model, account);
      // The same record where only a hidden address is another one: rules that looked it up are asked again, and nobody is told.
      tx.change({ table: model.name, id, before: stored, after: next });
      return true;
    },
    remove,
    settleAsked: (seq) => settleAsked(tx, seq),
    heard(mark) {
      const seen = seenIn(tx);
      const count = seen.count + 1;
      setMeta(tx, COUNT, String(count));
      if (mark > seen.mark) setMeta(tx, MARK, String(mark));
      return count;
    },
  };
}

function hiddenOf(queries: Queries, model: TableModel, id: string): { birth: number; address: string | null } {
  const row = queries
    .query<{ birth: number; address: string | null }>(
      `SELECT ${BIRTH} AS "birth", ${ADDRESS} AS "address" FROM ${model.sql} WHERE "id" = ?`,
    )
    .get(id);
  return row ?? { birth: 0, address: null };
}

function setHidden(tx: Transaction, model: TableModel, { id, email, birth }: AccountMembers): void {
  tx.query(`UPDATE ${model.sql} SET ${ADDRESS} = ?, ${BIRTH} = ? WHERE "id" = ?`).run(email, birth, id);
}

const seenIn = (queries: Queries): RecordsSeen => ({ count: numberIn(queries, COUNT), mark: numberIn(queries, MARK) });
