import type { CodeValue, Need, Step } from "../../rules/formula.ts";
import { literal } from "../../rules/formula.ts";
import type { PbCollection } from "../collections.ts";
import type { MovedField, ValueKind } from "../fields.ts";
import type { Operand } from "../filter/parser.ts";
import { FilterError } from "../filter/tokens.ts";
import type { MovedTable, MovePlan } from "../plan.ts";

/** The rule at hand. */
export interface RulePlace {
  plan: MovePlan;
  table: MovedTable;
  action: "read" | "insert" | "update" | "delete";
}

export type FieldKind = ValueKind | "id";

/** A field of the record at hand, or of one that it is related to. */
export interface FieldTerm {
  kind: "field";
  /** From the record at hand; the first one may come from the caller. */
  steps: readonly Step[];
  name: string;
  type: FieldKind;
  source: MovedField | null;
  /** The question about the value: itself, its letters in lower case, or the number of the values of a list. */
  asked: "value" | "lower" | "length";
  /** Whether every value of a list is meant. */
  isEach: boolean;
  /** Whether PocketBase may have no value there. */
  mayBeEmpty: boolean;
}

export type Term =
  | FieldTerm
  | {
      kind: "value";
      value: CodeValue;
      type: "text" | "number" | "boolean" | "time" | "empty";
      literal?: string | number | boolean;
    }
  | { kind: "list"; value: CodeValue }
  | { kind: "sent"; name: string; field: MovedField | null; asked: "value" | "isset" | "changed" | "length" | "lower" }
  /** The distance of a point from another one, in kilometres. */
  | { kind: "distance"; from: FieldTerm; lat: number; lng: number }
  | { kind: "collection"; what: "name" | "id" };

const MODIFIER = /^(.*?)(?::(isset|length|each|lower|changed))?$/;
const BACK = /^(\w+)_via_(\w+)$/;
const DAY = "24 * 60 * 60 * 1000";

/** The function of the config that compares as SQLite's `lower` does: letters other than A–Z stay. */
export const LOWER = "lower";

/** Beginnings of a period, by the year and the month. */
const beginning = (parts: string, before = ""): string =>
  `new Date(Date.UTC(new Date().getUTCFullYear()${parts})${before}).toISOString()`;

/** Macros as instants. */
const MACROS: Readonly<Record<string, string>> = {
  "@now": "new Date().toISOString()",
  "@yesterday": `new Date(Date.now() - ${DAY}).toISOString()`,
  "@tomorrow": `new Date(Date.now() + ${DAY}).toISOString()`,
  "@todayStart": "new Date(new Date().setUTCHours(0, 0, 0, 0)).toISOString()",
  "@todayEnd": "new Date(new Date().setUTCHours(23, 59, 59, 999)).toISOString()",
  "@monthStart": beginning(", new Date().getUTCMonth()"),
  "@monthEnd": beginning(", new Date().getUTCMonth() + 1", " - 1"),
  "@yearStart": beginning(", 0"),
  "@yearEnd": beginning(" + 1, 0", " - 1"),
};

/** Macros as numbers. */
const NUMBERS: Readonly<Record<string, string>> = {
  "@second": "new Date().getUTCSeconds()",
  "@minute": "new Date().getUTCMinutes()",
  "@hour": "new Date().getUTCHours()",
  "@day": "new Date().getUTCDate()",
  "@month": "new Date().getUTCMonth() + 1",
  "@weekday": "new Date().getUTCDay()",
  "@year": "new Date().getUTCFullYear()",
};

/** Methods of the requests that ask a rule. */
const METHODS: Readonly<Record<RulePlace["action"], string>> = {
  read: "GET",
  insert: "POST",
  update: "PATCH",
  delete: "DELETE",
};

const untranslated = (text: string): FilterError => new FilterError(`${text} is not translated`);

