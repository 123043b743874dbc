import { CommandError, noAnswer, UsageError } from "./errors.ts";

/** A running server, and the service key for it. */
export interface Remote {
  key: string;
  /** Errors: CommandError if it does not answer, or sends the request on: the key goes to the given address only. */
  send(path: string, init?: RequestInit): Promise<Response>;
}

/** For `--url` and `--key`. Errors: UsageError. */
export function remoteOf(url: string, given: string | undefined): Remote {
  const base = URL.parse(url);
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw new UsageError(`--url must be an http URL, got "${url}"`);
  }
  const key = given ?? process.env["PLATFORM_SERVICE_KEY"] ?? "";
  if (key === "") throw new UsageError("--url needs --key, or PLATFORM_SERVICE_KEY in the environment");
  return {
    key,
    async send(path, init) {
      const answer = await fetch(`${url.replace(/\/$/, "")}${path}`, { ...init, redirect: "manual" }).catch(
        (cause: unknown) => {
          throw noAnswer(url, cause);
        },
      );
      const location = answer.status < 400 ? answer.headers.get("location") : null;
      if (location === null) return answer;
      throw new CommandError(
        `${url} sends the request on to ${location}; --url must be the address of the server itself`,
      );
    },
  };
}
