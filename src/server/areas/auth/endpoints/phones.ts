import { Type } from "typebox";
import { notFound } from "../../../../kernel/errors.ts";
import { clientNetwork } from "../../../../kernel/network/addresses.ts";
import { nullable, optional } from "../../../../kernel/schema/types.ts";
import { Phone } from "../../../config/shapes/user-fields.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { phoneOf, reachablePhoneOf } from "../means/phone-numbers.ts";
import type { Texts, TextUse } from "../means/texts.ts";
import {
  removeOwnPhone,
  requestPhoneChange,
  requestPhoneCode,
  verifyPhoneChange,
  verifyPhoneCode,
} from "../service/phones.ts";
import type { Client } from "../sessions/deps.ts";
import { CaptchaToken, callerOf, clientOf, type EndpointDeps, Ok, ofUsers, SignedIn, Token } from "./parts.ts";

const Accepted = Type.Object({ ok: Type.Literal(true) }, { description: "Accepted, whoever has the number" });

/** The parts of these endpoints. `textLimit` counts a text that this network asks for. */
export type PhoneEndpointDeps = EndpointDeps & { texts: Texts | null; textLimit: (network: string) => void };

/** Signing in by a code that is sent to a phone, and the number of an account. */
export const phoneEndpoints = (deps: PhoneEndpointDeps): readonly Endpoint[] => [...signIn(deps), ...change(deps)];

/** Returns what sends texts. Errors: 404 where the config declares no phones, or none that sign in. */
export function textsFor({ texts }: PhoneEndpointDeps, use: TextUse): Texts {
  if (texts !== null && (use !== "sign-in" || texts.config.signIn !== false)) return texts;
  throw notFound(`${use === "sign-in" ? "Signing in by phone" : "A phone number of an account"} is not enabled`);
}

export function countText({ textLimit }: PhoneEndpointDeps, { isLimited, address }: Client): void {
  if (isLimited) textLimit(clientNetwork(address));
}

function signIn(deps: PhoneEndpointDeps): readonly Endpoint[] {
  const request = endpoint(
    "POST /api/auth/signin/phone",
    {
      ...ofUsers(deps.authLimit),
      summary: "Send a code that signs in to a phone",
      caller: "public",
      body: Type.Object({ phone: Phone, captchaToken: CaptchaToken }),
      answers: { 200: Accepted },
      errors: [404, 503],
    },
    async (context) => {
      const { phone, captchaToken } = await context.body();
      const texts = textsFor(deps, "sign-in");
      const client = clientOf(context);
      await deps.captcha.check(captchaToken, client);
      const number = await reachablePhoneOf(phone, "phone", texts.config);
      countText(deps, client);
      await requestPhoneCode({ ...deps, texts }, { phone: number, language: client.language });
      return OK;
    },
  );
  const confirm = endpoint(
    "POST /api/auth/verify-phone",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with a code that was sent to a phone",
      caller: "public",
      body: Type.Object({ phone: Phone, code: Token }),
      answers: { 200: SignedIn },
      errors: [404],
    },
    async (context) => {
      const { phone, code } = await context.body();
      textsFor(deps, "sign-in");
      return verifyPhoneCode(deps, { phone: await phoneOf(phone, "phone"), code }, clientOf(context));
    },
  );
  return [request, confirm];
}

function change(deps: PhoneEndpointDeps): readonly Endpoint[] {
  const request = endpoint(
    "POST /api/auth/change-phone",
    {
      ...ofUsers(deps.authLimit),
      summary: "Send a code to a phone whose number is to become yours",
      description: "After a sign-in of the last ten minutes. `newPhone: null` removes the number at once.",
      caller: "user",
      body: Type.Object({
        newPhone: nullable(Phone),
        code: optional(
          Type.String({
            ...Token,
            description: "Where the phone is a second factor: a code of a factor, or a recovery code",
          }),
        ),
      }),
      answers: { 200: Ok },
      errors: [401, 404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { newPhone, code } = await context.body();
      const proof = code ?? undefined;
      const client = clientOf(context);
      const texts = textsFor(deps, "change");
      if (newPhone === null) await removeOwnPhone(deps, caller, client, proof);
      else {
        const phone = await reachablePhoneOf(newPhone, "newPhone", texts.config);
        countText(deps, client);
        await requestPhoneChange({ ...deps, texts }, caller, client, { phone, proof });
      }
      return OK;
    },
  );
  const confirm = endpoint(
    "POST /api/auth/verify-phone-change",
    {
      ...ofUsers(deps.authLimit),
      summary: "Give your account the number to which the code was sent",
      caller: "user",
      body: Type.Object({ code: Token }),
      answers: { 200: Ok },
      errors: [404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { code } = await context.body();
      textsFor(deps, "change");
      await verifyPhoneChange(deps, caller, code, clientOf(context));
      return OK;
    },
  );
  return [request, confirm];
}
