import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { type Code, type Member, numberCode, objectCode, quoted, valueCode } from "../code.ts";
import type { DeclaredIndex } from "../config-source.ts";
import { accessMember, configSource, indexMember, type MovedRule, type MovedRules } from "../config-source.ts";
import type { Remarks } from "../remarks.ts";
import { numberOption, textOption, textsOption } from "./collections.ts";
import { FILES_BUCKET, type MovedField } from "./fields.ts";
import type { MovedTable, MovePlan } from "./plan.ts";
import type { MovedProvider } from "./providers.ts";
import type { PbSource } from "./source.ts";

export interface MovedView {
  name: string;
  code: Code;
  comments: readonly string[];
}

export interface ConfigParts {
  source: PbSource;
  plan: MovePlan;
  providers: readonly MovedProvider[];
  translation: {
    rulesOf: (table: MovedTable) => MovedRules;
    indexesOf: (table: string) => readonly string[];
  };
  views: readonly MovedView[];
  signIn: { requiresVerified: boolean; asksMore: boolean };
  remarks: Remarks;
}

interface WritingParts extends ConfigParts {
  rulesOf: (table: MovedTable) => MovedRules;
  indexesOf: (table: MovedTable) => readonly DeclaredIndex[];
}

const NO_RULE: MovedRule = { code: null, comments: [] };
const NO_RULES: MovedRules = { read: NO_RULE, insert: NO_RULE, update: NO_RULE, delete: NO_RULE };

/** Settings whose values are secrets, by the variable that the config reads. */
export type Variables = ReadonlyMap<string, string>;

const HEADER = `// Made from PocketBase by platform migrate. report.md beside this file says what to look at.`;
const THUMB = /^[1-9]\d*x[1-9]\d*$/;
const PASSWORD_MIN_LENGTH = 8;

/** Returns the text of `platform.config.ts`, and the secrets that it reads. */
export function configText(given: ConfigParts): { text: string; variables: Variables } {
  const variables = new Map<string, string>();
  // All rules first: they say which indexes tables need.
  const rules = new Map(given.plan.tables.map((table) => [table, given.translation.rulesOf(table)]));
  const parts: WritingParts = {
    ...given,
    rulesOf: (table) => rules.get(table) ?? NO_RULES,
    indexesOf: ({ name, indexes }) => [
      ...indexes,
      ...given.translation.indexesOf(name).map((field) => ({ fields: [field] })),
    ],
  };
  const members: Member[] = [
    ...authMember(parts, variables),
    ...bucketMember(parts),
    { name: "databases", value: objectCode([{ name: "shared", value: namespaceCode(parts) }], { isBroken: true }) },
  ];
  return { text: configSource(HEADER, members), variables };
}

function namespaceCode({ plan, rulesOf, indexesOf, views }: WritingParts): Code {
  const tables = plan.tables.flatMap((table): Member[] => [
    ...(table.kind === "users"
      ? []
      : [{ name: table.name, value: tableCode(table, rulesOf(table), indexesOf(table)) }]),
    ...hiddenMember(table),
  ]);
  const members: Member[] = [{ name: "tables", value: objectCode(tables, { isBroken: true }) }];
  if (views.length > 0) {
    const declared = views.map(({ name, code, comments }) => ({ name, value: code, comments }));
    members.push({ name: "views", value: objectCode(declared, { isBroken: true }) });
  }
  return objectCode(members, { isBroken: true });
}

function tableCode(table: MovedTable, rules: MovedRules, indexes: readonly DeclaredIndex[]): Code {
  const { fields, times, maxRecordSize } = table;
  const schema: Member[] = fields.map(fieldMember);
  if (times.createdAt === null) schema.push({ name: "createdAt", value: "false" });
  if (times.updatedAt === null) schema.push({ name: "updatedAt", value: "false" });
  return objectCode(
    [
      { name: "schema", value: objectCode(schema, { isBroken: true }) },
      ...indexMember(indexes),
      ...(maxRecordSize === null ? [] : [{ name: "maxRecordSize", value: numberCode(maxRecordSize) }]),
      ...accessMember(rules, ["read", "insert", "update", "delete"]),
      ...hooksMember(fields),
    ],
    { isBroken: true },
  );
}

const fieldMember = ({ name, declaration }: MovedField): Member => ({ name, value: declaration });

/** The times that PocketBase sets at the insert, under another name than `created`. */
function hooksMember(fields: readonly MovedField[]): Member[] {
  const set = fields.filter(({ source, isTouched }) => source.type === "autodate" && !isTouched);
  const both = fields.filter(({ source, isTouched }) => isTouched && source.options["onCreate"] === true);
  const names = [...set, ...both].filter(({ source }) => source.options["onCreate"] === true).map(({ name }) => name);
  if (names.length === 0) return [];
  const times = names.map((name) => `${name}: new Date().toISOString()`).join(", ");
  const hook = `(_auth, record) => ({ ...record, ${times} })`;
  return [{ name: "hooks", value: objectCode([{ name: "beforeInsert", value: hook }]) }];
}

