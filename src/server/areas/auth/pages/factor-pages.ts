import type { ApiAnswer } from "./api.ts";
import { type Fault, faultOf } from "./faults.ts";
import { finish, sendFactorCode } from "./finish.ts";
import type { Form } from "./forms.ts";
import { type Answer, fieldOf, hidden } from "./layout.ts";
import { type Html, html } from "./markup.ts";
import { signInPage } from "./sign-in-pages.ts";
import type { Visitor } from "./visitor.ts";

// The second factor of a sign-in: a code of an app, one that is sent to the phone, or a recovery code.

type Factor = "app" | "phone" | "recovery";

/** Returns the factor that an address names, if the sign-in takes it; otherwise the first that it takes. */
export function factorNamed({ visit: { factors } }: Visitor, name: string | null): Factor {
  if (name === "recovery") return name;
  const isPhone = factors.includes("phone") && (name === "phone" || !factors.includes("totp"));
  return isPhone ? "phone" : "app";
}

export function factorPage(visitor: Visitor, { fault = null, by }: { fault?: Fault | null; by: Factor }): Answer {
  const { texts } = visitor.language;
  const { mfaTicket, factors } = visitor.visit;
  if (mfaTicket === null) return { location: visitor.path("sign-in") };
  const others: { name: Factor; text: string; isThere: boolean }[] = [
    { name: "app", text: texts.useCode, isThere: factors.includes("totp") || !factors.includes("phone") },
    { name: "phone", text: texts.usePhone, isThere: factors.includes("phone") },
    { name: "recovery", text: texts.useRecovery, isThere: true },
  ];
  const links = others
    .filter(({ name, isThere }) => isThere && name !== by)
    .map(({ name, text }) => html`<a href="${visitor.path(`factor?with=${name}`)}">${text}</a> `);
  const body = html`${FORMS[by](visitor, fault !== null)}
<nav>${links}<a href="${visitor.path("sign-in")}">${texts.backToSignIn}</a></nav>`;
  return { title: texts.factorTitle, body, fault };
}

const FORMS: Readonly<Record<Factor, (visitor: Visitor, isWrong: boolean) => Html>> = {
  app: (visitor, isWrong) =>
    html`<p>${visitor.language.texts.factorText}</p>${proofForm(visitor, codeField(visitor, isWrong))}`,
  recovery(visitor, isWrong) {
    const label = visitor.language.texts.recoveryCode;
    return proofForm(visitor, fieldOf({ name: "recovery", label, autocomplete: "off", isWrong }));
  },
  phone(visitor, isWrong) {
    const { texts } = visitor.language;
    const send = (text: string, style: string) =>
      html`<form method="post" action="${visitor.path("factor")}">${hidden("by", "text")}<button class="${style}">${text}</button></form>`;
    if (!visitor.visit.isTexted) return html`<p>${texts.phoneFactorText}</p>${send(texts.withPhone, "main")}`;
    const proof = proofForm(visitor, html`${hidden("by", "phone")}${codeField(visitor, isWrong)}`);
    return html`<p>${texts.phoneFactorSent}</p>${proof}${send(texts.textAgain, "")}`;
  },
};

const codeField = ({ language }: Visitor, isWrong: boolean): Html =>
  fieldOf({ name: "code", label: language.texts.code, autocomplete: "one-time-code", isNumeric: true, isWrong });

const proofForm = (visitor: Visitor, fields: Html): Html =>
  html`<form method="post" action="${visitor.path("factor")}">${fields}<button class="main">${visitor.language.texts.signIn}</button></form>`;

export async function postFactor(visitor: Visitor, form: Form): Promise<Answer> {
  const { mfaTicket } = visitor.visit;
  if (mfaTicket === null) return { location: visitor.path("sign-in") };
  if (form.text("by") === "text") {
    const answer = await sendFactorCode(visitor);
    return answer.ok ? { location: visitor.path("factor?with=phone") } : refused(visitor, answer, "phone");
  }
  const recoveryCode = form.text("recovery");
  const code = form.text("code").replaceAll(/\s/g, "");
  const answer =
    recoveryCode === ""
      ? await visitor.signIn("POST /api/auth/mfa/verify", { mfaTicket, code })
      : await visitor.signIn("POST /api/auth/mfa/recovery", { mfaTicket, recoveryCode });
  const by = recoveryCode === "" ? factorNamed(visitor, form.text("by")) : "recovery";
  return (await finish(visitor, answer)) ?? refused(visitor, answer, by);
}

function refused(visitor: Visitor, answer: ApiAnswer, by: Factor): Answer {
  const fault = faultOf(answer);
  if (fault.text !== "signInExpired") return factorPage(visitor, { fault, by });
  visitor.visit.mfaTicket = null;
  return signInPage(visitor, { fault });
}
