import { createECDH, createHmac, createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign } from "node:crypto";
import { bits, integer, objectId, octets, sequence, setOf, tagged, utf8 } from "./der.ts";

/** The name of every node in its certificate. Nodes are told apart by their URLs; whoever has the secrets is one. */
export const NODE_NAME = "node.platform";
const ISSUER_NAME = "cluster.platform";
const CURVE = "prime256v1";
/** The order of the curve: a private key is a number from 1 to one less. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const KEY_BYTES = 32;
/** More bytes than the key has, so that no key is likelier than another by more than 2^-128. */
const SEED_BYTES = 48;

const ECDSA_SHA256 = "2a8648ce3d040302";
const COMMON_NAME = "550403";
const ALTERNATIVE_NAMES = "551d11";
const BASIC_CONSTRAINTS = "551d13";
const [UTC_TIME, GENERALIZED_TIME, VERSION, EXTENSIONS, DNS_NAME, BOOLEAN] = [0x17, 0x18, 0xa0, 0xa3, 0x82, 0x01];
const TRUE = tagged(BOOLEAN, Uint8Array.of(0xff));

export interface ClusterSecrets {
  jwtSecret: string;
  serviceKey: string;
}

/** Everything by which nodes know each other. All of it follows from the secrets. */
export interface NodeCredentials {
  /** The certificate of a node and its private key, in PEM. */
  cert: string;
  key: string;
  /** The only issuer that a node believes, in PEM: its key is made of the secrets too. */
  ca: string;
  /** Proves, inside of a connection, that a node has sent a request. */
  secret: string;
}

/** Returns a secret of a purpose, from which those it was made of do not follow. */
function derive({ jwtSecret, serviceKey }: ClusterSecrets, purpose: string, byteCount: number): Buffer {
  // With their length, so that no two pairs of secrets are one text.
  const both = `${Buffer.byteLength(jwtSecret)}:${jwtSecret}${serviceKey}`;
  return Buffer.from(hkdfSync("sha256", both, "", `platform cluster: ${purpose}`, byteCount));
}

export function nodeCredentials(secrets: ClusterSecrets): NodeCredentials {
  const key = privateKey(derive(secrets, "node port", SEED_BYTES));
  const isIssuer = extension(BASIC_CONSTRAINTS, sequence(TRUE), { isCritical: true });
  const isNode = extension(ALTERNATIVE_NAMES, sequence(tagged(DNS_NAME, Buffer.from(NODE_NAME))));
  return {
    key: String(key.export({ type: "pkcs8", format: "pem" })),
    // Signatures differ from node to node, so that of a node's own certificate cannot be compared: its issuer's key is.
    ca: certificate({ subject: ISSUER_NAME, serial: 1, extension: isIssuer }, key),
    cert: certificate({ subject: NODE_NAME, serial: 2, extension: isNode }, key),
    secret: derive(secrets, "forwarding", KEY_BYTES).toString("base64url"),
  };
}

/**
 * Returns what a cluster keeps of its secrets, to say which one of a node differs. The second is keyed by the first, which has at least 32
 * bytes: nobody who reads PostgreSQL can try service keys.
 */
export function secretMarks({ jwtSecret, serviceKey }: ClusterSecrets, cluster: string): { jwt: string; key: string } {
  const mark = (text: string): string => createHmac("sha256", jwtSecret).update(text).digest("base64url");
  return { jwt: mark(`cluster ${cluster}`), key: mark(`service key of ${cluster}: ${serviceKey}`) };
}

function privateKey(seed: Buffer): KeyObject {
  const number = (BigInt(`0x${seed.toString("hex")}`) % (ORDER - 1n)) + 1n;
  const secret = Buffer.from(number.toString(16).padStart(2 * KEY_BYTES, "0"), "hex");
  const curve = createECDH(CURVE);
  curve.setPrivateKey(secret);
  const point = curve.getPublicKey();
  const coordinates = {
    d: secret.toString("base64url"),
    x: point.subarray(1, 1 + KEY_BYTES).toString("base64url"),
    y: point.subarray(1 + KEY_BYTES).toString("base64url"),
  };
  return createPrivateKey({ key: { kty: "EC", crv: "P-256", ...coordinates }, format: "jwk" });
}

const nameOf = (text: string): Uint8Array => sequence(setOf(sequence(objectId(COMMON_NAME), utf8(text))));

const extension = (id: string, content: Uint8Array, { isCritical = false } = {}): Uint8Array =>
  sequence(objectId(id), ...(isCritical ? [TRUE] : []), octets(content));

/** Returns a certificate in PEM that is always valid: clocks of nodes may be wrong. */
function certificate(
  { subject, serial, extension: own }: { subject: string; serial: number; extension: Uint8Array },
  key: KeyObject,
): string {
  const algorithm = sequence(objectId(ECDSA_SHA256));
  const from = tagged(UTC_TIME, Buffer.from("000101000000Z"));
  const until = tagged(GENERALIZED_TIME, Buffer.from("99991231235959Z"));
  const signed = sequence(
    tagged(VERSION, integer(2)),
    integer(serial),
    algorithm,
    nameOf(ISSUER_NAME),
    sequence(from, until),
    nameOf(subject),
    createPublicKey(key).export({ type: "spki", format: "der" }),
    tagged(EXTENSIONS, sequence(own)),
  );
  const text = Buffer.from(sequence(signed, algorithm, bits(sign("sha256", signed, key)))).toString("base64");
  const lines = text.match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
