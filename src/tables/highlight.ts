export interface Marks {
  pre: string;
  post: string;
}

/** Two code points that Unicode keeps free of characters: no text means them, so they can stand for marks until the text is escaped. */
export const PRIVATE_MARKS: Marks = { pre: "\uFDD0", post: "\uFDD1" };

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** The caller's marks in place of the private ones. The text is HTML-escaped when the marks are the defaults. Decisions 4. */
export function markHighlighted(text: string, marks: Marks & { isDefault: boolean }): string {
  const safe = marks.isDefault ? text.replace(/[&<>"']/g, (character) => HTML_ESCAPES[character] ?? character) : text;
  return safe.replaceAll(PRIVATE_MARKS.pre, () => marks.pre).replaceAll(PRIVATE_MARKS.post, () => marks.post);
}

/** Private marks round every occurrence of a word, whatever its case; null when there is none. */
export function highlight(text: string, words: readonly string[]): string | null {
  const longestFirst = [...words].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map((word) => RegExp.escape(word)).join("|"), "giu");
  const marked = text.replace(pattern, (found) => `${PRIVATE_MARKS.pre}${found}${PRIVATE_MARKS.post}`);
  return marked === text ? null : marked;
}
