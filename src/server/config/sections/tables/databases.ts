import { type Static, Type } from "typebox";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { RuleContext } from "../../context.ts";
import type { Auth } from "../../identity.ts";
import { INSTANCE_QUOTA_MIN_BYTES } from "../../limits.ts";
import { tableNameProblem } from "../../shape/names.ts";
import { named, refined, related, rule, whole } from "../../shape/schema.ts";
import { checkFarReferences } from "./far-references.ts";
import { checkRelations } from "./relations.ts";
import { type TableConfig, TableShape } from "./tables.ts";
import { checkViews, type ViewConfig, ViewShape } from "./views.ts";

type InstanceRule = boolean | ((auth: Auth | null, instanceId: string, context: RuleContext) => MaybePromise<boolean>);

const instanceRule = () => Type.Optional(Type.Unsafe<InstanceRule>(rule()));

const quota = refined(
  Type.Object({
    /** Bytes of one instance's records and indexes. */
    perInstance: Type.Optional(whole({ min: INSTANCE_QUOTA_MIN_BYTES, unit: "bytes" })),
    /** Instances that one user may create. */
    instancesPerUser: Type.Optional(whole({ min: 1, unit: "instances" })),
  }),
  ({ perInstance, instancesPerUser }, report) => {
    if (perInstance === undefined && instancesPerUser === undefined) {
      report.say("must have perInstance or instancesPerUser");
    }
  },
);

const Namespace = related(
  Type.Object({
    /** Whether the namespace is dynamic, with one file per instance id. */
    instance: Type.Optional(Type.Boolean()),
    /** The rules of instances, for dynamic namespaces only. Absent: only service keys have access. */
    access: Type.Optional(Type.Object({ create: instanceRule(), open: instanceRule() })),
    /** The limits of an instance's size and of a user's instances, for dynamic namespaces only. No quota by default. */
    quota: Type.Optional(quota),
    tables: named(Type.Unsafe<TableConfig>(TableShape), tableNameProblem),
    /** Results of SQL over the tables, which are read like tables. */
    views: Type.Optional(named(Type.Unsafe<ViewConfig>(ViewShape), tableNameProblem)),
  }),
  ({ instance, access, quota, tables, views }, report) => {
    if (access !== undefined && instance !== true) {
      report
        .at("access")
        .say("is for namespaces with instance: true; tables of other namespaces have their own access");
    }
    if (quota !== undefined && instance !== true) report.at("quota").say("is for namespaces with instance: true");
    checkRelations(tables, report.at("tables"));
    checkViews(views, tables, report);
  },
);
export interface NamespaceConfig extends Static<typeof Namespace> {}

export const Databases = related(named(Type.Unsafe<NamespaceConfig>(Namespace)), checkFarReferences);
