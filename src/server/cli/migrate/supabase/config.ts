import { type Code, type Member, memberName, numberCode, objectCode, quoted } from "../code.ts";
import { accessMember, configSource, indexMember, type MovedRule, type RuleName } from "../config-source.ts";
import { ruleCode } from "../rules/emit.ts";
import type { MovedBucket } from "./buckets.ts";
import { columnCode, type MovedColumn, type MovedTable, type MovePlan, maxRecordSize } from "./plan.ts";
import type { Translation } from "./translation.ts";

const headerOf = (from: string): string =>
  `// Made from ${from} by platform migrate. report.md beside this file says what to look at.`;

interface ConfigParts {
  plan: MovePlan;
  translation: Translation;
  buckets: readonly MovedBucket[];
  providers: readonly string[];
  hasUnconfirmed: boolean;
  /** Names the source; without accounts there is no table of users. */
  from: string;
  hasAccounts: boolean;
}

/** Returns the text of `platform.config.ts`. */
export function configText(parts: ConfigParts): string {
  const { plan, translation, buckets, providers, hasUnconfirmed, from, hasAccounts } = parts;
  // All rules first: they say which indexes tables need.
  const rules = new Map(plan.tables.map((table) => [table, rulesOf(table, translation)]));
  const tables = plan.tables.flatMap((table): Member[] => [
    { name: table.name, value: tableCode(table, rules.get(table) ?? NO_RULES, translation) },
    ...hiddenMember(table),
  ]);
  const auth: Member[] = [
    ...(hasUnconfirmed ? [{ name: "requireVerifiedEmail", value: "true" }] : []),
    {
      name: "signup",
      value: "false",
      comments: hasAccounts ? ["A dump does not say who may sign up: without this line everybody may."] : [],
    },
    ...(providers.length === 0 ? [] : [{ name: "oauth", value: objectCode(providers.map(providerMember)) }]),
    ...(hasAccounts ? [usersMember(plan)] : []),
  ];
  return configSource(headerOf(from), [
    { name: "auth", value: objectCode(auth, { isBroken: true }) },
    ...bucketsMember(buckets),
    {
      name: "databases",
      value: objectCode(
        [
          {
            name: "shared",
            value: objectCode([{ name: "tables", value: objectCode(tables, { isBroken: true }) }], { isBroken: true }),
          },
        ],
        { isBroken: true },
      ),
    },
  ]);
}

const usersMember = ({ users }: MovePlan): Member => ({
  name: "users",
  value: objectCode([
    { name: "in", value: quoted("shared") },
    { name: "table", value: quoted(users) },
  ]),
});

type Rules = Readonly<Record<RuleName, MovedRule>>;
const NO_RULE: MovedRule = { code: null, comments: [] };
const NO_RULES: Rules = { read: NO_RULE, insert: NO_RULE, update: NO_RULE, delete: NO_RULE };

function rulesOf(table: MovedTable, translation: Translation): Rules {
  const rule = (action: RuleName): MovedRule => {
    const { formula, comments } = translation.ruleOf(table, action);
    return { code: ruleCode(formula, { action, meCode: "" }), comments };
  };
  return { read: rule("read"), insert: rule("insert"), update: rule("update"), delete: rule("delete") };
}

function providerMember(name: string): Member {
  const variable = name.toUpperCase();
  return {
    name,
    value: `{ clientId: process.env.${variable}_CLIENT_ID ?? "", clientSecret: process.env.${variable}_CLIENT_SECRET ?? "" }`,
  };
}

function bucketsMember(buckets: readonly MovedBucket[]): Member[] {
  if (buckets.length === 0) return [];
  const declared = buckets.map(({ name, maxFileSize, rules, comments }): Member => {
    const access = (["read", "write", "delete"] as const).flatMap((rule): Member[] =>
      rules[rule] === null ? [] : [{ name: rule, value: rules[rule] }],
    );
    const members: Member[] = [
      ...(maxFileSize === null ? [] : [{ name: "maxFileSize", value: numberCode(maxFileSize) }]),
      ...(access.length === 0 ? [] : [{ name: "access", value: objectCode(access, { isBroken: true }) }]),
    ];
    return { name, value: objectCode(members), comments };
  });
  return [
    { name: "storage", value: objectCode([{ name: "buckets", value: objectCode(declared, { isBroken: true }) }]) },
  ];
}

const NO_TIMES: readonly Member[] = [
  { name: "createdAt", value: "false" },
  { name: "updatedAt", value: "false" },
];

function schemaCode(columns: readonly MovedColumn[]): Code {
  const fields = columns.filter(({ name }) => name !== "id").map(columnCode);
  return objectCode([...fields, ...NO_TIMES], { isBroken: true });
}

function tableCode(table: MovedTable, rules: Rules, translation: Translation): Code {
  const size = maxRecordSize(table);
  const indexes = [...table.indexes, ...translation.indexesOf(table.name).map((field) => ({ fields: [field] }))];
  return objectCode(
    [
      { name: "schema", value: schemaCode(table.columns) },
      ...indexMember(indexes),
      ...(size === null ? [] : [{ name: "maxRecordSize", value: numberCode(size) }]),
      ...accessMember(rules, ["read", "insert", "update", "delete"]),
      ...hooksMember(table.columns),
    ],
    { isBroken: true },
  );
}

/** Sets what PostgreSQL computed as the default of a column. */
function hooksMember(columns: readonly MovedColumn[]): Member[] {
  const filled = columns.filter(({ filledBy, name }) => filledBy !== null && name !== "id");
  if (filled.length === 0) return [];
  const values = filled.map(({ name, filledBy }) => `${memberName(name)}: record[${quoted(name)}] ?? ${filledBy}`);
  const caller = filled.some(({ filledBy }) => filledBy?.includes("auth") === true) ? "auth" : "_auth";
  return [
    {
      name: "hooks",
      value: objectCode([
        { name: "beforeInsert", value: `(${caller}, record) => ({ ...record, ${values.join(", ")} })` },
      ]),
    },
  ];
}

function hiddenMember({ hidden, name }: MovedTable): Member[] {
  if (hidden.length === 0) return [];
  const comments = [
    `Columns of ${name} that callers have no right to, by its id: for service keys and the server's own code.`,
  ];
  return [
    {
      name: `${name}_hidden`,
      value: objectCode([{ name: "schema", value: schemaCode(hidden) }], { isBroken: true }),
      comments,
    },
  ];
}
