import type { JsonObject } from "../../../../kernel/json/json.ts";
import { asksForAccount } from "../service/invitations.ts";
import { type Fault, faultOf } from "./faults.ts";
import { finish } from "./finish.ts";
import type { Form, TextName } from "./forms.ts";
import { type Answer, captchaOf, captchaWidget, fieldOf, passwordMin } from "./layout.ts";
import { type Html, html } from "./markup.ts";
import { sentPage, waysOf } from "./sign-in-pages.ts";
import { filled } from "./texts/languages.ts";
import type { Visitor } from "./visitor.ts";

// Pages to which mailed links lead, and those that ask for a link. Opening a link uses nothing up: mail scanners do that. [AU335]

/** Asks for an address to which a link is mailed: a form for `forgot-password` or `magic-link`. */
function addressPage(
  visitor: Visitor,
  { page, title, text, fault = null }: { page: string; title: TextName; text: TextName; fault?: Fault | null },
): Answer {
  const { texts } = visitor.language;
  const body = html`<p>${texts[text]}</p><form method="post" action="${visitor.path(page)}">
${fieldOf({ name: "email", label: texts.email, type: "email", autocomplete: "username", isWrong: fault?.text === "wrongEmail" })}
${captchaWidget(visitor)}<button class="main">${texts.send}</button></form>${backToSignIn(visitor)}`;
  return { title: texts[title], body, fault };
}

const backToSignIn = (visitor: Visitor): Html =>
  html`<nav><a href="${visitor.path("sign-in")}">${visitor.language.texts.backToSignIn}</a></nav>`;

export const forgotPage = (visitor: Visitor, fault: Fault | null = null): Answer =>
  addressPage(visitor, { page: "forgot-password", title: "resetTitle", text: "resetText", fault });

export async function postForgot(visitor: Visitor, form: Form): Promise<Answer> {
  const email = form.text("email");
  const body = { email, ...captchaOf(visitor, form) };
  const answer = await visitor.call("POST /api/auth/request-password-reset", { body, accessToken: null });
  if (!answer.ok) return forgotPage(visitor, faultOf(answer));
  return sentPage(visitor, filled(visitor.language.texts.mailSentText, { email }));
}

/** The page of a magic link: asks for an address without one. */
export function magicPage(visitor: Visitor, fault: Fault | null = null): Answer {
  const { texts } = visitor.language;
  if (tokenFor(visitor, "magic-link") !== null)
    return pressPage(visitor, {
      page: "magic-link",
      title: texts.linkTitle,
      text: texts.linkPress,
      button: texts.signIn,
      fault,
    });
  return addressPage(visitor, { page: "magic-link", title: "linkTitle", text: "linkText", fault });
}

export async function postMagic(visitor: Visitor, form: Form): Promise<Answer> {
  const email = form.text("email");
  const token = tokenFor(visitor, "magic-link");
  if (email === "" && token !== null) {
    const answer = await visitor.signIn("POST /api/auth/verify-magic-link", { token });
    visitor.visit.link = null;
    return (await finish(visitor, answer)) ?? failedLink(visitor, faultOf(answer));
  }
  const body = { email, ...captchaOf(visitor, form) };
  const answer = await visitor.call("POST /api/auth/signin/magic-link", { body, accessToken: null });
  if (!answer.ok)
    return addressPage(visitor, { page: "magic-link", title: "linkTitle", text: "linkText", fault: faultOf(answer) });
  return sentPage(visitor, filled(visitor.language.texts.mailSentText, { email }));
}

export const tokenFor = ({ visit: { link } }: Visitor, page: string): string | null =>
  link?.page === page ? link.token : null;

/** A page with a button, which uses the link. */
function pressPage(
  visitor: Visitor,
  {
    page,
    title,
    text,
    button,
    fault = null,
  }: { page: string; title: string; text: string; button: string; fault?: Fault | null },
): Answer {
  const body = html`<p>${text}</p><form method="post" action="${visitor.path(page)}"><button class="main">${button}</button></form>`;
  return { title, body, fault };
}

/** Says that a link cannot be used. */
export function failedLink(visitor: Visitor, fault: Fault = { status: 400, text: "linkInvalid" }): Answer {
  const { texts } = visitor.language;
  return { title: texts.signIn, body: backToSignIn(visitor), fault };
}

export function resetPage(visitor: Visitor, fault: Fault | null = null): Answer {
  const { texts } = visitor.language;
  if (tokenFor(visitor, "reset-password") === null) return failedLink(visitor);
  const minLength = passwordMin(visitor.deps.auth.config);
  const hint = filled(texts.passwordRule, { count: minLength });
  const keep = (name: "keepPasskeys" | "keepPhone"): Html =>
    html`<label><input type="checkbox" name="${name}" value="1"> ${texts[name]}</label>`;
  const body = html`<form method="post" action="${visitor.path("reset-password")}">
${fieldOf({ name: "password", label: texts.newPassword, type: "password", autocomplete: "new-password", minLength, hint, isWrong: fault !== null })}
${visitor.deps.auth.config.passkeys === undefined ? null : keep("keepPasskeys")}${visitor.deps.auth.config.phones === undefined ? null : keep("keepPhone")}
<button class="main">${texts.setPassword}</button></form>`;
  return { title: texts.resetTitle, body, fault };
}

