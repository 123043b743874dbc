import { Type } from "typebox";
import { nullable, optional } from "../../../../kernel/schema/types.ts";
import type { Account } from "../../../access/accounts.ts";
import { actAs, requireActing } from "../../../access/acting.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { AnyRecord } from "../model/requests.ts";
import type { TryRules } from "../trial/trial.ts";

const ACTIONS = ["read", "insert", "update", "delete"] as const;
const Operation = Type.Enum([...ACTIONS]);
const RuleName = Type.Enum(["open", "create", ...ACTIONS]);

const TracedLookup = Type.Object({
  rule: RuleName,
  namespace: Type.String(),
  instanceId: nullable(Type.String()),
  table: Type.String(),
  method: Type.Enum(["get", "first", "list", "exists"]),
  id: nullable(Type.String({ description: "Of get" })),
  filter: nullable(Type.String({ description: "As JSON, cut after 1,000 characters" })),
  found: Type.Integer({ description: "Records; of exists 1 where there is one" }),
  ms: Type.Number(),
  error: nullable(Type.String()),
});

const Result = Type.Object({
  operation: Operation,
  allowed: Type.Boolean(),
  status: Type.Integer({ description: "Of the answer to such a request, as far as rules decide it" }),
  decidedBy: Type.Enum(["open", "create", ...ACTIONS], {
    description: "The rule that decided: update and delete are 404 for a record that the read rule hides",
  }),
  rule: nullable(Type.String({ description: "Its source; null: there is none, which denies" })),
  answer: Type.Unknown({ description: "The filter that it returned, or whether it allows" }),
  lookups: Type.Array(TracedLookup),
  lookupCount: Type.Integer({ description: "All lookups, of which at most 200 are listed" }),
  ms: Type.Number(),
  error: nullable(Type.String({ description: "Why the rule failed, which denies" })),
});

const Body = Type.Object({
  namespace: Type.String(),
  instanceId: optional(Type.String()),
  table: Type.String(),
  as: Type.String({ description: "The id of a user, or anonymous" }),
  id: optional(Type.String({ description: "A stored record" })),
  record: optional(AnyRecord),
  data: optional(AnyRecord),
  operations: optional(Type.Array(Operation, { minItems: 1, maxItems: ACTIONS.length })),
});

/** Returns the endpoints that try rules. `account`: null for users who do not exist. */
export const trialEndpoints = (tryRules: TryRules, account: (id: string) => Account | null): readonly Endpoint[] => [
  endpoint(
    "POST /api/admin/rules/try",
    {
      tag: "Administration",
      summary: "Ask which rule allows or denies an operation on one record, and what it looks up",
      description:
        "For the root key, as X-Platform-Act-As. The rules are asked as they are for a request; nothing is written, and neither hooks " +
        "nor constraints are asked. `id` names a stored record; `record` is one that does not exist, with the defaults of an insert. " +
        "`data` are the changes of an update. Without `operations`: all four.",
      caller: "serviceKey",
      place: "namespace",
      body: Body,
      answers: { 200: Type.Object({ results: Type.Array(Result) }, { description: "One result an operation" }) },
      errors: [404],
    },
    async ({ principal, body }) => {
      requireActing(principal);
      const { namespace, instanceId = null, table, as, id = null, record = null, data, operations } = await body();
      const results = await tryRules(actAs(principal, as, account), {
        address: { namespace, instanceId, table },
        operations: operations ?? ACTIONS,
        id,
        record,
        data: data ?? {},
      });
      return { results };
    },
  ),
];
