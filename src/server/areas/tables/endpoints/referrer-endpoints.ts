import { Type } from "typebox";
import { nullable } from "../../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { type CountReferrers, REFERRER_INSTANCES_MAX, REFERRERS_COUNTED_MAX } from "../records/referrer-counts.ts";

const Referrers = Type.Object({
  namespace: Type.String(),
  instanceId: nullable(Type.String()),
  table: Type.String(),
  field: Type.String(),
  records: Type.Integer({ description: `No more than ${REFERRERS_COUNTED_MAX} are counted` }),
});

export const referrerEndpoints = (countReferrers: CountReferrers): readonly Endpoint[] => [
  endpoint(
    "GET /api/admin/tables/:namespace/:table/referrers",
    {
      tag: "Administration",
      summary: "Count the records that refer to one, in its file and in others",
      description:
        "Scope db:NAMESPACE:TABLE:read. Of tables that the key may not read nothing is counted. Instances of other namespaces follow by id, " +
        `${REFERRER_INSTANCES_MAX} a request: continue with \`cursor\` until it is null.`,
      caller: "serviceKey",
      place: "namespace",
      path: { namespace: "A declared namespace", table: "A table of the namespace" },
      query: {
        id: Type.String({ description: "The id of the record" }),
        instanceId: Type.Optional(Type.String({ description: "Where the namespace has instances" })),
        cursor: Type.Optional(Type.String({ description: "Of the answer before" })),
      },
      answers: {
        200: Type.Object(
          { items: Type.Array(Referrers), cursor: nullable(Type.String()) },
          { description: "Fields by which records refer to it, with their number" },
        ),
      },
      errors: [400, 404],
    },
    ({ principal, params: { namespace, table }, query, request }) => {
      requireServiceKey(principal, ["db", namespace, table, "read"]);
      const { id, instanceId = null, cursor = null } = query();
      return countReferrers(principal, { namespace, instanceId, table }, { id, cursor }, request.signal);
    },
  ),
];
