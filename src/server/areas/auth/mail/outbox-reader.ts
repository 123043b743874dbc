import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "typebox";
import { jsonObjectOf } from "../../../../kernel/json/json.ts";
import { nullable } from "../../../../kernel/schema/types.ts";
import { escapeHtml } from "../../../../kernel/text/html.ts";
import { outboxOf } from "./transports.ts";

// Mails that no server took, because there is none or the server runs as a drill.

export const OutboxEntry = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  from: Type.String(),
  to: Type.String(),
  subject: Type.String(),
  sentAt: Type.String({ format: "date-time" }),
});
export type OutboxEntry = Static<typeof OutboxEntry>;

export const OutboxMail = Type.Object(
  { ...OutboxEntry.properties, text: Type.String(), html: nullable(Type.String()) },
  { description: "`[hidden]` in place of its link and code" },
);
export type OutboxMail = Static<typeof OutboxMail>;

const SUFFIX = ".json";
const ID = /^[0-9a-f-]{36}$/;
const HIDDEN = "[hidden]";

/** Returns the mail with this id in the outbox of a data directory; null: there is none. */
export async function outboxMail(dataDirectory: string, id: string): Promise<OutboxMail | null> {
  if (!ID.test(id)) return null;
  const file = Bun.file(join(outboxOf(dataDirectory), id + SUFFIX));
  // It may be removed meanwhile, as a newer one is written.
  const text = await file.text().catch(() => null);
  return text === null ? null : mailOf(id, text);
}

/** Lists mails, newest first. `next` continues the list; null: it has ended. */
export async function outboxMails(
  dataDirectory: string,
  { before, limit }: { before: string | null; limit: number },
): Promise<{ mails: OutboxEntry[]; next: string | null }> {
  const names = await readdir(outboxOf(dataDirectory)).catch(() => []);
  const ids = names
    .filter((name) => name.endsWith(SUFFIX))
    .map((name) => name.slice(0, -SUFFIX.length))
    .filter((id) => ID.test(id) && (before === null || id < before))
    .sort()
    .reverse();
  const shown = ids.slice(0, limit);
  const mails: OutboxEntry[] = [];
  for (const id of shown) {
    const mail = await outboxMail(dataDirectory, id);
    if (mail === null) continue;
    const { text: _, html: __, ...entry } = mail;
    mails.push(entry);
  }
  return { mails, next: ids.length > limit ? (shown.at(-1) ?? null) : null };
}

/** Reads a mail without the link and the code: whoever has one of them becomes the user. */
function mailOf(id: string, json: string): OutboxMail | null {
  const mail = jsonObjectOf(json);
  if (mail === null) return null;
  const member = (name: string): string | null => {
    const value = mail[name];
    return typeof value === "string" ? value : null;
  };
  const secrets = [member("link"), member("code")].filter((secret) => secret !== null).filter((text) => text !== "");
  const shown = (name: string): string | null => {
    const text = member(name);
    return text === null ? null : withoutSecrets(text, secrets);
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

/** Hides secrets in each form that a text may have: as they are, in HTML as templates write it, and in addresses. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) {
    for (const form of [secret, escapeHtml(secret), encodeURIComponent(secret)]) {
      shown = shown.replaceAll(form, HIDDEN);
    }
  }
  return shown;
}
