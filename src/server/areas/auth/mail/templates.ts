import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { escapeHtml } from "../../../../kernel/text/html.ts";
import type { MailContent, MailTemplate } from "../../../config/types.ts";
import { MAIL_NAME_MAX_CHARACTERS } from "../limits.ts";
import { builtIn, type MailKind } from "./built-in.ts";
import { anchor, type Block, layOut } from "./layout.ts";

export interface MailValues {
  email: string;
  /** Name of the product; empty: not known. */
  appName?: string;
  link?: string;
  code?: string;
  /** The display name of the account. */
  name?: string | null;
  /** The display name of who invites. */
  inviter?: string | null;
  /** The `data` of an invitation. `sample`: each value is its own name. */
  data?: JsonObject | "sample";
}

export interface MailText {
  subject: string;
  text: string;
  html?: string;
}

const PLACEHOLDER = /\{\{\s*(link|code|email|appName|name|inviter|data(?:\.[\w-]+)+)\s*\}\}/g;
/** A line with the link or the code alone. */
const ALONE = /^\{\{\s*(link|code)\s*\}\}$/;
const LANGUAGE_DEFAULT = "en";

/** Fills the texts of a mail in, those of the language where there are some. A value that this mail does not have becomes empty. */
export function renderMail(
  kind: MailKind,
  values: MailValues,
  { templates, language }: { templates: { [K in MailKind]?: MailTemplate }; language: string | null },
): MailText {
  const named = { ...values, name: shownName(values.name), inviter: shownName(values.inviter) };
  const isNamed = (values.appName ?? "") !== "";
  const own = templates[kind];
  const [content, tag] =
    own === undefined
      ? ([builtIn(kind, { isNamed, isInvitedBy: named.inviter !== "" }), LANGUAGE_DEFAULT] as const)
      : inLanguage(own, language);
  const plain = (text: string) => fill(text, named, (value) => value);
  // A line break in a subject would begin another header.
  const subject = plain(content.subject).replaceAll(/[\r\n\u2028\u2029]+/g, " ");
  const html =
    content.html === undefined
      ? htmlOf(content, { values: named, subject, tag })
      : fill(content.html, named, escapeHtml);
  return { subject, text: plain(content.text), html };
}

/** Returns the texts for a language, and which it is: of `de-AT`, else of `de`, else those without one. */
function inLanguage(template: MailTemplate, language: string | null): readonly [MailContent, string] {
  const { languages = {} } = template;
  for (let tag = language ?? ""; tag !== ""; tag = tag.slice(0, Math.max(0, tag.lastIndexOf("-")))) {
    const content = Object.hasOwn(languages, tag) ? languages[tag] : undefined;
    if (content !== undefined) return [content, tag];
  }
  return [template, LANGUAGE_DEFAULT];
}

/** Makes the HTML of a text: a paragraph of each, a button of the link, and a code that can be read at a glance. */
function htmlOf(
  { text, button }: MailContent,
  { values, subject, tag }: { values: MailValues; subject: string; tag: string },
): string {
  const filled = (part: string) => fill(part, values, escapeHtml);
  const blocks = text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph): Block => {
      const alone = ALONE.exec(paragraph.trim())?.[1];
      if (alone === "code") return { kind: "code", code: filled("{{code}}") };
      if (alone === "link") {
        return {
          kind: "link",
          href: filled("{{link}}"),
          label: button === undefined ? null : filled(escapeHtml(button)),
        };
      }
      const withLink = escapeHtml(paragraph).replaceAll(/\{\{\s*link\s*\}\}/g, () => anchor("{{link}}"));
      return { kind: "text", html: filled(withLink).replaceAll("\n", "<br>") };
    });
  return layOut({ subject: escapeHtml(subject), language: escapeHtml(tag), blocks });
}

function fill(text: string, values: MailValues, encode: (value: string) => string): string {
  return text.replaceAll(PLACEHOLDER, (_, name: string) => encode(textOf(name, values)));
}

function textOf(name: string, values: MailValues): string {
  switch (name) {
    case "link":
    case "code":
    case "email":
    case "appName":
    case "name":
    case "inviter":
      return values[name] ?? "";
    default:
      return dataOf(name.split(".").slice(1), values.data);
  }
}

/** Returns a text, a number or a boolean of the data; empty where there is none. */
function dataOf(path: readonly string[], data: MailValues["data"]): string {
  if (data === "sample") return path.at(-1) ?? "";
  let value: JsonValue | undefined = data;
  for (const name of path) value = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** Matches text that mail programs turn into a link, whatever characters stand for its dots and slashes. */
const WEB_ADDRESS = /:\/\/|www\.|@|[\p{L}\p{N}]\.\p{L}{2,}|\d\.\d+\.\d+\.\d/iu;
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Returns a name that its owner has chosen as a mail to somebody else may have it: who signs up with a stranger's address must not write to
 * them. Cut, and empty where it holds a web address.
 */
export function shownName(name: string | null | undefined): string {
  const text = (name ?? "").normalize("NFKC").replaceAll(INVISIBLE, "").replaceAll("\u3002", ".");
  if (WEB_ADDRESS.test(text)) return "";
  return Array.from(text).slice(0, MAIL_NAME_MAX_CHARACTERS).join("").trim();
}
