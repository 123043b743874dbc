import type { Millis } from "../../../../kernel/clock.ts";
import { endsWithin } from "../../../../kernel/time/stop.ts";
import type { AuthConfig } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { FinalFailure, type Queue } from "../../../jobs/index.ts";
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

/** Call when the write of a mail is on disk. Without a mail server it resolves when the mail is in the outbox. */
export type Posted = () => Promise<void>;

export interface Mailer {
  /** Whether mails are sent; false: they are files in the outbox. */
  readonly isSent: boolean;
  /**
   * Writes a mail down in the transaction that it is about: it is sent if and only if that is committed. Without effect before
   * that, except in a drill. [AU25] [AU261] [AU270]
   */
  post(tx: Pick<Transaction, "enqueue">, mail: AccountMail): Posted;
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
  /** The name that mails give the product; empty: none. */
  product: () => string;
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

  /** Without a mail server, resolves when the mail is in the outbox, where tests look for it. */
  const untilInOutbox = async (id: string, enqueued: () => Promise<unknown>): Promise<void> => {
    const inOutbox = Promise.withResolvers<void>();
    if (!isSent) written.set(id, inOutbox.resolve);
    try {
      await enqueued();
      if (!isSent) await endsWithin(inOutbox.promise, OUTBOX_WAIT_MS, clock);
    } finally {
      written.delete(id);
    }
  };
  const jobOf = ({ kind, to, expiresAt }: VisibleMail, hidden: SecretMail) => {
    const id = deps.ids.uuid();
    return { id, data: { kind, to, expiresAt }, options: { id, secret: JSON.stringify(hidden) } };
  };

  return {
    isSent,
    post(tx, { kind, values, ttlMs, delivery }) {
      const content = renderMail(kind, { ...values, product: deps.product() }, config.templates ?? {});
      const { email: to, ...secrets } = values;
      const visible = { kind, to, expiresAt: clock.now() + ttlMs };
      const { id, data, options } = jobOf(visible, { content, secrets });
      const isMailed = delivery === "mail";
      if (isDrill) return async () => (isMailed ? deliver(id, visible, { content, secrets }) : undefined);
      const { name, ...job } = queue.prepare(MAIL_JOB_NAME, data, options);
      tx.enqueue({ ...job, names: isMailed ? [name] : [] });
      return async () => (isMailed ? untilInOutbox(id, async () => {}) : undefined);
    },
    async sendText(to, content) {
      const visible: VisibleMail = { kind: "app", to, expiresAt: null };
      const { id, data, options } = jobOf(visible, { content, secrets: {} });
      if (isDrill) return deliver(id, visible, { content, secrets: {} });
      return untilInOutbox(id, () => queue.enqueue(MAIL_JOB_NAME, data, options));
    },
    stop: transport.stop,
  };
}
