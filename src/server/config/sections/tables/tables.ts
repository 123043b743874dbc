import { type Static, Type } from "typebox";
import type { MaybePromise, OrNothing } from "../../../../kernel/maybe-promise.ts";
import type { AppAccess } from "../../app/index.ts";
import type { HookContext, RuleContext } from "../../context.ts";
import type { Auth } from "../../identity.ts";
import { COLUMNS_MAX, EMBEDDED_AT_ONCE_MAX, RECORD_SIZE_MAX_BYTES } from "../../limits.ts";
import type { TableRecord } from "../../records.ts";
import { check } from "../../shape/check.ts";
import { AUTOMATIC_FIELDS, fieldNameProblem } from "../../shape/names.ts";
import { checkedBy, func, list, named, refined, related, rule, text, textWith, whole } from "../../shape/schema.ts";
import type { FilterOf } from "../../typed/filters.ts";
import { checkField } from "./field-rules.ts";
import { type Field, FieldShape } from "./fields.ts";
import { migrationProblem } from "./sql.ts";

/**
 * The rule of a table. `true` and a filter allow; every other value, and a throw, denies. `R`: the fields that the rule knows, for
 * functions that several tables share.
 */
export type Rule<R = TableRecord> =
  | boolean
  | ((auth: Auth | null, record: R, context: RuleContext) => MaybePromise<boolean | FilterOf<R>>);

/** The rule of updates. `next`: the record as it will be. */
export type UpdateRule<R = TableRecord> =
  | boolean
  | ((auth: Auth | null, record: R, next: R, context: RuleContext) => MaybePromise<boolean | FilterOf<R>>);

const tableRule = () => Type.Optional(Type.Unsafe<Rule>(rule()));

const Access = Type.Object({
  read: tableRule(),
  insert: tableRule(),
  update: Type.Optional(Type.Unsafe<UpdateRule>(rule())),
  delete: tableRule(),
  /**
   * The rule that an upsert needs. `matching`: insert for a new record, update for a stored one. `either`: the insert rule or the
   * update rule. Absent: `either` where `auth` alone decides both, else `matching`.
   */
  upsert: Type.Optional(Type.Enum(["either", "matching"])),
});
export interface TableAccess extends Static<typeof Access> {}

type BeforeWrite = MaybePromise<OrNothing<TableRecord>>;

const Hooks = Type.Object({
  beforeInsert: Type.Optional(func<(auth: Auth | null, record: TableRecord, context: HookContext) => BeforeWrite>()),
  beforeUpdate: Type.Optional(
    func<(auth: Auth | null, record: TableRecord, changes: TableRecord, context: HookContext) => BeforeWrite>(),
  ),
  beforeDelete: Type.Optional(
    func<(auth: Auth | null, record: TableRecord, context: HookContext) => MaybePromise<void>>(),
  ),
  afterInsert: Type.Optional(
    func<(auth: Auth | null, record: TableRecord, context: HookContext) => MaybePromise<void>>(),
  ),
  afterUpdate: Type.Optional(
    func<(auth: Auth | null, record: TableRecord, before: TableRecord, context: HookContext) => MaybePromise<void>>(),
  ),
  afterDelete: Type.Optional(
    func<(auth: Auth | null, record: TableRecord, context: HookContext) => MaybePromise<void>>(),
  ),
});
/** The hooks of a table. `before*` run inside the write and may replace what is written, or throw; `after*` run once it is on disk. */
export interface TableHooks extends Static<typeof Hooks> {}

const CheckedField = refined(FieldShape, checkField);

/** A field, or `false` for `createdAt` and `updatedAt`. */
const fieldOrFalse = checkedBy<Field | false>((value, report) => {
  if (!AUTOMATIC_FIELDS.includes(report.member)) check(CheckedField, value, report);
  else if (report.member === "id") report.say("is created automatically");
  else if (value !== false) report.say("is created automatically; set it to false to leave it out");
});

const Fields = related(named(fieldOrFalse, fieldNameProblem), (fields, report) => {
  const count = Object.keys(fields).filter((name) => !AUTOMATIC_FIELDS.includes(name)).length;
  const countMax = COLUMNS_MAX - AUTOMATIC_FIELDS.length;
  if (count > countMax) report.say(`must have at most ${countMax} fields, got ${count}`);
});

const fieldNames = () => list(text());

const Search = Type.Object({
  fields: fieldNames(),
  /** The tokenizer; `unicode61` by default. */
  tokenize: Type.Optional(Type.Enum(["unicode61", "trigram", "porter"])),
});
export interface FullTextSearch extends Static<typeof Search> {}

const Embedding = Type.Object({
  fields: fieldNames(),
  /** Returns a vector for each text, in their order. All vectors have the same length, of at most 4,096 numbers. */
  with: func<(app: AppAccess, texts: string[]) => MaybePromise<readonly (readonly number[])[]>>(),
  /**
   * The name of what makes the vectors. Another name, or other fields, make all of them again. Absent: another text of the function
   * does.
   */
  model: Type.Optional(text()),
  /** The texts that the function gets at once; 64 by default, at most 128. */
  batch: Type.Optional(whole({ min: 1, max: EMBEDDED_AT_ONCE_MAX })),
});
/** Vectors of a table's records, for search by meaning. */
export interface Embedding extends Static<typeof Embedding> {}

const IndexShape = Type.Object({ fields: fieldNames(), unique: Type.Optional(Type.Boolean()) });
export interface Index extends Static<typeof IndexShape> {}

const MigrationShape = Type.Object({
  version: whole({ min: 1 }),
  description: text(),
  /** The SQL of the migration; several statements are allowed. */
  up: textWith(migrationProblem),
});
export interface Migration extends Static<typeof MigrationShape> {}

const Migrations = refined(list(Type.Unsafe<Migration>(MigrationShape), { minItems: 0 }), (migrations, report) => {
  for (const [index, { version }] of migrations.entries()) {
    const previous = migrations[index - 1]?.version ?? 0;
    if (version > previous) continue;
    report.at(index).at("version").say(`must be above the version before it: ${version} follows ${previous}`);
  }
});

export const TableShape = Type.Object({
  /** The fields. Absent: schemaless. `false` omits `createdAt` or `updatedAt`. */
  schema: Type.Optional(Fields),
  fts: Type.Optional(Type.Union([fieldNames(), Type.Unsafe<FullTextSearch>(Search)])),
  /** Vectors of the texts in these fields, for searches with `mode=hybrid` and for the nearest records. */
  embed: Type.Optional(Type.Unsafe<Embedding>(Embedding)),
  indexes: Type.Optional(list(Type.Unsafe<Index>(IndexShape), { minItems: 0 })),
  /** The text field by which people know a record, for the dashboard. By default it is guessed: `title`, `name` and the like. */
  display: Type.Optional(text()),
  /** The maximum size of one record in bytes of JSON; 1 MiB by default, at most 10 MiB. */
  maxRecordSize: Type.Optional(whole({ min: 1, max: RECORD_SIZE_MAX_BYTES })),
  access: Type.Optional(Type.Unsafe<TableAccess>(Access)),
  hooks: Type.Optional(Type.Unsafe<TableHooks>(Hooks)),
  migrations: Type.Optional(Migrations),
});
export interface TableConfig extends Static<typeof TableShape> {
  /** Whether it is the table that `auth.users` declares. Set by the check of the config, in which it cannot be written. */
  isUsers?: true;
  /** The SQL and the sources of a view, which has no records of its own. Set by the check of the config, as `isUsers` is. */
  view?: { sql: string; live: readonly string[] };
}
