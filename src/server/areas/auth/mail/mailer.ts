import { Type } from "typebox";
import type { Millis } from "../../../../kernel/clock.ts";
import { tooLarge } from "../../../../kernel/errors.ts";
import { jsonCopy } from "../../../../kernel/json/copy.ts";
import { createParser } from "../../../../kernel/schema/parser.ts";
import { endsWithin } from "../../../../kernel/time/stop.ts";
import type { MailAccessor } from "../../../config/app/index.ts";
import { Email, emailOf } from "../../../config/shapes/user-fields.ts";
import type { AuthConfig } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { FinalFailure, type Queue } from "../../../jobs/index.ts";
import {
  MAIL_CONTENT_MAX_CHARACTERS,
  MAIL_RETRIES_MAX,
  MAIL_SUBJECT_MAX_CHARACTERS,
  MAIL_TIMEOUT_SECONDS,
  OUTBOX_WAIT_MS,
  SMTP_CONNECTIONS_MAX,
} from "../limits.ts";
import type { MailKind } from "./built-in.ts";
import { type MailText, type MailValues, renderMail } from "./templates.ts";
import { createOutbox, createSmtp, type Secrets, type Transport, type TransportDeps } from "./transports.ts";

const FROM_DEFAULT = "no-reply@localhost";
/** The name of the jobs that send mail. */
const MAIL_JOB_NAME = "platform.mail";

interface AccountMail {
  kind: MailKind;
  values: MailValues;
  /** The reader's language; null: not known. */
  language: string | null;
  /** Lifetime of its link or code: it is not sent later. */
  ttlMs: number;
  /** `none`: nothing is sent, after the same work, so that the time of the answer does not tell. */
  delivery: "mail" | "none";
}

/** Call when the write of a mail is on disk. Without a mail server it resolves when the mail is in the outbox. */
export type Posted = () => Promise<void>;

/** The part of a job that administrators may see. */
interface VisibleMail {
  kind: MailKind | "app";
  to: string;
  /** null: it is sent whenever it can be. */
  expiresAt: Millis | null;
}

/** The encrypted part of a job. */
interface SecretMail {
  content: MailText;
  secrets: Secrets;
}

interface MailerDeps extends TransportDeps {
  config: NonNullable<AuthConfig["mail"]>;
  /** The name that mails give the product; empty: none. */
  appName: () => string;
  queue: Queue;
}

/** Sends mails by jobs: with `smtp` to its server, else as files in `<data>/outbox`. In a drill they are files at once. */
export class Mailer {
  /** Whether mails are sent; false: they are files in the outbox. */
  readonly isSent: boolean;
  readonly #deps: MailerDeps;
  readonly #transport: Transport;
  /** Callers that wait for a mail to be in the outbox, by the mail's id. */
  readonly #written = new Map<string, () => void>();

  constructor(deps: MailerDeps) {
    this.#deps = deps;
    const { smtp } = deps.config;
    this.isSent = smtp !== undefined && !deps.isDrill;
    this.#transport = smtp !== undefined && this.isSent ? createSmtp(smtp) : createOutbox(deps);
    this.#deps.queue.define(MAIL_JOB_NAME, {
      retries: MAIL_RETRIES_MAX,
      timeout: MAIL_TIMEOUT_SECONDS,
      concurrency: SMTP_CONNECTIONS_MAX,
      run: async ({ id, data, secret }) => {
        // Written by `post`.
        const visible = data as unknown as VisibleMail;
        if (visible.expiresAt !== null && visible.expiresAt <= this.#deps.clock.now()) {
          throw new FinalFailure("Its link or code expired before it could be sent");
        }
        await this.#deliver(id, visible, JSON.parse(secret ?? "") as SecretMail);
      },
    });
  }

  /**
   * Writes a mail down in the transaction that it is about: it is sent if and only if that is committed. Without effect before
   * that, except in a drill. [AU25] [AU261] [AU270]
   */
  post(tx: Pick<Transaction, "enqueue">, { kind, values, language, ttlMs, delivery }: AccountMail): Posted {
    const content = this.render(kind, values, language);
    const { email: to, link, code } = values;
    const secrets = { ...(link === undefined ? {} : { link }), ...(code === undefined ? {} : { code }) };
    const visible = { kind, to, expiresAt: this.#deps.clock.now() + ttlMs };
    const { id, data, options } = this.#jobOf(visible, { content, secrets });
    const isMailed = delivery === "mail";
    if (this.#deps.isDrill)
      return async () => (isMailed ? this.#deliver(id, visible, { content, secrets }) : undefined);
    const { name, ...job } = this.#deps.queue.prepare(MAIL_JOB_NAME, data, options);
    tx.enqueue({ ...job, names: isMailed ? [name] : [] });
    return async () => (isMailed ? this.#untilInOutbox(id, async () => {}) : undefined);
  }

  render(kind: MailKind, values: MailValues, language: string | null): MailText {
    const { templates = {} } = this.#deps.config;
    return renderMail(kind, { ...values, appName: this.#deps.appName() }, { templates, language });
  }

  /** Sends a mail to a valid address. `kind`: `app` for those of the config's code. */
  async sendText(to: string, content: MailText, kind: VisibleMail["kind"] = "app"): Promise<void> {
    const visible: VisibleMail = { kind, to, expiresAt: null };
    const { id, data, options } = this.#jobOf(visible, { content, secrets: {} });
    if (this.#deps.isDrill) return this.#deliver(id, visible, { content, secrets: {} });
    return this.#untilInOutbox(id, () => this.#deps.queue.enqueue(MAIL_JOB_NAME, data, options));
  }

  stop(): void {
    this.#transport.stop();
  }

  async #deliver(id: string, { kind, to }: VisibleMail, { content, secrets }: SecretMail): Promise<void> {
    await this.#transport.send({ id, kind, from: this.#deps.config.from ?? FROM_DEFAULT, to, ...content }, secrets);
    this.#written.get(id)?.();
  }

  /** Resolves when the mail is in the outbox, where tests look for it; at once with a mail server. */
  async #untilInOutbox(id: string, enqueued: () => Promise<unknown>): Promise<void> {
    const inOutbox = Promise.withResolvers<void>();
    if (!this.isSent) this.#written.set(id, inOutbox.resolve);
    try {
      await enqueued();
      if (!this.isSent) await endsWithin(inOutbox.promise, OUTBOX_WAIT_MS, this.#deps.clock);
    } finally {
      this.#written.delete(id);
    }
  }

  #jobOf({ kind, to, expiresAt }: VisibleMail, hidden: SecretMail) {
    const id = this.#deps.ids.uuid();
    return { id, data: { kind, to, expiresAt }, options: { id, secret: JSON.stringify(hidden) } };
  }
}

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
