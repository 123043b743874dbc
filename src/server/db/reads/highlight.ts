import { escapeHtml } from "../../../kernel/text/html.ts";
import { HIGHLIGHT_BYTES_MAX, HIGHLIGHT_HITS_MAX, HIGHLIGHT_PHRASE_LENGTH, HIGHLIGHT_PIECE_LENGTH } from "../limits.ts";
import type { HighlightRequest } from "./requests.ts";
import { createWordMarks, type HighlightLimits, type MarkedText, type Span } from "./word-marks.ts";

const LIMITS: HighlightLimits = {
  hitsMax: HIGHLIGHT_HITS_MAX,
  bytesMax: HIGHLIGHT_BYTES_MAX,
  pieceLength: HIGHLIGHT_PIECE_LENGTH,
  phraseLength: HIGHLIGHT_PHRASE_LENGTH,
};

/** Creates a function that returns, for each row, the texts of `request.columns` with marks; null for one without a hit. */
export function createHighlighter(limits: HighlightLimits = LIMITS) {
  const markWords = createWordMarks(limits);

  /** Returns the length of the beginning of a text that takes at most `bytesMax` bytes, in whole characters. */
  function endOf(text: string): number {
    if (text.length * 3 <= limits.bytesMax) return text.length;
    return new TextEncoder().encodeInto(text, new Uint8Array(limits.bytesMax)).read;
  }

  /**
   * Adds a span. Spans come in order; one that begins inside of the last, which may reach over the end of its piece, extends it.
   */
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
    const shown = (part: string) => (isEscaped ? escapeHtml(part) : part);
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
