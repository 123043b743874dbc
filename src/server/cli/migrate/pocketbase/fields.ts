import { FILES_PER_FIELD_MAX } from "../../../config/limits.ts";
import { IDS_MAX } from "../../../config/sections/tables/fields.ts";
import { RECORD_PART } from "../../../config/sections/tables/file-fields.ts";
import { ACCOUNT_FIELDS as OWN_OF_ACCOUNT } from "../../../config/sections/users-table.ts";
import { AUTOMATIC_FIELDS, fieldNameProblem } from "../../../config/shape/names.ts";
import { type Code, type Member, objectCode, quoted, valueCode } from "../code.ts";
import type { Remarks } from "../remarks.ts";
import { isSingle, numberOption, type PbField, textOption, textsOption } from "./collections.ts";
import { type FieldFacts, patternOf } from "./survey.ts";

/** The way in which the values of a field are converted. */
export type ValueKind =
  | "text"
  | "number"
  | "boolean"
  | "datetime"
  | "choice"
  | "choices"
  | "reference"
  | "references"
  | "file"
  | "files"
  | "json"
  | "geo";

/** A field of a table here. */
export interface MovedField {
  source: PbField;
  name: string;
  kind: ValueKind;
  declaration: Code;
  /** The table that it refers to. */
  target: string | null;
  /** Whether it may be null. */
  isNullable: boolean;
  /** Whether it is set to the time of each change. */
  isTouched: boolean;
  /** The bytes that one of its files may have; 0 for other kinds. */
  maxFileBytes: number;
}

/** Facts of a table about one of its fields. */
export interface FieldPlace {
  /** For the report: `posts.title`. */
  place: string;
  facts: FieldFacts;
  /** Whether it is a field of the accounts, which are made without it. */
  isOfUsers: boolean;
  isUnique: boolean;
  /** Whether an index lets several records go without a value. */
  isUniqueWithoutEmpty: boolean;
  /** Returns the table of a collection's id; null: it has none. */
  tableOf: (collectionId: string) => string | null;
  usersTable: string | null;
  /** Bytes of the largest stored file, and media types that are stored. */
  files: { largest: number; types: ReadonlySet<string> };
  remarks: Remarks;
}

export const FILES_BUCKET = "files";
const FILE_DEFAULT_MAX_BYTES = 5 * 1024 * 1024;
const NEVER_NULL: ReadonlySet<ValueKind> = new Set(["references", "files"]);
const TEXTS: ReadonlySet<string> = new Set(["text", "email", "url", "editor", "password"]);

/** Returns a field's name here, which no other field has. */
export function fieldName({ name, type }: PbField, taken: ReadonlySet<string>, isOfUsers: boolean): string {
  const isFree = (wanted: string): boolean =>
    fieldNameProblem(wanted) === null &&
    !AUTOMATIC_FIELDS.includes(wanted) &&
    !taken.has(wanted.toLowerCase()) &&
    !(isOfUsers && Object.hasOwn(OWN_OF_ACCOUNT, wanted)) &&
    !(type === "file" && wanted === RECORD_PART);
  const candidates = [name, `${name}_`, `field_${name}`];
  for (let count = 2; ; count += 1) {
    const found = candidates.find(isFree);
    if (found !== undefined) return found;
    candidates.splice(0, candidates.length, `field_${count}`);
  }
}

/** Declares a field here as its options and its stored values allow. */
export function movedField(field: PbField, name: string, at: FieldPlace): MovedField {
  if (name !== field.name) at.remarks.look(at.place, `is called ${name} here, as its name is taken or reserved`);
  const declared = declare(field, at);
  return {
    source: field,
    name,
    target: null,
    isTouched: false,
    maxFileBytes: 0,
    ...declared,
    isNullable: !NEVER_NULL.has(declared.kind) && !declared.members.some((one) => one.name === "required"),
    declaration: objectCode(declared.members),
  };
}

type Declared = Pick<MovedField, "kind"> &
  Partial<Pick<MovedField, "target" | "isTouched" | "maxFileBytes">> & { members: Member[] };

const member = (name: string, value: unknown): Member => ({ name, value: valueCode(value) });
const REQUIRED = member("required", true);

