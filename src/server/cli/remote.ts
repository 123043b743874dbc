import { CommandError, noAnswer, UsageError } from "./errors.ts";
import { isHttpUrl } from "./options.ts";

/** A running server, and the service key for it. */
export interface Remote {
  key: string;
  /** Sends a request. Errors: CommandError if the server does not answer, or redirects: the key goes only to the given address. */
  send(path: string, init?: RequestInit): Promise<Response>;
}

/** Returns the server that `--url` and `--key` name; null without `--url`. Errors: UsageError. */
export function remoteOf(given: { url?: string | undefined; key?: string | undefined }): Remote | null {
  const { url, key = process.env["PLATFORM_SERVICE_KEY"] ?? "" } = given;
  if (url === undefined) {
    if (given.key !== undefined) throw new UsageError("--key is for --url");
    return null;
  }
  if (!isHttpUrl(url)) throw new UsageError(`--url must be an http or https URL, got "${url}"`);
  if (key === "") throw new UsageError("--url needs --key, or PLATFORM_SERVICE_KEY in the environment");
  const address = url.replace(/\/$/, "");
  return {
    key,
    async send(path, init) {
      const answer = await fetch(`${address}${path}`, { ...init, redirect: "manual" }).catch((cause: unknown) => {
        throw noAnswer(address, cause);
      });
      const location = answer.status < 400 ? answer.headers.get("location") : null;
      if (location === null) return answer;
      throw new CommandError(
        `${address} sends the request on to ${location}; --url must be the address of the server itself`,
      );
    },
  };
}