function hiddenMember({ hidden, name }: MovedTable): Member[] {
  if (hidden === null) return [];
  const schema: Member[] = [
    ...hidden.fields.map(fieldMember),
    { name: "createdAt", value: "false" },
    { name: "updatedAt", value: "false" },
  ];
  const value = objectCode([{ name: "schema", value: objectCode(schema, { isBroken: true }) }], { isBroken: true });
  return [
    {
      name: hidden.name,
      value,
      comments: [`Hidden fields of ${name}, by its id: for service keys and the server's own code.`],
    },
  ];
}

function authMember(parts: WritingParts, variables: Map<string, string>): Member[] {
  const { plan, providers, rulesOf, indexesOf, signIn, source } = parts;
  const mail = mailMember(source, variables);
  const { users } = plan;
  // Without accounts there, whoever signs up here would be a caller whom no rule has expected.
  if (users === null) return [{ name: "auth", value: objectCode([{ name: "signup", value: "false" }, ...mail]) }];
  const rules = rulesOf(users);
  const { otp } = users.collection.options;
  const table: Member[] = [
    { name: "in", value: quoted("shared") },
    ...(users.name === "users" ? [] : [{ name: "table", value: quoted(users.name) }]),
    ...(users.fields.length === 0
      ? []
      : [{ name: "schema", value: objectCode(users.fields.map(fieldMember), { isBroken: true }) }]),
    ...indexMember(indexesOf(users)),
    ...accessMember(rules, ["read", "update"]),
  ];
  const members: Member[] = [
    ...(signIn.requiresVerified ? [{ name: "requireVerifiedEmail", value: "true" }] : []),
    ...(rules.insert.code === "true" && !signIn.asksMore
      ? []
      : [{ name: "signup", value: "false", comments: rules.insert.comments }]),
    ...passwordMember(users),
    ...(isJsonObject(otp) && otp["enabled"] === true ? [{ name: "emailOtp", value: "true" }] : []),
    ...oauthMember(providers, variables),
    ...mail,
    { name: "users", value: objectCode(table, { isBroken: true }) },
  ];
  return [{ name: "auth", value: objectCode(members, { isBroken: true }) }];
}

function passwordMember({ collection }: MovedTable): Member[] {
  const field = collection.fields.find(({ name }) => name === "password");
  const length = field === undefined ? 0 : numberOption(field.options, "min");
  return length > PASSWORD_MIN_LENGTH ? [{ name: "password", value: `{ minLength: ${length} }` }] : [];
}

function oauthMember(providers: readonly MovedProvider[], variables: Map<string, string>): Member[] {
  if (providers.length === 0) return [];
  const members = providers.map(({ name, id, secret }) => {
    for (const { variable, value } of [id, secret]) variables.set(variable, value);
    const code = `{ clientId: process.env.${id.variable} ?? "", clientSecret: process.env.${secret.variable} ?? "" }`;
    return { name, value: code };
  });
  return [{ name: "oauth", value: objectCode(members, { isBroken: true }) }];
}

function mailMember({ settings }: PbSource, variables: Map<string, string>): Member[] {
  const [smtp, meta] = [section(settings, "smtp"), section(settings, "meta")];
  const host = textOption(smtp, "host");
  if (smtp["enabled"] !== true || host === "") return [];
  const user = textOption(smtp, "username");
  if (user !== "") variables.set("SMTP_PASSWORD", textOption(smtp, "password"));
  const server: Member[] = [
    { name: "host", value: quoted(host) },
    { name: "port", value: String(numberOption(smtp, "port")) },
    ...(user === ""
      ? []
      : [
          { name: "user", value: quoted(user) },
          { name: "pass", value: 'process.env.SMTP_PASSWORD ?? ""' },
        ]),
  ];
  const from = `${textOption(meta, "senderName")} <${textOption(meta, "senderAddress")}>`.trim();
  return [
    {
      name: "mail",
      value: objectCode([
        { name: "smtp", value: objectCode(server) },
        { name: "from", value: quoted(from) },
      ]),
    },
  ];
}

const section = (settings: JsonObject | null, name: string): JsonObject => {
  const value = settings?.[name];
  return isJsonObject(value) ? value : {};
};

/** Declares the bucket of all files of records. */
function bucketMember({ plan, remarks }: ConfigParts): Member[] {
  const fields = plan.tables
    .flatMap(({ fields: open, hidden }) => [...open, ...(hidden?.fields ?? [])])
    .filter(({ kind }) => kind === "file" || kind === "files");
  if (fields.length === 0) return [];
  const wanted = fields.flatMap(({ source }) => textsOption(source.options, "thumbs"));
  const thumbs = [...new Set(wanted.filter((size) => THUMB.test(size)))];
  const others = [...new Set(wanted.filter((size) => !THUMB.test(size)))];
  if (others.length > 0)
    remarks.lost("thumbs", `sizes of thumbnails that this server does not make: ${others.join(", ")}`);
  const bucket = objectCode([
    { name: "maxFileSize", value: numberCode(Math.max(...fields.map(({ maxFileBytes }) => maxFileBytes))) },
    ...(thumbs.length === 0 ? [] : [{ name: "thumbs", value: valueCode(thumbs) }]),
  ]);
  return [
    {
      name: "storage",
      value: objectCode([{ name: "buckets", value: objectCode([{ name: FILES_BUCKET, value: bucket }]) }]),
    },
  ];
}
