import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CommandError } from "../../errors.ts";
import type { Remarks } from "../remarks.ts";
import type { MovedAccounts } from "../supabase/accounts.ts";
import type { PgRow, PgSource } from "../supabase/source.ts";
import { accountsIn, hashParameters } from "./accounts.ts";
import { type Documents, readDocuments } from "./documents.ts";

/** Security rules, whose text the report quotes. */
const RULES = ["firestore.rules", "storage.rules"];

/** Exports of a project: accounts, documents, files. */
export interface FirebasePlaces {
  /** The JSON of `auth:export`. */
  accounts: string;
  /** Lines of documents; null: none. */
  documents: string | null;
  /** Folder with files, as BUCKET/NAME; null: none. */
  files: string | null;
  /** Parameters of the hashes; null: none. */
  parameters: string | null;
}

const NO_DOCUMENTS: Documents = { tables: [], rows: () => [] };

/** Opens exports of Firebase as tables of a source. Errors: CommandError for files that are none. */
export function openFirebase(places: FirebasePlaces, remarks: Remarks): { source: PgSource; accounts: MovedAccounts } {
  const read = (file: string): string => {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
      throw new CommandError(`There is no file ${file}`);
    return readFileSync(file, "utf8");
  };
  const { parameters, documents, files } = places;
  const known = parameters === null ? null : hashParameters(read(parameters), parameters);
  const accounts = accountsIn(read(places.accounts), places.accounts, known, remarks);
  if (documents !== null && !existsSync(documents)) throw new CommandError(`There is no file ${documents}`);
  const found = documents === null ? NO_DOCUMENTS : readDocuments(documents, remarks);
  tellRules(places, remarks);
  const stored = files === null ? [] : filesIn(files);
  const tables = new Map(found.tables.map((table) => [table.name, table]));
  return {
    accounts,
    source: {
      tables: found.tables,
      enums: new Map(),
      others: [],
      table: (schema, name) => (schema === "public" ? (tables.get(name) ?? null) : null),
      rows: ({ schema, name }): Iterable<PgRow> => {
        if (schema === "public") return found.rows(name);
        if (schema !== "storage") return [];
        if (name === "buckets")
          return [...new Set(stored.map(({ bucket }) => bucket))].map((id) => ({ id, public: "f" }));
        return stored.map(({ bucket, key, type }) => ({
          bucket_id: bucket,
          name: key,
          metadata: JSON.stringify({ mimetype: type }),
        }));
      },
    },
  };
}

/** Lists the files of a folder, as BUCKET/NAME. */
function filesIn(folder: string): { bucket: string; key: string; type: string }[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name: bucket }) =>
      readdirSync(join(folder, bucket), { recursive: true, encoding: "utf8" })
        .sort()
        .filter((key) => statSync(join(folder, bucket, key)).isFile())
        .map((key) => ({ bucket, key, type: Bun.file(join(folder, bucket, key)).type })),
    );
}

/** Quotes the security rules that lie beside the exports. */
function tellRules({ accounts, documents }: FirebasePlaces, remarks: Remarks): void {
  const folders = new Set([accounts, ...(documents === null ? [] : [documents])].map((file) => dirname(file)));
  for (const path of [...folders].flatMap((folder) => RULES.map((name) => join(folder, name))).filter(existsSync)) {
    const text = readFileSync(path, "utf8").replace(/\s+/g, " ").replaceAll("`", "'").trim();
    remarks.lost(basename(path), `security rules, to be written again as \`access\`: \`${text}\``);
  }
}
