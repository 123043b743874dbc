import { DatabaseSync } from "node:sqlite";
import { quoteText } from "../identifiers.ts";
import { RANKED_TEXT_LENGTH } from "../limits.ts";
import type { RankedWords, RankRequest, SentStatement } from "./requests.ts";

/** Scores of each word, one per candidate in their order: 0 where its texts do not have the word. */
type Fits = number[][];

/** Parameters of BM25, as FTS5 has them. */
const K1 = 1.2;
const B = 0.75;

/**
 * Finds the rows of a page in the order of relevance. The score is BM25, and all of it comes from the candidates and the counts.
 * The index of all records has no part in it, since its numbers would tell what hidden records contain.
 */
export function* rankedRows(
  find: (statement: SentStatement) => Iterable<unknown[]>,
  pageSql: string,
  { candidates, counts, words, recordsMax, offset, limit, others }: RankRequest,
): Iterable<unknown[]> {
  let total = 0;
  const rowids: unknown[] = [];
  function* texts(): Iterable<string[]> {
    for (const [count, rowid, ...values] of find(candidates)) {
      total = Number(count);
      rowids.push(rowid);
      yield beginnings(values);
    }
  }
  const fits = words.by === "words" ? wordFits(texts(), words) : substringFits(texts(), words.terms);
  const known = new Map<number, number>();
  for (const statement of counts) for (const [word, count] of find(statement)) known.set(Number(word), Number(count));
  const scores = rowids.map(() => 0);
  for (const [word, ofWord] of fits.entries()) {
    const weight = rarity(known.get(word), recordsMax);
    for (const [place, fit] of ofWord.entries()) scores[place] = (scores[place] ?? 0) + weight * fit;
  }
  const order = [...scores.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));
  const page = order.slice(offset, offset + limit).map((place) => rowids[place]);
  if (page.length > 0) yield* find({ sql: pageSql, params: [total, JSON.stringify(page)] });
  if (others !== null) yield* find(others);
}

/**
 * Returns the weight of a word that `count` records have, among as many as are counted at most: the number of all records that the
 * caller may read is not known, and the same for all words. A single word is not counted.
 */
function rarity(count: number | undefined, recordsMax: number): number {
  return count === undefined ? 1 : Math.log(1 + (recordsMax - count + 0.5) / (count + 0.5));
}

/** Returns the first RANKED_TEXT_LENGTH characters of a record's texts. */
function beginnings(values: readonly unknown[]): string[] {
  let left = RANKED_TEXT_LENGTH;
  return values.map((value) => {
    const text = typeof value === "string" ? value.slice(0, left) : "";
    left -= text.length;
    return text;
  });
}

/** Measures words by FTS5's own `bm25`, on an index in memory that has the candidates and nothing else. */
function wordFits(texts: Iterable<string[]>, { tokenize, queries }: RankedWords & { by: "words" }): Fits {
  const database = new DatabaseSync(":memory:");
  try {
    let records = 0;
    let insert = null;
    for (const values of texts) {
      if (insert === null) {
        const columns = values.map((_, column) => `c${column}`).join(", ");
        const options = `content='', tokenize=${quoteText(tokenize)}`;
        database.exec(`CREATE VIRTUAL TABLE records USING fts5(${columns}, ${options}); BEGIN`);
        insert = database.prepare(
          `INSERT INTO records (rowid, ${columns}) VALUES (${Array(values.length + 1).fill("?")})`,
        );
      }
      insert.run(records++, ...values);
    }
    if (insert === null) return [];
    const found = database.prepare("SELECT rowid AS place, bm25(records) AS score FROM records WHERE records MATCH ?");
    return queries.map((query) => {
      const fits: number[] = Array(records).fill(0);
      // The columns of the statement.
      const rows = found.all(query) as unknown as { place: number; score: number }[];
      // FTS5 has multiplied the scores by this; how rare the word is among the candidates is of no interest.
      const factor = Math.log((records - rows.length + 0.5) / (rows.length + 0.5));
      for (const { place, score } of rows) fits[place] = -score / (factor > 0 ? factor : 1e-6);
      return fits;
    });
  } finally {
    database.close();
  }
}

/** Measures substrings, ignoring case. */
function substringFits(texts: Iterable<string[]>, terms: readonly string[]): Fits {
  const patterns = terms.map((term) => new RegExp(RegExp.escape(term), "giu"));
  const counts: number[][] = terms.map(() => []);
  const lengths: number[] = [];
  for (const values of texts) {
    lengths.push(values.reduce((length, text) => length + text.length, 0));
    for (const [word, pattern] of patterns.entries()) {
      counts[word]?.push(values.reduce((count, text) => count + hits(text, pattern), 0));
    }
  }
  const average = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  return counts.map((ofWord) =>
    ofWord.map((count, place) => {
      const share = (lengths[place] ?? 0) / average;
      return count === 0 ? 0 : (count * (K1 + 1)) / (count + K1 * (1 - B + B * share));
    }),
  );
}

function hits(text: string, pattern: RegExp): number {
  let count = 0;
  pattern.lastIndex = 0;
  while (pattern.test(text)) count += 1;
  return count;
}