/** Resolves one side of a comparison. Errors: FilterError for what has no counterpart here. */
export function termOf(operand: Operand, place: RulePlace): Term {
  if (operand.kind === "number") {
    return { kind: "value", value: literal(operand.value), type: "number", literal: operand.value };
  }
  const { text } = operand;
  if (operand.kind === "call") return distanceTerm(operand, place);
  if (operand.kind === "text") {
    return text === ""
      ? { kind: "value", value: literal(null), type: "empty" }
      : { kind: "value", value: literal(text), type: "text", literal: text };
  }
  if (text === "null") return { kind: "value", value: literal(null), type: "empty" };
  if (text === "true" || text === "false") {
    return { kind: "value", value: literal(text === "true"), type: "boolean", literal: text === "true" };
  }
  const macro = MACROS[text];
  if (macro !== undefined) return { kind: "value", value: { code: macro, needs: [] }, type: "time" };
  const number = NUMBERS[text];
  if (number !== undefined) return { kind: "value", value: { code: number, needs: [] }, type: "number" };
  if (text === "@request.method") {
    const method = METHODS[place.action];
    return { kind: "value", value: literal(method), type: "text", literal: method };
  }
  const [, path = "", modifier] = MODIFIER.exec(text) ?? [];
  const auth = after(path, "@request.auth.");
  if (auth !== null) return authTerm(auth, modifier, { text, place });
  const body = after(path, "@request.body.") ?? after(path, "@request.data.");
  if (body !== null) return sentTerm(body, modifier, { text, place });
  const collection = after(path, "@collection.");
  if (collection !== null) return collectionTerm(collection, { modifier, text, place });
  if (path.startsWith("@")) throw untranslated(text);
  return fieldTerm(path.split("."), modifier, { text, place, start: { table: place.table, steps: [], alias: "" } });
}

/** Resolves `geoDistance(at.lon, at.lat, 16.4, 48.2)`, with the point first or last. */
function distanceTerm({ text, values }: Extract<Operand, { kind: "call" }>, place: RulePlace): Term {
  const numbers = values.flatMap((one) => (one.kind === "number" ? [one.value] : []));
  const paths = values.flatMap((one) => (one.kind === "identifier" ? [one.text] : []));
  const [lng, lat] = numbers;
  const isInOrder = values[0]?.kind === values[1]?.kind;
  const path = /^(.+)\.lon$/.exec(paths[0] ?? "")?.[1] ?? "";
  const isPoint = paths.length === 2 && paths[1] === `${path}.lat`;
  if (
    text !== "geoDistance" ||
    values.length !== 4 ||
    !isInOrder ||
    !isPoint ||
    lng === undefined ||
    lat === undefined
  ) {
    throw new FilterError(`the function ${text} is not translated`);
  }
  const from = termOf({ kind: "identifier", text: path }, place);
  if (from.kind !== "field" || from.type !== "geo" || Math.abs(lat) > 90 || Math.abs(lng) > 180)
    throw untranslated(text);
  return { kind: "distance", from, lat, lng };
}

const after = (text: string, prefix: string): string | null =>
  text.startsWith(prefix) ? text.slice(prefix.length) : null;

interface Asked {
  text: string;
  place: RulePlace;
}

export const lowerCode = (text: string): string => `${LOWER}(${text})`;

function authTerm(path: string, modifier: string | undefined, asked: Asked): Term {
  const { text, place } = asked;
  const value = (code: string, type: "text" | "boolean", needs: readonly Need[] = ["auth"]): Term => ({
    kind: "value",
    value: { code, needs },
    type,
  });
  if (modifier === "lower") {
    const plain = authTerm(path, undefined, asked);
    if (plain.kind !== "value" || plain.type !== "text" || path === "id") throw untranslated(text);
    return { ...plain, value: { ...plain.value, code: lowerCode(plain.value.code) } };
  }
  if (modifier !== undefined && modifier !== "each") throw untranslated(text);
  if (path === "id") return value("auth.id", "text");
  if (path === "email") return value("auth.email", "text", ["auth", "email"]);
  if (path === "verified") return value("auth.emailVerified", "boolean");
  if (path === "collectionName") return { kind: "collection", what: "name" };
  if (path === "collectionId") return { kind: "collection", what: "id" };
  const [name = "", ...rest] = path.split(".");
  const back = BACK.exec(name);
  if (back !== null) return authBackTerm({ back, name, rest, modifier }, asked);
  // The record of the caller; of several auth collections only the main one is looked up.
  const { users } = place.plan;
  const owners = place.plan.tables.filter(
    ({ kind, collection }) => kind !== "records" && collection.fields.some((one) => one.name === name),
  );
  const field = users?.fields.find(({ source }) => source.name === name);
  if (field === undefined || owners.length !== 1) throw untranslated(text);
  const isId = rest.length === 1 && rest[0] === "id";
  const needs: readonly Need[] = ["auth", "me"];
  const code = `me.${field.name}`;
  if (field.kind === "references" && (isId || modifier === "each")) return { kind: "list", value: { code, needs } };
  if (rest.length > 0 && !(isId && field.kind === "reference")) throw untranslated(text);
  const types: Partial<Record<ValueKind, "text" | "number" | "boolean" | "time">> = {
    text: "text",
    choice: "text",
    reference: "text",
    number: "number",
    boolean: "boolean",
    datetime: "time",
  };
  const type = types[field.kind];
  if (type === undefined || modifier !== undefined) throw untranslated(text);
  return { kind: "value", value: { code, needs }, type };
}

