import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import type { Http } from "../../http/http.ts";
import { operation } from "../../http/operation.ts";
import { OK } from "../../http/reply.ts";
import { badField } from "../../kernel/errors.ts";
import { Fields } from "../../kernel/fields.ts";
import type { MfaProof, MfaService } from "../mfa.ts";
import type { AuthService } from "../service.ts";
import type { RouteDeps } from "./account.ts";
import { callerOf, clientOf, requireEnabled } from "./context.ts";
import { OkSchema, TokenSchema } from "./schemas.ts";

const TEXT_MAX_CHARACTERS = 256;
const PASSWORD_MAX_CHARACTERS = 4_096;
const tag = "Auth";

/** Second factors. Decisions 6. */
export function mfaRoutes({ http, config, authLimit }: RouteDeps, mfa: MfaService, auth: AuthService): AnyElysia {
  const limited = { limit: authLimit };
  const enroll = http.route((context) => {
    const caller = callerOf(context);
    requireEnabled(config.mfa?.totp === true, "A second factor by TOTP");
    return mfa.enroll(caller);
  }, limited);
  const verifyFactor = http.route(async (context) => {
    const caller = callerOf(context);
    const fields = new Fields(await context.jsonObject());
    const factorId = fields.requiredText("factorId", TEXT_MAX_CHARACTERS);
    const code = fields.requiredText("code", TEXT_MAX_CHARACTERS);
    fields.finish();
    await mfa.verifyFactor(caller, clientOf(context), factorId, code);
    return OK;
  }, limited);
  const signIn = (name: "code" | "recoveryCode") =>
    http.route(async (context) => {
      const fields = new Fields(await context.jsonObject());
      const ticket = fields.requiredText("mfaTicket", TEXT_MAX_CHARACTERS);
      const text = fields.requiredText(name, TEXT_MAX_CHARACTERS);
      fields.finish();
      const proof: MfaProof = name === "code" ? { code: text } : { recoveryCode: text };
      return mfa.verify(ticket, proof, clientOf(context));
    }, limited);
  const factors = http.route((context) => ({ factors: mfa.factors(callerOf(context)) }), limited);
  const remove = http.route(async (context) => {
    const caller = callerOf(context);
    const fields = new Fields(await context.jsonObject());
    const code = fields.text("code", { maxLength: TEXT_MAX_CHARACTERS });
    const password = fields.text("password", { maxLength: PASSWORD_MAX_CHARACTERS });
    fields.finish();
    const client = clientOf(context);
    if (code !== undefined) await mfa.remove(caller, client, { code });
    else if (password !== undefined) {
      await auth.confirmPassword(caller, client, password);
      await mfa.remove(caller, client, "confirmed");
    } else throw badField("code", "required", "code or password is required");
    return OK;
  }, limited);
  const [verify, recovery] = [signIn("code"), signIn("recoveryCode")];
  return describeMfaRoutes({ enroll, verifyFactor, verify, recovery, factors, remove });
}

type Route = ReturnType<Http["route"]>;

function describeMfaRoutes(
  routes: Record<"enroll" | "verifyFactor" | "verify" | "recovery" | "factors" | "remove", Route>,
): AnyElysia {
  const code = Type.String({ description: "Six digits; each is good once" });
  const mfaTicket = Type.String();
  const done = { 200: { description: "Done", schema: OkSchema } };
  const signedIn = { 200: { description: "Signed in", schema: TokenSchema } };
  const Enrolment = Type.Object({
    factorId: Type.String(),
    secret: Type.String({ description: "Base32" }),
    uri: Type.String({ description: "For a QR code" }),
    recoveryCodes: Type.Array(Type.String(), { minItems: 10, maxItems: 10 }),
  });
  const Factor = Type.Object({
    id: Type.String(),
    type: Type.Literal("totp"),
    verified: Type.Boolean(),
    createdAt: Type.String({ format: "date-time" }),
  });
  return new Elysia()
    .post(
      "/api/auth/mfa/totp/enroll",
      routes.enroll,
      operation({
        ...{ tag, summary: "Begin with a TOTP factor", security: "user", errors: [401, 404, 409] },
        answers: { 200: { description: "The secret and the recovery codes, shown once", schema: Enrolment } },
      }),
    )
    .post(
      "/api/auth/mfa/totp/verify",
      routes.verifyFactor,
      operation({
        ...{ tag, summary: "Confirm the factor; it counts from now on", security: "user", errors: [400, 401, 404] },
        ...{ body: { schema: Type.Object({ factorId: Type.String(), code }) }, answers: done },
      }),
    )
    .post(
      "/api/auth/mfa/verify",
      routes.verify,
      operation({
        ...{ tag, summary: "Finish a sign-in with a TOTP code", security: "public", errors: [400, 403] },
        ...{ body: { schema: Type.Object({ mfaTicket, code }) }, answers: signedIn },
      }),
    )
    .post(
      "/api/auth/mfa/recovery",
      routes.recovery,
      operation({
        ...{ tag, summary: "Finish a sign-in with a recovery code", security: "public", errors: [400, 403] },
        ...{ body: { schema: Type.Object({ mfaTicket, recoveryCode: Type.String() }) }, answers: signedIn },
      }),
    )
    .get(
      "/api/auth/mfa/factors",
      routes.factors,
      operation({
        ...{ tag, summary: "The own factors", security: "user", errors: [401] },
        answers: { 200: { description: "Factors", schema: Type.Object({ factors: Type.Array(Factor) }) } },
      }),
    )
    .delete(
      "/api/auth/mfa/totp",
      routes.remove,
      operation({
        ...{ tag, summary: "Remove the factor and its recovery codes", security: "user", errors: [400, 401, 404] },
        description: "Wants a code of the factor, or the password.",
        body: { schema: Type.Object({ code: Type.Optional(code), password: Type.Optional(Type.String()) }) },
        answers: done,
      }),
    );
}
