import { Type } from "typebox";
import { notFound } from "../../../../kernel/errors.ts";
import { actorOf } from "../../../access/principal.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { Email, emailOf, Language, languageOf } from "../../../config/shapes/user-fields.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import { createRateLimiter } from "../../../http/rate-limit.ts";
import { OK } from "../../../http/reply.ts";
import { TEST_MAILS } from "../limits.ts";
import { MAIL_KINDS, type MailKind } from "../mail/built-in.ts";
import type { MailText } from "../mail/templates.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { Ok } from "./parts.ts";

const common = { tag: "Administration", caller: "serviceKey", place: "core" } as const;
const OF_TEMPLATE = { name: `One of ${MAIL_KINDS.join(", ")}` };
const Preview = Type.Object(
  { subject: Type.String(), text: Type.String(), html: Type.String() },
  { description: "The mail with sample data" },
);

/** Endpoints that show a mail with sample data, or send one. */
export function mailTemplateEndpoints(deps: AuthDeps): readonly Endpoint[] {
  const limiter = createRateLimiter(TEST_MAILS, deps.clock);
  const preview = endpoint(
    "GET /api/admin/mail/templates/:name/preview",
    {
      ...common,
      summary: "Show a mail with sample data",
      path: OF_TEMPLATE,
      query: { language: Language },
      answers: { 200: Preview },
      errors: [400, 404],
    },
    ({ principal, params, query }) => {
      requireServiceKey(principal, ["system", "*", "*", "read"]);
      const { language = null } = query();
      const { subject, text, html = "" } = sampleOf(deps, kindOf(params.name), language);
      return { subject, text, html };
    },
  );
  const test = endpoint(
    "POST /api/admin/mail/templates/:name/test",
    {
      ...common,
      summary: "Send a mail with sample data, at most 10 an hour",
      path: OF_TEMPLATE,
      body: Type.Object({ to: Email, language: Language }),
      bodyMaxBytes: SMALL_BODY_MAX_BYTES,
      answers: { 200: Ok },
      errors: [404, 429],
    },
    async ({ principal, params, body }) => {
      requireServiceKey(principal, ["auth", "admin", "*", "write"]);
      const { to, language = null } = await body();
      const kind = kindOf(params.name);
      limiter.hit("");
      const by = actorOf(principal);
      await deps.file.write((write) =>
        write.audit(by, { action: "user.mail", target: `mail/${kind}`, after: { test: to } }),
      );
      await deps.mailer.sendText(emailOf(to), sampleOf(deps, kind, language), kind);
      return OK;
    },
  );
  return [preview, test];
}

function kindOf(name: string): MailKind {
  const kind = MAIL_KINDS.find((one) => one === name);
  if (kind === undefined) throw notFound(`There is no mail "${name}"`);
  return kind;
}

function sampleOf({ mailer, publicUrl }: AuthDeps, kind: MailKind, language: string | null): MailText {
  const link = kind === "emailOtp" ? {} : { link: `${publicUrl()}/?token=sample` };
  const code = kind === "emailOtp" ? { code: "123456" } : {};
  const values = { email: "ann@example.com", name: "Ann", inviter: "Bob", data: "sample", ...link, ...code } as const;
  return mailer.render(kind, values, languageOf(language ?? ""));
}
