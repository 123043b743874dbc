import { Type } from "typebox";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { MeasureTable } from "../query/size.ts";

export const sizeEndpoints = (measure: MeasureTable): readonly Endpoint[] => [
  endpoint(
    "GET /api/admin/tables/:namespace/:table/size",
    {
      tag: "Administration",
      summary: "Get the number of records of a table, and how large it is",
      description: "Scope db:NAMESPACE:TABLE:read. Nothing is counted: it takes the same time for any table.",
      caller: "serviceKey",
      place: "namespace",
      path: { namespace: "A declared namespace", table: "A table of the namespace" },
      query: { instanceId: Type.Optional(Type.String({ description: "Where the namespace has instances" })) },
      answers: {
        200: Type.Object(
          {
            rows: Type.Integer(),
            bytes: Type.Integer({ description: "About, without indexes" }),
            fileBytes: Type.Integer({ description: "Of the file, which has all tables of the namespace or instance" }),
          },
          { description: "The size of the table" },
        ),
      },
      errors: [400, 404],
    },
    ({ principal, params: { namespace, table }, query }) => {
      requireServiceKey(principal, ["db", namespace, table, "read"]);
      const { instanceId = null } = query();
      return measure({ namespace, instanceId, table });
    },
  ),
];
