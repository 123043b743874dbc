import { createECDH, createPrivateKey, type KeyObject } from "node:crypto";

const VAPID_KEY_BYTES = 32;

/** Parses the RSA key of a service account from PEM; null for any other text. */
export function rsaKey(pem: string): KeyObject | null {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyType === "rsa" ? key : null;
  } catch {
    // The library's message may quote the key.
    return null;
  }
}

/** Derives the public VAPID key of a private one, in base64url without padding; null when the text is not a private key. */
export function vapidPublicKey(privateKey: string): string | null {
  const scalar = Buffer.from(privateKey, "base64url");
  if (scalar.byteLength !== VAPID_KEY_BYTES) return null;
  const curve = createECDH("prime256v1");
  try {
    curve.setPrivateKey(scalar);
  } catch {
    return null;
  }
  return curve.getPublicKey("base64url");
}
