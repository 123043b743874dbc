import { Type } from "typebox";
import { Factor } from "../../../config/shapes/sign-in.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { enroll, factorsOf, removeFactor, verifyFactor, verifyMfa } from "../service/mfa.ts";
import {
  callerOf,
  clientOf,
  type EndpointDeps,
  FactorProof,
  Ok,
  ofUsers,
  proofOf,
  RecoveryCodes,
  requireEnabled,
  Token,
  tokensAnswer,
} from "./parts.ts";

const Code = Type.String({ ...Token, description: "Six digits; each code is valid once" });
const Enrolment = Type.Object(
  {
    factorId: Type.String(),
    secret: Type.String({ description: "Base32" }),
    uri: Type.String({ description: "For a QR code" }),
    recoveryCodes: RecoveryCodes,
  },
  { description: "The factor and its recovery codes, which are shown only here" },
);

export function mfaEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [...enrolment(deps), ...signIn(deps), ...factors(deps)];
}

function enrolment(deps: EndpointDeps): readonly Endpoint[] {
  const begin = endpoint(
    "POST /api/auth/mfa/totp/enroll",
    {
      ...ofUsers(deps.authLimit),
      summary: "Enroll a TOTP factor",
      description: "It counts once it is verified.",
      caller: "user",
      answers: { 200: Enrolment },
      errors: [404, 409],
    },
    ({ principal, query }) => {
      query();
      requireEnabled(deps.config.mfa?.totp === true, "A second factor by TOTP");
      return enroll(deps, callerOf(principal));
    },
  );
  const verify = endpoint(
    "POST /api/auth/mfa/totp/verify",
    {
      ...ofUsers(deps.authLimit),
      summary: "Verify your new TOTP factor with a code",
      caller: "user",
      body: Type.Object({ factorId: Token, code: Code }),
      answers: { 200: Ok },
      errors: [404],
    },
    async (context) => {
      const { factorId, code } = await context.body();
      await verifyFactor(deps, callerOf(context.principal), clientOf(context), { factorId, code });
      return OK;
    },
  );
  return [begin, verify];
}

function signIn(deps: EndpointDeps): readonly Endpoint[] {
  const byCode = endpoint(
    "POST /api/auth/mfa/verify",
    {
      ...ofUsers(deps.authLimit),
      summary: "Complete a sign-in with a code of an authenticator app, or one that `mfa/phone/send` has sent",
      caller: "public",
      body: Type.Object({ mfaTicket: Token, code: Code }),
      answers: { 200: tokensAnswer("Signed in") },
    },
    async (context) => {
      const { mfaTicket, code } = await context.body();
      return verifyMfa(deps, mfaTicket, { code }, clientOf(context));
    },
  );
  const byRecoveryCode = endpoint(
    "POST /api/auth/mfa/recovery",
    {
      ...ofUsers(deps.authLimit),
      summary: "Complete a sign-in with a recovery code",
      caller: "public",
      body: Type.Object({ mfaTicket: Token, recoveryCode: Token }),
      answers: { 200: tokensAnswer("Signed in") },
    },
    async (context) => {
      const { mfaTicket, recoveryCode } = await context.body();
      return verifyMfa(deps, mfaTicket, { recoveryCode }, clientOf(context));
    },
  );
  return [byCode, byRecoveryCode];
}

function factors(deps: EndpointDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/auth/mfa/factors",
    {
      ...ofUsers(deps.authLimit),
      summary: "List your MFA factors",
      caller: "user",
      answers: { 200: Type.Object({ factors: Type.Array(Factor) }, { description: "The factors" }) },
    },
    ({ principal, query }) => {
      query();
      return { factors: factorsOf(deps, callerOf(principal)) };
    },
  );
  const remove = endpoint(
    "DELETE /api/auth/mfa/totp",
    {
      ...ofUsers(deps.authLimit),
      summary: "Remove your TOTP factor and its recovery codes",
      description: "Requires a code of the factor, or the password.",
      caller: "user",
      body: FactorProof,
      answers: { 200: Ok },
      errors: [404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const client = clientOf(context);
      await removeFactor(deps, caller, client, await proofOf(deps, caller, client, await context.body()));
      return OK;
    },
  );
  return [list, remove];
}
