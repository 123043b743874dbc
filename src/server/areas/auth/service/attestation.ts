import type { isoCBOR } from "@simplewebauthn/server/helpers";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";

type CborValue = Parameters<typeof isoCBOR.encode>[0];

/**
 * What a browser gives for a registration, without its attestation: none is asked for, and none counts. The library would check
 * one all the same, and fetch lists of revoked certificates from wherever the sender's own certificates say. Errors: any, for
 * what holds no attestation.
 */
export async function withoutAttestation(body: JsonObject): Promise<JsonObject> {
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
