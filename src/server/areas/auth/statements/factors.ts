import { and, asc, eq, inArray } from "drizzle-orm";
import { mfaFactors, mfaRecoveryCodes } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type Factor = typeof mfaFactors.$inferSelect;

export const factorsOfUser = reading((db, v: { userId: string }) =>
  db
    .select()
    .from(mfaFactors)
    .where(eq(mfaFactors.userId, v.userId))
    .orderBy(asc(mfaFactors.createdAt), asc(mfaFactors.id)),
);

export const insertFactor = writing((db, v: Omit<Factor, "verified" | "usedSteps">) =>
  db.insert(mfaFactors).values({ id: v.id, userId: v.userId, type: v.type, secret: v.secret, createdAt: v.createdAt }),
);

/** A factor is verified once one of its codes was right. */
export const setUsedSteps = writing((db, v: Pick<Factor, "id" | "usedSteps">) =>
  db.update(mfaFactors).set({ verified: true, usedSteps: v.usedSteps }).where(eq(mfaFactors.id, v.id)),
);

/** Recovery codes are deleted with their factor. */
export const deleteFactors = writing((db, v: { userId: string }) =>
  db.delete(mfaFactors).where(eq(mfaFactors.userId, v.userId)),
);

export const deleteUnverifiedFactors = writing((db, v: { userId: string }) =>
  db.delete(mfaFactors).where(and(eq(mfaFactors.userId, v.userId), eq(mfaFactors.verified, false))),
);

export const insertRecoveryCode = writing((db, v: typeof mfaRecoveryCodes.$inferSelect) =>
  db.insert(mfaRecoveryCodes).values({ userId: v.userId, factorId: v.factorId, hash: v.hash }),
);

/** Deletes the code, of a verified factor only. */
export const takeRecoveryCode = writing((db, v: Pick<typeof mfaRecoveryCodes.$inferSelect, "userId" | "hash">) => {
  const verified = db.select({ id: mfaFactors.id }).from(mfaFactors).where(eq(mfaFactors.verified, true));
  return db
    .delete(mfaRecoveryCodes)
    .where(
      and(
        eq(mfaRecoveryCodes.userId, v.userId),
        eq(mfaRecoveryCodes.hash, v.hash),
        inArray(mfaRecoveryCodes.factorId, verified),
      ),
    );
});
