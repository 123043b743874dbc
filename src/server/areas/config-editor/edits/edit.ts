import { type Static, Type } from "typebox";
import { AnyObject } from "../../../../kernel/schema/types.ts";
import { EDIT_FIELDS_MAX, NAME_MAX, RULE_SOURCE_MAX } from "../limits.ts";

const name = () => Type.String({ maxLength: NAME_MAX });
const names = () => Type.Array(name(), { maxItems: EDIT_FIELDS_MAX });
const place = { namespace: name(), table: name() };

const edit = <const Kind extends string, Members extends object>(kind: Kind, members: Members) =>
  Type.Object({ do: Type.Literal(kind), ...members });

/** The options of the templates of rules, of which each takes its own. */
export const TemplateOptions = Type.Object({
  field: Type.Optional(name()),
  table: Type.Optional(name()),
  userField: Type.Optional(name()),
  match: Type.Optional(Type.Record(Type.String(), name())),
  roleField: Type.Optional(name()),
  roles: Type.Optional(names()),
});
export type TemplateOptions = Static<typeof TemplateOptions>;

export const TEMPLATES = ["public", "nobody", "signedIn", "owner", "members"] as const;
export const RULES = ["read", "insert", "update", "delete"] as const;
export type RuleName = (typeof RULES)[number];

/** A change of a config. */
export const Edit = Type.Union([
  edit("addNamespace", { namespace: name(), instance: Type.Optional(Type.Boolean()) }),
  edit("addTable", place),
  edit("addField", { ...place, field: name(), spec: AnyObject }),
  edit("setField", { ...place, field: name(), changes: AnyObject }),
  edit("removeField", { ...place, field: name() }),
  edit("addIndex", { ...place, fields: names(), unique: Type.Optional(Type.Boolean()) }),
  edit("setFts", { ...place, fields: names() }),
  edit("addBucket", { bucket: name() }),
  edit("setRule", {
    ...place,
    rule: Type.Enum(RULES),
    template: Type.Optional(Type.Enum(TEMPLATES)),
    options: Type.Optional(TemplateOptions),
    source: Type.Optional(Type.String({ maxLength: RULE_SOURCE_MAX })),
  }),
]);
export type Edit = Static<typeof Edit>;

/** The edit of one kind. */
export type EditOf<Kind extends Edit["do"]> = Extract<Edit, { do: Kind }>;

export const Problem = Type.Object({
  path: Type.String({ description: "The path in the config, its members joined by dots; empty for the whole" }),
  message: Type.String(),
});
export type Problem = Static<typeof Problem>;
