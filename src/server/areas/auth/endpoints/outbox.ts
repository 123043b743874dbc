import { Type } from "typebox";
import { notFound } from "../../../../kernel/errors.ts";
import { nullable } from "../../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OUTBOX_LIMIT_DEFAULT, OUTBOX_LIMIT_MAX } from "../limits.ts";
import type { OutboxReader } from "../mail/outbox-reader.ts";

const tag = "Administration";
const READ = ["auth", "admin", "*", "read"] as const;
const head = {
  id: Type.String(),
  kind: Type.String(),
  from: Type.String(),
  to: Type.String(),
  subject: Type.String(),
  sentAt: Type.String({ format: "date-time" }),
};
const Mail = Type.Object(
  { ...head, text: Type.String(), html: nullable(Type.String()) },
  { description: "`[hidden]` in place of its link and code" },
);

/** The mails of a server without a mail server, and of a drill. */
export function outboxEndpoints(outbox: OutboxReader): readonly Endpoint[] {
  return [
    endpoint(
      "GET /api/auth/admin/outbox",
      {
        tag,
        summary: "List the mails in the outbox, newest first",
        description: "Mails go there where no SMTP server is configured, and in a drill.",
        caller: "serviceKey",
        place: "core",
        query: {
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: OUTBOX_LIMIT_MAX, default: OUTBOX_LIMIT_DEFAULT })),
          cursor: Type.Optional(Type.String({ description: "The `cursor` of the previous page" })),
        },
        answers: {
          200: Type.Object({ mails: Type.Array(Type.Object(head)), cursor: nullable(Type.String()) }),
        },
        errors: [400],
      },
      async ({ principal, query }) => {
        requireServiceKey(principal, READ);
        const { limit = OUTBOX_LIMIT_DEFAULT, cursor = null } = query();
        const { mails, next } = await outbox.list({ before: cursor, limit });
        return { mails: mails.map(({ text: _, html: __, ...mail }) => mail), cursor: next };
      },
    ),
    endpoint(
      "GET /api/auth/admin/outbox/:id",
      {
        tag,
        summary: "Get a mail in the outbox, without its link and code",
        caller: "serviceKey",
        place: "core",
        path: { id: "The id of a mail" },
        answers: { 200: Mail },
        errors: [400, 404],
      },
      async ({ principal, params, query }) => {
        requireServiceKey(principal, READ);
        query();
        const mail = await outbox.get(params.id);
        if (mail === null) throw notFound(`There is no mail "${params.id}"`);
        return mail;
      },
    ),
  ];
}
