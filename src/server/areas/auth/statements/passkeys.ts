import { asc, eq } from "drizzle-orm";
import { passkeys } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type Passkey = typeof passkeys.$inferSelect;

export const passkeyById = reading((db, v: { id: string }) => db.select().from(passkeys).where(eq(passkeys.id, v.id)));

export const passkeysOfUser = reading((db, v: { userId: string }) =>
  db.select().from(passkeys).where(eq(passkeys.userId, v.userId)).orderBy(asc(passkeys.createdAt), asc(passkeys.id)),
);

export const insertPasskey = writing((db, v: Omit<Passkey, "lastUsedAt">) =>
  db.insert(passkeys).values({
    id: v.id,
    userId: v.userId,
    publicKey: v.publicKey,
    counter: v.counter,
    transports: v.transports,
    deviceType: v.deviceType,
    backedUp: v.backedUp,
    name: v.name,
    createdAt: v.createdAt,
  }),
);

export const usePasskey = writing((db, v: Pick<Passkey, "id" | "counter" | "backedUp" | "lastUsedAt">) =>
  db
    .update(passkeys)
    .set({ counter: v.counter, backedUp: v.backedUp, lastUsedAt: v.lastUsedAt })
    .where(eq(passkeys.id, v.id)),
);

export const deletePasskey = writing((db, v: { id: string }) => db.delete(passkeys).where(eq(passkeys.id, v.id)));

export const deletePasskeysOfUser = writing((db, v: { userId: string }) =>
  db.delete(passkeys).where(eq(passkeys.userId, v.userId)),
);
