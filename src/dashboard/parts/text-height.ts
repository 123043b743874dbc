import { MEASURED_MAX_CHARACTERS } from "../limits.ts";

/** The height of an input of many lines: as its text needs, between these numbers of rows; the highest for long texts. */
export const textHeight = (text: string, minRows: number, maxRows: number) =>
  text.length > MEASURED_MAX_CHARACTERS ? { rows: maxRows } : { autosize: true, minRows, maxRows };
