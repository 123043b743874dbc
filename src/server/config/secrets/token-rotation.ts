import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceSmallFile } from "../../disk/small-file.ts";

/** The keys that sign access tokens, where the config declares `auth.tokens`. */
export const TOKEN_KEYS_FILE = "token-keys.json";
/** Asks the server for a new key of access tokens; it removes the file when the new key signs. */
export const TOKEN_ROTATION_FILE = "token-keys.rotate";

/** Asks the server of a data directory, or its next start, for a new key of access tokens. Errors: the directory cannot be written. */
export function askForTokenKey(dataDirectory: string): void {
  replaceSmallFile(join(dataDirectory, TOKEN_ROTATION_FILE), "");
}

/** Whether a new key has been asked for and does not sign yet. */
export const isTokenKeyAwaited = (dataDirectory: string): boolean =>
  existsSync(join(dataDirectory, TOKEN_ROTATION_FILE));

/** Takes the request back. */
export const cancelTokenKey = (dataDirectory: string): void =>
  rmSync(join(dataDirectory, TOKEN_ROTATION_FILE), { force: true });

/** Returns the id of the key that signs. Errors: the file is missing or broken. */
export function signingKeyId(dataDirectory: string): string {
  const { keys } = JSON.parse(readFileSync(join(dataDirectory, TOKEN_KEYS_FILE), "utf8"));
  return keys[0].kid;
}
