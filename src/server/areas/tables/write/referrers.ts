import type { DatabaseFile, SqlValue } from "../../../db/index.ts";
import { LEAVING_PAGE_IDS } from "../limits.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { referringOf } from "./referring.ts";

/** The file in which records refer to one another. */
export interface ReferrersPlace {
  file: DatabaseFile;
  tableOf(model: TableModel): Table;
}

/** Reads the records that refer to one, page by page. */
export class Referrers {
  readonly table: Table;
  readonly id: string;
  readonly #place: ReferrersPlace;
  readonly #edges: readonly ReferenceEdge[];
  #edge = 0;
  #after: string | null = "";
  #value: SqlValue | undefined;
  #ids: string[] = [];

  /** `isWanted`: the references that count; all by default. */
  constructor(
    place: ReferrersPlace,
    { table, id }: { table: Table; id: string },
    isWanted = (_: ReferenceEdge) => true,
  ) {
    this.#place = place;
    this.#edges = table.model.incoming.filter(isWanted);
    this.table = table;
    this.id = id;
  }

  /** Returns the next one; undefined: a page was read, which takes a while; null: there is none. */
  next(): { edge: ReferenceEdge; id: string; value: SqlValue } | null | undefined {
    const edge = this.#edges[this.#edge];
    if (edge === undefined) return null;
    this.#value ??= this.#valueOf(edge);
    const value = this.#value;
    const id = this.#ids.pop();
    if (id !== undefined) return { edge, id, value };
    if (this.#after === null || value === null) {
      this.#edge++;
      this.#after = "";
      this.#value = undefined;
      return this.next();
    }
    const page = { after: this.#after, limit: LEAVING_PAGE_IDS };
    const ids = referringOf(this.#place.tableOf(edge.from)).ids(this.#place.file, { column: edge.column, value }, page);
    this.#after = ids.length < LEAVING_PAGE_IDS ? null : (ids.at(-1) ?? null);
    this.#ids = ids.reverse();
    return undefined;
  }

  /** Returns what others refer to: usually the id. */
  #valueOf({ toColumn }: ReferenceEdge): SqlValue {
    if (toColumn.name === "id") return this.id;
    const { store } = this.table;
    return store.codec.toValue(toColumn, store.get(this.#place.file, this.id)?.[toColumn.name] ?? null);
  }
}
