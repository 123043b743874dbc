import { parseJson } from "../../parts/json.tsx";

/** What the page shows; all of it is in its address. */
export interface VectorsState {
  index: string;
  /** The beginning of ids. */
  q: string;
  /** The open vector. */
  id: string;
  /** A vector whose neighbours are looked for, as it was pasted; empty: none yet. */
  near: string;
  /** JSON. */
  filter: string;
  insert: boolean;
}

export type Change = (
  next: { [Name in keyof VectorsState]?: VectorsState[Name] | undefined },
  options?: { replace?: boolean },
) => void;

export interface Index {
  name: string;
  dimensions: number;
  metric: string;
}

/** Numbers as JSON, or with spaces or commas between them. Errors: `Error` that says what is wrong. */
export function parseVector(text: string, dimensions: number): number[] {
  const words = text
    .trim()
    .replace(/^\[|\]$/g, "")
    .split(/[\s,;]+/)
    .filter((word) => word !== "");
  const values = words.map(Number);
  const wrong = words.find((_, index) => !Number.isFinite(values[index]));
  if (wrong !== undefined) throw new Error(`"${wrong.slice(0, WORD_SHOWN_LENGTH)}" is no number`);
  if (values.length !== dimensions)
    throw new Error(`The index has ${dimensions} dimensions, these are ${values.length}`);
  return values;
}

const WORD_SHOWN_LENGTH = 40;

/** Objects only. Errors: `Error` that says what is wrong. */
export function parseObject(text: string): Record<string, never> {
  if (text.trim() === "") return {};
  const value = parseJson(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("This is no JSON object");
  // Its members are the server's to check.
  return value as Record<string, never>;
}

export const hiddenName = (index: string, id: string): string => `vectors/${index}/${id}`;
