import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import type { Http } from "../../http/http.ts";
import { operation } from "../../http/operation.ts";
import { OK } from "../../http/reply.ts";
import { badField, notFound } from "../../kernel/errors.ts";
import { Fields, isLonger } from "../../kernel/fields.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { PasskeyService } from "../passkeys.ts";
import type { RouteDeps } from "./account.ts";
import { callerOf, clientOf } from "./context.ts";
import { AnyObject, nullable, OkSchema, SignInSchema } from "./schemas.ts";

const NAME_MAX_CHARACTERS = 128;
const tag = "Auth";

/** Passkeys; `passkeys` is null where the config declares none. Decisions 6. */
export function passkeyRoutes({ http, authLimit }: RouteDeps, passkeys: PasskeyService | null): AnyElysia {
  const limited = { limit: authLimit };
  const service = (): PasskeyService => {
    if (passkeys === null) throw notFound("Passkeys are not enabled");
    return passkeys;
  };
  const registerOptions = http.route((context) => {
    const caller = callerOf(context);
    return service().registerOptions(caller);
  }, limited);
  const register = http.route(async (context) => {
    const caller = callerOf(context);
    const { name = null, ...response } = await context.jsonObject();
    refuseUnknown(response);
    if (name !== null && (typeof name !== "string" || isLonger(name, NAME_MAX_CHARACTERS))) {
      throw badField("name", "invalid_value", `name must be a string of at most ${NAME_MAX_CHARACTERS} characters`);
    }
    const passkey = await service().register(caller, response, name);
    return { verified: true, passkey };
  }, limited);
  const authOptions = http.route(({ query }) => {
    query().refuseUnknown();
    return service().authOptions();
  }, limited);
  const authenticate = http.route(async (context) => {
    const response = await context.jsonObject();
    refuseUnknown(response);
    return service().authenticate(response, clientOf(context));
  }, limited);
  const list = http.route((context) => {
    const caller = callerOf(context);
    return { passkeys: service().list(caller) };
  }, limited);
  const remove = http.route(async (context) => {
    await service().remove(callerOf(context), context.params["id"] ?? "");
    return OK;
  }, limited);
  return describePasskeyRoutes({ registerOptions, register, authOptions, authenticate, list, remove });
}

/** The members of what browsers make, in the words of WebAuthn. */
const CREDENTIAL_MEMBERS = ["id", "rawId", "response", "type", "authenticatorAttachment", "clientExtensionResults"];

/** Errors: 400 for a member that no browser sends. What is inside `response` is for the authenticators to extend. */
function refuseUnknown(credential: JsonObject): void {
  const fields = new Fields(credential);
  for (const name of CREDENTIAL_MEMBERS) fields.value(name);
  fields.finish();
}

function describePasskeyRoutes(
  routes: Record<
    "registerOptions" | "register" | "authOptions" | "authenticate" | "list" | "remove",
    ReturnType<Http["route"]>
  >,
): AnyElysia {
  const Passkey = Type.Object({
    id: Type.String({ description: "The credential id, base64url" }),
    name: nullable(Type.String()),
    deviceType: Type.String(),
    backedUp: Type.Boolean(),
    createdAt: Type.String({ format: "date-time" }),
    lastUsedAt: nullable(Type.String({ format: "date-time" })),
  });
  const webauthn = (description: string) => ({ description, schema: AnyObject });
  return new Elysia()
    .post(
      "/api/auth/passkeys/register-options",
      routes.registerOptions,
      operation({
        ...{ tag, summary: "Begin with a passkey", security: "user", errors: [400, 401, 404] },
        answers: { 200: webauthn("PublicKeyCredentialCreationOptionsJSON") },
      }),
    )
    .post(
      "/api/auth/passkeys/register",
      routes.register,
      operation({
        ...{ tag, summary: "Register a passkey", security: "user", errors: [400, 401, 404, 409] },
        description: "The RegistrationResponseJSON of the browser, with an optional `name` beside its members.",
        body: { schema: AnyObject },
        answers: {
          200: { description: "Registered", schema: Type.Object({ verified: Type.Literal(true), passkey: Passkey }) },
        },
      }),
    )
    .post(
      "/api/auth/passkeys/auth-options",
      routes.authOptions,
      operation({
        ...{ tag, summary: "Begin a sign-in with a passkey", security: "public", errors: [404] },
        answers: { 200: webauthn("PublicKeyCredentialRequestOptionsJSON") },
      }),
    )
    .post(
      "/api/auth/passkeys/authenticate",
      routes.authenticate,
      operation({
        ...{ tag, summary: "Sign in with a passkey", security: "public", errors: [400, 403, 404] },
        ...{ description: "The AuthenticationResponseJSON of the browser.", body: { schema: AnyObject } },
        answers: { 200: { description: "Tokens", schema: SignInSchema } },
      }),
    )
    .get(
      "/api/auth/passkeys",
      routes.list,
      operation({
        ...{ tag, summary: "The own passkeys", security: "user", errors: [401, 404] },
        answers: { 200: { description: "Passkeys", schema: Type.Object({ passkeys: Type.Array(Passkey) }) } },
      }),
    )
    .delete(
      "/api/auth/passkeys/:id",
      routes.remove,
      operation({
        ...{ tag, summary: "Remove a passkey", security: "user", path: { id: "Its id" }, errors: [401, 404] },
        answers: { 200: { description: "Removed", schema: OkSchema } },
      }),
    );
}
