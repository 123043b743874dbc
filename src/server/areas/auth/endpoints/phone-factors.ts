import { Type } from "typebox";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import {
  enrollPhone,
  removePhoneFactor,
  resendManagingCode,
  sendSignInCode,
  verifyPhoneFactor,
} from "../service/phone-factors.ts";
import {
  callerOf,
  clientOf,
  FactorProof,
  Ok,
  ofUsers,
  proofOf,
  RecoveryCodes,
  requireEnabled,
  Token,
} from "./parts.ts";
import { countText, type PhoneEndpointDeps, textsFor } from "./phones.ts";

/** The phone of the account as a second factor. */
export const phoneFactorEndpoints = (deps: PhoneEndpointDeps): readonly Endpoint[] => [
  ...enrolment(deps),
  sendAtSignIn(deps),
  sendToOwner(deps),
  removal(deps),
];

function enrolment(deps: PhoneEndpointDeps): readonly Endpoint[] {
  const begin = endpoint(
    "POST /api/auth/mfa/phone/enroll",
    {
      ...ofUsers(deps.authLimit),
      summary: "Make your phone a second factor",
      description:
        "After a sign-in of the last ten minutes. A code is sent to it; the factor counts once the code is verified.",
      caller: "user",
      body: Type.Object({}),
      answers: {
        200: Type.Object(
          { factorId: Type.String(), recoveryCodes: RecoveryCodes },
          { description: "The factor and its recovery codes, which are shown only here" },
        ),
      },
      errors: [401, 404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      await context.body();
      requireEnabled(deps.config.mfa?.phone === true, "A second factor by phone");
      const texts = textsFor(deps, "managing");
      const client = clientOf(context);
      countText(deps, client);
      return enrollPhone({ ...deps, texts }, caller, client);
    },
  );
  const verify = endpoint(
    "POST /api/auth/mfa/phone/verify",
    {
      ...ofUsers(deps.authLimit),
      summary: "Verify your phone as a second factor with the code that was sent to it",
      caller: "user",
      body: Type.Object({ factorId: Token, code: Token }),
      answers: { 200: Ok },
      errors: [404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { factorId, code } = await context.body();
      await verifyPhoneFactor(deps, caller, clientOf(context), { factorId, code });
      return OK;
    },
  );
  return [begin, verify];
}

const sendAtSignIn = (deps: PhoneEndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/mfa/phone/send",
    {
      ...ofUsers(deps.authLimit),
      summary: "Send a code that completes a sign-in to the phone that is the second factor",
      caller: "public",
      body: Type.Object({ mfaTicket: Token }),
      answers: { 200: Ok },
      errors: [404],
    },
    async (context) => {
      const { mfaTicket } = await context.body();
      const texts = textsFor(deps, "second factor");
      const client = clientOf(context);
      countText(deps, client);
      await sendSignInCode({ ...deps, texts }, mfaTicket, client);
      return OK;
    },
  );

const sendToOwner = (deps: PhoneEndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/mfa/phone/code",
    {
      ...ofUsers(deps.authLimit),
      summary: "Send a code to your phone that removes it as a second factor, or lets you change its number",
      description: "After a sign-in of the last ten minutes.",
      caller: "user",
      answers: { 200: Ok },
      errors: [401, 404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      context.query();
      const texts = textsFor(deps, "managing");
      const client = clientOf(context);
      countText(deps, client);
      await resendManagingCode({ ...deps, texts }, caller, client);
      return OK;
    },
  );

const removal = (deps: PhoneEndpointDeps): Endpoint =>
  endpoint(
    "DELETE /api/auth/mfa/phone",
    {
      ...ofUsers(deps.authLimit),
      summary: "Remove your phone as a second factor, with its recovery codes",
      description:
        "Requires a code of `mfa/phone/code` and a sign-in of the last ten minutes, or the password. The number stays.",
      caller: "user",
      body: FactorProof,
      answers: { 200: Ok },
      errors: [401, 404],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const client = clientOf(context);
      await removePhoneFactor(deps, caller, client, await proofOf(deps, caller, client, await context.body()));
      return OK;
    },
  );
