import { bytesOf, encoded } from "../base64url.ts";
import type { ClientContext } from "../context.ts";
import type { SignInAnswer, SignIns } from "./sign-in.ts";
import type { Passkey, SignInResult } from "./types.ts";

type Json = Record<string, unknown>;

const toText = (bytes: ArrayBuffer): string => encoded(new Uint8Array(bytes));

/** Decodes the base64url ids of credential descriptors. */
const credentials = (list: unknown): PublicKeyCredentialDescriptor[] =>
  ((list ?? []) as (PublicKeyCredentialDescriptor & { id: string })[]).map((one) => ({ ...one, id: bytesOf(one.id) }));

/**
 * Encodes an authenticator's response for the server, with bytes as base64url. The built-in `toJSON` is missing in older browsers
 * that have passkeys.
 */
function toJson(credential: PublicKeyCredential): Json {
  const { id, rawId, type, authenticatorAttachment } = credential;
  // Of a registration or a sign-in: each has some of the members.
  const response = credential.response as unknown as Record<string, ArrayBuffer | null | undefined> &
    Partial<Pick<AuthenticatorAttestationResponse, "getTransports">>;
  const encodedResponse: Json = { transports: response.getTransports?.() };
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    const bytes = response[name];
    if (bytes) encodedResponse[name] = toText(bytes);
  }
  return {
    id,
    rawId: toText(rawId),
    type,
    authenticatorAttachment: authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: encodedResponse,
  };
}

/** Returns the browser's credential. Rejects with `NotAllowedError` when the user declines. */
async function asked(request: Promise<Credential | null>): Promise<Json> {
  const credential = await request;
  // Only `publicKey` credentials are requested.
  if (credential !== null) return toJson(credential as PublicKeyCredential);
  throw new DOMException("The browser gave no passkey", "NotAllowedError");
}

export const createPasskeys = ({ transport }: ClientContext, { post, complete }: SignIns) => ({
  async register({ name }: { name?: string } = {}): Promise<Passkey> {
    type Options = PublicKeyCredentialCreationOptions & { challenge: string; user: { id: string } };
    const options = await transport.request<Options>("POST", "/api/auth/passkeys/register-options");
    const publicKey = {
      ...options,
      challenge: bytesOf(options.challenge),
      user: { ...options.user, id: bytesOf(options.user.id) },
      excludeCredentials: credentials(options.excludeCredentials),
    };
    const body = { ...(await asked(navigator.credentials.create({ publicKey }))), name };
    return (await transport.request<{ passkey: Passkey }>("POST", "/api/auth/passkeys/register", { body })).passkey;
  },

  async signIn(): Promise<SignInResult> {
    const options = await post<PublicKeyCredentialRequestOptions & { challenge: string }>("passkeys/auth-options");
    const publicKey = {
      ...options,
      challenge: bytesOf(options.challenge),
      allowCredentials: credentials(options.allowCredentials),
    };
    const credential = await asked(navigator.credentials.get({ publicKey }));
    return complete(await post<SignInAnswer>("passkeys/authenticate", credential));
  },
});
