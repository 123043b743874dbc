import { userRecords } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

// The number of the last change of an account that an update of its record has asked for, and that the account has.

export const lastAsked = reading((db) => db.select({ lastAsked: userRecords.lastAsked }).from(userRecords));

export const setLastAsked = writing((db, v: { lastAsked: number }) =>
  db.update(userRecords).set({ lastAsked: v.lastAsked }),
);
