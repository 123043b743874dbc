import type { FieldDeletion, Increment } from "../types/records.ts";

/** Adds `value`, 1 by default, to a number, however many clients do so at once. */
export const increment = (value = 1): Increment => ({ $op: "increment", value });

/** Clears a field. */
export const deleteField = (): FieldDeletion => ({ $op: "deleteField" });
