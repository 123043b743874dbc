import { and, eq, gt, inArray, lte, sql } from "drizzle-orm";
import { codeFailures } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

/** Wrong codes under this key since its day began; no row if there were none, or the day is over by `now`. */
export const failuresOf = reading((db, v: { key: string; now: number }) =>
  db
    .select()
    .from(codeFailures)
    .where(and(eq(codeFailures.key, v.key), gt(codeFailures.endsAt, v.now))),
);

/** One more; the first one begins a day that ends at `endsAt`. */
export const countFailure = writing((db, v: { key: string; now: number; endsAt: number }) => {
  const goesOn = sql`${codeFailures.endsAt} > ${v.now}`;
  return db
    .insert(codeFailures)
    .values({ key: v.key, failures: 1, endsAt: v.endsAt })
    .onConflictDoUpdate({
      target: codeFailures.key,
      set: {
        failures: sql`case when ${goesOn} then ${codeFailures.failures} + 1 else 1 end`,
        endsAt: sql`case when ${goesOn} then ${codeFailures.endsAt} else ${v.endsAt} end`,
      },
    });
});

export const endedFailures = reading((db, v: { now: number }) =>
  db.select({ key: codeFailures.key }).from(codeFailures).where(lte(codeFailures.endsAt, v.now)).limit(1),
);

export const deleteEndedFailures = writing((db, v: { now: number; limit: number }) => {
  const ended = db
    .select({ key: codeFailures.key })
    .from(codeFailures)
    .where(lte(codeFailures.endsAt, v.now))
    .limit(v.limit);
  return db.delete(codeFailures).where(inArray(codeFailures.key, ended));
});
