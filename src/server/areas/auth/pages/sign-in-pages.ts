import { type JsonObject, jsonObjectOf } from "../../../../kernel/json/json.ts";
import { fitsRelyingParty } from "../../../config/relying-party.ts";
import { DISPLAY_NAME_MAX_CHARACTERS } from "../../../config/shapes/user-fields.ts";
import { keepPageCode } from "../sessions/sign-in.ts";
import { currentAccount } from "../store/account-file.ts";
import type { ApiAnswer } from "./api.ts";
import { type Fault, faultOf } from "./faults.ts";
import { finish, goBack } from "./finish.ts";
import type { Form } from "./forms.ts";
import { type Answer, captchaOf, captchaWidget, fieldOf, hidden, passwordMin } from "./layout.ts";
import { type Html, html } from "./markup.ts";
import { postPhone } from "./phone-pages.ts";
import { providerName } from "./provider-names.ts";
import { filled } from "./texts/languages.ts";
import type { Visitor } from "./visitor.ts";

// Signing in and up.

/** Ways of signing in that the config enables, as the pages show them. */
export function waysOf({ deps: { auth } }: Visitor) {
  const { config } = auth;
  const hasPasswords = config.emailPassword !== false;
  return {
    hasPasswords,
    hasSignUp: hasPasswords && config.signup !== false,
    hasLinks: config.magicLink === true,
    hasCodes: config.emailOtp === true,
    hasPhones: config.phones !== undefined && config.phones.signIn !== false,
    hasPasskeys: config.passkeys !== undefined && fitsRelyingParty(auth.publicUrl(), config.passkeys.rpId),
    providers: Object.keys(config.oauth ?? {}),
  };
}

export function signInPage(
  visitor: Visitor,
  { fault = null, email = "" }: { fault?: Fault | null; email?: string } = {},
): Answer {
  const { texts } = visitor.language;
  const { session, visit } = visitor;
  if (session !== null && visit.back === null && !visit.isAgain && fault === null)
    return { location: visitor.path("account") };
  const ways = waysOf(visitor);
  const isContinuable = visit.back !== null && session?.isOwn === true;
  const body = html`${isContinuable ? continueForm(visitor) : null}
${ways.hasPasswords ? passwordForm(visitor, { email, fault, hasPasskeys: ways.hasPasskeys }) : null}
${otherWays(visitor)}
<nav>${ways.hasPasswords ? html`<a href="${visitor.path("forgot-password")}">${texts.forgotPassword}</a>` : null}
${ways.hasSignUp ? html`<a href="${visitor.path("sign-up")}">${texts.noAccount} ${texts.signUp}</a>` : null}</nav>`;
  return { title: texts.signIn, body, fault };
}

function continueForm(visitor: Visitor): Html {
  const { texts } = visitor.language;
  const name = visitor.session === null ? "" : nameOf(visitor.session.account, texts.guest);
  return html`<form method="post" action="${visitor.path("continue")}">
<button class="main">${filled(texts.continueAs, { name })}</button></form>
<p class="or">${texts.useOther}</p>`;
}

/** Returns the name that a person is called by. */
export const nameOf = (
  { displayName, email, phone }: { displayName: string | null; email: string | null; phone: string | null },
  guest: string,
): string => displayName || email || phone || guest;

function passwordForm(
  visitor: Visitor,
  { email, fault, hasPasskeys }: { email: string; fault: Fault | null; hasPasskeys: boolean },
): Html {
  const { texts } = visitor.language;
  const isWrong = fault !== null;
  return html`<form method="post" action="${visitor.path("sign-in")}">
${fieldOf({ name: "email", label: texts.email, type: "email", autocomplete: hasPasskeys ? "username webauthn" : "username", value: email, isWrong })}
${fieldOf({ name: "password", label: texts.password, type: "password", autocomplete: "current-password", isWrong })}
<button class="main">${texts.signIn}</button></form>`;
}

