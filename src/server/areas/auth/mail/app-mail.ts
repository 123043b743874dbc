import { Type } from "typebox";
import { tooLarge } from "../../../../kernel/errors.ts";
import { jsonCopy } from "../../../../kernel/json/copy.ts";
import { createParser } from "../../../../kernel/schema/parser.ts";
import { Email, emailOf } from "../../../config/shapes/user-fields.ts";
import type { MailAccessor } from "../../../config/app/index.ts";
import { MAIL_CONTENT_MAX_CHARACTERS, MAIL_SUBJECT_MAX_CHARACTERS } from "../limits.ts";
import type { Mailer } from "./mailer.ts";

const OutgoingMail = Type.Object({
  to: Email,
  subject: Type.String({ minLength: 1, maxLength: MAIL_SUBJECT_MAX_CHARACTERS }),
  text: Type.String({ minLength: 1 }),
  html: Type.Optional(Type.String()),
});

/** `app.mail`. [AU263] */
export function createMailAccessor(mailer: Mailer): MailAccessor {
  const parser = createParser(OutgoingMail, { member: "a field of a mail" });
  return {
    async send(mail) {
      const { to, subject, text, html } = parser.parse(jsonCopy({ ...mail }));
      const length = text.length + (html?.length ?? 0);
      if (length > MAIL_CONTENT_MAX_CHARACTERS) {
        throw tooLarge(`text and html must have at most ${MAIL_CONTENT_MAX_CHARACTERS} characters, got ${length}`);
      }
      // A line break in a subject would begin another header.
      const content = { subject: subject.replaceAll(/[\r\n]+/g, " "), text };
      await mailer.sendText(emailOf(to), html === undefined ? content : { ...content, html });
    },
  };
}
