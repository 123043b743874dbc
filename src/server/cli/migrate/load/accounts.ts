import { Database } from "bun:sqlite";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { parseIsoDateTime } from "../../../../kernel/time/iso-datetime.ts";
import { emailOf } from "../../../config/shapes/user-fields.ts";
import { IMPORT_USERS_MAX } from "../../../config/shapes/users.ts";
import { type Client, requireOk } from "../../transfer/client.ts";
import type { Remarks } from "../remarks.ts";
import { type Comparison, createRecordsHash } from "./comparison.ts";

/** An account in the form of the import of users. */
export type Account = JsonObject & { id: string; email: string };

const IMPORT_MAX_CHARACTERS = 1024 * 1024;

/** Opens a client for some work, and closes it. */
export async function withClient<T>(open: () => Promise<Client>, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await open();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Imports accounts in batches. One that is refused is left out and reported. Returns those that are here. */
export async function importAccounts(
  client: Client,
  accounts: Iterable<Account>,
  remarks: Remarks,
): Promise<Account[]> {
  const taken: Account[] = [];
  let waiting: Account[] = [];
  let characters = 0;
  const send = async (): Promise<void> => {
    let batch = waiting;
    waiting = [];
    characters = 0;
    while (batch.length > 0) {
      const reply = await client.post("/api/admin/auth/users/import", { users: batch });
      if (reply.status === 200) {
        taken.push(...batch);
        return;
      }
      const faults = faultsIn(reply.body);
      if (faults.size === 0) requireOk(reply);
      for (const [index, message] of faults) {
        remarks.lost("accounts", `the account ${batch[index]?.id ?? ""} (${batch[index]?.email ?? ""}): ${message}`);
      }
      batch = batch.filter((_account, index) => !faults.has(index));
    }
  };
  for (const account of accounts) {
    waiting.push(account);
    characters += JSON.stringify(account).length;
    if (waiting.length >= IMPORT_USERS_MAX || characters > IMPORT_MAX_CHARACTERS) await send();
  }
  await send();
  return taken;
}

/** Returns the messages about users of an import by their place in it. */
function faultsIn({ data }: JsonObject): Map<number, string> {
  const faults = new Map<number, string>();
  for (const [path, problem] of Object.entries(isJsonObject(data) ? data : {})) {
    const index = /^users\.(\d+)(?:\.|$)/.exec(path)?.[1];
    if (index !== undefined) faults.set(Number(index), isJsonObject(problem) ? String(problem["message"]) : "refused");
  }
  return faults;
}

/** Compares the accounts with what is stored of them, passwords too. */
export function compareAccounts(file: string, accounts: readonly Account[]): Comparison {
  const there = createRecordsHash();
  for (const account of [...accounts].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const { id, email, passwordHash = null, verified, disabled, role = "user", createdAt = null } = account;
    const time = typeof createdAt === "string" ? parseIsoDateTime(createdAt) : null;
    there.add({
      id,
      email: emailOf(email),
      passwordHash,
      verified: verified ?? false,
      disabled: disabled ?? false,
      role,
      time,
    });
  }
  const here = createRecordsHash();
  const sqlite = new Database(file, { readonly: true });
  try {
    const known = new Map(accounts.map((account) => [account.id, account]));
    for (const row of sqlite.query<Record<string, JsonValue>, []>("SELECT * FROM users ORDER BY id").iterate()) {
      const { id = null, email = null, passwordHash = null, emailVerified, disabled, role = null } = row;
      const time = known.get(String(id))?.["createdAt"] === undefined ? null : (row["createdAt"] ?? null);
      here.add({ id, email, passwordHash, verified: emailVerified === 1, disabled: disabled === 1, role, time });
    }
  } finally {
    sqlite.close();
  }
  return { name: "accounts", kind: "accounts", there: there.result(), here: here.result() };
}
