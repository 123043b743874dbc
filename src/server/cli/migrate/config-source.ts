import { arrayCode, type Code, type Member, objectCode, quoted, render, valueCode } from "./code.ts";

/** An index of a table here. */
export interface DeclaredIndex {
  fields: readonly string[];
  unique?: true;
}

/** A rule as it stands in the config; `comments` are lines above it. */
export interface MovedRule {
  /** null: nobody but service keys. */
  code: Code | null;
  comments: readonly string[];
}

export type RuleName = "read" | "insert" | "update" | "delete";
export type MovedRules = Readonly<Record<RuleName, MovedRule>>;

/** Functions of "platform" that a rule may use. */
const FUNCTIONS = ["allOf", "anyOf", "defineConfig", "field", "none", "not", "some"];

const LOWER = `/** Writes A–Z in lower case; other letters stay. */
const lower = (text: string | null): string => (text ?? "").replace(/[A-Z]+/g, (letters) => letters.toLowerCase());`;

/** Returns the text of a config with what it imports. */
export function configSource(header: string, members: readonly Member[]): string {
  const body = `export default defineConfig(${render(objectCode(members, { isBroken: true }))});\n`;
  const used = FUNCTIONS.filter((name) => new RegExp(`(?<![.\\w"])${name}\\(`).test(body));
  const imports = `import { ${used.join(", ")} } from "platform";`;
  const lower = /(?<![.\w"])lower\(/.test(body) ? [LOWER, ""] : [];
  return [header, imports, "", ...lower, body].join("\n");
}

/** Declares indexes; nothing without any. */
export const indexMember = (indexes: readonly DeclaredIndex[]): Member[] =>
  indexes.length === 0 ? [] : [{ name: "indexes", value: arrayCode(indexes.map(valueCode)) }];

/** Declares rules; those of a kind that nobody has are left out, unless there is something to say. */
export function accessMember(rules: MovedRules, names: readonly RuleName[]): Member[] {
  const members = names.flatMap((name): Member[] => {
    const { code, comments } = rules[name];
    return code === null && comments.length === 0 ? [] : [{ name, value: code ?? "false", comments }];
  });
  const writes = [rules.insert.code, rules.update.code];
  // Where the caller alone decides both rules, one of them would be enough for an upsert.
  if (names.includes("insert") && writes.some((code) => code !== null) && !writes.every((code) => code === "true")) {
    members.push({ name: "upsert", value: quoted("matching") });
  }
  return members.length === 0 ? [] : [{ name: "access", value: objectCode(members, { isBroken: members.length > 1 }) }];
}
