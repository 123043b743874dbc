import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { badField, badRequest, conflict, notFound, unauthorized } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { Passkey as PasskeyShape } from "../../../config/shapes/sign-in.ts";
import type { AuthConfig } from "../../../config/types.ts";
import { PASSKEY_CHALLENGE_TTL_MS, PASSKEYS_PER_USER_MAX } from "../limits.ts";
import type { Caller } from "../store/caller.ts";
import type { SignIns } from "../sessions/sign-in.ts";
import {
  deletePasskey,
  insertPasskey,
  type Passkey,
  passkeyById,
  passkeysOfUser,
  usePasskey,
} from "../statements/passkeys.ts";
import { deleteSecret, findSecret, putSecret, type SecretPurpose } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { requireOtherWayIn, requireRecentProof } from "../sessions/ways-in.ts";
import { withoutAttestation } from "./attestation.ts";
import { notePasskey } from "./removal.ts";

/** WebAuthn. Bodies and answers are those of the WebAuthn libraries. */
export interface PasskeyService {
  /** Errors: 401 `Sign in again` if the last sign-in was too long ago. */
  registerOptions(caller: Caller): Promise<PublicKeyCredentialCreationOptionsJSON>;
  /** Errors: 400 for an invalid response, 409 for a credential that is registered already. */
  register(caller: Caller, response: JsonObject, name: string | null): Promise<PasskeyShape>;
  /** The same for every user: passkeys are discoverable, and the answer does not reveal which users have one. */
  authOptions(): Promise<PublicKeyCredentialRequestOptionsJSON>;
  /**
   * Requires no second factor if the authenticator has verified its user. Errors: 400 for an invalid response,
   * 403 if disabled.
   */
  authenticate(response: JsonObject, client: Client): Promise<SignInAnswer>;
  list(caller: Caller): PasskeyShape[];
  /** Errors: 404, 401 `Sign in again`, 400 for the last way of signing in. */
  remove(caller: Caller, id: string): Promise<void>;
}

type PasskeyConfig = NonNullable<AuthConfig["passkeys"]>;

const view = projection(PasskeyShape);

/** What the browser says, which the library passes on as it came. */
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

const refused = () => badRequest("The authenticator's response does not check");

export function createPasskeyService(deps: AuthDeps, signIns: SignIns, config: PasskeyConfig): PasskeyService {
  const challenges = createChallenges(deps);
  return {
    ...createRegistration(deps, challenges, config),
    ...createAuthentication(deps, challenges, signIns, config),
    list: (caller) => passkeysOfUser.all(deps.file.sql, { userId: caller.userId }).map(view),
    async remove(caller, id) {
      await deps.file.write((write) => {
        const account = requireRecentProof(write.tx, caller, deps.config, write.now);
        if (passkeyById.get(write.tx, { id: id })?.userId !== caller.userId)
          throw notFound(`There is no passkey "${id}"`);
        requireOtherWayIn(write.tx, account, deps.config, id);
        deletePasskey.run(write.tx, { id });
        notePasskey(write, caller.userId, "factor.delete");
      });
    },
  };
}

interface Challenges {
  remember(purpose: SecretPurpose, challenge: string, userId: string | null): Promise<void>;
  /** The challenge that `response` answers; valid once. Errors: 400. */
  take(purpose: SecretPurpose, response: JsonObject, userId: string | null): Promise<string>;
}

