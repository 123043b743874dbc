import type { Field } from "../sections/tables/fields.ts";

/** The fields of a table; false switches `createdAt` or `updatedAt` off. */
export type SchemaShape = { readonly [field: string]: Field | false };
