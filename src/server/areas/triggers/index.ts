import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { Foreground } from "../../../kernel/observing/foreground.ts";
import type { AppAccess, User } from "../../config/app/index.ts";
import type { PlatformConfig, Subject } from "../../config/types.ts";
import type { DatabaseFile, OpenedFile } from "../../db/index.ts";
import type { Queue } from "../../jobs/index.ts";
import { Drains } from "./drains.ts";
import type { Outboxes } from "./outboxes.ts";
import { hookDefinition, triggerDefinition } from "./runs.ts";
import { startScan } from "./scan.ts";
import type { AccountNotes, FileNotes, Occurrence, PassJobs } from "./types.ts";
import { compileWatches, type Filters, noteHappening, type Watch } from "./watches.ts";

export { Outboxes } from "./outboxes.ts";

export interface TriggersArea {
  readonly files: FileNotes;
  readonly accounts: AccountNotes;
  /** Stops passing jobs to the queue. Remaining jobs wait in their files. */
  stop(): Promise<void>;
}

type WatchConfig = Pick<PlatformConfig, "triggers" | "webhooks" | "databases" | "auth" | "jobs">;

/** Returns the namespaces with tables that a trigger or webhook watches. */
export function watchedNamespaces({ triggers, webhooks }: WatchConfig): ReadonlySet<string> {
  const sources = [...Object.values(triggers ?? {}), ...Object.values(webhooks ?? {})].map(({ on }) => on);
  return new Set(sources.flatMap((on) => ("table" in on ? (on.table.split(".")[0] ?? []) : [])));
}

/**
 * Creates the triggers, and the outboxes by which triggers, webhooks and jobs of transactions reach the queue. Rules: SPEC.md.
 * Errors: a filter that does not fit its table.
 */
export function createTriggersArea(deps: {
  config: WatchConfig;
  outboxes: Outboxes;
  systemFile: OpenedFile;
  dataDirectory: string;
  queue: Pick<Queue, "define">;
  pass: PassJobs;
  filters: Filters;
  /** Returns the file of tables; null: it does not exist. */
  tableFile(namespace: string, instanceId: string | null): DatabaseFile | null;
  app: () => AppAccess;
  foreground: Foreground;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): TriggersArea {
  const { config, outboxes, systemFile, pass, clock, ids, logger } = deps;
  const watches = compileWatches(watchesOf(config), deps.filters);
  const drains = new Drains({
    pass,
    fileOf: (place) => (place.kind === "system" ? systemFile : deps.tableFile(place.namespace, place.instanceId)),
    foreground: deps.foreground,
    clock,
    logger,
  });
  outboxes.connect(watches, drains);
  for (const [name, trigger] of Object.entries(config.triggers ?? {})) {
    deps.queue.define(`trigger:${name}`, triggerDefinition(name, trigger, deps));
  }
  for (const { name, on, hook } of accountHooks(config)) {
    deps.queue.define(name, hookDefinition(`auth.hooks.${on}`, hook, deps));
  }
  const stopScan = startScan({
    namespaces: dynamicNamespaces(config, deps.dataDirectory),
    onFound: (namespace, instanceId) => drains.wake({ kind: "tables", namespace, instanceId }),
    clock,
    logger,
  });
  const context = { clock, ids, causes: outboxes.causes };
  return {
    files: {
      isWatched: (bucket, event) => watches.bucket(bucket)?.has(event) === true,
      note(tx, { bucket, event, by, before, after }) {
        const of = watches.bucket(bucket);
        if (of === undefined) return;
        const subjectId = (after ?? before)?.key ?? "";
        const source = `bucket.${bucket}`;
        // The facts of a file are JSON values.
        const facts = { before, after } as unknown as Record<"before" | "after", Subject | null>;
        noteHappening(tx, of, { source, event, subjectId, instanceId: null, by, ...facts }, context);
      },
    },
    accounts: {
      isWatched: (event) => watches.accounts.has(event),
      note(tx, { event, by, user, invitation }) {
        const [before, after] = event === "delete" ? [user, null] : [null, user];
        const subjectId = String(user["id"]);
        const happening = { source: "auth", event, subjectId, instanceId: null, before, after, by, invitation };
        noteHappening(tx, watches.accounts, happening, context);
      },
    },
    async stop() {
      await Promise.all([stopScan(), drains.stop()]);
    },
  };
}

const NOTHING_INVITED = { role: null, data: {}, invitedBy: null };

/** Returns the names of the jobs of `auth.hooks`. */
function accountHooks({ auth }: WatchConfig) {
  const { afterSignup, afterAccept, afterDelete } = auth?.hooks ?? {};
  const declared = [
    { name: "platform.afterSignup", on: "afterSignup", event: "signup", hook: afterSignup },
    {
      name: "platform.afterAccept",
      on: "afterAccept",
      event: "accept",
      hook:
        afterAccept === undefined
          ? undefined
          : (user: User, app: AppAccess, { invitation }: Occurrence) =>
              afterAccept(user, invitation ?? NOTHING_INVITED, app),
    },
    { name: "platform.afterDelete", on: "afterDelete", event: "delete", hook: afterDelete },
  ] as const;
  return declared.flatMap(({ hook, ...rest }) => (hook === undefined ? [] : [{ ...rest, hook }]));
}

function watchesOf(config: WatchConfig): Watch[] {
  const { triggers = {}, webhooks = {} } = config;
  const ofHooks = accountHooks(config).map(({ name, on, event }) => ({
    path: `auth.hooks.${on}`,
    name,
    on: { auth: [event] },
    filter: undefined,
    isOrdered: true,
  }));
  const ofTriggers = Object.entries(triggers).map(([name, { on, filter }]) => ({
    path: `triggers.${name}`,
    name: `trigger:${name}`,
    on,
    filter,
    isOrdered: true,
  }));
  // A retry of a delivery does not block later ones.
  const ofWebhooks = Object.entries(webhooks).map(([name, { on, filter }]) => ({
    path: `webhooks.${name}`,
    name: `webhook:${name}`,
    on,
    filter,
    isOrdered: false,
  }));
  return [...ofTriggers, ...ofWebhooks, ...ofHooks];
}

/**
 * Returns the dynamic namespaces with files that may have rows: those that are watched, or whose records have files, all where
 * transactions may enqueue jobs,
 * and those where entries for the audit log may be left: there is a log, or a crash has left write-ahead logs.
 */
function dynamicNamespaces(config: WatchConfig, dataDirectory: string) {
  const { databases = {}, jobs = {} } = config;
  const watched = watchedNamespaces(config);
  const hasAudit = existsSync(join(dataDirectory, "audit.db"));
  const mayEnqueue = Object.keys(jobs).length > 0;
  const hasFiles = (name: string): boolean =>
    Object.values(databases[name]?.tables ?? {}).some(({ schema = {} }) =>
      Object.values(schema).some((field) => field !== false && field.type === "file"),
    );
  return Object.entries(databases)
    .filter(([, { instance }]) => instance === true)
    .map(([name]) => ({ name, directory: join(dataDirectory, "databases", name) }))
    .filter(
      ({ name, directory }) =>
        existsSync(directory) &&
        (mayEnqueue || watched.has(name) || hasFiles(name) || hasAudit || hasLeftWal(directory)),
    );
}

const hasLeftWal = (directory: string): boolean => readdirSync(directory).some((name) => name.endsWith("-wal"));
