import type { DatabaseSync } from "node:sqlite";
import type { HighlightLimits, HighlightRequest } from "./query-protocol.ts";

/**
 * Marks what a search has found, inside a query process. The functions are handed over as source text, like that of
 * query-process.ts: nothing outside of each exists where it runs. [DB140]–[DB142]
 */

type Span = [start: number, end: number];

/** A text, what of it is looked at, where its next piece begins, and its marks. */
interface MarkedText {
  text: string;
  end: number;
  next: number;
  spans: Span[];
}

type AddSpan = (field: MarkedText, start: number, end: number) => void;
type MarkWords = (fields: readonly MarkedText[], tokenize: string, query: string, addSpan: AddSpan) => void;

/**
 * `highlight()` of FTS5 copies the whole text at every mark: it is given short pieces of the texts, on an index in memory,
 * one of each at a time until each has its hits or its end.
 */
export function createWordMarks(sqlite: typeof import("node:sqlite"), limits: HighlightLimits): MarkWords {
  const indexes = new Map<string, DatabaseSync>();

  function indexOf(tokenize: string): DatabaseSync {
    const known = indexes.get(tokenize);
    if (known !== undefined) return known;
    const index = new sqlite.DatabaseSync(":memory:");
    index.exec(`CREATE VIRTUAL TABLE pieces USING fts5(piece, tokenize='${tokenize}')`);
    indexes.set(tokenize, index);
    return index;
  }

  /** The first place from `from` on where no tokenizer is inside of a word. */
  function boundary(text: string, from: number, end: number): number {
    if (from >= end) return end;
    const separator = /(?![\u0300-\u036f])[^\p{L}\p{N}\p{Co}]/gu;
    separator.lastIndex = from;
    return Math.min(separator.exec(text)?.index ?? end, end);
  }

  /** Two characters that Unicode gives no meaning, and that no text holds. */
  function privateMarks(fields: readonly MarkedText[]): [open: number, close: number] {
    const free: number[] = [];
    for (let code = 0xfdd0; code <= 0xfdef && free.length < 2; code += 1) {
      if (!fields.some(({ text }) => text.includes(String.fromCharCode(code)))) free.push(code);
    }
    return [free[0] ?? 0xfdd0, free[1] ?? 0xfdd1];
  }

  return function markWords(fields, tokenize, query, addSpan) {
    const index = indexOf(tokenize);
    for (let rest = fields; rest.length > 0; ) {
      const [open, close] = privateMarks(rest);
      const ends = rest.map(({ text, next, end }) => boundary(text, next + limits.pieceLength, end));
      index.exec("BEGIN");
      const insert = index.prepare("INSERT INTO pieces (rowid, piece) VALUES (?, ?)");
      for (const [place, { text, next, end }] of rest.entries()) {
        // What begins in this piece may end behind it. highlight() drops a NUL, which separates words as a space does.
        const behind = boundary(text, (ends[place] ?? end) + limits.phraseLength, end);
        insert.run(place, text.slice(next, behind).replaceAll("\0", " "));
      }
      const found = index
        .prepare(
          "SELECT rowid AS place, highlight(pieces, 0, char(?), char(?)) AS marked FROM pieces WHERE pieces MATCH ?",
        )
        .all(open, close, query) as { place: number; marked: string }[];
      index.exec("ROLLBACK");
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

/** For each row the texts of `request.columns` with marks; null for one without a hit. */
export function createHighlighter(limits: HighlightLimits, markWords: MarkWords) {
  const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

  /** The first `bytesMax` bytes of a text, whole characters. */
  function endOf(text: string): number {
    if (text.length * 3 <= limits.bytesMax) return text.length;
    return new TextEncoder().encodeInto(text, new Uint8Array(limits.bytesMax)).read;
  }

  /** In order. One that begins inside of the last, which may reach over the end of its piece, makes that longer. */
  function addSpan({ spans }: MarkedText, start: number, end: number): void {
    const last = spans.at(-1);
    if (last !== undefined && start < last[1]) last[1] = Math.max(last[1], end);
    else if (spans.length < limits.hitsMax) spans.push([start, end]);
  }

  function markSubstrings(field: MarkedText, terms: readonly RegExp[]): void {
    const looked = field.text.slice(0, field.end);
    const spans: Span[] = [];
    for (const term of terms) {
      term.lastIndex = 0;
      for (let hits = 0; hits < limits.hitsMax; hits += 1) {
        const match = term.exec(looked);
        if (match === null) break;
        spans.push([match.index, match.index + match[0].length]);
      }
    }
    for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) addSpan(field, start, end);
  }

  function assemble({ text, spans }: MarkedText, { pre, post, isEscaped }: HighlightRequest): string {
    const shown = (part: string) => (isEscaped ? part.replace(/[&<>"']/g, (found) => escapes[found] ?? found) : part);
    let marked = "";
    let at = 0;
    for (const [start, end] of spans) {
      marked += shown(text.slice(at, start)) + pre + shown(text.slice(start, end)) + post;
      at = end;
    }
    return marked + shown(text.slice(at));
  }

  return function highlightRows(rows: readonly unknown[][], request: HighlightRequest): (string | null)[][] {
    const texts = rows.map((row) =>
      request.columns.map((column): MarkedText => {
        const value = row[column];
        const text = typeof value === "string" ? value : "";
        return { text, end: endOf(text), next: 0, spans: [] };
      }),
    );
    const present = texts.flat().filter(({ end }) => end > 0);
    if (request.by === "words") {
      markWords(present, request.tokenize, request.query, addSpan);
    } else {
      const terms = request.terms.map((term) => new RegExp(RegExp.escape(term), "giu"));
      for (const text of present) markSubstrings(text, terms);
    }
    return texts.map((row) => row.map((text) => (text.spans.length === 0 ? null : assemble(text, request))));
  };
}
