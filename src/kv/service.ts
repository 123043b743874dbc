import type { KeyValueAccessor } from "../config/app-access.ts";
import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { badField, tooLarge } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json.ts";
import { jsonCopy } from "../kernel/json-copy.ts";
import { parseKeyQuery, parseTtl } from "./actions.ts";
import { parseKey } from "./keys.ts";
import { VALUE_MAX_BYTES } from "./limits.ts";
import type { EntryStore } from "./store.ts";
import type { KeyPage, KeyQuery } from "./types.ts";

export interface KeyValueService {
  /** The value's JSON text; `"null"` when missing or expired. */
  get(key: string): string;
  /** Replaces value and time to live. Errors: 413 over 1 MiB of JSON. Durable when it resolves. */
  set(key: string, value: JsonValue, ttlSeconds: number | null): Promise<void>;
  /** Also for a key that is not there. */
  delete(key: string): Promise<void>;
  list(query: KeyQuery): KeyPage;
}

export function createKeyValueService(deps: { store: EntryStore; clock: Clock }): KeyValueService {
  const { store, clock } = deps;
  return {
    get: (key) => store.get(key, clock.now()) ?? "null",
    set(key, value, ttlSeconds) {
      const text = JSON.stringify(value);
      // UTF-8 has at most three bytes for a UTF-16 unit: small values need no count.
      if (text.length * 3 > VALUE_MAX_BYTES) {
        const sizeBytes = Buffer.byteLength(text);
        if (sizeBytes > VALUE_MAX_BYTES) {
          throw tooLarge(`"value" must be at most ${VALUE_MAX_BYTES} bytes of JSON, got ${sizeBytes}`);
        }
      }
      return store.set(key, text, ttlSeconds === null ? null : clock.now() + ttlSeconds * SECOND_MS);
    },
    delete: (key) => store.delete(key),
    list: (query) => store.list(query, clock.now()),
  };
}

/** `app.kv(name)`: the same service, its arguments checked as a request's are. */
export function createKeyValueAccessor(service: KeyValueService): KeyValueAccessor {
  return {
    async get(key) {
      return JSON.parse(service.get(parseKey(key, "key", 1)));
    },
    async set(key, value, options = {}) {
      if (value === undefined) throw badField("value", "required", '"value" is required');
      const copy = jsonCopy({ value })["value"] ?? null;
      await service.set(parseKey(key, "key", 1), copy, parseTtl(options.ttl));
    },
    async delete(key) {
      await service.delete(parseKey(key, "key", 1));
    },
    list: async (options = {}) => service.list(parseKeyQuery(options)),
  };
}
