/** What lies where in a data directory, as far as a backup is concerned. The whole of it: schema/STORAGE.md. */

/** A server refuses to start where this is: a restore is under way, or was interrupted. */
export const RESTORE_FOLDER = "restore.partial";
/** Where a scheduled backup is made that goes to an object store. */
export const UPLOAD_FOLDER = "backup.partial";
export const SYSTEM_FILE = "system.db";
export const SECRETS_FILE = "secrets.json";

/** The folders of a data directory that hold something to keep. */
export const FOLDERS: ReadonlySet<string> = new Set(["databases", "kv", "d1", "vectorize", "storage", "outbox"]);

const NAME = "[A-Za-z_][A-Za-z0-9_-]{0,63}";
const INSTANCE = "[A-Za-z0-9_-]{1,128}";
const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";

const DATABASE = new RegExp(
  `^(?:(?:system|rooms|analytics)\\.db|(?:databases|kv|d1|vectorize)/${NAME}\\.db|databases/${NAME}/${INSTANCE}\\.db)$`,
);
const OBJECT = new RegExp(`^storage/(?:objects|parts)/([0-9a-f]{2})/${UUID}$`);
const PLAIN = new RegExp(`^(?:${SECRETS_FILE.replace(".", "\\.")}|outbox/${UUID}\\.json)$`);

/** What the server makes again by itself, or needs only while it runs. */
const PASSING = new RegExp(
  [
    "^platform\\.lock(?:-journal)?$",
    // A restored copy is another data directory, for the object stores too.
    "^owner-id(?:\\.\\d+\\.new)?$",
    "\\.db-(?:wal|shm|journal)$",
    "\\.db\\.new$",
    "^secrets\\.json\\.\\d+\\.new$",
    "^vectorize/vec0\\.(?:so|dylib|dll)(?:\\.\\d+)?$",
    "^storage/(?:objects|parts)/incoming(?:/|$)",
    "^storage/thumbs(?:/|$)",
    `^(?:${RESTORE_FOLDER}|${UPLOAD_FOLDER})(?:/|$)`.replaceAll(".partial", "\\.partial"),
  ].join("|"),
);

/** `object`: the content of a stored file, which never changes. `stranger`: nothing of the server's. */
export type FileKind = "database" | "object" | "plain" | "passing" | "stranger";

/** `path` is relative to the data directory, with `/`. What is not in one of its known forms is a stranger. */
export function kindOf(path: string): FileKind {
  if (DATABASE.test(path)) return "database";
  const [, fanOut] = OBJECT.exec(path) ?? [];
  if (fanOut !== undefined) return path.endsWith(fanOut) ? "object" : "stranger";
  if (PLAIN.test(path)) return "plain";
  return PASSING.test(path) ? "passing" : "stranger";
}

/** Whether a backup has it: all else in an archive is refused. */
export const isKept = (path: string): boolean => ["database", "object", "plain"].includes(kindOf(path));

export const STORAGE_FOLDERS = ["objects", "parts"] as const;
export type StorageFolder = (typeof STORAGE_FOLDERS)[number];

export const objectPath = (folder: StorageFolder, fileId: string): string =>
  `storage/${folder}/${fileId.slice(-2)}/${fileId}`;
