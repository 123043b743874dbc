import { createHash } from "node:crypto";
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { isoBase64URL, isoCBOR } from "@simplewebauthn/server/helpers";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import type { Authenticator } from "./authenticator.ts";

type CborValue = Parameters<typeof isoCBOR.encode>[0];

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/** OID of the Android extension in which the key store describes a key. */
const KEY_DESCRIPTION = "1.3.6.1.4.1.11129.2.1.17";
const ES256 = -7;
const HOUR_MS = 3_600_000;

/**
 * Registers like `authenticator.register`, with an attestation in Android's format. Its certificates are made up, and name `url`
 * as their revocation list.
 */
export async function attested(
  authenticator: Authenticator,
  { challenge, url }: { challenge: string; url: string },
): Promise<JsonObject> {
  const registration = authenticator.register({ challenge });
  const response = registration["response"] as { clientDataJSON: string; attestationObject: string };
  const clientHash = createHash("sha256").update(isoBase64URL.toBuffer(response.clientDataJSON)).digest();
  const { d: _, ...publicPart } = authenticator.passkey().privateKey;
  const publicKey = await crypto.subtle.importKey("jwk", publicPart, ALGORITHM, true, ["verify"]);
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const now = Date.now();
  const common = {
    notBefore: new Date(now - HOUR_MS),
    notAfter: new Date(now + HOUR_MS),
    signingAlgorithm: ALGORITHM,
  };
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...common,
    serialNumber: "01",
    name: "CN=Nobody",
    keys,
  });
  // The sequence has two versions, two levels, the challenge, an empty id, and two empty lists.
  const description = Buffer.concat([
    Buffer.from("30340201030a01000201030a01000420", "hex"),
    clientHash,
    Buffer.from("040030003000", "hex"),
  ]);
  const leaf = await x509.X509CertificateGenerator.create({
    ...common,
    serialNumber: "02",
    subject: "CN=Key",
    issuer: root.subject,
    publicKey,
    signingKey: keys.privateKey,
    extensions: [
      new x509.CRLDistributionPointsExtension([url]),
      new x509.Extension(KEY_DESCRIPTION, false, new Uint8Array(description)),
    ],
  });
  const decoded = isoCBOR.decodeFirst<Map<string, CborValue>>(isoBase64URL.toBuffer(response.attestationObject));
  const attestation = new Map<string | number, CborValue>([
    ["fmt", "android-key"],
    [
      "attStmt",
      new Map<string | number, CborValue>([
        ["alg", ES256],
        ["sig", new Uint8Array(64)],
        ["x5c", [leaf, root].map(({ rawData }) => new Uint8Array(rawData))],
      ]),
    ],
    ["authData", decoded.get("authData")],
  ]);
  const attestationObject = isoBase64URL.fromBuffer(isoCBOR.encode(attestation));
  return { ...registration, response: { ...response, attestationObject } };
}
