import { parseJson } from "../../parts/json.tsx";

/** State of the page, all of it in its address. */
export interface VectorsState {
  index: string;
  /** Prefix of ids. */
  q: string;
  /** Id of the open vector. */
  id: string;
  /** Pasted vector whose neighbours are searched; empty: none. */
  near: string;
  /** Filter as JSON. */
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

/** Parses numbers from JSON, or separated by spaces or commas. Errors: `Error` with the problem. */
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

/** Parses a JSON object. Errors: `Error` with the problem. */
export function parseObject(text: string): Record<string, never> {
  if (text.trim() === "") return {};
  const value = parseJson(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("This is no JSON object");
  // The server validates its members.
  return value as Record<string, never>;
}

export const hiddenName = (index: string, id: string): string => `vectors/${index}/${id}`;