/** Resolves records that refer to the caller: `@request.auth.members_via_user.team`. */
function authBackTerm(
  { back, name, rest, modifier }: { back: RegExpExecArray; name: string; rest: string[]; modifier: string | undefined },
  { text, place }: Asked,
): Term {
  const [, from = "", through = ""] = back;
  const { users, tables } = place.plan;
  const table = tables.find(({ collection }) => collection.name === from);
  const link = table?.fields.find(({ source }) => source.name === through);
  const isOurs = link?.kind === "reference" && users !== null && link.target === users.name;
  if (table === undefined || link === undefined || !isOurs) throw untranslated(text);
  const alias = `@request.auth.${name}`;
  const step: Step = {
    alias,
    table: table.name,
    isMany: true,
    link: { kind: "condition", field: link.name, operator: "==", value: { code: "auth.id", needs: ["auth"] } },
  };
  return fieldTerm(rest, modifier, { text, place, start: { table, steps: [step], alias } });
}

function sentTerm(path: string, modifier: string | undefined, { text, place }: Asked): Term {
  const { table, action } = place;
  if (action !== "insert" && action !== "update") throw untranslated(text);
  const source = table.collection.fields.find(({ name }) => name === path);
  const isHidden = source?.isHidden === true || table.hidden?.fields.some((one) => one.source.name === path) === true;
  const field = table.fields.find((one) => one.source.name === path) ?? null;
  if (modifier === "isset" || modifier === "changed") {
    // No request can send a hidden field, nor one that does not exist.
    if (field === null && !isHidden) throw untranslated(text);
    return { kind: "sent", name: field?.name ?? path, field, asked: modifier };
  }
  if (field === null || modifier === "each") throw untranslated(text);
  if (modifier === "lower" && field.kind !== "text") throw untranslated(text);
  const asked = modifier === "length" || modifier === "lower" ? modifier : "value";
  return { kind: "sent", name: field.name, field, asked };
}

function collectionTerm(path: string, { modifier, text, place }: Asked & { modifier: string | undefined }): Term {
  const [named = "", ...rest] = path.split(".");
  const [name = ""] = named.split(":");
  const table = place.plan.tables.find(({ collection }) => [collection.name, collection.id].includes(name));
  if (table === undefined) throw untranslated(text);
  const alias = `@collection.${named}`;
  const step: Step = { alias, table: table.name, isMany: true, link: null };
  return fieldTerm(rest, modifier, { text, place, start: { table, steps: [step], alias } });
}

interface Start {
  table: MovedTable;
  steps: readonly Step[];
  alias: string;
}

