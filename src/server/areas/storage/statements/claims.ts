import { and, asc, eq, gt, sql } from "drizzle-orm";
import { storageClaims as claims } from "../../../../../schema/storage.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type ClaimRecord = typeof claims.$inferSelect;
type ClaimPlace = Pick<ClaimRecord, "namespace" | "instanceId">;

export const claimOf = reading((db, v: { fileId: string }) =>
  db.select().from(claims).where(eq(claims.fileId, v.fileId)),
);

export const insertClaim = writing((db, v: ClaimRecord) =>
  db.insert(claims).values({
    fileId: v.fileId,
    bucket: v.bucket,
    size: v.size,
    ownerId: v.ownerId,
    namespace: v.namespace,
    instanceId: v.instanceId,
    storedAt: v.storedAt,
    isPending: v.isPending,
  }),
);

export const confirmClaim = writing((db, v: { fileId: string }) =>
  db.update(claims).set({ isPending: 0 }).where(eq(claims.fileId, v.fileId)),
);

export const deleteClaim = writing((db, v: { fileId: string }) => db.delete(claims).where(eq(claims.fileId, v.fileId)));

/** Selects the files of records that a user has sent. */
export const claimsOfOwner = reading((db, v: { ownerId: string; limit: number }) =>
  db
    .select({ fileId: claims.fileId, bucket: claims.bucket, size: claims.size })
    .from(claims)
    .where(eq(claims.ownerId, v.ownerId))
    .limit(v.limit),
);

/** Makes another user the sender of a record's file. */
export const moveClaim = writing((db, v: { fileId: string; to: string }) =>
  db.update(claims).set({ ownerId: v.to }).where(eq(claims.fileId, v.fileId)),
);

/** Selects the claims that were under way, after an id. */
export const pendingClaims = reading((db, v: { after: string; limit: number }) =>
  db
    .select()
    .from(claims)
    .where(and(eq(claims.isPending, sql`1`), gt(claims.fileId, v.after)))
    .orderBy(asc(claims.fileId))
    .limit(v.limit),
);

/** Selects the claims of one file of tables, after an id. */
export const claimsOfPlace = reading((db, v: ClaimPlace & { after: string; limit: number }) =>
  db
    .select()
    .from(claims)
    .where(and(eq(claims.namespace, v.namespace), eq(claims.instanceId, v.instanceId), gt(claims.fileId, v.after)))
    .orderBy(asc(claims.fileId))
    .limit(v.limit),
);

/** Selects the next file of tables that has claims. */
export const nextPlace = reading((db, v: ClaimPlace) =>
  db
    .select({ namespace: claims.namespace, instanceId: claims.instanceId })
    .from(claims)
    .where(sql`(${claims.namespace}, ${claims.instanceId}) > (${v.namespace}, ${v.instanceId})`)
    .orderBy(asc(claims.namespace), asc(claims.instanceId))
    .limit(1),
);
