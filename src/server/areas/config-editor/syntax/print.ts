const WIDTH = 110;
const INDENT = "  ";
const PLAIN_NAME = /^[A-Za-z_$][\w$]*$/;

/** Prints a name as the key of a member. */
export const printKey = (name: string): string => (PLAIN_NAME.test(name) ? name : JSON.stringify(name));

/**
 * Prints a value of JSON as TypeScript: on one line if it fits behind `taken` characters, else with a line for each member.
 * `indent` is the indentation of the line in which it begins.
 */
export function printValue(value: unknown, indent = "", taken = indent.length): string {
  const line = printLine(value);
  return taken + line.length <= WIDTH ? line : printBlock(value, indent);
}

/** Prints an object or a list with a line for each member, and anything else on one line. */
export function printBlock(value: unknown, indent: string): string {
  if (typeof value !== "object" || value === null) return printLine(value);
  const inner = indent + (indent.includes("\t") ? "\t" : INDENT);
  const entries = Array.isArray(value)
    ? value.map((entry) => printValue(entry, inner))
    : Object.entries(value).map(([name, own]) => {
        const key = printKey(name);
        return `${key}: ${printValue(own, inner, inner.length + key.length + 2)}`;
      });
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return [open, ...entries.map((entry) => `${inner}${entry},`), `${indent}${close}`].join("\n");
}

function printLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(printLine).join(", ")}]`;
  if (typeof value === "string") return printText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, own]) => `${printKey(name)}: ${printLine(own)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/** Prints a text in the quotes that need no escapes, double ones where both do. */
function printText(value: string): string {
  const quoted = JSON.stringify(value);
  return value.includes('"') && !/['\\\p{Cc}]/u.test(value) ? `'${value}'` : quoted;
}
