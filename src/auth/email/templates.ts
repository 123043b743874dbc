import type { AuthConfig, MailTemplate } from "../../config/types.ts";

export type MailKind = keyof NonNullable<NonNullable<AuthConfig["mail"]>["templates"]>;

export interface MailValues {
  email: string;
  link?: string;
  code?: string;
}

export interface MailText {
  subject: string;
  text: string;
  html?: string;
}

/** The templates that the config does not replace. */
const TEMPLATES: Readonly<Record<MailKind, MailTemplate>> = {
  verification: {
    subject: "Confirm your email address",
    text: "Somebody, most likely you, has registered {{email}}.\n\nTo confirm that it is yours, open this link within 24 hours:\n\n{{link}}\n\nIf it was not you, do not open it: you would confirm an account that somebody else has made.\n",
  },
  passwordReset: {
    subject: "Set a new password",
    text: "A new password was asked for {{email}}.\n\nTo set one, open this link within an hour:\n\n{{link}}\n\nIf it was not you, ignore this message: nothing has changed.\n",
  },
  magicLink: {
    subject: "Your sign-in link",
    text: "To sign in as {{email}}, open this link within 15 minutes:\n\n{{link}}\n\nIt works once. If it was not you who asked for it, ignore this message.\n",
  },
  emailOtp: {
    subject: "Your sign-in code: {{code}}",
    text: "To sign in as {{email}}, type this code within 5 minutes:\n\n{{code}}\n\nNobody will ever ask you for it. If it was not you who wanted it, ignore this message.\n",
  },
  invite: {
    subject: "You are invited",
    text: "You are invited to join with {{email}}.\n\nTo accept, open this link within 7 days:\n\n{{link}}\n\nIf you did not expect this, ignore this message.\n",
  },
  emailChange: {
    subject: "Confirm your new email address",
    text: "{{email}} is to become the address of an account.\n\nTo confirm it, open this link within 24 hours:\n\n{{link}}\n\nIf it was not you, ignore this message.\n",
  },
};

export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** `{{link}}`, `{{code}}` and `{{email}}` are replaced; a name that this kind of mail does not have becomes empty. */
export function renderMail(
  kind: MailKind,
  values: MailValues,
  templates: { [K in MailKind]?: MailTemplate },
): MailText {
  const template = templates[kind] ?? TEMPLATES[kind];
  const fill = (text: string, encode: (value: string) => string) =>
    text.replaceAll(/\{\{(link|code|email)\}\}/g, (_, name: keyof MailValues) => encode(values[name] ?? ""));
  const plain = (text: string) => fill(text, (value) => value);
  return {
    // A line break in a subject would begin another header.
    subject: plain(template.subject).replaceAll(/[\r\n]+/g, " "),
    text: plain(template.text),
    ...(template.html === undefined ? {} : { html: fill(template.html, escapeHtml) }),
  };
}
