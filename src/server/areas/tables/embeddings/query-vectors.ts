import { LRUCache } from "lru-cache";
import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, reasonOf } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import { EMBED_QUERY_TIMEOUT_MS, QUERY_VECTOR_TTL_MS, QUERY_VECTORS_MAX } from "../limits.ts";
import { embedTexts } from "./calling.ts";
import type { EmbeddedModel } from "./machine.ts";

/**
 * Creates a function that returns the vector of a searched text, which is kept for an hour for the same caller: how long a search takes must not
 * tell what others have searched. Errors: 503 where the config's function fails or takes too long.
 */
export function createQueryVectors(deps: { app: () => AppAccess; clock: Clock; logger: Logger }) {
  const { clock, logger } = deps;
  const kept = new LRUCache<string, Promise<Uint8Array>>({
    max: QUERY_VECTORS_MAX,
    ttl: QUERY_VECTOR_TTL_MS,
    perf: { now: () => clock.now() },
  });
  return (model: EmbeddedModel & { namespace: string }, q: string, callerName: string): Promise<Uint8Array> => {
    const key = JSON.stringify([model.namespace, model.name, callerName, q]);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const app = deps.app();
    const made = embedTexts(model.embed, [q], { app, clock, timeoutMs: EMBED_QUERY_TIMEOUT_MS }).then(
      ([vector]) => vector as Uint8Array, // One text has one vector.
      (cause: unknown) => {
        if (kept.peek(key) === made) kept.delete(key);
        const path = `databases.${model.namespace}.tables.${model.name}.embed.with`;
        logger.error("tables: a searched text has no vector", { path, reason: reasonOf(cause) });
        throw new AppError(503, "The text could not be compared by its meaning; the search may be sent again", {
          cause,
        });
      },
    );
    kept.set(key, made);
    return made;
  };
}