/** Follows a path of fields, relations, and relations back. */
function fieldTerm(
  path: readonly string[],
  modifier: string | undefined,
  { text, place, start }: Asked & { start: Start },
): FieldTerm {
  const [name, ...rest] = path;
  const { table, steps, alias } = start;
  if (name === undefined || modifier === "isset" || modifier === "changed") throw untranslated(text);
  if (modifier === "lower" || modifier === "length") {
    const plain = fieldTerm(path, undefined, { text, place, start });
    const isList = ["references", "choices", "files"].includes(plain.type) && !plain.isEach;
    const isTaken = modifier === "lower" ? plain.type === "text" : isList;
    if (!isTaken || plain.steps.length > 0) throw untranslated(text);
    return { ...plain, asked: modifier };
  }
  if (rest.length === 0) return terminal(name, modifier, { text, start });
  const back = BACK.exec(name);
  if (back !== null) {
    const next = backStep(back, { name, start, place, text });
    return fieldTerm(rest, modifier, { text, place, start: next });
  }
  const field = table.fields.find(({ source }) => source.name === name);
  if (field === undefined) throw untranslated(text);
  const isId = rest.length === 1 && rest[0] === "id";
  if (field.kind === "references" && isId) {
    return {
      kind: "field",
      steps,
      name: field.name,
      type: "references",
      source: field,
      asked: "value",
      isEach: true,
      mayBeEmpty: true,
    };
  }
  if (field.kind === "reference" && isId) return terminal(name, modifier, { text, start });
  const target = place.plan.tables.find((one) => one.name === field.target);
  if (field.kind !== "reference" || target === undefined) throw untranslated(text);
  const next: Start = {
    table: target,
    alias: `${alias}.${name}`,
    steps: [
      ...steps,
      {
        alias: `${alias}.${name}`,
        table: target.name,
        isMany: false,
        link: { kind: "condition", field: "id", operator: "==", value: { outer: field.name } },
      },
    ],
  };
  return fieldTerm(rest, modifier, { text, place, start: next });
}

/** Goes to the records that refer to the one at hand. */
function backStep(
  back: RegExpExecArray,
  { name, start, place, text }: { name: string; start: Start; place: RulePlace; text: string },
): Start {
  const [, from = "", through = ""] = back;
  const table = place.plan.tables.find(({ collection }) => collection.name === from);
  const field = table?.fields.find(({ source }) => source.name === through);
  if (table === undefined || field?.kind !== "reference" || field.target !== start.table.name) throw untranslated(text);
  const alias = `${start.alias}.${name}`;
  const last = start.steps.at(-1);
  const { link } = last ?? {};
  // By one id, the record between the two need not be asked.
  const isShort = last?.isMany === false && link?.field === "id" && "outer" in link.value;
  const value = isShort && link !== undefined && link !== null && "outer" in link.value ? link.value : { outer: "id" };
  const step: Step = {
    alias,
    table: table.name,
    isMany: true,
    link: { kind: "condition", field: field.name, operator: "==", value },
  };
  return { table, alias, steps: [...(isShort ? start.steps.slice(0, -1) : start.steps), step] };
}

function terminal(
  name: string,
  modifier: string | undefined,
  { text, start: { table, steps, alias } }: { text: string; start: Start },
): FieldTerm {
  const isEach = modifier === "each";
  const plain = { kind: "field", steps, source: null, asked: "value", isEach: false, mayBeEmpty: false } as const;
  if (isEach && ["id", table.times.createdAt, table.times.updatedAt].includes(name)) throw untranslated(text);
  if (name === "id") return { ...plain, name: "id", type: "id" };
  if (name === table.times.createdAt && table.kind !== "users")
    return { ...plain, name: "createdAt", type: "datetime" };
  if (name === table.times.updatedAt && table.kind !== "users")
    return { ...plain, name: "updatedAt", type: "datetime" };
  const field = table.fields.find(({ source }) => source.name === name);
  if (field !== undefined) {
    const mayBeEmpty = !field.source.isRequired;
    return { ...plain, name: field.name, type: field.kind, source: field, isEach, mayBeEmpty };
  }
  const secret = table.hidden?.fields.find(({ source }) => source.name === name);
  if (secret === undefined || table.hidden === null) throw untranslated(text);
  const step: Step = {
    alias: `${alias}.:hidden`,
    table: table.hidden.name,
    isMany: false,
    link: { kind: "condition", field: "id", operator: "==", value: { outer: "id" } },
  };
  return {
    kind: "field",
    steps: [...steps, step],
    name: secret.name,
    type: secret.kind,
    source: secret,
    asked: "value",
    isEach,
    mayBeEmpty: true,
  };
}

/** Whether ids of the collection have one length, so that none is a part of another one. */
export function hasEvenIds({ fields }: PbCollection): boolean {
  const id = fields.find(({ name }) => name === "id");
  return id === undefined || (id.options["min"] === id.options["max"] && Number(id.options["min"]) > 0);
}
