import type { Clock } from "../../../../kernel/clock.ts";
import { type AppError, serverStopping } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import { type Change, type DatabaseFile, readMeta } from "../../../db/index.ts";
import {
  FOLLOWERS_FIRST_SWEEP_MS,
  FOLLOWERS_PER_SWEEP,
  FOLLOWERS_SWEEP_MS,
  FOLLOWERS_SWEEP_PAUSE_MS,
} from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { Namespace } from "../records/namespaces.ts";
import {
  compareFields,
  type Following,
  fieldsOf,
  followerOf,
  hasReferences,
  nameOf,
  placeIn,
  placeOf,
} from "./follower.ts";
import { targetOf } from "./log.ts";
import { carryOut, isBehind } from "./machine.ts";

type Dynamic = Namespace & { kind: "dynamic" };

/** Ends references to records that are deleted in files of other namespaces. */
export type Followers = ReturnType<typeof createFollowers>;

type Deps = { namespaces: ReadonlyMap<string, Namespace>; clock: Clock; logger: Logger };

export function createFollowers({ namespaces, clock, logger }: Deps) {
  const all = new Map([...namespaces].map(([name, namespace]) => [name, followingsOf(namespace, namespaces)]));
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = new Set<Promise<void>>();
  const followingsIn = (name: string): readonly Following[] => all.get(name) ?? [];
  const broughtUp = createBringingUp(followingsIn, { clock, logger, signal });
  /** Keeps track of work, so that a stop waits for it. */
  const tracked = (work: Promise<void>): Promise<void> => {
    const settled = work.catch(() => {}).finally(() => running.delete(settled));
    running.add(settled);
    return work;
  };

  const ofInstances = async ({ name, instances }: Dynamic): Promise<void> => {
    for (const instanceId of instances.openIds()) {
      signal.throwIfAborted();
      await instances.catchUp(instanceId).catch((cause: unknown) => failed(name, cause));
    }
  };
  const failed = (namespace: string, cause: unknown): void => {
    if (!signal.aborted) logger.error("ending references to deleted records failed", { namespace, cause });
  };
  const passes = new Map(
    [...namespaces].map(([name, one]) => [name, one.kind === "dynamic" ? once(ofInstances) : null]),
  );

  let stopSweep: (() => Promise<void>) | null = null;
  return {
    /** The references of a namespace to those of another one. */
    following: (namespace: string, to: string): Following | null =>
      followingsIn(namespace).find((one) => one.to.name === to) ?? null,

    /**
     * Called with a file of a namespace that has been opened: resolves when it may be used; undefined: now. Errors: what was to be done
     * could not be done.
     */
    opened(namespace: string, file: DatabaseFile): Promise<void> | undefined {
      const isReady = followingsIn(namespace).every((following) => {
        const opening = following.to.file.ready();
        opening?.catch(() => {});
        return opening === undefined && isUpToDate(file, following);
      });
      return isReady ? undefined : tracked(broughtUp(file, namespace));
    },

    /** Carries out what concerns this file. */
    async caughtUp({ namespace: name, instanceId }: { namespace: string; instanceId: string | null }): Promise<void> {
      const namespace = namespaces.get(name);
      if (namespace?.kind === "static") await tracked(broughtUp(namespace.file, name));
      else if (instanceId !== null) await namespace?.instances.catchUp(instanceId);
    },

    /** Called with changes of a namespace that are on disk. */
    announced(name: string, groups: readonly (readonly Change[])[]): void {
      const tables = namespaces.get(name)?.tables;
      const isLogged = ({ table, after }: Change) => after === null && tables?.get(table)?.model.isLogged === true;
      if (signal.aborted || !groups.some((changes) => changes.some(isLogged))) return;
      for (const [other, followings] of all) {
        const namespace = namespaces.get(other);
        if (namespace === undefined || !followings.some(({ to }) => to.name === name)) continue;
        const work =
          namespace.kind === "static" ? broughtUp(namespace.file, other) : passes.get(other)?.(namespace, undefined);
        if (work !== undefined) tracked(work).catch((cause: unknown) => failed(other, cause));
      }
    },

    /** Brings the files of namespaces without instances up to date, and begins to sweep instances. */
    async start(): Promise<void> {
      for (const [name, namespace] of namespaces) {
        if (namespace.kind !== "static" || followingsIn(name).length === 0) continue;
        await namespace.file.ready();
        await tracked(broughtUp(namespace.file, name));
      }
      // What a cascade has deleted concerns further files.
      while (running.size > 0) await Promise.all(running);
      const dynamic = [...namespaces.values()].filter(
        (one): one is Dynamic => one.kind === "dynamic" && followingsIn(one.name).length > 0,
      );
      if (dynamic.length === 0) return;
      const sweep = createSweep(dynamic, followingsIn, failed);
      const onFailure = (cause: unknown) => failed("", cause);
      const times = {
        firstMs: FOLLOWERS_FIRST_SWEEP_MS,
        intervalMs: FOLLOWERS_SWEEP_MS,
        pauseMs: FOLLOWERS_SWEEP_PAUSE_MS,
      };
      stopSweep = startSweeping({ clock, ...times, sweep, onFailure });
    },

    async stop(): Promise<void> {
      stopping.abort(serverStopping());
      await stopSweep?.();
      await Promise.all(running);
    },
  };
}

