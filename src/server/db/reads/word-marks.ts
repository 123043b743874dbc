import { DatabaseSync, type StatementSync } from "node:sqlite";
import { quoteText } from "../identifiers.ts";

/** A text with the end of its searched part, the start of its next piece, and its marks. */
export interface MarkedText {
  text: string;
  end: number;
  next: number;
  spans: Span[];
}

export type Span = [start: number, end: number];

export interface HighlightLimits {
  /** Marks in one text. */
  hitsMax: number;
  /** Bytes at the beginning of a text in which marks are made. */
  bytesMax: number;
  /** Length of a piece in characters. */
  pieceLength: number;
  /** Characters after a piece into which a phrase that begins in it may reach. */
  phraseLength: number;
}

/** An index in memory, with its statements: to compile them for each page would cost a tenth of marking it. */
interface PieceIndex {
  database: DatabaseSync;
  insert: StatementSync;
  marked: StatementSync;
}

export type AddSpan = (field: MarkedText, start: number, end: number) => void;

/**
 * Creates a function that marks words with FTS5. `highlight()` copies the whole text at every mark, so it gets short pieces of the
 * texts, on an index in memory, one of each text at a time until each has its hits or its end.
 */
export function createWordMarks(
  limits: HighlightLimits,
): (fields: readonly MarkedText[], tokenize: string, query: string, addSpan: AddSpan) => void {
  const indexes = new Map<string, PieceIndex>();

  function indexOf(tokenize: string): PieceIndex {
    const known = indexes.get(tokenize);
    if (known !== undefined) return known;
    const database = new DatabaseSync(":memory:");
    // Without sizes of columns: only a rank asks for them.
    database.exec(`CREATE VIRTUAL TABLE pieces USING fts5(piece, columnsize=0, tokenize=${quoteText(tokenize)})`);
    const index = {
      database,
      insert: database.prepare("INSERT INTO pieces (rowid, piece) VALUES (?, ?)"),
      marked: database.prepare(
        "SELECT rowid AS place, highlight(pieces, 0, char(?), char(?)) AS marked FROM pieces WHERE pieces MATCH ?",
      ),
    };
    indexes.set(tokenize, index);
    return index;
  }

  /** Returns the first index from `from` on where no tokenizer is inside of a word. */
  function boundary(text: string, from: number, end: number): number {
    if (from >= end) return end;
    const separator = /[^\p{L}\p{N}\p{Co}\p{M}]/gu;
    separator.lastIndex = from;
    return Math.min(separator.exec(text)?.index ?? end, end);
  }

  /** Returns two Unicode noncharacters that none of the texts holds. */
  function privateMarks(fields: readonly MarkedText[]): [open: number, close: number] {
    const free: number[] = [];
    for (let code = 0xfdd0; code <= 0xfdef && free.length < 2; code += 1) {
      if (!fields.some(({ text }) => text.includes(String.fromCharCode(code)))) free.push(code);
    }
    return [free[0] ?? 0xfdd0, free[1] ?? 0xfdd1];
  }

  return function markWords(fields, tokenize, query, addSpan) {
    const { database, insert, marked: markedPieces } = indexOf(tokenize);
    for (let rest = fields; rest.length > 0; ) {
      const [open, close] = privateMarks(rest);
      const ends = rest.map(({ text, next, end }) => boundary(text, next + limits.pieceLength, end));
      let found: { place: number; marked: string }[];
      database.exec("BEGIN");
      try {
        for (const [place, { text, next, end }] of rest.entries()) {
          // A phrase that begins in this piece may end after it. highlight() drops a NUL, which separates words as a space does.
          const behind = boundary(text, (ends[place] ?? end) + limits.phraseLength, end);
          insert.run(place, text.slice(next, behind).replaceAll("\0", " "));
        }
        found = markedPieces.all(open, close, query) as typeof found; // The columns of the statement.
      } finally {
        // The next page uses the same index, after an error too.
        database.exec("ROLLBACK");
      }
      for (const { place, marked } of found) {
        const field = rest[place];
        if (field === undefined) continue;
        let start = -1;
        let marks = 0;
        for (let at = 0; at < marked.length; at += 1) {
          const code = marked.charCodeAt(at);
          if (code !== open && code !== close) continue;
          const position = field.next + at - marks;
          marks += 1;
          if (code === open) start = position;
          else if (start < (ends[place] ?? 0)) addSpan(field, start, position);
        }
      }
      for (const [place, field] of rest.entries()) field.next = ends[place] ?? field.end;
      rest = rest.filter(({ next, end, spans }) => next < end && spans.length < limits.hitsMax);
    }
  };
}
