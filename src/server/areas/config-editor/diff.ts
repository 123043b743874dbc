import { createPatch } from "diff";
import { literalOf, walk } from "./syntax/literals.ts";
import { type Splice, spliced } from "./syntax/objects.ts";
import { endOf, NotEditable, parseSource, startOf } from "./syntax/source.ts";

/** Names of members whose texts are secrets. */
const SECRET = /pass|secret|token|private|credential|key$/i;
const HIDDEN = '"[hidden]"';
/** Lines that differ at most: beyond, comparing takes too long, and nobody reads it. */
const LINES_MAX = 2_000;

/** Returns the unified diff of two texts of a config, with `[hidden]` for literals of secret members; empty for equal texts. */
export function diffOf(file: string, before: string, after: string): string {
  const [shownBefore, shownAfter] = [withoutSecrets(before), withoutSecrets(after)];
  if (shownBefore === shownAfter) return "";
  const patch = createPatch(file, shownBefore, shownAfter, "", "", { context: 3, maxEditLength: LINES_MAX });
  // Without the two lines above the names, which a unified diff does not have.
  return patch?.slice(patch.indexOf("--- ")) ?? `The texts differ in more than ${LINES_MAX} lines.\n`;
}

/** Hides the texts of secret members. A text that cannot be parsed is hidden whole: nobody knows what is secret in it. */
function withoutSecrets(text: string): string {
  try {
    const { program } = parseSource(text);
    const splices: Splice[] = [];
    walk(program, (node) => {
      if (node.type !== "ObjectProperty" || node.computed) return;
      const { key } = node;
      const name = key.type === "Identifier" ? key.name : key.type === "StringLiteral" ? key.value : "";
      if (SECRET.test(name)) splices.push(...textsIn(node.value));
    });
    return spliced(text, splices);
  } catch (cause) {
    if (cause instanceof NotEditable) return `${HIDDEN}\n`;
    throw cause;
  }
}

/** Returns replacements of the texts in a value, such as the fallback of `process.env.X ?? "text"`; of names in brackets none. */
function textsIn(value: Parameters<typeof walk>[0]): Splice[] {
  const splices: Splice[] = [];
  const names = new Set<unknown>();
  walk(value, (node) => {
    if (node.type === "MemberExpression" && node.computed) names.add(node.property);
    // A nested object has members of its own, each with a name that says whether it is secret.
    if (node.type === "ObjectProperty") names.add(node.key);
    const isText = node.type === "StringLiteral" || (node.type === "TemplateLiteral" && literalOf(node) !== undefined);
    if (isText && !names.has(node)) splices.push({ start: startOf(node), end: endOf(node), text: HIDDEN });
  });
  return splices;
}
