import { bytesOf, encoded } from "../base64url.ts";
import type { Own, SignInAnswer, SignIns } from "./sign-in.ts";
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
  const { id, type } = credential;
  // Of a registration or a sign-in: each has some of the members.
  const response = credential.response as unknown as Record<string, ArrayBuffer | null | undefined> &
    Partial<Pick<AuthenticatorAttestationResponse, "getTransports">>;
  const encodedResponse: Json = { transports: response.getTransports?.() };
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    const bytes = response[name];
    if (bytes) encodedResponse[name] = toText(bytes);
  }
  // `id` is the text of the raw one.
  return { id, rawId: id, type, response: encodedResponse };
}

/** Returns the browser's credential. Rejects with `NotAllowedError` when the user declines. */
async function asked(request: Promise<Credential | null>): Promise<Json> {
  const credential = await request;
  // Only `publicKey` credentials are requested.
  if (credential !== null) return toJson(credential as PublicKeyCredential);
  throw new DOMException("No passkey", "NotAllowedError");
}

export const createPasskeys = ({ post, complete }: SignIns, own: Own) => ({
  async register({ name }: { name?: string } = {}): Promise<Passkey> {
    type Options = PublicKeyCredentialCreationOptions & { challenge: string; user: { id: string } };
    const options = await own<Options>("POST", "passkeys/register-options");
    const publicKey = {
      ...options,
      challenge: bytesOf(options.challenge),
      user: { ...options.user, id: bytesOf(options.user.id) },
      excludeCredentials: credentials(options.excludeCredentials),
    };
    const body = { ...(await asked(navigator.credentials.create({ publicKey }))), name };
    return (await own<{ passkey: Passkey }>("POST", "passkeys/register", body)).passkey;
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
