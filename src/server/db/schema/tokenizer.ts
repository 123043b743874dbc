import type { DeclaredFts } from "./types.ts";

/**
 * Vowel signs, viramas and tone marks (category Mn) of the scripts of India and of South-East Asia, as ranges of code points. They
 * are listed, so that another version of Unicode does not rebuild every index. Other marks of that category are not part of words:
 * variation selectors follow emoji.
 */
const SYLLABLE_MARKS =
  "900-902 93a 93c 941-948 94d 951-957 962-963 981 9bc 9c1-9c4 9cd 9e2-9e3 9fe a01-a02 a3c a41-a42 a47-a48 a4b-a4d a51 a70-a71 " +
  "a75 a81-a82 abc ac1-ac5 ac7-ac8 acd ae2-ae3 afa-aff b01 b3c b3f b41-b44 b4d b55-b56 b62-b63 b82 bc0 bcd c00 c04 c3c c3e-c40 " +
  "c46-c48 c4a-c4d c55-c56 c62-c63 c81 cbc cbf cc6 ccc-ccd ce2-ce3 d00-d01 d3b-d3c d41-d44 d4d d62-d63 d81 dca dd2-dd4 dd6 e31 " +
  "e34-e3a e47-e4e eb1 eb4-ebc ec8-ece f18-f19 f35 f37 f39 f71-f7e f80-f84 f86-f87 f8d-f97 f99-fbc fc6 102d-1030 1032-1037 " +
  "1039-103a 103d-103e 1058-1059 105e-1060 1071-1074 1082 1085-1086 108d 109d 17b4-17b5 17b7-17bd 17c6 17c9-17d3 17dd";

function charactersOf(ranges: string): string {
  let characters = "";
  for (const range of ranges.split(" ")) {
    const [first = 0, last = first] = range.split("-").map((code) => Number.parseInt(code, 16));
    for (let code = first; code <= last; code++) characters += String.fromCodePoint(code);
  }
  return characters;
}

/** FTS5's own categories, and spacing marks: those of the same scripts. Without marks words would be cut at vowels. */
const WORDS = `unicode61 categories 'L* N* Co Mc' tokenchars '${charactersOf(SYLLABLE_MARKS)}'`;

/** Returns FTS5's name of the tokenizer, with its arguments. */
export function ftsTokenizer(tokenize: DeclaredFts["tokenize"]): string {
  switch (tokenize) {
    case "unicode61":
      return WORDS;
    case "porter":
      return `porter ${WORDS}`;
    case "trigram":
      return "trigram";
  }
}
