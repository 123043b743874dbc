import { existsSync } from "node:fs";
import { quotaExceeded } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { DatabaseFile, InstanceCreations } from "../../../db/index.ts";
import { CREATORS_CHECKED_AT_ONCE, CREATORS_CHECKED_MAX } from "../limits.ts";
import {
  creatorOf,
  deleteCreator,
  instancesAfter,
  instancesOf,
  namespacesWithCreators,
  setCreator,
} from "../statements/instance-creators.ts";

/**
 * Counts the instances of a namespace by creator, in `system.db`. A creation is counted before there is a file, and a deletion
 * after the file is gone: a server that dies in between leaves a count without an instance, never an instance without its count.
 * Such stale counts are detected when they would refuse a user, once per user and start. [TB452]
 */
export function createCreators(deps: {
  namespace: string;
  /**
   * Instances per user; undefined when the quota was removed from the config, after which existing counts are still maintained.
   */
  instancesPerUser: number | undefined;
  file: DatabaseFile;
  /** Returns the path of an instance's file. */
  pathOf(instanceId: string): string;
  logger: Logger;
}): InstanceCreations {
  const { namespace, instancesPerUser, file, pathOf, logger } = deps;
  /** Instances that are counted but not created yet. */
  const beginning = new Set<string>();
  /** Users whose counts have been compared with the files. */
  const checked = new Set<string>();

  /** Counts an instance. Resolves to null, or to the user's count if that already is the maximum. */
  const claim = (instanceId: string, userId: string, allowed: number): Promise<number | null> =>
    file.write((tx): number | null => {
      const creator = { namespace, instanceId, userId };
      const held = instancesOf.get(tx, creator)?.held ?? 0;
      if (held >= allowed) return held;
      setCreator.run(tx, creator);
      return null;
    });

  const remove = (instanceId: string): Promise<void> =>
    file.write((tx) => void deleteCreator.run(tx, { namespace, instanceId }));

  /** Removes the count of an instance that does not exist, as `remove` does. A count that stays is detected later. */
  const forget = async (instanceId: string): Promise<void> => {
    try {
      if (creatorOf.get(file, { namespace, instanceId }) !== null) await remove(instanceId);
    } catch (cause) {
      checked.clear();
      logger.error("an instance that does not exist still counts for its creator; that is corrected when it matters", {
        namespace,
        instanceId,
        cause,
      });
    }
  };

  /** Removes the counts of instances that do not exist. */
  const check = async (userId: string): Promise<void> => {
    for (let after = ""; ; ) {
      const page = instancesAfter.all(file, { namespace, userId, after, limit: CREATORS_CHECKED_AT_ONCE });
      const known = await Promise.all(page.map(({ instanceId }) => Bun.file(pathOf(instanceId)).exists()));
      const missing = page.filter((_, index) => known[index] === false);
      if (missing.length > 0) {
        await file.write((tx) => {
          // Checked again, since the instance may have been created meanwhile.
          const isGone = (id: string): boolean => !beginning.has(id) && !existsSync(pathOf(id));
          for (const { instanceId } of missing) {
            if (isGone(instanceId)) deleteCreator.run(tx, { namespace, instanceId });
          }
        });
      }
      const last = page.at(-1);
      if (last === undefined || page.length < CREATORS_CHECKED_AT_ONCE) return;
      after = last.instanceId;
    }
  };

  const count = async (instanceId: string, userId: string, allowed: number): Promise<void> => {
    let held = await claim(instanceId, userId, allowed);
    if (held !== null && !checked.has(userId)) {
      await check(userId);
      if (checked.size >= CREATORS_CHECKED_MAX) checked.clear();
      checked.add(userId);
      held = await claim(instanceId, userId, allowed);
    }
    if (held === null) return;
    throw quotaExceeded(`The user has created ${held} of at most ${allowed} instances of "${namespace}"`);
  };

  return {
    async begin(instanceId, creator) {
      beginning.add(instanceId);
      try {
        if (creator !== null && instancesPerUser !== undefined) await count(instanceId, creator, instancesPerUser);
        else if (creatorOf.get(file, { namespace, instanceId }) !== null) await remove(instanceId);
      } catch (cause) {
        beginning.delete(instanceId);
        throw cause;
      }
    },
    done: (instanceId) => void beginning.delete(instanceId),
    async undone(instanceId) {
      await forget(instanceId);
      beginning.delete(instanceId);
    },
    removed: forget,
  };
}

/** Returns the namespaces whose instances are counted, or were. */
export const countedNamespaces = (file: DatabaseFile): ReadonlySet<string> =>
  new Set(namespacesWithCreators.all(file, {}).map(({ namespace }) => namespace));