export async function postReset(visitor: Visitor, form: Form): Promise<Answer> {
  const token = tokenFor(visitor, "reset-password");
  if (token === null) return failedLink(visitor);
  const isKept = (name: string): boolean => form.text(name) === "1";
  const kept = { keepPasskeys: isKept("keepPasskeys"), keepPhone: isKept("keepPhone") };
  const body = { token, newPassword: form.text("password"), ...kept };
  const answer = await visitor.call("POST /api/auth/reset-password", { body, accessToken: null });
  if (!answer.ok) {
    const fault = faultOf(answer);
    if (fault.text !== "linkInvalid") return resetPage(visitor, fault);
    visitor.visit.link = null;
    return failedLink(visitor, fault);
  }
  return leadToSignIn(visitor, "passwordSet");
}

/** Says that it is done, where one signs in. Every session of the account has ended, that of these pages too. */
function leadToSignIn(visitor: Visitor, notice: TextName): Answer {
  visitor.visit.link = null;
  visitor.visit.notice = visitor.language.texts[notice];
  return { location: visitor.path("sign-in") };
}

const VERIFYING = {
  "verify-email": { endpoint: "POST /api/auth/verify-email", notice: "verified" },
  "verify-email-change": { endpoint: "POST /api/auth/verify-email-change", notice: "emailChanged" },
} as const;

type Verifying = keyof typeof VERIFYING;

export function verifyPage(visitor: Visitor, page: Verifying): Answer {
  const { texts } = visitor.language;
  if (tokenFor(visitor, page) === null) return failedLink(visitor);
  return pressPage(visitor, { page, title: texts.verifyTitle, text: texts.verifyText, button: texts.confirm });
}

export async function postVerify(visitor: Visitor, page: Verifying): Promise<Answer> {
  const token = tokenFor(visitor, page);
  if (token === null) return failedLink(visitor);
  const { endpoint, notice } = VERIFYING[page];
  const answer = await visitor.call(endpoint, { body: { token }, accessToken: null });
  visitor.visit.link = null;
  return answer.ok ? leadToSignIn(visitor, notice) : failedLink(visitor, faultOf(answer));
}

export function invitePage(visitor: Visitor, fault: Fault | null = null, name = ""): Answer {
  const { texts } = visitor.language;
  const token = tokenFor(visitor, "accept-invite");
  if (token === null) return failedLink(visitor);
  if (asksForAccount(visitor.deps.auth, token)) return joinPage(visitor, fault);
  const { hasPasswords } = waysOf(visitor);
  const minLength = passwordMin(visitor.deps.auth.config);
  const hint = filled(texts.passwordRule, { count: minLength });
  const password = fieldOf({
    name: "password",
    label: texts.password,
    type: "password",
    autocomplete: "new-password",
    minLength,
    hint,
    isWrong: fault?.text === "weakPassword",
  });
  const body = html`<p>${hasPasswords ? texts.inviteText : texts.inviteOpenText}</p><form method="post" action="${visitor.path("accept-invite")}">
${fieldOf({ name: "name", label: texts.name, autocomplete: "name", value: name, isOptional: true, isWrong: fault?.text === "wrongName" })}
${hasPasswords ? password : null}<button class="main">${texts.accept}</button></form>`;
  return { title: texts.inviteTitle, body, fault };
}

/** The page of an invitation for somebody who has an account: they sign in to it first. */
function joinPage(visitor: Visitor, fault: Fault | null): Answer {
  const { texts } = visitor.language;
  if (visitor.session !== null) {
    return pressPage(visitor, {
      page: "accept-invite",
      title: texts.inviteTitle,
      text: texts.inviteJoinText,
      button: texts.accept,
      fault,
    });
  }
  visitor.visit.notice = texts.inviteSignIn;
  return { location: visitor.path("sign-in") };
}

async function join(visitor: Visitor, token: string): Promise<Answer> {
  if (visitor.session === null) return joinPage(visitor, null);
  const answer = await visitor.call("POST /api/auth/accept-invite", { body: { token } });
  if (!answer.ok) return joinPage(visitor, faultOf(answer));
  visitor.visit.link = null;
  visitor.visit.notice = visitor.language.texts.saved;
  return { location: visitor.deps.config.home ?? visitor.path("account") };
}

export async function postInvite(visitor: Visitor, form: Form): Promise<Answer> {
  const token = tokenFor(visitor, "accept-invite");
  if (token === null) return failedLink(visitor);
  if (asksForAccount(visitor.deps.auth, token)) return join(visitor, token);
  const [name, password] = [form.text("name").trim(), form.text("password")];
  const named: JsonObject = name === "" ? {} : { displayName: name };
  const answer = await visitor.signIn("POST /api/auth/accept-invite", {
    token,
    ...(waysOf(visitor).hasPasswords ? { password } : {}),
    ...named,
  });
  const done = await finish(visitor, answer);
  if (done !== null) return done;
  const fault = faultOf(answer);
  if (fault.text !== "linkInvalid") return invitePage(visitor, fault, name);
  visitor.visit.link = null;
  return failedLink(visitor, fault);
}
