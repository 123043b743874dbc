import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Remarks } from "../remarks.ts";
import type { PbCollection } from "./collections.ts";
import type { MovedTable, MovePlan } from "./plan.ts";
import type { MovedProvider } from "./providers.ts";
import type { PbSource } from "./source.ts";
import { instant } from "./values.ts";

type Row = Record<string, unknown>;

const DISPLAY_NAME_MAX_CHARACTERS = 256;

/** Tells whether the rule of sign-ins keeps an account out. */
export type KeptOut = (collection: PbCollection, row: Row) => boolean;

/** Yields the accounts of a source in the form of the import of users, those of the main collection first. */
export function* accountsOf(
  source: PbSource,
  plan: MovePlan,
  { providers, isKeptOut, remarks }: { providers: readonly MovedProvider[]; isKeptOut: KeptOut; remarks: Remarks },
): Generator<JsonObject & { id: string; email: string }> {
  const identities = identitiesOf(source, providers, remarks);
  const taken = new Map<string, string>();
  const ids = new Map<string, string>();
  const tables = plan.tables.filter(({ kind }) => kind !== "records");
  for (const table of tables.sort((a, b) => Number(b.kind === "users") - Number(a.kind === "users"))) {
    const { collection } = table;
    for (const row of source.rows(collection.name)) {
      const id = String(row["id"]);
      const email = String(row["email"] ?? "");
      const other = taken.get(email.toLowerCase());
      if (email === "") {
        remarks.lost(collection.name, `the account ${id}, which has no address`);
      } else if (other !== undefined) {
        remarks.lost(collection.name, `the account ${id}: its address belongs to an account of ${other}`);
      } else if (ids.has(id)) {
        remarks.lost(collection.name, `the account ${id}: its id belongs to an account of ${ids.get(id)}`);
      } else {
        taken.set(email.toLowerCase(), collection.name);
        ids.set(id, collection.name);
        yield accountOf(table, row, {
          identities: identities(collection.id, id),
          isDisabled: isKeptOut(collection, row),
        });
      }
    }
  }
}

function accountOf(
  { collection, kind, name }: MovedTable,
  row: Row,
  { identities, isDisabled }: { identities: JsonObject[]; isDisabled: boolean },
): JsonObject & { id: string; email: string } {
  const createdAt = instant(row["created"]);
  const displayName = isOpen(collection, "name") ? String(row["name"] ?? "") : "";
  const hash = String(row["password"] ?? row["passwordHash"] ?? "");
  return {
    id: String(row["id"]),
    email: String(row["email"]),
    ...(hash === "" ? {} : { passwordHash: hash }),
    ...(displayName === "" ? {} : { displayName: [...displayName].slice(0, DISPLAY_NAME_MAX_CHARACTERS).join("") }),
    ...(kind === "accounts" ? { role: name } : {}),
    verified: Boolean(row["verified"]),
    disabled: isDisabled,
    emailVisibility: row["emailVisibility"] ? "public" : "private",
    ...(createdAt === null ? {} : { createdAt }),
    ...(identities.length === 0 ? {} : { identities }),
  };
}

/** Whether callers who see the record see the field. */
const isOpen = ({ fields }: PbCollection, name: string): boolean =>
  fields.some((field) => field.name === name && !field.isHidden);

/** Returns a function that finds the identities of an account at providers that the config names. */
function identitiesOf(source: PbSource, providers: readonly MovedProvider[], remarks: Remarks) {
  const known = new Map(providers.map(({ source: name, name: here }) => [name, here]));
  const found = new Map<string, JsonObject[]>();
  for (const row of source.hasTable("_externalAuths") ? source.rows("_externalAuths") : []) {
    const [collection, record] = [row["collectionRef"] ?? row["collectionId"], row["recordRef"] ?? row["recordId"]];
    const provider = known.get(String(row["provider"]));
    if (provider === undefined) {
      remarks.lost("_externalAuths", `identities of ${String(row["provider"])}, which the config does not name`);
      continue;
    }
    const key = JSON.stringify([collection, record]);
    found.set(key, [...(found.get(key) ?? []), { provider, subject: String(row["providerId"]) }]);
  }
  return (collection: string, record: string): JsonObject[] => found.get(JSON.stringify([collection, record])) ?? [];
}
