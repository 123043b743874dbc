/** In the address of the page. */
export interface RecordState {
  /** The id of a record; NEW_RECORD: one that does not exist yet. */
  record?: string;
  /** The record that a new one is a copy of. */
  from?: string;
  panel?: "json" | "rules";
  /** Whose rights the rules are tried with; by default whose view it is. */
  tryAs?: string;
}

/** No id is empty. */
export const NEW_RECORD = "";
