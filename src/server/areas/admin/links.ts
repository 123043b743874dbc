import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { CODE_BYTES, LINK_TTL_MS, LINKS_MAX } from "./limits.ts";

const FOLDER = "admin-links";
const OWNER_ONLY = 0o700;

// A link's code is a file in the data directory, named by its hash. So the command line makes links beside a running server,
// who may write the data directory may sign in, and a code that has been used stays used after a restart.

const fileOf = (dataDirectory: string, code: string): string =>
  join(dataDirectory, FOLDER, new Bun.CryptoHasher("sha256").update(code).digest("hex"));

/** A code that signs in once, with the root key's rights, within LINK_TTL_MS. Errors: the directory cannot be written. */
export function createLinkCode(dataDirectory: string, { ids }: { ids: Ids }): string {
  const folder = join(dataDirectory, FOLDER);
  mkdirSync(folder, { recursive: true, mode: OWNER_ONLY });
  removeOldest(folder);
  const code = ids.secret(CODE_BYTES);
  replaceSmallFile(fileOf(dataDirectory, code), "");
  return code;
}

const ADDRESS_FILE = "address";

/** Notes where the server is reached, for links that the command line makes. It writes only what has changed. */
export function noteAddress(dataDirectory: string, address: string): void {
  if (addressOf(dataDirectory) === address) return;
  const folder = join(dataDirectory, FOLDER);
  mkdirSync(folder, { recursive: true, mode: OWNER_ONLY });
  replaceSmallFile(join(folder, ADDRESS_FILE), address);
}

/** Where the server was reached when it was started last; null: it never was. */
export function addressOf(dataDirectory: string): string | null {
  const file = join(dataDirectory, FOLDER, ADDRESS_FILE);
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

/** A link that signs in once. Errors: as for `createLinkCode`. */
export const linkAt = (address: string, dataDirectory: string, deps: { ids: Ids }): string =>
  `${address}/admin#code=${createLinkCode(dataDirectory, deps)}`;

/** Uses a code up. false: it is unknown, used, or too old. */
export function useLinkCode(dataDirectory: string, code: string, { clock }: { clock: Clock }): boolean {
  const file = fileOf(dataDirectory, code);
  if (!existsSync(file)) return false;
  const ageMs = clock.now() - statSync(file).mtimeMs;
  // Gone before anything is granted: a code cannot be used by two requests.
  rmSync(file);
  return ageMs < LINK_TTL_MS;
}

/** Makes room for one more. */
function removeOldest(folder: string): void {
  const names = readdirSync(folder).filter((name) => name !== ADDRESS_FILE);
  const files = names.map((name) => join(folder, name));
  if (files.length < LINKS_MAX) return;
  const byAge = files.map((file) => ({ file, time: statSync(file).mtimeMs })).sort((a, b) => a.time - b.time);
  for (const { file } of byAge.slice(0, files.length - LINKS_MAX + 1)) rmSync(file, { force: true });
}
