import { type Fault, faultOf } from "./faults.ts";
import { finish } from "./finish.ts";
import type { Form } from "./forms.ts";
import { type Answer, captchaOf, captchaWidget, fieldOf, hidden } from "./layout.ts";
import { type Html, html } from "./markup.ts";
import { filled } from "./texts/languages.ts";
import type { Visitor } from "./visitor.ts";

// Signing in by a code that is sent to a phone.

const backLink = (visitor: Visitor): Html =>
  html`<a href="${visitor.path("sign-in")}">${visitor.language.texts.backToSignIn}</a>`;

/** Asks for the number. */
export function phonePage(
  visitor: Visitor,
  { fault = null, phone = visitor.visit.phone ?? "" }: { fault?: Fault | null; phone?: string } = {},
): Answer {
  const { texts } = visitor.language;
  const isWrong = fault !== null;
  const body = html`<p>${texts.phoneText}</p><form method="post" action="${visitor.path("sign-in")}">${hidden("by", "phone")}
${fieldOf({ name: "phone", label: texts.phone, type: "tel", autocomplete: "tel", value: phone, isWrong })}
${captchaWidget(visitor)}<button class="main">${texts.withPhone}</button></form><nav>${backLink(visitor)}</nav>`;
  return { title: texts.signIn, body, fault };
}

/** Asks for the code that was sent to the number. */
export function phoneCodePage(visitor: Visitor, { fault = null }: { fault?: Fault | null } = {}): Answer {
  const { texts } = visitor.language;
  const { phone } = visitor.visit;
  if (phone === null) return { location: visitor.path("sign-in?with=phone") };
  const body = html`<p>${filled(texts.textSentText, { phone })}</p><form method="post" action="${visitor.path("sign-in")}">${hidden("by", "phone")}
${fieldOf({ name: "code", label: texts.code, autocomplete: "one-time-code", isNumeric: true, isWrong: fault !== null })}
<button class="main">${texts.signIn}</button></form>
<nav><a href="${visitor.path("sign-in?with=phone")}">${texts.textAgain}</a> ${backLink(visitor)}</nav>`;
  return { title: texts.textSent, body, fault };
}

/** Sends a code to the number of the form, or signs in with the code of the form. */
export async function postPhone(visitor: Visitor, form: Form): Promise<Answer> {
  const { visit } = visitor;
  const phone = form.text("phone").trim();
  if (phone !== "" || visit.phone === null) {
    const body = { phone, ...captchaOf(visitor, form) };
    const answer = await visitor.call("POST /api/auth/signin/phone", { body, accessToken: null });
    if (!answer.ok) return phonePage(visitor, { fault: faultOf(answer), phone });
    visit.phone = phone;
    return { location: visitor.path("sign-in?with=phone-code") };
  }
  const code = form.text("code").replaceAll(/\s/g, "");
  const answer = await visitor.signIn("POST /api/auth/verify-phone", { phone: visit.phone, code });
  return (await finish(visitor, answer)) ?? phoneCodePage(visitor, { fault: faultOf(answer) });
}
