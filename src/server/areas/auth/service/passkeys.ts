import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import type { isoCBOR } from "@simplewebauthn/server/helpers";
import { badField, badRequest, conflict } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { fitsRelyingParty } from "../../../config/relying-party.ts";
import { Passkey as PasskeyShape } from "../../../config/shapes/sign-in.ts";
import type { AuthConfig } from "../../../config/types.ts";
import { PASSKEY_CHALLENGE_TTL_MS, PASSKEYS_PER_USER_MAX } from "../limits.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { answerSignIn, completeSignIn, invalidToken } from "../sessions/sign-in.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import { insertPasskey, type Passkey, passkeyById, passkeysOfUser, usePasskey } from "../statements/means.ts";
import { deleteSecret, findSecret, putSecret, type SecretPurpose } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";
import { type Caller, currentAccount } from "../store/account-file.ts";

// WebAuthn. Bodies and answers are those of the WebAuthn libraries.

export type PasskeyConfig = NonNullable<AuthConfig["passkeys"]>;

const view = projection(PasskeyShape);

/** Returns the transports that the browser names, bounded: the library passes them on as they came. */
const transportsOf = (given: unknown): string[] =>
  Array.isArray(given)
    ? (given as unknown[])
        .filter((transport) => typeof transport === "string")
        .slice(0, 16)
        .map((transport) => transport.slice(0, 32))
    : [];

/** Errors: 400 if the user has the maximum already. */
function refuseSurplus(registered: readonly Passkey[]): void {
  if (registered.length < PASSKEYS_PER_USER_MAX) return;
  throw badRequest(`A user has at most ${PASSKEYS_PER_USER_MAX} passkeys`);
}

/** Loaded by the first request about a passkey: it would take a quarter of the time of a start. */
async function library() {
  // The library looks for it when it is evaluated.
  await import("reflect-metadata");
  return import("@simplewebauthn/server");
}

/** Returns the origins whose passkeys count: those of the config, and the pages' own. [AU348] */
function originsOf({ config, publicUrl }: AuthDeps, { origin, rpId }: PasskeyConfig): string[] {
  const address = publicUrl();
  const own = config.pages !== undefined && fitsRelyingParty(address, rpId) ? [new URL(address).origin] : [];
  return [...[origin].flat(), ...own];
}

const refused = () => badRequest("The authenticator's response does not check");

async function rememberChallenge(
  { file, sealing }: AuthDeps,
  purpose: SecretPurpose,
  { challenge, userId }: { challenge: string; userId: string | null },
): Promise<void> {
  await file.write((write) => {
    const expiresAt = write.now + PASSKEY_CHALLENGE_TTL_MS;
    putSecret.run(write.tx, { hash: sealing.digest(purpose, challenge), purpose, userId, payload: {}, expiresAt });
  });
}

/** Returns the challenge that `response` answers; valid once. Errors: 400. */
async function takeChallenge(
  { file, sealing }: AuthDeps,
  purpose: SecretPurpose,
  { response, userId }: { response: JsonObject; userId: string | null },
): Promise<string> {
  const challenge = challengeOf(response);
  if (challenge === null) throw refused();
  await file.write((write) => {
    const hash = sealing.digest(purpose, challenge);
    const found = findSecret.get(write.tx, { hash, purpose, now: write.now });
    if (found === null || found.userId !== userId) {
      throw badField("response", "invalid_value", "The challenge is unknown, used or expired");
    }
    deleteSecret.run(write.tx, { hash });
  });
  return challenge;
}

function challengeOf(body: JsonObject): string | null {
  const response = body["response"];
  const encoded = isJsonObject(response) ? response["clientDataJSON"] : null;
  if (typeof encoded !== "string") return null;
  try {
    const clientInfo: unknown = JSON.parse(Buffer.from(encoded, "base64url").toString());
    const challenge = isJsonObject(clientInfo) ? clientInfo["challenge"] : null;
    return typeof challenge === "string" ? challenge : null;
  } catch {
    return null;
  }
}

/** Errors: 401 `Sign in again` if the last sign-in was too long ago. */
export async function registerOptions(
  deps: AuthDeps,
  passkeys: PasskeyConfig,
  caller: Caller,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { file, clock, config } = deps;
  const account = requireRecentProof(file.sql, caller, config, clock.now());
  const registered = passkeysOfUser.all(file.sql, { userId: caller.userId });
  refuseSurplus(registered);
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    rpName: passkeys.rpName,
    rpID: passkeys.rpId,
    attestationType: "none",
    userID: new TextEncoder().encode(account.id),
    userName: account.email ?? account.id,
    userDisplayName: account.displayName ?? account.email ?? "",
    excludeCredentials: registered.map(({ id, transports }) => ({ id, transports })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    timeout: PASSKEY_CHALLENGE_TTL_MS,
  });
  await rememberChallenge(deps, "passkey-register", { challenge: options.challenge, userId: caller.userId });
  return options;
}

