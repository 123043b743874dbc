import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { kvLayout } from "../../../../schema/migrations/index.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { KeyValueAccessor } from "../../config/app/index.ts";
import { layOut, type StorageEngine } from "../../db/index.ts";
import { keyValueEndpoints } from "./endpoints.ts";
import { CACHE_KIB } from "./limits.ts";
import { createKeyValueAccessor, createKeyValueService, type KeyValueService } from "./service.ts";
import { createEntryStore, type EntryStore, startSweep } from "./store.ts";

export type KeyValueArea = ReturnType<typeof createKeyValueArea>;

/** Creates the key-value area: namespaces, one file each: `<data>/kv/NAME.db`. Rules: SPEC.md. */
export function createKeyValueArea(deps: {
  /** The names under `kv` in the config. */
  namespaces: readonly string[];
  engine: StorageEngine;
  dataDirectory: string;
  clock: Clock;
  logger: Logger;
}) {
  const { engine, clock, logger } = deps;
  const services = new Map<string, KeyValueService>();
  const stores: EntryStore[] = [];
  const directory = join(deps.dataDirectory, "kv");
  if (deps.namespaces.length > 0) mkdirSync(directory, { recursive: true });
  for (const namespace of deps.namespaces) {
    const path = join(directory, `${namespace}.db`);
    const store = createEntryStore(engine.open(path, { migrate: layOut(kvLayout), cacheKiB: CACHE_KIB }), namespace);
    stores.push(store);
    services.set(namespace, createKeyValueService({ store, clock }));
  }
  const stopSweep = stores.length === 0 ? async () => {} : startSweep({ stores, clock, logger });

  return {
    endpoints: keyValueEndpoints(services),
    /** Returns `app.kv(namespace)`. Errors: 404 if no such namespace is declared. */
    accessor(namespace: string): KeyValueAccessor {
      const service = services.get(namespace);
      if (service === undefined) throw notFound(`There is no key-value namespace "${namespace}"`);
      return createKeyValueAccessor(service);
    },
    /** Stops the sweep. The engine closes the files. */
    stop: stopSweep,
  };
}
