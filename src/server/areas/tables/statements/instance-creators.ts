import { and, eq, gt, ne, sql } from "drizzle-orm";
import { instanceCreators as creators } from "../../../../../schema/tables.ts";
import { reading, writing } from "../../../db/declare-query.ts";

type Creator = typeof creators.$inferSelect;
type Instance = Pick<Creator, "namespace" | "instanceId">;

/** Lists the instances of a user, except the named one. */
export const instancesOf = reading((db, v: Creator) =>
  db
    .select({ held: sql<number>`count(*)`.as("held") })
    .from(creators)
    .where(
      and(eq(creators.namespace, v.namespace), eq(creators.userId, v.userId), ne(creators.instanceId, v.instanceId)),
    ),
);

/** Lists a page of a user's instances by id, after the given one. */
export const instancesAfter = reading((db, v: { namespace: string; userId: string; after: string; limit: number }) =>
  db
    .select({ instanceId: creators.instanceId })
    .from(creators)
    .where(and(eq(creators.namespace, v.namespace), eq(creators.userId, v.userId), gt(creators.instanceId, v.after)))
    .orderBy(creators.instanceId)
    .limit(v.limit),
);

export const creatorOf = reading((db, v: Instance) =>
  db
    .select({ userId: creators.userId })
    .from(creators)
    .where(and(eq(creators.namespace, v.namespace), eq(creators.instanceId, v.instanceId))),
);

/** Sets the creator of an instance, replacing that of a former instance of the same id. */
export const setCreator = writing((db, v: Creator) =>
  db
    .insert(creators)
    .values({ namespace: v.namespace, instanceId: v.instanceId, userId: v.userId })
    .onConflictDoUpdate({
      target: [creators.namespace, creators.instanceId],
      set: { userId: sql`excluded."userId"` },
    }),
);

export const deleteCreator = writing((db, v: Instance) =>
  db.delete(creators).where(and(eq(creators.namespace, v.namespace), eq(creators.instanceId, v.instanceId))),
);

export const namespacesWithCreators = reading((db, _: Record<string, never>) =>
  db.selectDistinct({ namespace: creators.namespace }).from(creators),
);
