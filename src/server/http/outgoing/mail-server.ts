import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { AuthConfig } from "../../config/types.ts";
import { mayLeave } from "./leaving.ts";

export type SmtpConfig = NonNullable<NonNullable<AuthConfig["mail"]>["smtp"]>;

const TIMEOUT_MS = 20 * SECOND_MS;

/** Opens a pool of connections to a mail server; each connects when a mail is sent. */
export async function openMailServer(smtp: SmtpConfig, { connectionsMax }: { connectionsMax: number }) {
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    host: smtp.host,
    port: smtp.port,
    secure: smtp.secure ?? smtp.port === 465,
    ...(smtp.user === undefined ? {} : { auth: { user: smtp.user, pass: smtp.pass ?? "" } }),
    pool: true,
    maxConnections: connectionsMax,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // A template must not read files or fetch addresses.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    /** Errors: those of the library; 503, the mail may not leave. */
    async sendMail(mail: Parameters<typeof transport.sendMail>[0]): Promise<void> {
      await mayLeave();
      await transport.sendMail(mail);
    },
    close: (): void => transport.close(),
  };
}
