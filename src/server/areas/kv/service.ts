import type { Clock } from "../../../kernel/clock.ts";
import { tooLarge } from "../../../kernel/errors.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { KeyValueAccessor } from "../../config/app/index.ts";
import { type Actor, type ReadCaller, SERVER_ACTOR, SERVER_CALLER } from "../../db/index.ts";
import { Action, decodeCursor } from "./actions.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, VALUE_MAX_BYTES } from "./limits.ts";
import type { EntryStore, KeyPage } from "./store.ts";

/** Options of a list. Members that are absent or null take their defaults; `cursor` is one that a page returned. */
export interface KeyListing {
  prefix?: string | null;
  limit?: number | null;
  cursor?: string | null;
}

export type KeyValueService = ReturnType<typeof createKeyValueService>;

export function createKeyValueService(deps: { store: EntryStore; clock: Clock }) {
  const { store, clock } = deps;
  return {
    /** Returns the value's JSON text; `"null"` if missing or expired. */
    get: (key: string): string => store.get(key, clock.now()) ?? "null",
    /** Replaces value and time to live. Errors: 413 over 1 MiB of JSON. Durable when it resolves. */
    set(key: string, value: JsonValue, { ttlSeconds, by }: { ttlSeconds: number | null; by: Actor }): Promise<void> {
      const text = JSON.stringify(value);
      // UTF-8 has at most three bytes per UTF-16 unit, so small values need no count.
      if (text.length * 3 > VALUE_MAX_BYTES) {
        const sizeBytes = Buffer.byteLength(text);
        if (sizeBytes > VALUE_MAX_BYTES) {
          throw tooLarge(`value must be at most ${VALUE_MAX_BYTES} bytes of JSON, got ${sizeBytes}`);
        }
      }
      const expiresAt = ttlSeconds === null ? null : clock.now() + ttlSeconds * SECOND_MS;
      return store.set(key, text, { expiresAt, by });
    },
    /** Deletes the key, if it exists. */
    delete: (key: string, by: Actor): Promise<void> => store.delete(key, by),
    /** Lists keys. Errors: 400 for a cursor that no page returned; 408 and 503 if very many expired keys are not swept yet. */
    async list({ prefix, limit, cursor }: KeyListing, caller: ReadCaller): Promise<KeyPage> {
      const after = cursor === undefined || cursor === null ? null : decodeCursor(cursor);
      const most = Math.min(limit ?? LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX);
      return store.list({ prefix: prefix ?? "", limit: most, after }, clock.now(), caller);
    },
  };
}

const actions = createParser(Action);

/** Creates `app.kv(name)` for a service; arguments are checked like a request's body. */
export function createKeyValueAccessor(service: KeyValueService): KeyValueAccessor {
  return {
    async get(key) {
      actions.parse({ action: "get", key });
      return JSON.parse(service.get(key));
    },
    async set(key, value, options = {}) {
      const action = jsonCopy({ action: "set", key, value, ...options });
      actions.parse(action);
      await service.set(key, action["value"] ?? null, { ttlSeconds: options.ttl ?? null, by: SERVER_ACTOR });
    },
    async delete(key) {
      actions.parse({ action: "delete", key });
      await service.delete(key, SERVER_ACTOR);
    },
    async list(options = {}) {
      actions.parse(jsonCopy({ action: "list", ...options }));
      const page = await service.list(options, SERVER_CALLER);
      return { ...page, items: page.keys, hasMore: page.cursor !== null };
    },
  };
}
