import { faultOf } from "./faults.ts";
import type { Form } from "./forms.ts";
import type { Done, Handled } from "./layout.ts";
import { filled } from "./texts/languages.ts";
import type { Visitor } from "./visitor.ts";

// What the forms of the account page about the phone do.

type FormOf = (visitor: Visitor, form: Form, done: Done) => Promise<Handled>;

const digitsOf = (form: Form, name: string): string => form.text(name).replaceAll(/\s/g, "");

export const PHONE_FORMS: Readonly<Record<string, FormOf>> = {
  async phone(visitor, form, done) {
    const isRemoved = form.text("remove") === "1";
    const proof = form.text("proof").trim();
    const newPhone = isRemoved ? null : form.text("newPhone").trim();
    const body = { newPhone, ...(proof === "" ? {} : { code: proof }) };
    const answer = await visitor.call("POST /api/auth/change-phone", { body });
    if (!answer.ok) return done(answer, faultOf(answer).text === "wrongCode" ? "phone-proof" : "phone");
    visitor.visit.newPhone = newPhone;
    const { texts } = visitor.language;
    return done(answer, "phone", newPhone === null ? texts.saved : filled(texts.textSentText, { phone: newPhone }));
  },

  async "phone-verify"(visitor, form, done) {
    const body = { code: digitsOf(form, "phoneCode") };
    const answer = await visitor.call("POST /api/auth/verify-phone-change", { body });
    if (answer.ok || faultOf(answer).text === "phoneTaken") visitor.visit.newPhone = null;
    return done(answer, "phone-code");
  },

  async "phone-text"(visitor, _form, done) {
    const answer = await visitor.call("POST /api/auth/mfa/phone/code");
    return done(answer, "phone-factor", visitor.language.texts.phoneFactorSent);
  },

  async "phone-factor-begin"(visitor, _form, done) {
    const answer = await visitor.call("POST /api/auth/mfa/phone/enroll", { body: {} });
    return answer.ok ? { enrolment: answer.body, section: "phone-factor" } : done(answer, "phone-factor");
  },

  async "phone-factor-verify"(visitor, form, done) {
    const body = { factorId: form.text("factorId"), code: digitsOf(form, "factorCode") };
    const answer = await visitor.call("POST /api/auth/mfa/phone/verify", { body });
    if (answer.ok || answer.status !== 400) return done(answer, "phone-factor");
    return { fault: faultOf(answer), section: "phone-factor", enrolment: { factorId: body.factorId } };
  },

  async "phone-factor-remove"(visitor, form, done) {
    const body = { code: digitsOf(form, "factorCode") };
    return done(await visitor.call("DELETE /api/auth/mfa/phone", { body }), "phone-factor");
  },
};