function createChallenges({ file, sealing }: AuthDeps): Challenges {
  return {
    async remember(purpose, challenge, userId) {
      await file.write((write) => {
        const expiresAt = write.now + PASSKEY_CHALLENGE_TTL_MS;
        putSecret.run(write.tx, {
          hash: sealing.digest(purpose, challenge),
          purpose,
          userId,
          payload: {},
          expiresAt,
        });
      });
    },
    async take(purpose, response, userId) {
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
    },
  };
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

function createRegistration(
  { file, clock, logger, config: authConfig }: AuthDeps,
  challenges: Challenges,
  config: PasskeyConfig,
): Pick<PasskeyService, "registerOptions" | "register"> {
  return {
    async registerOptions(caller) {
      const account = requireRecentProof(file.sql, caller, authConfig, clock.now());
      const registered = passkeysOfUser.all(file.sql, { userId: caller.userId });
      refuseSurplus(registered);
      const { generateRegistrationOptions } = await library();
      const options = await generateRegistrationOptions({
        rpName: config.rpName,
        rpID: config.rpId,
        attestationType: "none",
        userID: new TextEncoder().encode(account.id),
        userName: account.email ?? account.id,
        userDisplayName: account.displayName ?? account.email ?? "",
        excludeCredentials: registered.map(({ id, transports }) => ({ id, transports })),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
        timeout: PASSKEY_CHALLENGE_TTL_MS,
      });
      await challenges.remember("passkey-register", options.challenge, caller.userId);
      return options;
    },

    async register(caller, body, name) {
      const expectedChallenge = await challenges.take("passkey-register", body, caller.userId);
      const { verifyRegistrationResponse } = await library();
      const verified = async () =>
        verifyRegistrationResponse({
          // The library checks every member that it reads.
          response: (await withoutAttestation(body)) as unknown as RegistrationResponseJSON,
          expectedChallenge,
          expectedOrigin: config.origin,
          expectedRPID: config.rpId,
          requireUserVerification: false,
        });
      const { registrationInfo } = await verified().catch((cause: unknown) => {
        logger.warn("A passkey was refused", { cause });
        throw refused();
      });
      if (registrationInfo === undefined) throw refused();
      const { credential, credentialDeviceType, credentialBackedUp } = registrationInfo;
      const passkey: Passkey = {
        id: credential.id,
        userId: caller.userId,
        publicKey: credential.publicKey,
        counter: credential.counter,
        transports: transportsOf(credential.transports),
        deviceType: credentialDeviceType,
        backedUp: credentialBackedUp,
        name,
        createdAt: clock.now(),
        lastUsedAt: null,
      };
      await file.write((write) => {
        if (file.current(write, caller) === null) throw unauthorized("Invalid token");
        if (passkeyById.get(write.tx, { id: passkey.id }) !== null)
          throw conflict("This passkey is registered already");
        // Concurrent registrations may all have received options.
        refuseSurplus(passkeysOfUser.all(write.tx, { userId: caller.userId }));
        insertPasskey.run(write.tx, passkey);
        notePasskey(write, caller.userId, "factor.add");
      });
      return view(passkey);
    },
  };
}

function createAuthentication(
  { file, logger }: AuthDeps,
  challenges: Challenges,
  signIns: SignIns,
  config: PasskeyConfig,
): Pick<PasskeyService, "authOptions" | "authenticate"> {
  return {
    async authOptions() {
      const { generateAuthenticationOptions } = await library();
      const options = await generateAuthenticationOptions({
        rpID: config.rpId,
        userVerification: "required",
        timeout: PASSKEY_CHALLENGE_TTL_MS,
      });
      await challenges.remember("passkey-sign-in", options.challenge, null);
      return options;
    },

    async authenticate(body, client) {
      const expectedChallenge = await challenges.take("passkey-sign-in", body, null);
      const passkey = typeof body["id"] === "string" ? passkeyById.get(file.sql, { id: body["id"] }) : null;
      if (passkey === null) throw refused();
      const { id, publicKey, counter } = passkey;
      const { verifyAuthenticationResponse } = await library();
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        // The library checks every member that it reads.
        response: body as unknown as AuthenticationResponseJSON,
        expectedChallenge,
        expectedOrigin: config.origin,
        expectedRPID: config.rpId,
        credential: { id, publicKey: new Uint8Array(publicKey), counter },
        requireUserVerification: false,
      }).catch((cause: unknown) => {
        logger.warn("A passkey sign-in was refused", { cause });
        throw refused();
      });
      if (!verified) throw refused();
      const { newCounter, userVerified, credentialBackedUp } = authenticationInfo;
      const signIn = await file.write((write) => {
        const present = passkeyById.get(write.tx, { id: id });
        const account = present === null ? null : userById.get(write.tx, { id: present.userId });
        // Another sign-in has changed the counter meanwhile: one of the two authenticators is a copy.
        if (present === null || account === null || present.counter !== counter) throw refused();
        usePasskey.run(write.tx, {
          id,
          counter: newCounter,
          backedUp: credentialBackedUp,
          lastUsedAt: write.now,
        });
        // Without user verification a passkey is a single factor.
        return signIns.complete(write, account, client, { secondFactor: userVerified ? "given" : "required" });
      });
      return signIns.answer(signIn);
    },
  };
}
