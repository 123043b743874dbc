import { createECDH, createPrivateKey, type KeyObject } from "node:crypto";
import { type Static, Type } from "typebox";
import { refined, secretText, text, textWith, url } from "../shape/schema.ts";

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
function vapidPublicKey(privateKey: string): string | null {
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

const privateKey = refined(secretText(), (value, report) => {
  if (rsaKey(value) === null) report.say("must be an RSA key in PEM");
});

/** The service account of Google, whose file has more members than these two. */
const ServiceAccount = Type.Unsafe<{ client_email: string; private_key: string; [other: string]: string }>(
  Type.Object({ client_email: secretText(), private_key: privateKey }, { additionalProperties: true }),
);

const vapidKey = () =>
  textWith((value) => (/^[A-Za-z0-9_-]+={0,2}$/.test(value) ? null : "must be base64url, as VAPID keys are"));

const WebPush = refined(
  Type.Object({ subject: url("mailto", "https"), publicKey: vapidKey(), privateKey: vapidKey() }),
  (value, report) => {
    const publicKey = vapidPublicKey(value.privateKey);
    if (publicKey === null) report.at("privateKey").say("must be a VAPID private key: 32 bytes in base64url");
    else if (value.publicKey.replace(/=+$/, "") !== publicKey) {
      report.at("publicKey").say("must be the public key that belongs to privateKey");
    }
  },
);

export const Push = Type.Object({
  fcm: Type.Optional(
    Type.Object({
      projectId: text(),
      /** The service account's JSON, or the path of its file, relative to the server's working directory. */
      serviceAccount: Type.Union([text(), ServiceAccount]),
      /** The base URL before `/v1/projects/…/messages:send`; Google's by default. */
      endpoint: Type.Optional(url("https", "http")),
      /** The whole URL; Google's by default. */
      tokenEndpoint: Type.Optional(url("https", "http")),
    }),
  ),
  /** The Web Push settings. `subject` is a `mailto:` or `https:` address; the keys are VAPID keys in base64url. */
  webPush: Type.Optional(WebPush),
});
export interface PushConfig extends Static<typeof Push> {}
