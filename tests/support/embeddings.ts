import { random } from "./random.ts";

export interface Embedding {
  word: string;
  values: number[];
}

export const EMBEDDING_DIMENSIONS = 100;
/** Number of clusters: embeddings of words are grouped by meaning, and have different norms. */
const GROUPS = 200;
const SEED = 20_140;

/** Rounds to the digits of published embeddings, which are 32-bit numbers. */
const rounded = (value: number): number => Number(value.toFixed(5));

/** Creates vectors distributed like embeddings of words; the same ones each time. */
export function makeEmbeddings(count: number): Embedding[] {
  const { next, below } = random(SEED);
  /** Returns an approximately normal number with a standard deviation of 1. */
  const normal = (): number => (next() + next() + next() + next() - 2) * Math.sqrt(3);
  const vector = (): number[] => Array.from({ length: EMBEDDING_DIMENSIONS }, normal);
  const centres = Array.from({ length: GROUPS }, vector);
  return Array.from({ length: count }, (_, at) => {
    const centre = centres[below(GROUPS)] ?? [];
    const length = 0.3 + next() * 0.7;
    const values = vector().map((value, axis) => rounded(length * ((centre[axis] ?? 0) * 0.6 + value * 0.4)));
    return { word: `word ${at}`, values };
  });
}
