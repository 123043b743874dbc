import type { Field } from "../sections/tables/fields.ts";

/** The fields of a table; false disables `createdAt` or `updatedAt`. */
export type SchemaShape = { readonly [field: string]: Field | false };
