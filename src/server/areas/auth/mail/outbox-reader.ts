import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { escapeHtml } from "./templates.ts";
import { outboxOf } from "./transports.ts";

/** A mail in the outbox. */
export interface OutboxMail {
  id: string;
  kind: string;
  from: string;
  to: string;
  subject: string;
  /** ISO 8601. */
  sentAt: string;
  text: string;
  html: string | null;
}

/** Mails that no server took, because there is none or the server runs as a drill. */
export interface OutboxReader {
  /** Newest first. `next` continues the list; null: it has ended. */
  list(page: { before: string | null; limit: number }): Promise<{ mails: OutboxMail[]; next: string | null }>;
  /** null: there is none. */
  get(id: string): Promise<OutboxMail | null>;
}

const SUFFIX = ".json";
const ID = /^[0-9a-f-]{36}$/;
const HIDDEN = "[hidden]";

export function createOutboxReader(dataDirectory: string): OutboxReader {
  const directory = outboxOf(dataDirectory);
  const get = async (id: string): Promise<OutboxMail | null> => {
    if (!ID.test(id)) return null;
    const file = Bun.file(join(directory, id + SUFFIX));
    // It may be removed meanwhile, as a newer one is written.
    const text = await file.text().catch(() => null);
    return text === null ? null : mailOf(id, text);
  };
  return {
    get,
    async list({ before, limit }) {
      const names = await readdir(directory).catch(() => []);
      const ids = names
        .filter((name) => name.endsWith(SUFFIX))
        .map((name) => name.slice(0, -SUFFIX.length))
        .filter((id) => ID.test(id) && (before === null || id < before))
        .sort()
        .reverse();
      const shown = ids.slice(0, limit);
      const mails: OutboxMail[] = [];
      for (const id of shown) {
        const mail = await get(id);
        if (mail !== null) mails.push(mail);
      }
      return { mails, next: ids.length > limit ? (shown.at(-1) ?? null) : null };
    },
  };
}

/** Without the link and the code: whoever has one of them becomes the user. */
function mailOf(id: string, json: string): OutboxMail | null {
  const mail = parsed(json);
  if (mail === null) return null;
  const member = (name: string): string | null => {
    const value = mail[name];
    return typeof value === "string" ? value : null;
  };
  const secrets = [member("link"), member("code")].filter((secret) => secret !== null && secret !== "");
  const shown = (name: string): string | null => {
    const text = member(name);
    return text === null ? null : withoutSecrets(text, secrets as string[]);
  };
  return {
    id,
    kind: member("kind") ?? "",
    from: member("from") ?? "",
    to: member("to") ?? "",
    subject: shown("subject") ?? "",
    sentAt: member("sentAt") ?? "",
    text: shown("text") ?? "",
    html: shown("html"),
  };
}

/** As they are, and as HTML and addresses have them: in HTML, as templates write them. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) {
    for (const form of [secret, escapeHtml(secret), encodeURIComponent(secret)]) {
      shown = shown.replaceAll(form, HIDDEN);
    }
  }
  return shown;
}

function parsed(json: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(json);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
