import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import type { AuthConfig } from "../../config/types.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Logger } from "../../kernel/logger.ts";
import {
  MAIL_RETRY_DELAYS_MS,
  MAILS_WAITING_MAX,
  OUTBOX_FILES_MAX,
  SMTP_CONNECTIONS_MAX,
  SMTP_TIMEOUT_MS,
} from "../limits.ts";
import { type MailKind, type MailValues, renderMail } from "./templates.ts";

const FROM_DEFAULT = "no-reply@localhost";

export interface Mailer {
  /**
   * Returns before the mail is sent, so that an answer takes the same time for addresses with and without an account. A
   * failure is logged, and the mail sent again up to three times.
   */
  send(kind: MailKind, values: MailValues): void;
  stop(): void;
}

interface Message {
  kind: MailKind;
  from: string;
  to: string;
  subject: string;
  text: string;
  html?: string;
}

interface MailerDeps {
  config: NonNullable<AuthConfig["mail"]>;
  /** true: mails go to the outbox, whatever is configured. */
  isDrill: boolean;
  dataDirectory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** With `smtp`, mails are sent; without, and in a drill, they become files in `<data>/outbox`. [AU25] */
export function createMailer(deps: MailerDeps): Mailer {
  const { smtp } = deps.config;
  const transport = smtp === undefined || deps.isDrill ? createOutbox(deps) : createSmtp(deps, smtp);
  return {
    send(kind, values) {
      const content = renderMail(kind, values, deps.config.templates ?? {});
      const { email: to, ...secrets } = values;
      transport.send({ kind, from: deps.config.from ?? FROM_DEFAULT, to, ...content }, secrets);
    },
    stop: transport.stop,
  };
}

interface Transport {
  send(message: Message, secrets: Omit<MailValues, "email">): void;
  stop(): void;
}

/** One JSON file per message, with the link or code beside the text, for development and tests. */
function createOutbox(deps: MailerDeps): Transport {
  const directory = join(deps.dataDirectory, "outbox");
  return {
    send(message, secrets) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const sentAt = new Date(deps.clock.now()).toISOString();
      // Names sort by time: ids do.
      const path = join(directory, `${deps.ids.uuid()}.json`);
      const mark = deps.isDrill ? { drill: true } : {};
      writeFileSync(path, `${JSON.stringify({ ...message, ...secrets, sentAt, ...mark }, null, 2)}\n`, { mode: 0o600 });
      const files = readdirSync(directory).filter((name) => name.endsWith(".json"));
      for (const name of files.sort().slice(0, Math.max(0, files.length - OUTBOX_FILES_MAX))) {
        rmSync(join(directory, name), { force: true });
      }
      const reason = deps.isDrill ? "A drill sends no mail" : "No SMTP server is configured";
      deps.logger.info(`${reason}: a mail was written to the outbox`, {
        kind: message.kind,
        to: message.to,
        path,
      });
    },
    stop() {},
  };
}

function createSmtp(deps: MailerDeps, smtp: NonNullable<MailerDeps["config"]["smtp"]>): Transport {
  const transport = createTransport({
    host: smtp.host,
    port: smtp.port,
    secure: smtp.secure ?? smtp.port === 465,
    ...(smtp.user === undefined ? {} : { auth: { user: smtp.user, pass: smtp.pass ?? "" } }),
    pool: true,
    maxConnections: SMTP_CONNECTIONS_MAX,
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
    // A template must not read files or fetch addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  let waiting = 0;
  let isStopped = false;
  const retries = new Set<() => void>();

  const retryAfter = (delayMs: number, work: () => void): void => {
    const cancel = deps.clock.after(delayMs, () => {
      retries.delete(cancel);
      work();
    });
    retries.add(cancel);
  };

  const deliver = async (message: Message, retry: number): Promise<void> => {
    try {
      await transport.sendMail(message);
      waiting--;
    } catch (cause) {
      const delayMs = MAIL_RETRY_DELAYS_MS[retry];
      const willRetry = delayMs !== undefined && !isStopped;
      deps.logger.error("Sending a mail failed", { cause, kind: message.kind, to: message.to, willRetry });
      if (willRetry) retryAfter(delayMs, () => void deliver(message, retry + 1));
      else waiting--;
    }
  };

  return {
    send(message) {
      if (waiting >= MAILS_WAITING_MAX) {
        deps.logger.error("Too many mails wait to be sent; one was dropped", { kind: message.kind, to: message.to });
        return;
      }
      waiting++;
      void deliver(message, 0);
    },
    stop() {
      isStopped = true;
      if (retries.size > 0)
        deps.logger.error("Mails waiting for another attempt were given up", { count: retries.size });
      // A pending timer would keep an embedding process alive.
      for (const cancel of retries) cancel();
      retries.clear();
      transport.close();
    },
  };
}
