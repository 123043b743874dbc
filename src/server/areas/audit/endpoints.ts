import { Type } from "typebox";
import { nullable } from "../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { AUDIT_QUERY, type AuditService } from "./service.ts";

const Changed = nullable(Type.Unknown({ description: "Up to 16 KiB, without secrets; null where there was nothing" }));
const Entries = Type.Object(
  {
    entries: Type.Array(
      Type.Object({
        at: Type.String({ format: "date-time" }),
        actor: Type.Object({
          kind: Type.Enum(["serviceKey", "admin", "user", "anonymous"]),
          name: nullable(Type.String({ description: "The name of the key, or the user's id" })),
          as: Type.Optional(Type.String({ description: "Whom the actor acted as: a user's id, or `anonymous`" })),
        }),
        address: nullable(Type.String()),
        action: Type.String(),
        target: Type.String(),
        before: Changed,
        after: Changed,
        requestId: nullable(Type.String()),
      }),
    ),
    cursor: nullable(Type.String({ description: "null on the last page" })),
  },
  { description: "The newest first" },
);

export function auditEndpoints(service: AuditService): readonly Endpoint[] {
  return [
    endpoint(
      "GET /api/admin/audit",
      {
        tag: "Administration",
        summary: "List what keys and administrators have changed, and who has signed in",
        caller: "serviceKey",
        place: "core",
        query: AUDIT_QUERY,
        answers: { 200: Entries },
        errors: [400, 408, 503],
      },
      async (context) => {
        requireServiceKey(context.principal, ["audit", "*", "*", "read"]);
        return service.list(context.query(), context);
      },
    ),
  ];
}
