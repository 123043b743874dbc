import { type Dirent, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "../../../kernel/errors.ts";

/** The files of a data directory that concern backups. schema/STORAGE.md describes all of them. */

/** Folder of a restore. A server refuses to start while it exists: a restore is running or was interrupted. */
export const RESTORE_FOLDER = "restore.partial";
/** Folder where scheduled backups to an object store are written first. */
export const UPLOAD_FOLDER = "backup.partial";
/** Folder of what continuous backup has not stored yet, and of what it knows of each file. */
export const CONTINUOUS_FOLDER = "continuous";
/** Folder of backups when the config names no place. */
export const BACKUPS_FOLDER = "backups";
export const SYSTEM_FILE = "system.db";
export const JOBS_FILE = "jobs.db";
export const AUDIT_FILE = "audit.db";
export const SECRETS_FILE = "secrets.json";

/** The folders of a data directory with files to back up. */
export const FOLDERS: ReadonlySet<string> = new Set(["databases", "kv", "d1", "vectorize", "storage", "outbox"]);

const NAME = "[A-Za-z_][A-Za-z0-9_-]{0,63}";
const INSTANCE = "[A-Za-z0-9_-]{1,128}";
const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";

const DATABASE = new RegExp(
  `^(?:(?:system|rooms|analytics|jobs|audit)\\.db|(?:databases|kv|d1|vectorize)/${NAME}\\.db|databases/${NAME}/${INSTANCE}\\.db)$`,
);
const MAY_BE_EMPTY = new RegExp(`^(?:d1/${NAME}|databases/${NAME}/${INSTANCE})\\.db$`);
const OBJECT = new RegExp(`^storage/(?:objects|parts)/([0-9a-f]{2})/${UUID}$`);
const PLAIN = new RegExp(
  `^(?:${SECRETS_FILE.replace(".", "\\.")}|webhooks\\.json|token-keys\\.json|outbox/${UUID}\\.json)$`,
);

/** Files that the server recreates, or needs only while it runs. */
const PASSING = new RegExp(
  [
    "^(?:platform|backup)\\.lock(?:-journal)?$",
    // A restored copy is another data directory, with an id of its own.
    "^owner-id(?:\\.\\d+\\.new)?$",
    "\\.db-(?:wal|shm|journal)$",
    "\\.db\\.new$",
    // Copies made by an upgrade before it began.
    "\\.db\\.v\\d+(?:\\.new(?:-wal|-shm|-journal)?)?$",
    "^(?:secrets|webhooks|token-keys)\\.json\\.\\d+\\.new$",
    // What the dashboard's edits of the config can be undone to; the config itself lies elsewhere.
    "^config-edits\\.json(?:\\.\\d+\\.new)?$",
    // A request of the command line that the server has not yet carried out.
    "^token-keys\\.rotate(?:\\.\\d+\\.new)?$",
    // A restored copy gets certificates and links of its own.
    "^(?:tls|admin-links)(?:/|$)",
    // The executable writes this file under a name derived from its content.
    "^vectorize/vec0(?:-[0-9a-z]+)?\\.(?:so|dylib|dll)(?:\\.\\d+(?:\\.new)?)?$",
    "^storage/(?:objects|parts)/incoming(?:/|$)",
    "^storage/thumbs(?:/|$)",
    // State of a node of a cluster.
    "^cluster(?:/|$)",
    `^(?:${RESTORE_FOLDER}|${UPLOAD_FOLDER}|${BACKUPS_FOLDER}|${CONTINUOUS_FOLDER})(?:/|$)`.replaceAll(
      ".partial",
      "\\.partial",
    ),
  ].join("|"),
);

/** `object`: the content of a stored file, which never changes. `stranger`: not a file of the server. */
export type FileKind = "database" | "object" | "plain" | "passing" | "stranger";

/** Returns the kind of a file. `path` is relative to the data directory, with `/`. A path of no known form is a stranger. */
export function kindOf(path: string): FileKind {
  if (DATABASE.test(path)) return "database";
  const [, fanOut] = OBJECT.exec(path) ?? [];
  if (fanOut !== undefined) return path.endsWith(fanOut) ? "object" : "stranger";
  if (PLAIN.test(path)) return "plain";
  return PASSING.test(path) ? "passing" : "stranger";
}

/**
 * Whether a power cut can leave this database empty while it is created. The server opens such a file, and refuses other
 * empty ones.
 */
export const mayBeEmpty = (path: string): boolean => MAY_BE_EMPTY.test(path);

/** Whether backups contain the file; all other paths in an archive are refused. */
export const isKept = (path: string): boolean => ["database", "object", "plain"].includes(kindOf(path));

export const STORAGE_FOLDERS = ["objects", "parts"] as const;
export type StorageFolder = (typeof STORAGE_FOLDERS)[number];

/** The tables of system.db that name the contents of a folder. */
export const STORED_TABLES: Readonly<Record<StorageFolder, readonly string[]>> = {
  objects: ["storage_objects", "storage_claims"],
  parts: ["storage_parts"],
};

export const objectPath = (folder: StorageFolder, fileId: string): string =>
  `storage/${folder}/${fileId.slice(-2)}/${fileId}`;

export interface FoundFile {
  /** Path relative to the data directory, with `/`. */
  path: string;
  kind: FileKind;
}

/** Yields the files under `folder` of a data directory (empty: all), with the names of one folder in memory at a time. */
export function* scanFiles(dataDirectory: string, folder = ""): Generator<FoundFile> {
  for (const entry of entriesOf(join(dataDirectory, folder))) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    const kind = kindOf(path);
    if (kind === "passing") continue;
    if (!isFolder(dataDirectory, path, entry)) yield { path, kind };
    else if (folder !== "" || FOLDERS.has(entry.name)) yield* scanFiles(dataDirectory, path);
    else yield { path: `${path}/`, kind: "stranger" };
  }
}

/** Whether an entry is a folder. A folder may be a link to another disk. A removed one is not a folder. */
function isFolder(dataDirectory: string, path: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(join(dataDirectory, path), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Lists the entries of a folder in order of name; none for a missing folder. */
function entriesOf(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true }).sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch (cause) {
    if (isMissing(cause)) return [];
    throw cause;
  }
}
