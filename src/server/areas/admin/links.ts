import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { CODE_BYTES, LINK_TTL_MS, LINKS_MAX } from "./limits.ts";

const FOLDER = "admin-links";
const OWNER_ONLY = 0o700;

// A link's code is a file in the data directory, named by its hash. So the command line can create links while the server runs,
// whoever may write to the data directory may sign in, and a used code stays used after a restart.

const fileOf = (dataDirectory: string, code: string): string =>
  join(dataDirectory, FOLDER, new Bun.CryptoHasher("sha256").update(code).digest("hex"));

/** Creates a code that signs in once, with the root key's rights, within LINK_TTL_MS. Errors: the directory cannot be written. */
export function createLinkCode(dataDirectory: string, { ids }: { ids: Ids }): string {
  const folder = join(dataDirectory, FOLDER);
  mkdirSync(folder, { recursive: true, mode: OWNER_ONLY });
  removeOldest(folder);
  const code = ids.secret(CODE_BYTES);
  replaceSmallFile(fileOf(dataDirectory, code), "");
  return code;
}

const ADDRESS_FILE = "address";

/** Saves the server's address, for links that the command line creates. Writes only if it has changed. */
export function noteAddress(dataDirectory: string, address: string): void {
  if (addressOf(dataDirectory) === address) return;
  const folder = join(dataDirectory, FOLDER);
  mkdirSync(folder, { recursive: true, mode: OWNER_ONLY });
  replaceSmallFile(join(folder, ADDRESS_FILE), address);
}

/** Returns the server's address at its last start; null if it was never started. */
export function addressOf(dataDirectory: string): string | null {
  const file = join(dataDirectory, FOLDER, ADDRESS_FILE);
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

/** Creates a link that signs in once. Errors: those of `createLinkCode`. */
export const linkAt = (address: string, dataDirectory: string, deps: { ids: Ids }): string =>
  `${address}/admin#code=${createLinkCode(dataDirectory, deps)}`;

/** Uses a code up. Returns false if it is unknown, used, or expired. */
export function useLinkCode(dataDirectory: string, code: string, { clock }: { clock: Clock }): boolean {
  const file = fileOf(dataDirectory, code);
  if (!existsSync(file)) return false;
  const ageMs = clock.now() - statSync(file).mtimeMs;
  // Removed before anything is granted, so that two requests cannot use the same code.
  rmSync(file);
  return ageMs < LINK_TTL_MS;
}

/** Removes the oldest codes, to make room for one more. */
function removeOldest(folder: string): void {
  const names = readdirSync(folder).filter((name) => name !== ADDRESS_FILE);
  const files = names.map((name) => join(folder, name));
  if (files.length < LINKS_MAX) return;
  const byAge = files.map((file) => ({ file, time: statSync(file).mtimeMs })).sort((a, b) => a.time - b.time);
  for (const { file } of byAge.slice(0, files.length - LINKS_MAX + 1)) rmSync(file, { force: true });
}
