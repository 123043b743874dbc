import type { AuthConfig } from "../../config/types.ts";
import { FinalFailure, type Queue } from "../../jobs/index.ts";
import type { Millis } from "../../kernel/clock.ts";
import { endsWithin } from "../../kernel/time/stop.ts";
import { MAIL_RETRIES_MAX, MAIL_TIMEOUT_SECONDS, OUTBOX_WAIT_MS, SMTP_CONNECTIONS_MAX } from "../limits.ts";
import { type MailKind, type MailText, type MailValues, renderMail } from "./templates.ts";
import { createOutbox, createSmtp, type Secrets, type TransportDeps } from "./transports.ts";

const FROM_DEFAULT = "no-reply@localhost";
/** The name of the jobs that send mail. */
const MAIL_JOB_NAME = "platform.mail";

interface AccountMail {
  kind: MailKind;
  values: MailValues;
  /** How long its link or code is valid: it is not sent later. */
  ttlMs: number;
  /** `none`: nothing is sent, after the same work, so that the time of the answer does not tell. */
  delivery: "mail" | "none";
}

export interface Mailer {
  /** Resolves when the mail is on disk, not when it is sent. [AU25] [AU261] */
  send(mail: AccountMail): Promise<void>;
  /** A mail of the config's code, to a valid address. */
  sendText(to: string, content: MailText): Promise<void>;
  stop(): void;
}

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
  queue: Queue;
}

/** With `smtp`, mails are sent as jobs; without, jobs make them files in `<data>/outbox`. In a drill they are files at once. */
export function createMailer(deps: MailerDeps): Mailer {
  const { config, queue, clock, isDrill } = deps;
  const isSent = config.smtp !== undefined && !isDrill;
  const transport = config.smtp !== undefined && isSent ? createSmtp(config.smtp) : createOutbox(deps);
  const written = new Map<string, () => void>();

  const deliver = async (id: string, { kind, to }: VisibleMail, { content, secrets }: SecretMail): Promise<void> => {
    await transport.send({ id, kind, from: config.from ?? FROM_DEFAULT, to, ...content }, secrets);
    written.get(id)?.();
  };
  queue.define(MAIL_JOB_NAME, {
    retries: MAIL_RETRIES_MAX,
    timeout: MAIL_TIMEOUT_SECONDS,
    concurrency: SMTP_CONNECTIONS_MAX,
    async run({ id, data, secret }) {
      // Written by `post`.
      const visible = data as unknown as VisibleMail;
      if (visible.expiresAt !== null && visible.expiresAt <= clock.now()) {
        throw new FinalFailure("Its link or code expired before it could be sent");
      }
      await deliver(id, visible, JSON.parse(secret ?? "") as SecretMail);
    },
  });

  /** Enqueues a mail. Without a mail server, resolves when it is in the outbox, where tests look for it. */
  const post = async (visible: VisibleMail, hidden: SecretMail, delivery: "mail" | "none"): Promise<void> => {
    const id = deps.ids.uuid();
    if (isDrill) return delivery === "mail" ? deliver(id, visible, hidden) : undefined;
    const data = { kind: visible.kind, to: visible.to, expiresAt: visible.expiresAt };
    const options = { id, secret: JSON.stringify(hidden) };
    if (delivery === "none") return queue.pretend(MAIL_JOB_NAME, data, options);
    const inOutbox = Promise.withResolvers<void>();
    if (!isSent) written.set(id, inOutbox.resolve);
    try {
      await queue.enqueue(MAIL_JOB_NAME, data, options);
      if (!isSent) await endsWithin(inOutbox.promise, OUTBOX_WAIT_MS, clock);
    } finally {
      written.delete(id);
    }
  };

  return {
    send({ kind, values, ttlMs, delivery }) {
      const content = renderMail(kind, values, config.templates ?? {});
      const { email: to, ...secrets } = values;
      return post({ kind, to, expiresAt: clock.now() + ttlMs }, { content, secrets }, delivery);
    },
    sendText: (to, content) => post({ kind: "app", to, expiresAt: null }, { content, secrets: {} }, "mail"),
    stop: transport.stop,
  };
}