function declare(field: PbField, at: FieldPlace): Declared {
  const { type } = field;
  if (TEXTS.has(type)) return { kind: "text", members: textMembers(field, at) };
  switch (type) {
    case "number":
      return { kind: "number", members: numberMembers(field, at) };
    case "bool":
      return { kind: "boolean", members: [member("type", "boolean"), REQUIRED, member("default", false)] };
    case "date":
      return { kind: "datetime", members: [member("type", "datetime"), ...required(field, at), ...unique(at)] };
    case "autodate":
      return autodate(field);
    case "select":
      return isSingle(field) ? choice(field, at) : choices(field, at);
    case "relation":
      return relation(field, at);
    case "file":
      return file(field, at);
    case "geoPoint":
      return { kind: "geo", members: [member("type", "geo"), ...required(field, at)] };
    case "json":
      return { kind: "json", members: [member("type", "json"), ...required(field, at)] };
    default:
      at.remarks.look(at.place, `is of the type ${type}, which is not known here: its values are JSON`);
      return { kind: "json", members: [member("type", "json")] };
  }
}

/** Declares `required` where every record has a value, and an account can be made without one. */
function required({ isRequired }: PbField, { facts, place, isOfUsers, remarks }: FieldPlace): Member[] {
  if (!isRequired) return [];
  if (isOfUsers) remarks.look(place, "is not required here: an account is made without fields of your own");
  else if (facts.empty > 0) remarks.look(place, `is not required here: ${facts.empty} stored records have no value`);
  else return [REQUIRED];
  return [];
}

const unique = ({ isUnique }: FieldPlace): Member[] => (isUnique ? [member("unique", true)] : []);

/** Exempts stored values from the bounds that they break. */
function exempt({ facts, place, remarks }: FieldPlace): Member[] {
  if (facts.unfit === 0) return [];
  remarks.look(place, `has ${facts.unfit} stored values beyond its bounds, which stay: new ones are checked`);
  return [member("validate", "new")];
}

function textMembers(field: PbField, at: FieldPlace): Member[] {
  const { options, type } = field;
  const members = [member("type", type === "editor" ? "text" : "string")];
  const needs = required(field, at);
  const isFilled = needs.length > 0;
  // Two accounts, or two records that an index leaves out, would have one default.
  const mayBeNull = at.isUnique && (at.isOfUsers || at.isUniqueWithoutEmpty);
  if (isFilled) members.push(REQUIRED);
  else if (!mayBeNull) members.push(REQUIRED, member("default", ""));
  if (mayBeNull && !isFilled && !field.isRequired) {
    at.remarks.look(at.place, "is unique, so that an empty text is null here");
  }
  members.push(...unique(at));
  if (type !== "text") {
    if (isFilled) members.push(member("min", 1));
    return members;
  }
  const [min, max] = [numberOption(options, "min"), numberOption(options, "max")];
  // There an empty text is free of the bounds where the field is not required.
  if (isFilled) members.push(member("min", Math.max(min, 1)));
  else if (min > 1) at.remarks.look(at.place, `may be shorter than ${min} characters here: it may be empty`);
  if (max > 0) members.push(member("max", max));
  const pattern = patternOf(field);
  if (pattern !== null) members.push({ name: "pattern", value: patternCode(pattern, isFilled) });
  else if (textOption(options, "pattern") !== "") {
    at.remarks.look(
      at.place,
      `is not compared with the pattern ${textOption(options, "pattern")}, which is Go's alone`,
    );
  }
  const hasBounds = members.some(({ name }) => ["min", "max", "pattern"].includes(name));
  return hasBounds ? [...members, ...exempt(at)] : members;
}

const patternCode = (pattern: RegExp, isFilled: boolean): string =>
  isFilled || pattern.test("") ? quoted(pattern.source) : quoted(`^$|${pattern.source}`);

