import { type Static, Type } from "typebox";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { RuleContext } from "../../context.ts";
import type { Auth } from "../../identity.ts";
import { tableNameProblem } from "../../shape/names.ts";
import { named, related, rule } from "../../shape/schema.ts";
import { checkRelations } from "./relations.ts";
import { type TableConfig, TableShape } from "./tables.ts";

type InstanceRule = boolean | ((auth: Auth | null, instanceId: string, context: RuleContext) => MaybePromise<boolean>);

const instanceRule = () => Type.Optional(Type.Unsafe<InstanceRule>(rule()));

const Namespace = related(
  Type.Object({
    /** true: dynamic, one file per instance id. */
    instance: Type.Optional(Type.Boolean()),
    /** For dynamic namespaces only. Absent: only service keys have access. */
    access: Type.Optional(Type.Object({ create: instanceRule(), open: instanceRule() })),
    tables: named(Type.Unsafe<TableConfig>(TableShape), tableNameProblem),
  }),
  ({ instance, access, tables }, report) => {
    if (access !== undefined && instance !== true) {
      report
        .at("access")
        .say("is for namespaces with instance: true; tables of other namespaces have their own access");
    }
    checkRelations(tables, report.at("tables"));
  },
);
export interface NamespaceConfig extends Static<typeof Namespace> {}

export const Databases = named(Type.Unsafe<NamespaceConfig>(Namespace));
