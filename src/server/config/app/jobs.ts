import type { JsonValue } from "../../../kernel/json/json.ts";

export interface EnqueueJobOptions {
  /** Seconds until the job may start. */
  delay?: number;
  /** The earliest start of the job: a date, or ISO 8601. Not together with `delay`. */
  at?: Date | string;
  /** A deduplication key: while a job of the same name with this key waits or runs, its id is returned and nothing is added. */
  key?: string;
}

/** Durable jobs. `Data` maps each job's name to the type of its data. */
export interface JobsAccessor<Data extends { [name: string]: unknown } = { [name: string]: JsonValue }> {
  /**
   * Enqueues a job and resolves with its id once it is on disk. The job then runs at least once, until it succeeds or its retries
   * are exhausted. Errors: 404 for a name that `jobs` does not declare; 400 that names the field for data that its schema refuses;
   * 413 for data over 1 MiB of JSON.
   */
  enqueue<Name extends keyof Data & string>(name: Name, data: Data[Name], options?: EnqueueJobOptions): Promise<string>;
}

/** An email that a config's code sends. */
export interface OutgoingMail {
  /** One address. */
  to: string;
  subject: string;
  text: string;
  html?: string;
}

export interface MailAccessor {
  /**
   * Queues an email; resolves when it is on disk. It is then sent as a job `platform.mail`, with retries. Without `auth.mail.smtp`
   * it becomes a file in `<data>/outbox`. Errors: 400 that names the field.
   */
  send(mail: OutgoingMail): Promise<void>;
}
