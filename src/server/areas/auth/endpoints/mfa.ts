import { Type } from "typebox";
import { badField } from "../../../../kernel/errors.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import { Factor } from "../../../config/shapes/sign-in.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { callerOf, clientOf, type EndpointDeps, ofUsers, requireEnabled } from "./parts.ts";
import { RECOVERY_CODE_COUNT, SECRET_TEXT_MAX_CHARACTERS, TOKEN_TEXT_MAX_CHARACTERS } from "../limits.ts";
import type { PasswordService } from "../service/passwords.ts";
import { Ok, Token, tokensAnswer } from "./schemas.ts";
import type { MfaService } from "../service/mfa.ts";

interface MfaEndpointDeps extends EndpointDeps {
  mfa: MfaService;
  passwords: PasswordService;
}

const Code = Type.String({ ...Token, description: "Six digits; each code is valid once" });
const Enrolment = Type.Object(
  {
    factorId: Type.String(),
    secret: Type.String({ description: "Base32" }),
    uri: Type.String({ description: "For a QR code" }),
    recoveryCodes: Type.Array(Type.String(), { minItems: RECOVERY_CODE_COUNT, maxItems: RECOVERY_CODE_COUNT }),
  },
  { description: "The factor and its recovery codes, which are shown only here" },
);

export function mfaEndpoints(deps: MfaEndpointDeps): readonly Endpoint[] {
  return [...enrolment(deps), ...signIn(deps), ...factors(deps)];
}

function enrolment({ config, authLimit, mfa }: MfaEndpointDeps): readonly Endpoint[] {
  const enroll = endpoint(
    "POST /api/auth/mfa/totp/enroll",
    {
      ...ofUsers(authLimit),
      summary: "Enroll a TOTP factor",
      description: "It counts once it is verified.",
      caller: "user",
      place: "core",
      answers: { 200: Enrolment },
      errors: [404, 409],
    },
    ({ principal, query }) => {
      query();
      requireEnabled(config.mfa?.totp === true, "A second factor by TOTP");
      return mfa.enroll(callerOf(principal));
    },
  );
  const verify = endpoint(
    "POST /api/auth/mfa/totp/verify",
    {
      ...ofUsers(authLimit),
      summary: "Verify your new TOTP factor with a code",
      caller: "user",
      place: "core",
      body: Type.Object({ factorId: Token, code: Code }),
      answers: { 200: Ok },
      errors: [404],
    },
    async (context) => {
      const { factorId, code } = await context.body();
      await mfa.verifyFactor(callerOf(context.principal), clientOf(context), factorId, code);
      return OK;
    },
  );
  return [enroll, verify];
}

function signIn({ authLimit, mfa }: MfaEndpointDeps): readonly Endpoint[] {
  const byCode = endpoint(
    "POST /api/auth/mfa/verify",
    {
      ...ofUsers(authLimit),
      summary: "Complete a sign-in with a TOTP code",
      caller: "public",
      place: "core",
      body: Type.Object({ mfaTicket: Token, code: Code }),
      answers: { 200: tokensAnswer("Signed in") },
    },
    async (context) => {
      const { mfaTicket, code } = await context.body();
      return mfa.verify(mfaTicket, { code }, clientOf(context));
    },
  );
  const byRecoveryCode = endpoint(
    "POST /api/auth/mfa/recovery",
    {
      ...ofUsers(authLimit),
      summary: "Complete a sign-in with a recovery code",
      caller: "public",
      place: "core",
      body: Type.Object({ mfaTicket: Token, recoveryCode: Token }),
      answers: { 200: tokensAnswer("Signed in") },
    },
    async (context) => {
      const { mfaTicket, recoveryCode } = await context.body();
      return mfa.verify(mfaTicket, { recoveryCode }, clientOf(context));
    },
  );
  return [byCode, byRecoveryCode];
}

function factors({ authLimit, mfa, passwords }: MfaEndpointDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/auth/mfa/factors",
    {
      ...ofUsers(authLimit),
      summary: "List your MFA factors",
      caller: "user",
      place: "core",
      answers: { 200: Type.Object({ factors: Type.Array(Factor) }, { description: "The factors" }) },
    },
    ({ principal, query }) => {
      query();
      return { factors: mfa.factors(callerOf(principal)) };
    },
  );
  const remove = endpoint(
    "DELETE /api/auth/mfa/totp",
    {
      ...ofUsers(authLimit),
      summary: "Remove your TOTP factor and its recovery codes",
      description: "Requires a code of the factor, or the password.",
      caller: "user",
      place: "core",
      body: Type.Object({
        code: optional(Type.String({ maxLength: TOKEN_TEXT_MAX_CHARACTERS })),
        password: optional(Type.String({ maxLength: SECRET_TEXT_MAX_CHARACTERS })),
      }),
      answers: { 200: Ok },
      errors: [404],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { code, password } = await context.body();
      const client = clientOf(context);
      if (typeof code === "string") {
        await mfa.remove(caller, client, { code });
        return OK;
      }
      if (typeof password !== "string") throw badField("code", "required", "code or password is required");
      await passwords.confirmPassword(caller, client, password);
      await mfa.remove(caller, client, "confirmed");
      return OK;
    },
  );
  return [list, remove];
}