/** The ways of signing in besides a password. */
function otherWays(visitor: Visitor): Html | null {
  const { texts } = visitor.language;
  const { hasPasswords, hasLinks, hasCodes, hasPhones, hasPasskeys, providers } = waysOf(visitor);
  const links = [
    ...providers.map((name) => ({
      path: `oauth/${encodeURIComponent(name)}`,
      text: filled(texts.continueWith, { provider: providerName(name) }),
    })),
    ...(hasLinks ? [{ path: "magic-link", text: texts.withLink }] : []),
    ...(hasCodes ? [{ path: "sign-in?with=code", text: texts.withCode }] : []),
    ...(hasPhones ? [{ path: "sign-in?with=phone", text: texts.withPhone }] : []),
  ];
  if (links.length === 0 && !hasPasskeys) return null;
  const passkey = html`<form method="post" action="${visitor.path("sign-in")}" data-passkey="sign-in" hidden>${hidden("passkey", "")}<button>${texts.withPasskey}</button></form>`;
  return html`${hasPasswords && links.length > 0 ? html`<p class="or">${texts.or}</p>` : null}
${hasPasskeys ? passkey : null}
${links.map(({ path, text }) => html`<a class="button" href="${visitor.path(path)}">${text}</a>`)}`;
}

/** Signs in with what a form of the page has sent. */
export async function postSignIn(visitor: Visitor, form: Form): Promise<Answer> {
  const [passkey, email] = [form.text("passkey"), form.text("email")];
  if (form.text("by") === "code") return postCode(visitor, form);
  if (form.text("by") === "phone") return postPhone(visitor, form);
  if (passkey !== "") return postPasskey(visitor, passkey);
  const answer = await visitor.signIn("POST /api/auth/signin", { email, password: form.text("password") });
  return (await finish(visitor, answer)) ?? signInPage(visitor, { fault: signInFault(answer), email });
}

/** A text that is no address, or an empty password, is wrong as any other. */
function signInFault(answer: ApiAnswer): Fault {
  return answer.status === 400 ? { status: 401, text: "wrongCredentials" } : faultOf(answer);
}

async function postPasskey(visitor: Visitor, text: string): Promise<Answer> {
  const answer = await visitor.signIn("POST /api/auth/passkeys/authenticate", parsed(text));
  if (answer.ok) return (await finish(visitor, answer)) ?? signInPage(visitor);
  const fault = faultOf(answer);
  return signInPage(visitor, {
    fault: { status: fault.status, text: fault.status === 400 ? "passkeyFailed" : fault.text },
  });
}

/** Parses what the script of the pages has sent; an empty object for anything else. */
export const parsed = (text: string): JsonObject => jsonObjectOf(text) ?? {};

export function codePage(visitor: Visitor, { fault = null }: { fault?: Fault | null } = {}): Answer {
  const { texts } = visitor.language;
  const { email } = visitor.visit;
  const back = html`<nav><a href="${visitor.path("sign-in")}">${texts.backToSignIn}</a></nav>`;
  if (email === null) {
    const body = html`<p>${texts.codeText}</p><form method="post" action="${visitor.path("sign-in")}">${hidden("by", "code")}
${fieldOf({ name: "email", label: texts.email, type: "email", autocomplete: "username", isWrong: fault !== null })}
${captchaWidget(visitor)}<button class="main">${texts.withCode}</button></form>${back}`;
    return { title: texts.signIn, body, fault };
  }
  const body = html`<p>${filled(texts.codeSentText, { email })}</p><form method="post" action="${visitor.path("sign-in")}">${hidden("by", "code")}
${fieldOf({ name: "code", label: texts.code, autocomplete: "one-time-code", isNumeric: true, isWrong: fault !== null })}
<button class="main">${texts.signIn}</button></form>${back}`;
  return { title: texts.mailSent, body, fault };
}

async function postCode(visitor: Visitor, form: Form): Promise<Answer> {
  const { visit } = visitor;
  const asked = form.text("email");
  if (asked !== "" || visit.email === null) {
    const answer = await visitor.call("POST /api/auth/signin/email-otp", {
      body: { email: asked, ...captchaOf(visitor, form) },
      accessToken: null,
    });
    if (!answer.ok) return codePage(visitor, { fault: faultOf(answer) });
    visit.email = asked;
    return { location: visitor.path("sign-in?with=code") };
  }
  const code = form.text("code").replaceAll(/\s/g, "");
  const answer = await visitor.signIn("POST /api/auth/verify-email-otp", { email: visit.email, code });
  return (await finish(visitor, answer)) ?? codePage(visitor, { fault: faultOf(answer) });
}

