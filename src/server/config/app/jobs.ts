import type { JsonValue } from "../../../kernel/json/json.ts";

export interface EnqueueJobOptions {
  /** Seconds until the job may start. */
  delay?: number;
  /** When the job may start: a date, or ISO 8601. Not together with `delay`. */
  at?: Date | string;
  /** While a job of the same name with this key waits or runs, its id is returned and nothing is added. */
  key?: string;
}

/** Durable jobs. `Data` has the type of the data by the job's name. */
export interface JobsAccessor<Data extends { [name: string]: unknown } = { [name: string]: JsonValue }> {
  /**
   * Resolves with the job's id when the job is on disk. It then runs at least once, until it succeeds or its retries are used
   * up. Errors: 404 for a name that `jobs` does not declare; 400 that names the field for data that its schema refuses; 413
   * for data over 1 MiB of JSON.
   */
  enqueue<Name extends keyof Data & string>(name: Name, data: Data[Name], options?: EnqueueJobOptions): Promise<string>;
}

/** A message that the code of a config sends. */
export interface OutgoingMail {
  /** One address. */
  to: string;
  subject: string;
  text: string;
  html?: string;
}

export interface MailAccessor {
  /**
   * Resolves when the mail is on disk. It is then sent as a job `platform.mail`, and tried again when sending fails. Without
   * `auth.mail.smtp` it becomes a file in `<data>/outbox`. Errors: 400 that names the field.
   */
  send(mail: OutgoingMail): Promise<void>;
}
