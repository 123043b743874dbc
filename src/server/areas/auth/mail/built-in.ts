import type { AuthConfig, MailContent } from "../../../config/types.ts";

export type MailKind = keyof NonNullable<NonNullable<AuthConfig["mail"]>["templates"]>;

/** The kinds of mails, as `mail.templates` names them. */
export const MAIL_KINDS = [
  "verification",
  "passwordReset",
  "magicLink",
  "emailOtp",
  "invite",
  "emailChange",
  "emailChanged",
  "accountMerged",
] as const satisfies readonly MailKind[];

/**
 * Returns the texts that the config does not replace. Who signs up with somebody else's address writes nothing to them: no text has the
 * account's name. `isNamed`: the product has a name; `isInvitedBy`: the inviter has one.
 */
export const builtIn = (
  kind: MailKind,
  { isNamed, isInvitedBy }: { isNamed: boolean; isInvitedBy: boolean },
): MailContent => {
  const [at, to] = isNamed ? [" at {{appName}}", " to {{appName}}"] : ["", ""];
  const texts: Readonly<Record<MailKind, MailContent>> = {
    verification: {
      subject: `Confirm your email address${at}`,
      text: `Somebody, most likely you, has registered {{email}}${at}.\n\nTo confirm that it is yours, open this link within 24 hours:\n\n{{link}}\n\nIf it was not you, do not open it: you would confirm an account that somebody else has made.\n`,
      button: "Confirm this address",
    },
    passwordReset: {
      subject: `Set a new password${at}`,
      text: `A new password was asked for {{email}}${at}.\n\nTo set one, open this link within an hour:\n\n{{link}}\n\nIf it was not you, ignore this message: nothing has changed.\n`,
      button: "Set a new password",
    },
    magicLink: {
      subject: `Your sign-in link${to}`,
      text: `To sign in${to} as {{email}}, open this link within 15 minutes:\n\n{{link}}\n\nIt works once. If it was not you who asked for it, ignore this message.\n`,
      button: "Sign in",
    },
    emailOtp: {
      subject: `Your sign-in code${to}: {{code}}`,
      text: `To sign in${to} as {{email}}, type this code within 5 minutes:\n\n{{code}}\n\nNobody will ever ask you for it. If it was not you who wanted it, ignore this message.\n`,
    },
    invite: {
      subject: isInvitedBy ? `{{inviter}} invites you${to}` : `You are invited${to}`,
      text: `${isInvitedBy ? `{{inviter}} invites you${to}` : `You are invited${to}`}, to join with {{email}}.\n\nTo accept, open this link within 7 days:\n\n{{link}}\n\nIf you did not expect this, ignore this message.\n`,
      button: "Accept the invitation",
    },
    emailChange: {
      subject: `Confirm your new email address${at}`,
      text: `{{email}} is to become the address of an account${at}.\n\nTo confirm it, open this link within 24 hours:\n\n{{link}}\n\nIf it was not you, ignore this message.\n`,
      button: "Confirm this address",
    },
    emailChanged: {
      subject: `The address of your account${at} has changed`,
      text: `{{email}} is no longer the address of your account${at}: it has another one now, with which you sign in.\n\nIf you did not expect this, write to the people who run this service.\n`,
    },
    accountMerged: {
      subject: `Your accounts${at} are one now`,
      text: `An administrator has joined the account of {{email}} with another account of yours${at}. What belonged to both is in one account now. It has one address and one password; other ways to sign in, as with a passkey, lead to it from both.\n\nIf you did not expect this, write to the people who run this service.\n`,
    },
  };
  return texts[kind];
};