function numberMembers(field: PbField, at: FieldPlace): Member[] {
  const { min, max, onlyInt } = field.options;
  const members = [member("type", onlyInt === true && at.facts.fractions === 0 ? "integer" : "number")];
  const isFree = (typeof min === "number" && min > 0) || (typeof max === "number" && max < 0);
  const isUniqueOfUsers = at.isUnique && at.isOfUsers;
  if (isUniqueOfUsers) at.remarks.look(at.place, "has no default here: it is unique");
  else members.push(REQUIRED, ...(isFree && field.isRequired && !at.isOfUsers ? [] : [member("default", 0)]));
  members.push(...unique(at));
  // 0 stands for no value there, and is free of the bounds.
  if (isFree && !field.isRequired) {
    at.remarks.look(at.place, `has no bounds here, as 0 is beyond them and stands for no value`);
    return members;
  }
  if (typeof min === "number") members.push(member("min", min));
  if (typeof max === "number") members.push(member("max", max));
  return members.length > 3 ? [...members, ...exempt(at)] : members;
}

function autodate({ options }: PbField): Declared {
  const isTouched = options["onUpdate"] === true;
  const members = [member("type", "datetime"), isTouched ? member("onUpdate", "now") : member("fixed", true)];
  return { kind: "datetime", members, isTouched };
}

function choice(field: PbField, at: FieldPlace): Declared {
  const members = [member("type", "string"), member("enum", textsOption(field.options, "values"))];
  return { kind: "choice", members: [...members, ...required(field, at), ...unique(at), ...exempt(at)] };
}

function choices(field: PbField, at: FieldPlace): Declared {
  const needs = required(field, at);
  const schema = {
    type: "array",
    items: { type: "string", enum: textsOption(field.options, "values") },
    ...(needs.length > 0 ? { minItems: 1 } : {}),
    maxItems: Math.max(numberOption(field.options, "maxSelect"), 1),
  };
  return {
    kind: "choices",
    members: [
      member("type", "json"),
      member("schema", schema),
      REQUIRED,
      ...(needs.length > 0 ? [] : [member("default", [])]),
    ],
  };
}

function relation(field: PbField, at: FieldPlace): Declared {
  const { options } = field;
  const target = at.tableOf(textOption(options, "collectionId"));
  if (target === null) {
    at.remarks.look(
      at.place,
      "refers to a view or to a collection of PocketBase's own: its values are ids without a check",
    );
    const members = isSingle(field) ? [member("type", "string")] : [member("type", "json")];
    return isSingle(field)
      ? { kind: "choice", members }
      : { kind: "choices", members: [...members, REQUIRED, member("default", [])] };
  }
  const isCascade = options["cascadeDelete"] === true;
  const needs = required(field, at);
  const hidden = member("mayBeHidden", true);
  if (isSingle(field)) {
    const isFree = isCascade && at.isOfUsers;
    if (isFree) at.remarks.look(at.place, "is cleared with the record that it refers to: an account stays");
    const onDelete = isCascade && !isFree ? "cascade" : needs.length > 0 ? "restrict" : "setNull";
    const members = [member("references", target), ...needs, ...unique(at), member("onDelete", onDelete), hidden];
    return { kind: "reference", members, target };
  }
  if (isCascade)
    at.remarks.look(at.place, "loses the ids of deleted records; there the record went with the last of them");
  const isKept = needs.length > 0 && target === at.usersTable;
  const most = Math.min(Math.max(numberOption(options, "maxSelect"), at.facts.most), IDS_MAX);
  const members = [
    member("type", "references"),
    member("references", target),
    ...needs,
    ...(most === 100 ? [] : [member("max", most)]),
    member("onDelete", isKept ? "restrict" : "remove"),
    hidden,
  ];
  return { kind: "references", members, target };
}

function file(field: PbField, at: FieldPlace): Declared {
  const { options } = field;
  const max = Math.max(numberOption(options, "maxSize") || FILE_DEFAULT_MAX_BYTES, at.files.largest);
  const types = textsOption(options, "mimeTypes");
  const isFit = [...at.files.types].every((type) => types.includes(type));
  if (types.length > 0 && !isFit)
    at.remarks.look(at.place, "takes files of any type here, as stored ones are of others");
  const members = [
    member("type", "file"),
    member("bucket", FILES_BUCKET),
    member("max", max),
    ...(types.length > 0 && isFit ? [member("types", types)] : []),
    ...required(field, at),
  ];
  if (isSingle(field)) return { kind: "file", members, maxFileBytes: max };
  const many = Math.min(Math.max(numberOption(options, "maxSelect"), at.facts.most), FILES_PER_FIELD_MAX);
  return { kind: "files", members: [...members, member("many", many)], maxFileBytes: max };
}
