import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { openMailServer, type SmtpConfig } from "../../../http/outgoing/mail-server.ts";
import { FinalFailure } from "../../../jobs/index.ts";
import { OUTBOX_FILES_MAX, SMTP_CONNECTIONS_MAX } from "../limits.ts";
import type { MailText, MailValues } from "./templates.ts";

interface Message extends MailText {
  /** Stays the same at each retry. */
  id: string;
  kind: string;
  from: string;
  to: string;
}

/** The link or code of a mail. */
export type Secrets = Pick<MailValues, "link" | "code">;

export interface Transport {
  /** Errors: `FinalFailure` if the server refuses the mail for good. */
  send(message: Message, secrets: Secrets): Promise<void>;
  stop(): void;
}

export interface TransportDeps {
  /** true: mails go to the outbox, whatever is configured. */
  isDrill: boolean;
  dataDirectory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** The folder of the outbox, in which a file's name is the id of its mail. */
export const outboxOf = (dataDirectory: string): string => join(dataDirectory, "outbox");

/** One JSON file per message, with the link or code beside the text, for development and tests. */
export function createOutbox(deps: TransportDeps): Transport {
  const directory = outboxOf(deps.dataDirectory);
  return {
    async send({ id: _, ...message }, secrets) {
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

/** Connections are opened when there is mail, and the library is loaded by the first one. */
export function createSmtp(smtp: SmtpConfig): Transport {
  let opened: ReturnType<typeof openMailServer> | null = null;
  return {
    async send({ id, kind: _, ...message }) {
      opened ??= openMailServer(smtp, { connectionsMax: SMTP_CONNECTIONS_MAX });
      const pool = await opened;
      try {
        // A mail that is sent twice, because the first answer was lost, has the same id twice: readers show one of them.
        await pool.sendMail({ ...message, messageId: `<${id}@${domainOf(message.from)}>` });
      } catch (cause) {
        if (!isFinal(cause)) throw cause;
        throw new FinalFailure(reasonOf(cause), { cause });
      }
    },
    stop: () => void opened?.then((pool) => pool.close()),
  };
}

const domainOf = (from: string): string => /@([^\s>]+)>?\s*$/.exec(from)?.[1] ?? "localhost";

/** The server refuses this mail, and always will: an address that does not exist, or a message that it does not take. */
function isFinal(cause: unknown): boolean {
  if (typeof cause !== "object" || cause === null) return false;
  const { code, responseCode } = cause as { code?: unknown; responseCode?: unknown };
  const isOfMail = code === "EENVELOPE" || code === "EMESSAGE";
  return isOfMail && typeof responseCode === "number" && responseCode >= 500;
}