/** Returns what brings a file up to date, once at a time. */
function createBringingUp(
  followingsIn: (namespace: string) => readonly Following[],
  { clock, logger, signal }: { clock: Clock; logger: Logger; signal: AbortSignal },
): (file: DatabaseFile, namespace: string) => Promise<void> {
  const now = () => new Date(clock.now()).toISOString();
  return once(async (file: DatabaseFile, namespace: string) => {
    for (const following of followingsIn(namespace)) {
      signal.throwIfAborted();
      await following.to.file.ready();
      const left = await compareFields(file, following);
      for (const [field, count] of left) {
        const facts = { file: file.path, references: count };
        logger.warn(`databases.${namespace}.${field}: refers to records that do not exist, and they stay so`, facts);
      }
      const conflict = (cause: AppError, table: string, id: string): void =>
        logger.error(`A reference to the deleted record ${id} of ${table} could not be ended`, { cause });
      const stuck = (cause: unknown, { name }: TableModel, id: string): void =>
        logger.error(`The record ${id} of ${namespace}.${name} cannot refer to the account that stays after a merge`, {
          cause,
        });
      await carryOut(following.target, followerOf(file, following, { now, signal, conflict, stuck }));
    }
  });
}

/** Whether a file has nothing to do before it is used. */
function isUpToDate(file: DatabaseFile, following: Following): boolean {
  const place = placeIn(file, following);
  if (place === null) return !hasReferences(file, following);
  return Bun.deepEquals(place.fields, fieldsOf(following)) && !isBehind(following.target, place);
}

/** Returns what a namespace refers to, by the other namespace. */
function followingsOf({ tables }: Namespace, namespaces: ReadonlyMap<string, Namespace>): Following[] {
  const edges = [...tables.values()].flatMap(({ model }) => (model.view === null ? model.far : []));
  const tableOf = ({ name }: TableModel) => {
    const table = tables.get(name);
    if (table === undefined) throw new Error(`the table ${name} is of another namespace`);
    return table;
  };
  return [...new Set(edges.map(({ to }) => to.namespace))].flatMap((name) => {
    const to = namespaces.get(name);
    if (to?.kind !== "static") return [];
    return [{ to, target: targetOf(to), edges: edges.filter((edge) => edge.to.namespace === name), tableOf }];
  });
}

/** Runs `work` once at a time for an object. Who asks while it runs gets a run that begins after it. */
function once<Key extends object, More>(work: (key: Key, more: More) => Promise<void>) {
  const runs = new WeakMap<Key, { present: Promise<void>; next: Promise<void> | null }>();
  const begin = (key: Key, more: More): Promise<void> => {
    const run = { present: work(key, more), next: null };
    runs.set(key, run);
    return run.present.finally(() => {
      if (runs.get(key) === run) runs.delete(key);
    });
  };
  return (key: Key, more: More): Promise<void> => {
    const run = runs.get(key);
    if (run === undefined) return begin(key, more);
    const again = () => begin(key, more);
    run.next ??= run.present.then(again, again);
    return run.next;
  };
}

/** Returns a sweep of the instances that are not open: those that are behind are opened, which brings them up to date. */
function createSweep(
  namespaces: readonly Dynamic[],
  followingsIn: (name: string) => readonly Following[],
  failed: (namespace: string, cause: unknown) => void,
): (stopping: AbortSignal) => Promise<boolean> {
  let at = 0;
  let after = "";
  return async (stopping) => {
    const namespace = namespaces[at];
    if (namespace === undefined) {
      at = 0;
      return false;
    }
    const { name, instances } = namespace;
    const page = await instances.list({ after, limit: FOLLOWERS_PER_SWEEP, prefix: "" });
    for (const { id } of page.instances) {
      if (stopping.aborted) return false;
      try {
        const isBehindOne = followingsIn(name).some((following) => {
          const meta = instances.peek(id, (sqlite) => readMeta(sqlite, nameOf(following)));
          return isBehind(following.target, placeOf(meta, following));
        });
        if (isBehindOne) await instances.ready(id);
      } catch (cause) {
        // The other instances are swept nevertheless.
        failed(name, cause);
      }
    }
    after = page.instances.at(-1)?.id ?? "";
    if (!page.hasMore) {
      at++;
      after = "";
    }
    return true;
  };
}
