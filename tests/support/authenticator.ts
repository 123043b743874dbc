import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, type webcrypto } from "node:crypto";
import { isoCBOR } from "@simplewebauthn/server/helpers";
import type { JsonObject } from "../../src/kernel/json/json.ts";

type CborValue = Parameters<typeof isoCBOR.encode>[0];

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const ATTESTED_CREDENTIAL = 0x40;

export interface AuthenticatorOptions {
  rpId: string;
  origin: string;
  /** Whether the authenticator verifies the user by finger or PIN. Default: true. */
  verifiesUser?: boolean;
  /** Existing passkey; a new one by default. */
  passkey?: Passkey;
}

/** Stored data of a passkey. */
export interface Passkey {
  credentialId: string;
  privateKey: webcrypto.JsonWebKey;
  counter: number;
}

/** Software authenticator with one ES256 passkey and its counter. */
export interface Authenticator {
  readonly credentialId: string;
  counter: number;
  /** Returns the result of a browser's `create()` for these options. */
  register(options: { challenge: string }): JsonObject;
  /** Returns the result of a browser's `get()`. */
  authenticate(options: { challenge: string }): JsonObject;
  passkey(): Passkey;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { passkey } = options;
  const privateKey =
    passkey === undefined
      ? generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey
      : createPrivateKey({ key: passkey.privateKey, format: "jwk" });
  const { x = "", y = "" } = privateKey.export({ format: "jwk" });
  const credential = passkey === undefined ? randomBytes(16) : Buffer.from(passkey.credentialId, "base64url");
  const credentialId = credential.toString("base64url");
  let counter = passkey?.counter ?? 0;

  const clientJson = (type: string, challenge: string) =>
    Buffer.from(JSON.stringify({ type, challenge, origin: options.origin, crossOrigin: false }));
  const authenticatorBytes = (flags: number, attested: Uint8Array = new Uint8Array()) => {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    const verified = options.verifiesUser === false ? 0 : USER_VERIFIED;
    const head = createHash("sha256").update(options.rpId).digest();
    return Buffer.concat([head, Buffer.from([flags | USER_PRESENT | verified]), count, attested]);
  };
  const attestedCredential = () => {
    const coseKey = new Map<string | number, CborValue>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, new Uint8Array(Buffer.from(x, "base64url"))],
      [-3, new Uint8Array(Buffer.from(y, "base64url"))],
    ]);
    const idLength = Buffer.from([0, credential.length]);
    return Buffer.concat([Buffer.alloc(16), idLength, credential, isoCBOR.encode(coseKey)]);
  };
  const json = (response: JsonObject): JsonObject => ({
    ...{ id: credentialId, rawId: credentialId, type: "public-key", clientExtensionResults: {} },
    ...{ authenticatorAttachment: "platform", response },
  });

  return {
    credentialId,
    get counter() {
      return counter;
    },
    set counter(next) {
      counter = next;
    },
    register({ challenge }) {
      const authData = new Uint8Array(authenticatorBytes(ATTESTED_CREDENTIAL, attestedCredential()));
      const attestation = isoCBOR.encode(
        new Map<string | number, CborValue>([
          ["fmt", "none"],
          ["attStmt", new Map<string | number, CborValue>()],
          ["authData", authData],
        ]),
      );
      return json({
        clientDataJSON: clientJson("webauthn.create", challenge).toString("base64url"),
        attestationObject: Buffer.from(attestation).toString("base64url"),
        transports: ["internal"],
      });
    },
    authenticate({ challenge }) {
      counter++;
      const client = clientJson("webauthn.get", challenge);
      const authData = authenticatorBytes(0);
      const signed = Buffer.concat([authData, createHash("sha256").update(client).digest()]);
      return json({
        clientDataJSON: client.toString("base64url"),
        authenticatorData: authData.toString("base64url"),
        signature: sign("sha256", signed, privateKey).toString("base64url"),
      });
    },
    passkey: () => ({ credentialId, privateKey: privateKey.export({ format: "jwk" }), counter }),
  };
}