/** Registers a passkey. Errors: 400 for an invalid response, 409 for a credential that is registered already. */
export async function registerPasskey(
  deps: AuthDeps,
  passkeys: PasskeyConfig,
  caller: Caller,
  { response, name }: { response: JsonObject; name: string | null },
): Promise<PasskeyShape> {
  const { userId } = caller;
  const expectedChallenge = await takeChallenge(deps, "passkey-register", { response, userId });
  const { verifyRegistrationResponse } = await library();
  const verified = async () =>
    verifyRegistrationResponse({
      // The library checks every member that it reads.
      response: (await withoutAttestation(response)) as unknown as RegistrationResponseJSON,
      expectedChallenge,
      expectedOrigin: originsOf(deps, passkeys),
      expectedRPID: passkeys.rpId,
      requireUserVerification: false,
    });
  const { registrationInfo } = await verified().catch((cause: unknown) => {
    deps.logger.warn("A passkey was refused", { cause });
    throw refused();
  });
  if (registrationInfo === undefined) throw refused();
  const { credential, credentialDeviceType, credentialBackedUp } = registrationInfo;
  const passkey: Passkey = {
    id: credential.id,
    userId,
    publicKey: credential.publicKey,
    counter: credential.counter,
    transports: transportsOf(credential.transports),
    deviceType: credentialDeviceType,
    backedUp: credentialBackedUp,
    name,
    createdAt: deps.clock.now(),
    lastUsedAt: null,
  };
  await deps.file.write((write) => {
    if (currentAccount(write, caller) === null) throw invalidToken();
    if (passkeyById.get(write.tx, { id: passkey.id }) !== null) {
      throw conflict("This passkey is registered already");
    }
    // Concurrent registrations may all have received options.
    refuseSurplus(passkeysOfUser.all(write.tx, { userId }));
    insertPasskey.run(write.tx, passkey);
    write.auditByUser(userId, "factor.add", { type: "passkey" });
  });
  return view(passkey);
}

type CborValue = Parameters<typeof isoCBOR.encode>[0];

/**
 * Returns what a browser gives for a registration, without its attestation: none is asked for, and none counts. The library would
 * check one all the same, and fetch lists of revoked certificates from wherever the sender's own certificates say. Errors: any, for
 * what holds no attestation.
 */
async function withoutAttestation(body: JsonObject): Promise<JsonObject> {
  const { decodeAttestationObject, isoBase64URL, isoCBOR } = await import("@simplewebauthn/server/helpers");
  const { response } = body;
  if (!isJsonObject(response)) throw new Error("there is no response");
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(String(response["attestationObject"])));
  const bare = new Map<string | number, CborValue>([
    ["fmt", "none"],
    ["attStmt", new Map<string | number, CborValue>()],
    ["authData", attestation.get("authData")],
  ]);
  return { ...body, response: { ...response, attestationObject: isoBase64URL.fromBuffer(isoCBOR.encode(bare)) } };
}

/** Returns the same for every user: passkeys are discoverable, and the answer does not reveal which users have one. */
export async function passkeySignInOptions(
  deps: AuthDeps,
  passkeys: PasskeyConfig,
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await library();
  const options = await generateAuthenticationOptions({
    rpID: passkeys.rpId,
    userVerification: "required",
    timeout: PASSKEY_CHALLENGE_TTL_MS,
  });
  await rememberChallenge(deps, "passkey-sign-in", { challenge: options.challenge, userId: null });
  return options;
}

/**
 * Signs in with a passkey. Requires no second factor if the authenticator has verified its user. Errors: 400 for an invalid response,
 * 403 if disabled.
 */
export async function signInWithPasskey(
  deps: AuthDeps,
  passkeys: PasskeyConfig,
  response: JsonObject,
  client: Client,
): Promise<SignInAnswer> {
  const { file } = deps;
  const expectedChallenge = await takeChallenge(deps, "passkey-sign-in", { response, userId: null });
  const passkey = typeof response["id"] === "string" ? passkeyById.get(file.sql, { id: response["id"] }) : null;
  if (passkey === null) throw refused();
  const { id, publicKey, counter } = passkey;
  const { verifyAuthenticationResponse } = await library();
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    // The library checks every member that it reads.
    response: response as unknown as AuthenticationResponseJSON,
    expectedChallenge,
    expectedOrigin: originsOf(deps, passkeys),
    expectedRPID: passkeys.rpId,
    credential: { id, publicKey: new Uint8Array(publicKey), counter },
    requireUserVerification: false,
  }).catch((cause: unknown) => {
    deps.logger.warn("A passkey sign-in was refused", { cause });
    throw refused();
  });
  if (!verified) throw refused();
  const { newCounter, userVerified, credentialBackedUp } = authenticationInfo;
  const signIn = await file.write((write) => {
    const present = passkeyById.get(write.tx, { id });
    const account = present === null ? null : userById.get(write.tx, { id: present.userId });
    // Another sign-in has changed the counter meanwhile: one of the two authenticators is a copy.
    if (present === null || account === null || present.counter !== counter) throw refused();
    usePasskey.run(write.tx, { id, counter: newCounter, backedUp: credentialBackedUp, lastUsedAt: write.now });
    // Without user verification a passkey is a single factor.
    return completeSignIn(deps, write, { account, client, secondFactor: userVerified ? "given" : "required" });
  });
  return answerSignIn(deps, signIn);
}

export const passkeysOf = ({ file }: AuthDeps, { userId }: Caller): PasskeyShape[] =>
  passkeysOfUser.all(file.sql, { userId }).map(view);
