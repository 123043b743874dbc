import { createECDH } from "node:crypto";
import { readFileSync } from "node:fs";
import { importPKCS8 } from "jose";
import { ConfigError } from "../config/problems.ts";
import type { PushConfig } from "../config/types.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { ServiceAccount } from "./access-tokens.ts";

type FcmConfig = NonNullable<PushConfig["fcm"]>;
type WebPushConfig = NonNullable<PushConfig["webPush"]>;

const VAPID_PRIVATE_KEY_BYTES = 32;

const wrong = (path: string, message: string, cause?: unknown): ConfigError =>
  new ConfigError("The push credentials cannot be used", [{ path: `push.${path}`, message }], cause);

/**
 * The account that FCM is called as: from the config, or from the file that it names (relative to where the server was
 * started). Errors: `ConfigError` for a file that cannot be read, or a key that is none; no message holds the key.
 */
export async function loadServiceAccount({ serviceAccount }: FcmConfig): Promise<ServiceAccount> {
  const path = "fcm.serviceAccount";
  const account: unknown = typeof serviceAccount === "string" ? readAccount(serviceAccount, path) : serviceAccount;
  const { client_email: email, private_key: key, private_key_id: keyId } = isJsonObject(account) ? account : {};
  if (typeof email !== "string" || typeof key !== "string") {
    throw wrong(path, "must have client_email and private_key, as the file from Google has");
  }
  try {
    const privateKey = await importPKCS8(key, "RS256");
    return { email, key: privateKey, keyId: typeof keyId === "string" ? keyId : null };
  } catch {
    // What the library says may quote the key.
    throw wrong(`${path}.private_key`, "must be an RSA key in PEM (PKCS #8), as Google gives it");
  }
}

function readAccount(file: string, path: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw wrong(path, `cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(path, `is no JSON: ${file}`);
  }
}

/** Errors: `ConfigError` for keys that are none, or do not belong together. */
export function checkVapidKeys({ publicKey, privateKey }: WebPushConfig): void {
  const curve = createECDH("prime256v1");
  const scalar = Buffer.from(privateKey, "base64url");
  try {
    if (scalar.byteLength !== VAPID_PRIVATE_KEY_BYTES) throw new RangeError("another length");
    curve.setPrivateKey(scalar);
  } catch {
    throw wrong("webPush.privateKey", "must be a VAPID private key: 32 bytes in base64url");
  }
  if (curve.getPublicKey("base64url") !== publicKey.replace(/=+$/, "")) {
    throw wrong("webPush.publicKey", "must be the public key that belongs to privateKey, in base64url");
  }
}
