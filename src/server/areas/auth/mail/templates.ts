import type { AuthConfig, MailTemplate } from "../../../config/types.ts";

export type MailKind = keyof NonNullable<NonNullable<AuthConfig["mail"]>["templates"]>;

export interface MailValues {
  email: string;
  /** Whose accounts these are; empty: not known. */
  product?: string;
  link?: string;
  code?: string;
}

export interface MailText {
  subject: string;
  text: string;
  html?: string;
}

/** The templates that the config does not replace. `product` may be unknown. */
const templatesOf = (product: string): Readonly<Record<MailKind, MailTemplate>> => {
  const [at, to] = product === "" ? ["", ""] : [" at {{product}}", " to {{product}}"];
  return {
    verification: {
      subject: `Confirm your email address${at}`,
      text: `Somebody, most likely you, has registered {{email}}${at}.\n\nTo confirm that it is yours, open this link within 24 hours:\n\n{{link}}\n\nIf it was not you, do not open it: you would confirm an account that somebody else has made.\n`,
    },
    passwordReset: {
      subject: `Set a new password${at}`,
      text: `A new password was asked for {{email}}${at}.\n\nTo set one, open this link within an hour:\n\n{{link}}\n\nIf it was not you, ignore this message: nothing has changed.\n`,
    },
    magicLink: {
      subject: `Your sign-in link${to}`,
      text: `To sign in${to} as {{email}}, open this link within 15 minutes:\n\n{{link}}\n\nIt works once. If it was not you who asked for it, ignore this message.\n`,
    },
    emailOtp: {
      subject: `Your sign-in code${to}: {{code}}`,
      text: `To sign in${to} as {{email}}, type this code within 5 minutes:\n\n{{code}}\n\nNobody will ever ask you for it. If it was not you who wanted it, ignore this message.\n`,
    },
    invite: {
      subject: `You are invited${to}`,
      text: `You are invited${to}, to join with {{email}}.\n\nTo accept, open this link within 7 days:\n\n{{link}}\n\nIf you did not expect this, ignore this message.\n`,
    },
    emailChange: {
      subject: `Confirm your new email address${at}`,
      text: `{{email}} is to become the address of an account${at}.\n\nTo confirm it, open this link within 24 hours:\n\n{{link}}\n\nIf it was not you, ignore this message.\n`,
    },
  };
};

export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** `{{link}}`, `{{code}}`, `{{email}}` and `{{product}}` are replaced; a name that this kind of mail does not have becomes empty. */
export function renderMail(
  kind: MailKind,
  values: MailValues,
  templates: { [K in MailKind]?: MailTemplate },
): MailText {
  const template = templates[kind] ?? templatesOf(values.product ?? "")[kind];
  const fill = (text: string, encode: (value: string) => string) =>
    text.replaceAll(/\{\{(link|code|email|product)\}\}/g, (_, name: keyof MailValues) => encode(values[name] ?? ""));
  const plain = (text: string) => fill(text, (value) => value);
  return {
    // A line break in a subject would begin another header.
    subject: plain(template.subject).replaceAll(/[\r\n]+/g, " "),
    text: plain(template.text),
    ...(template.html === undefined ? {} : { html: fill(template.html, escapeHtml) }),
  };
}
