import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { quoteText } from "../identifiers.ts";
import { ftsTokenizer } from "../schema/tokenizer.ts";
import { createHighlighter } from "./highlight.ts";
import type { HighlightRequest } from "./requests.ts";
import type { HighlightLimits } from "./word-marks.ts";

const LIMITS: HighlightLimits = { hitsMax: 100, bytesMax: 64 * 1024, pieceLength: 4_096, phraseLength: 1_000 };
const MARKS = { columns: [0], pre: "[", post: "]", isEscaped: false } as const;

/** The next number below `below`, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Marks of FTS5 itself in a text, made in one step. */
function marked(tokenize: string, query: string, text: string): string | null {
  const database = new Database(":memory:");
  database.run(`CREATE VIRTUAL TABLE f USING fts5(t, tokenize=${quoteText(tokenize)})`);
  database.run("INSERT INTO f VALUES (?)", [text]);
  const row = database.query<{ m: string }, [string]>("SELECT highlight(f, 0, '[', ']') AS m FROM f WHERE f MATCH ?");
  const answer = row.get(query)?.m ?? null;
  row.finalize();
  database.close();
  return answer;
}

function ours(request: HighlightRequest, text: unknown, limits: Partial<HighlightLimits> = {}): string | null {
  const all = { ...LIMITS, ...limits };
  return createHighlighter(all)([[text]], request)[0]?.[0] ?? null;
}

const words = (tokenize: string, query: string): HighlightRequest => ({ ...MARKS, by: "words", tokenize, query });
const substrings = (...terms: string[]): HighlightRequest => ({ ...MARKS, by: "substrings", terms });

const WORDS = [
  "run",
  "running",
  "runs",
  "Café",
  "cafe\u0301",
  "東京",
  "日本",
  "naïve",
  "x",
  "don't",
  "a.b",
  "नमस्ते",
  "हिन्दी",
  "में",
  "தமிழ்",
  "ที่",
  "❤\ufe0f",
  "😀",
  "Straße",
  "И",
];
const SEPARATORS = [" ", " ", "  ", ", ", "-", "\n", "。", ".", " — "];
const QUERIES = [
  `"run"`,
  `"running"*`,
  `"cafe"`,
  `"a.b"`,
  `"don't" OR "x"*`,
  `"東"*`,
  `"x run" OR "run x"`,
  `"नमस्ते"`,
  `"हिन्दी" OR "में"`,
  `"தமி"* OR "ที่"`,
  `"strasse" OR "и"*`,
  `"naive"`,
];

for (const name of ["unicode61", "porter"] as const) {
  test(`[DB140] pieces of a text are marked as highlight() of FTS5 marks the whole (${name})`, () => {
    const tokenize = ftsTokenizer(name);
    const random = numbers(7);
    for (let round = 0; round < 40; round += 1) {
      let text = "";
      for (let left = 1 + random(80); left > 0; left -= 1) {
        text += (WORDS[random(WORDS.length)] ?? "") + (SEPARATORS[random(SEPARATORS.length)] ?? "");
      }
      const query = QUERIES[random(QUERIES.length)] ?? "";
      const expected = marked(tokenize, query, text);
      for (const pieceLength of [20, 300, 4_096]) {
        const found = ours(words(tokenize, query), text, { hitsMax: 10_000, pieceLength });
        expect([pieceLength, text, query, found]).toEqual([pieceLength, text, query, expected]);
      }
    }
  });
}

test("[DB141] a text is marked up to its first 100 hits and 64 KiB, and returned whole", () => {
  const many = "a ".repeat(50_000);
  for (const request of [words("unicode61", `"a"`), substrings("a")]) {
    expect(ours(request, many)).toBe("[a] ".repeat(100) + "a ".repeat(49_900));
    const late = `${"b ".repeat(40_000)}a`;
    expect(ours(request, late)).toBeNull();
    const both = `a ${late}`;
    expect(ours(request, both)).toBe(`[a]${both.slice(1)}`);
    // The limit counts bytes, and cuts no character.
    const wide = `${"é ".repeat(22_000)}a`;
    expect(ours(request, wide)).toBeNull();
    const emoji = `${"😀 ".repeat(13_107)}a`;
    expect(ours(request, emoji, { bytesMax: 64 * 1024 + 3 })).toBe(`${"😀 ".repeat(13_107)}[a]`);
  }
});

test("[DB141] a field without a hit is not marked, and marks that the text itself contains stay", () => {
  for (const text of [null, 5, "", "  ", new Uint8Array(3)]) {
    expect(ours(words("unicode61", `"a"`), text)).toBeNull();
    expect(ours(substrings("a"), text)).toBeNull();
  }
  expect(ours(words("unicode61", `"a"`), "\uFDD0 a \uFDD1 \uFDD2")).toBe("\uFDD0 [a] \uFDD1 \uFDD2");
  expect(ours(words("unicode61", `"a"`), "b\0a c a")).toBe("b\0[a] c [a]");
});

test("[DB142] substrings are marked whatever their case and characters; overlapping ones are merged", () => {
  expect(ours(substrings("%", "ü"), "50% Über")).toBe("50[%] [Ü]ber");
  expect(ours(substrings("abc", "cde"), "xABCDEx")).toBe("x[ABCDE]x");
  expect(ours(substrings("a.c"), "abc a.c")).toBe("abc [a.c]");
});

test("[DB142] the text outside and inside the marks is escaped", () => {
  const request = { ...words("unicode61", `"b.c"`), isEscaped: true, pre: "<mark>", post: "</mark>" };
  expect(ours(request, `<a> & "b'c"`)).toBe("&lt;a&gt; &amp; &quot;<mark>b&#39;c</mark>&quot;");
});
