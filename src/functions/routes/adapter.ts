import type { ElysiaAdapter } from "elysia/adapter";
import { BunAdapter } from "elysia/adapter/bun";

const { mapResponse } = BunAdapter.handler;

/**
 * Elysia for Bun, except for a handler's own `Response`: it gets the headers that every answer has. Elysia would make another one of
 * its body, which has lost the type of its content.
 */
export const ADAPTER: ElysiaAdapter = {
  ...BunAdapter,
  handler: {
    ...BunAdapter.handler,
    mapResponse(response, set, ...rest) {
      const isPlain = response instanceof Response && set.cookie === undefined && (set.status ?? 200) === 200;
      return isPlain && decorate(response, set.headers) ? response : mapResponse(response, set, ...rest);
    },
  },
};

/** false: its headers cannot be changed. */
function decorate({ headers }: Response, added: Readonly<Record<string, unknown>>): boolean {
  try {
    for (const [name, value] of Object.entries(added)) {
      const isOwn = name !== "x-request-id" && headers.has(name);
      if (typeof value === "string" && !isOwn) headers.set(name, value);
    }
    return true;
  } catch {
    return false;
  }
}
