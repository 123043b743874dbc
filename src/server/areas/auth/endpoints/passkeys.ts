import { Type } from "typebox";
import { notFound } from "../../../../kernel/errors.ts";
import { isLonger } from "../../../../kernel/fields.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { AnyObject, refine } from "../../../../kernel/schema/types.ts";
import { Passkey } from "../../../config/shapes/sign-in.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { PASSKEY_NAME_MAX_CHARACTERS } from "../limits.ts";
import { removeOwnMeans } from "../service/means.ts";
import {
  type PasskeyConfig,
  passkeySignInOptions,
  passkeysOf,
  registerOptions,
  registerPasskey,
  signInWithPasskey,
} from "../service/passkeys.ts";
import { callerOf, clientOf, type EndpointDeps, Ok, ofUsers, SignedIn } from "./parts.ts";

/** The members of a credential in WebAuthn. `response` is the authenticators' to extend; the library checks what it reads. */
const credential = {
  id: Type.Optional(Type.Unknown()),
  rawId: Type.Optional(Type.Unknown()),
  response: Type.Optional(Type.Unknown()),
  type: Type.Optional(Type.Unknown()),
  authenticatorAttachment: Type.Optional(Type.Unknown()),
  clientExtensionResults: Type.Optional(Type.Unknown()),
};
const isName = (name: unknown): boolean =>
  name === null || (typeof name === "string" && !isLonger(name, PASSKEY_NAME_MAX_CHARACTERS));
const Name = refine(
  Type.Unsafe<string | null>({ description: `At most ${PASSKEY_NAME_MAX_CHARACTERS} characters, or null` }),
  isName,
  (name) => ({
    code: "invalid_value",
    message: `${name} must be a string of at most ${PASSKEY_NAME_MAX_CHARACTERS} characters`,
  }),
);

export function passkeyEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [...registration(deps), ...signIn(deps), ...list(deps)];
}

/** Returns what `auth.passkeys` says. Errors: 404 where the config has none. */
function passkeysIn({ config }: EndpointDeps): PasskeyConfig {
  if (config.passkeys === undefined) throw notFound("Passkeys are not enabled");
  return config.passkeys;
}

function registration(deps: EndpointDeps): readonly Endpoint[] {
  const options = endpoint(
    "POST /api/auth/passkeys/register-options",
    {
      ...ofUsers(deps.authLimit),
      summary: "Start registering a passkey",
      caller: "user",
      answers: { 200: { description: "PublicKeyCredentialCreationOptionsJSON", schema: AnyObject } },
      errors: [400, 404],
    },
    ({ principal, query }) => {
      query();
      return registerOptions(deps, passkeysIn(deps), callerOf(principal));
    },
  );
  const register = endpoint(
    "POST /api/auth/passkeys/register",
    {
      ...ofUsers(deps.authLimit),
      summary: "Register a passkey",
      description: "The browser's RegistrationResponseJSON, with an optional `name` beside its members.",
      caller: "user",
      body: Type.Object({ ...credential, name: Type.Optional(Name) }),
      answers: {
        200: Type.Object({ verified: Type.Literal(true), passkey: Passkey }, { description: "Registered" }),
      },
      errors: [404, 409],
    },
    async ({ principal, body }) => {
      const { name = null, ...response } = await body();
      // A parsed body is JSON.
      const registration = { response: response as JsonObject, name };
      const passkey = await registerPasskey(deps, passkeysIn(deps), callerOf(principal), registration);
      return { verified: true, passkey };
    },
  );
  return [options, register];
}

function signIn(deps: EndpointDeps): readonly Endpoint[] {
  const options = endpoint(
    "POST /api/auth/passkeys/auth-options",
    {
      ...ofUsers(deps.authLimit),
      summary: "Start a sign-in with a passkey",
      caller: "public",
      // The client sends an empty object.
      body: Type.Object({}),
      isBodyOptional: true,
      answers: { 200: { description: "PublicKeyCredentialRequestOptionsJSON", schema: AnyObject } },
      errors: [400, 404],
    },
    async ({ body }) => {
      await body();
      return passkeySignInOptions(deps, passkeysIn(deps));
    },
  );
  const authenticate = endpoint(
    "POST /api/auth/passkeys/authenticate",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with a passkey",
      description: "The browser's AuthenticationResponseJSON.",
      caller: "public",
      body: Type.Object(credential),
      answers: { 200: SignedIn },
      errors: [404],
    },
    async (context) => {
      // A parsed body is JSON.
      const response = (await context.body()) as JsonObject;
      return signInWithPasskey(deps, passkeysIn(deps), response, clientOf(context));
    },
  );
  return [options, authenticate];
}

function list(deps: EndpointDeps): readonly Endpoint[] {
  const all = endpoint(
    "GET /api/auth/passkeys",
    {
      ...ofUsers(deps.authLimit),
      summary: "List your passkeys",
      caller: "user",
      answers: { 200: Type.Object({ passkeys: Type.Array(Passkey) }, { description: "The passkeys" }) },
      errors: [404],
    },
    ({ principal, query }) => {
      query();
      passkeysIn(deps);
      return { passkeys: passkeysOf(deps, callerOf(principal)) };
    },
  );
  const remove = endpoint(
    "DELETE /api/auth/passkeys/:id",
    {
      ...ofUsers(deps.authLimit),
      summary: "Remove one of your passkeys",
      caller: "user",
      path: { id: "The passkey's id" },
      answers: { 200: Ok },
      errors: [400, 404, 409],
    },
    async ({ principal, params, query }) => {
      query();
      passkeysIn(deps);
      await removeOwnMeans(deps, callerOf(principal), { kind: "passkey", id: params.id });
      return OK;
    },
  );
  return [all, remove];
}
