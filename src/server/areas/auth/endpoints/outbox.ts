import { Type } from "typebox";
import { notFound } from "../../../../kernel/errors.ts";
import { nullable } from "../../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OutboxEntry, OutboxMail, outboxMail, outboxMails } from "../mail/outbox-reader.ts";

const common = { tag: "Administration", caller: "serviceKey", place: "core" } as const;
const READ = ["auth", "admin", "*", "read"] as const;
/** Mails of a page. */
const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;

/** The mails of a server without a mail server, and of a drill. */
export function outboxEndpoints(dataDirectory: string): readonly Endpoint[] {
  return [
    endpoint(
      "GET /api/auth/admin/outbox",
      {
        ...common,
        summary: "List the mails in the outbox, newest first",
        description: "Mails go there where no SMTP server is configured, and in a drill.",
        query: {
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT })),
          cursor: Type.Optional(Type.String({ description: "The `cursor` of the previous page" })),
        },
        answers: {
          200: Type.Object({ mails: Type.Array(OutboxEntry), cursor: nullable(Type.String()) }),
        },
        errors: [400],
      },
      async ({ principal, query }) => {
        requireServiceKey(principal, READ);
        const { limit = LIMIT_DEFAULT, cursor = null } = query();
        const { mails, next } = await outboxMails(dataDirectory, { before: cursor, limit });
        return { mails, cursor: next };
      },
    ),
    endpoint(
      "GET /api/auth/admin/outbox/:id",
      {
        ...common,
        summary: "Get a mail in the outbox, without its link and code",
        path: { id: "The id of a mail" },
        answers: { 200: OutboxMail },
        errors: [400, 404],
      },
      async ({ principal, params, query }) => {
        requireServiceKey(principal, READ);
        query();
        const mail = await outboxMail(dataDirectory, params.id);
        if (mail === null) throw notFound(`There is no mail "${params.id}"`);
        return mail;
      },
    ),
  ];
}
