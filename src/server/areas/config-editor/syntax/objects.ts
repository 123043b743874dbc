import type { ArrayExpression, Expression, Node, ObjectExpression, ObjectProperty } from "@babel/types";
import { printKey } from "./print.ts";
import { bareOf, endOf, NotEditable, type Source, startOf } from "./source.ts";

/** A replacement of a part of a text. */
export interface Splice {
  start: number;
  end: number;
  text: string;
}

/** Returns the text with the replacements, which do not overlap. */
export function spliced(text: string, splices: readonly Splice[]): string {
  let result = text;
  for (const { start, end, text: own } of splices.toSorted((one, other) => other.start - one.start)) {
    result = result.slice(0, start) + own + result.slice(end);
  }
  return result;
}

/** Returns the name of a member; null for a computed one. */
function nameOf({ key, computed }: ObjectProperty): string | null {
  if (key.type === "StringLiteral") return key.value;
  if (computed) return null;
  if (key.type === "Identifier") return key.name;
  return key.type === "NumericLiteral" ? String(key.value) : null;
}

/** Lists the members that an object names. `path` is the object's own, for messages. Errors: spread and computed members, methods. */
export function membersOf(object: ObjectExpression, path: string): Map<string, ObjectProperty> {
  const members = new Map<string, ObjectProperty>();
  for (const property of object.properties) {
    const at = startOf(property);
    if (property.type === "SpreadElement") throw new NotEditable(`${path} contains what a spread brings`, at);
    const name = property.type === "ObjectProperty" ? nameOf(property) : null;
    if (property.type === "ObjectMethod") {
      // A method is a value that nobody edits in place, and hides no other member.
      if (property.computed) throw new NotEditable(`${path} has a computed member`, at);
      continue;
    }
    if (name === null) throw new NotEditable(`${path} has a computed member`, at);
    members.set(name, property);
  }
  return members;
}

/** Returns the member of an object; null for none. Errors: see `membersOf`. */
export const memberOf = (object: ObjectExpression, name: string, path: string): ObjectProperty | null =>
  membersOf(object, path).get(name) ?? null;

/** Returns a member's value as an expression. Errors: `NotEditable` for a shorthand, whose value is a variable. */
export function expressionOf(property: ObjectProperty, path: string): Expression {
  if (property.shorthand) throw new NotEditable(`${path} is a variable`, startOf(property));
  // Patterns are values of destructured parameters only.
  return bareOf(property.value as Expression);
}

/** Returns a member's value, which must be an object in place; null for no member. */
export function objectOf(object: ObjectExpression, name: string, path: string): ObjectExpression | null {
  const property = memberOf(object, name, path);
  if (property === null) return null;
  const own = path === "" ? name : `${path}.${name}`;
  const value = expressionOf(property, own);
  if (value.type === "ObjectExpression") return value;
  const what = value.type === "Identifier" ? `the variable ${value.name}` : "no object in place";
  throw new NotEditable(`${own} is ${what}`, startOf(value));
}

