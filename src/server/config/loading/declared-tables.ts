import type { TableConfig } from "../types.ts";

/** The member of a namespace that declares a table or view. */
export const kindOf = ({ view }: TableConfig): "tables" | "views" => (view === undefined ? "tables" : "views");
