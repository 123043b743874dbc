import type { JsonValue } from "../../../../kernel/json/json.ts";
import { type Factor, factorsOfUser } from "../statements/means.ts";
import { actionForm, fieldOf, hidden, type Shown, section } from "./layout.ts";
import { type Html, html } from "./markup.ts";
import { filled } from "./texts/languages.ts";
import type { PagesSession, Visitor } from "./visitor.ts";

// The phone on the account page: its number, and whether it is a second factor.

const factorOf = (visitor: Visitor, { account }: PagesSession): Factor | undefined =>
  factorsOfUser
    .all(visitor.deps.auth.file.sql, { userId: account.id })
    .find(({ type, verified }) => type === "phone" && verified);

const codeField = ({ language }: Visitor, name: string, isWrong: boolean): Html =>
  fieldOf({ name, label: language.texts.code, autocomplete: "one-time-code", isNumeric: true, isWrong });

/** The number, and how it is changed and removed. */
export function phoneSection(visitor: Visitor, session: PagesSession, { section: wrong }: Shown): Html {
  const { texts } = visitor.language;
  const { phone } = session.account;
  const { newPhone } = visitor.visit;
  const proof = factorOf(visitor, session) === undefined ? null : proofParts(visitor, wrong === "phone-proof");
  const sent =
    newPhone === null
      ? null
      : actionForm(
          visitor,
          "phone-verify",
          html`<p>${filled(texts.textSentText, { phone: newPhone })}</p>${codeField(visitor, "phoneCode", wrong === "phone-code")}<button class="main">${texts.confirm}</button>`,
        );
  const number = fieldOf({
    name: "newPhone",
    label: texts.newPhone,
    type: "tel",
    autocomplete: "tel",
    isWrong: wrong === "phone",
  });
  // One form: what changes the number and what removes it take the same proof.
  const change = actionForm(
    visitor,
    "phone",
    html`${proof?.field ?? null}${number}<button>${texts.changePhone}</button>${phone === null ? null : html`<button name="remove" value="1" formnovalidate>${texts.remove}</button>`}`,
  );
  const content = html`<p>${phone ?? texts.noPhone}</p>${sent}${proof?.send ?? null}${change}`;
  return section("phone", texts.phone, content);
}

/** The proof that a change of the number needs where the phone is a second factor. */
function proofParts(visitor: Visitor, isWrong: boolean): { send: Html; field: Html } {
  const { texts } = visitor.language;
  return {
    send: html`<p>${texts.phoneProofText}</p>${actionForm(visitor, "phone-text", html`<button>${texts.withPhone}</button>`)}`,
    field: fieldOf({ name: "proof", label: texts.phoneProof, autocomplete: "one-time-code", isWrong }),
  };
}

/** The second factor by a code that is sent to the phone; null without a number. */
export function phoneFactor(
  visitor: Visitor,
  session: PagesSession,
  { enrolment, section: wrong }: Shown,
): Html | null {
  const { texts } = visitor.language;
  const code = codeField(visitor, "factorCode", wrong === "phone-factor" && enrolment === undefined);
  if (factorOf(visitor, session) !== undefined) {
    const text = actionForm(visitor, "phone-text", html`<button>${texts.withPhone}</button>`);
    const remove = actionForm(visitor, "phone-factor-remove", html`${code}<button>${texts.turnOff}</button>`);
    return html`<p>${texts.phoneFactorOn}</p>${text}${remove}`;
  }
  if (wrong === "phone-factor" && enrolment !== undefined) {
    const fields = html`${hidden("factorId", String(enrolment["factorId"]))}${code}<button class="main">${texts.confirm}</button>`;
    return html`${recoveryList(visitor, enrolment["recoveryCodes"])}<p>${texts.phoneFactorSent}</p>${actionForm(visitor, "phone-factor-verify", fields)}`;
  }
  if (session.account.phone === null) return null;
  return html`<p>${texts.phoneFactorOff}</p>${actionForm(visitor, "phone-factor-begin", html`<button>${texts.setUp}</button>`)}`;
}

/** Recovery codes, once they are made. */
export const recoveryList = ({ language }: Visitor, codes: JsonValue | undefined): Html | null =>
  Array.isArray(codes)
    ? html`<p>${language.texts.recoveryText}</p><ul class="codes">${codes.map((code) => html`<li><code>${String(code)}</code></li>`)}</ul>`
    : null;