/** Returns the indentation of the line in which an offset lies. */
export function indentAt(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

/** Returns the step of indentation that a config uses: that of the first indented line, two blanks if there is none. */
export const indentStep = (text: string): string => /^([ ]{2,8}|\t)\S/m.exec(text)?.[1] ?? "  ";

/** Prints a value for a line with this indentation, whose value begins behind `taken` characters. */
export type Print = (indent: string, taken: number) => string;

/** Adds a member behind the last one. `print` prints its value. */
export function addMember({ text }: Source, object: ObjectExpression, name: string, print: Print): Splice[] {
  const key = printKey(name);
  return addLast(
    text,
    { node: object, last: object.properties.at(-1) ?? null, members: object.properties },
    (indent, taken) => {
      const start = `${key}: `;
      return start + print(indent, taken + start.length);
    },
  );
}

/** Adds an entry behind the last one of a list. */
export function addEntry({ text }: Source, list: ArrayExpression, print: Print): Splice[] {
  const entries = list.elements.filter((entry) => entry !== null);
  return addLast(text, { node: list, last: entries.at(-1) ?? null, members: entries }, print);
}

/** An object or a list, with what is in it. */
interface Container {
  readonly node: ObjectExpression | ArrayExpression;
  readonly last: Node | null;
  readonly members: readonly Node[];
}

function addLast(text: string, container: Container, print: Print): Splice[] {
  const { node: object, last } = container;
  if (last === null) return [intoEmpty(text, object, print)];
  const closing = endOf(object) - 1;
  const comma = commaBetween(text, endOf(last), closing);
  if (isOnOneLine(text, object)) {
    const added = print(indentAt(text, startOf(object)), 0);
    const length = `${text}\n`.indexOf("\n", endOf(object)) - text.lastIndexOf("\n", startOf(object)) - 1;
    const hasComment = /\/[/*]/.test(text.slice(startOf(object), endOf(object)));
    if (hasComment || (!added.includes("\n") && length + added.length <= LINE_MAX)) {
      const at = comma ?? endOf(last);
      return [{ start: at, end: at, text: comma === null ? `, ${added}` : ` ${added},` }];
    }
    return [onLines(text, container, print)];
  }
  const indent = indentAt(text, startOf(last));
  const at = endOfLine(text, comma ?? endOf(last), closing);
  const added = `\n${indent}${print(indent, indent.length)}`;
  if (comma !== null) return [{ start: at, end: at, text: `${added},` }];
  if (at === endOf(last)) return [{ start: at, end: at, text: `,${added}` }];
  return [
    { start: endOf(last), end: endOf(last), text: "," },
    { start: at, end: at, text: added },
  ];
}

const LINE_MAX = 120;

function intoEmpty(text: string, node: Container["node"], print: Print): Splice {
  const indent = indentAt(text, startOf(node));
  const inner = indent + indentStep(text);
  const kept = text.slice(startOf(node) + 1, endOf(node) - 1).trimEnd();
  const added = `${kept}\n${inner}${print(inner, inner.length)},\n${indent}`;
  return { start: startOf(node) + 1, end: endOf(node) - 1, text: added };
}

const isOnOneLine = (text: string, node: Container["node"]): boolean =>
  !text.slice(startOf(node), endOf(node)).includes("\n");

/** Puts each member on a line of its own, and another one behind them. Only blanks between members change. */
function onLines(text: string, { node, members }: Container, print: Print): Splice {
  const indent = indentAt(text, startOf(node));
  const inner = indent + indentStep(text);
  const parts = [...members.map((one) => text.slice(startOf(one), endOf(one))), print(inner, inner.length)];
  const lines = parts.map((part) => `\n${inner}${part},`).join("");
  return { start: startOf(node) + 1, end: endOf(node) - 1, text: `${lines}\n${indent}` };
}

/** Returns the offset behind the comma between two offsets; null for none. Comments are passed over. */
function commaBetween(text: string, from: number, to: number): number | null {
  let at = from;
  while (at < to) {
    const comment = commentAt(text, at);
    if (comment !== null) at = comment;
    else if (text[at] === ",") return at + 1;
    else at++;
  }
  return null;
}

/** Returns the offset behind the comment that begins here; null for none. */
function commentAt(text: string, at: number): number | null {
  const mark = text.slice(at, at + 2);
  if (mark !== "//" && mark !== "/*") return null;
  const end = text.indexOf(mark === "//" ? "\n" : "*/", at + 2);
  return end === -1 ? text.length : mark === "//" ? end : end + 2;
}

/** Returns the end of the line of an offset, behind its comment; `to` where the line goes on with something else. */
function endOfLine(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && text[at] !== "\n") {
    const comment = commentAt(text, at);
    if (comment === null && !/[ \t]/.test(text[at] ?? "")) return from;
    at = comment ?? at + 1;
  }
  return text.slice(from, at).trim() === "" ? from : at;
}

/** Removes a member, its comma, and the comment behind it on its line. Comments above it stay. */
export function removeMember({ text }: Source, object: ObjectExpression, property: ObjectProperty): Splice[] {
  const closing = endOf(object) - 1;
  const comma = commaBetween(text, endOf(property), closing);
  const end = endOfLine(text, comma ?? endOf(property), closing);
  const lineStart = text.lastIndexOf("\n", startOf(property) - 1) + 1;
  const isAlone = text.slice(lineStart, startOf(property)).trim() === "" && text[end] === "\n";
  if (isAlone) return [{ start: lineStart, end: end + 1, text: "" }];
  const index = object.properties.indexOf(property);
  if (index < object.properties.length - 1) {
    const blanks = /^[ \t]*/.exec(text.slice(end))?.[0].length ?? 0;
    return [{ start: startOf(property), end: end + blanks, text: "" }];
  }
  const previous = object.properties[index - 1];
  if (previous !== undefined) return [{ start: endOf(previous), end: comma ?? endOf(property), text: "" }];
  return [{ start: startOf(object) + 1, end: closing, text: "" }];
}

/** Replaces the value of a member. */
export function replaceValue({ text }: Source, property: ObjectProperty, print: Print): Splice[] {
  const indent = indentAt(text, startOf(property));
  const start = startOf(property.value);
  const line = text.lastIndexOf("\n", start - 1) + 1;
  return [{ start, end: endOf(property.value), text: print(indent, start - line) }];
}

/** Sets a member: replaces its value, or adds it. */
export function setMember(source: Source, object: ObjectExpression, set: { name: string; path: string; print: Print }) {
  const property = memberOf(object, set.name, set.path);
  if (property === null) return addMember(source, object, set.name, set.print);
  if (property.shorthand) throw new NotEditable(`${set.path}.${set.name} is a variable`, startOf(property));
  return replaceValue(source, property, set.print);
}