export function signUpPage(
  visitor: Visitor,
  { fault = null, email = "", name = "" }: { fault?: Fault | null; email?: string; name?: string } = {},
): Answer {
  const { texts } = visitor.language;
  const { deps } = visitor;
  const minLength = passwordMin(deps.auth.config);
  const isAbout = (...faults: Fault["text"][]) => fault !== null && faults.includes(fault.text);
  const body = html`<form method="post" action="${visitor.path("sign-up")}">
${fieldOf({ name: "name", label: texts.name, autocomplete: "name", value: name, isOptional: true, isWrong: isAbout("wrongName") })}
${fieldOf({ name: "email", label: texts.email, type: "email", autocomplete: "username", value: email, isWrong: isAbout("wrongEmail", "emailTaken") })}
${fieldOf({ name: "password", label: texts.password, type: "password", autocomplete: "new-password", minLength, hint: filled(texts.passwordRule, { count: minLength }), isWrong: isAbout("weakPassword") })}
${deps.config.terms === undefined ? null : html`<p>${texts.agreement}</p>`}${captchaWidget(visitor)}
<button class="main">${texts.signUp}</button></form>
<nav><a href="${visitor.path("sign-in")}">${texts.hasAccount} ${texts.signIn}</a></nav>`;
  return { title: texts.signUp, body, fault };
}

export async function postSignUp(visitor: Visitor, form: Form): Promise<Answer> {
  const [email, password, name] = [form.text("email"), form.text("password"), form.text("name").trim()];
  const answer = await signUpAnswer(visitor, form, { email, password, name });
  if (!answer.ok) return signUpPage(visitor, { fault: faultOf(answer), email, name });
  if (answer.body["verificationRequired"] === true) {
    return sentPage(visitor, filled(visitor.language.texts.verifySentText, { email }));
  }
  return (await finish(visitor, answer)) ?? signInPage(visitor);
}

/** Signs up; as the guest of an application, whose account goes on when it redeems the code. */
async function signUpAnswer(
  visitor: Visitor,
  form: Form,
  { email, password, name }: { email: string; password: string; name: string },
): Promise<ApiAnswer> {
  const { visit, codeFor } = visitor;
  const { config } = visitor.deps.auth;
  const guest = visit.anonymous === null ? null : visitor.sessionAt({ ...visit.anonymous, isOwn: false });
  // Where addresses are proved first, the link of the mail makes the account, and has no verifier.
  if (guest?.account.isAnonymous === true && codeFor !== null && config.requireVerifiedEmail !== true) {
    const accessToken = await visitor.accessToken(guest);
    const displayName = name.slice(0, DISPLAY_NAME_MAX_CHARACTERS) || undefined;
    return visitor.call("POST /api/auth/link/email", {
      body: { email, password },
      accessToken,
      codeFor: { ...codeFor, displayName },
    });
  }
  const named: JsonObject = name === "" ? {} : { displayName: name };
  return visitor.signIn("POST /api/auth/signup", { email, password, ...named, ...captchaOf(visitor, form) });
}

export function sentPage(visitor: Visitor, text: string): Answer {
  const { texts } = visitor.language;
  const body = html`<p>${text}</p><nav><a href="${visitor.path("sign-in")}">${texts.backToSignIn}</a></nav>`;
  return { title: texts.mailSent, body };
}

/** Issues the application a code for the user who is signed in here already. It renews no proof of identity. */
export async function postContinue(visitor: Visitor): Promise<Answer> {
  const { session, codeFor } = visitor;
  if (session === null || !session.isOwn || codeFor === null) return { location: visitor.path("sign-in") };
  const { auth } = visitor.deps;
  const { account, sessionId, tokenVersion, provedAt } = session;
  const code = await auth.file.write((write) => {
    const caller = { userId: account.id, sessionId, tokenVersion };
    return currentAccount(write, caller) === null
      ? null
      : keepPageCode(auth, write, { userId: account.id, provedAt, invitation: null, ...codeFor });
  });
  return code === null ? { location: visitor.path("sign-in") } : goBack(visitor, code);
}
