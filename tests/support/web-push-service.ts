import "reflect-metadata";
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

const HOST = "push.example";
const DAY_MS = 24 * 3600 * 1000;

/** Message as the push service received it, still encrypted. */
export interface PushRequest {
  path: string;
  headers: Headers;
  body: Uint8Array;
}

/**
 * Push service on loopback that calls itself `push.example`, with its own certificate. The path of an endpoint determines the
 * response: `/201/x` 201, `/410/x` 410; `/redirect` redirects to `/201/redirected`, `/endless` sends without end, and
 * `/compressed` declares a compressed body.
 */
export interface WebPushService {
  /** Origin `https://push.example:PORT`. */
  readonly origin: string;
  /** Certificate in PEM. */
  readonly ca: string;
  readonly requests: readonly PushRequest[];
  stop(): Promise<void>;
}

export async function startWebPushService(): Promise<WebPushService> {
  const { certificate, key } = await selfSigned();
  const requests: PushRequest[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert: certificate, key },
    async fetch(request) {
      const { pathname } = new URL(request.url);
      requests.push({ path: pathname, headers: request.headers, body: await request.bytes() });
      if (pathname === "/redirect")
        return new Response(null, { status: 307, headers: { location: "/201/redirected" } });
      if (pathname === "/endless") return new Response(endless());
      if (pathname === "/compressed")
        return new Response("this is not compressed", { status: 201, headers: { "content-encoding": "br" } });
      const status = Number(pathname.split("/")[1]);
      return new Response(status === 429 ? "slowly" : null, { status, headers: { "retry-after": "7" } });
    },
  });
  return {
    origin: `https://${HOST}:${server.port}`,
    ca: certificate,
    requests,
    stop: () => server.stop(true),
  };
}

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(1);
      controller.enqueue(new Uint8Array(1024));
    },
  });
}

async function selfSigned(): Promise<{ certificate: string; key: string }> {
  const signingAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(signingAlgorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${HOST}`,
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + DAY_MS),
    extensions: [
      new BasicConstraintsExtension(true),
      new SubjectAlternativeNameExtension([{ type: "dns", value: HOST }]),
    ],
    ...{ signingAlgorithm, keys },
  });
  const key = PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  return { certificate: certificate.toString("pem"), key };
}

/** Browser with a subscription. */
export interface Subscriber {
  /** Returns the subscription as a browser's `JSON.stringify(subscription)` does. */
  token(endpoint: string): string;
  /** Returns what the service worker receives. Throws if it was not encrypted for this subscriber. */
  decrypt(body: Uint8Array): string;
}

/** Creates a subscriber that implements RFC 8291 from the browser's side, independently of the code that encrypts. */
export function createSubscriber(): Subscriber {
  const curve = createECDH("prime256v1");
  const publicKey = curve.generateKeys();
  const secret = randomBytes(16);
  const derive = (key: Uint8Array, salt: Uint8Array, info: Uint8Array, byteCount: number) =>
    Buffer.from(hkdfSync("sha256", key, salt, info, byteCount));

  return {
    token: (endpoint) =>
      JSON.stringify({
        endpoint,
        expirationTime: null,
        keys: { p256dh: publicKey.toString("base64url"), auth: secret.toString("base64url") },
      }),
    decrypt(body) {
      const bytes = Buffer.from(body);
      const salt = bytes.subarray(0, 16);
      const keyLength = bytes.readUInt8(20);
      const senderKey = bytes.subarray(21, 21 + keyLength);
      const sealed = bytes.subarray(21 + keyLength);
      const keyInfo = Buffer.concat([Buffer.from("WebPush: info\0"), publicKey, senderKey]);
      const shared = derive(curve.computeSecret(senderKey), secret, keyInfo, 32);
      const contentKey = derive(shared, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
      const nonce = derive(shared, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
      const decipher = createDecipheriv("aes-128-gcm", contentKey, nonce);
      decipher.setAuthTag(sealed.subarray(-16));
      const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
      // A byte 2 ends the content of the last record; zeros may follow.
      return padded.subarray(0, padded.lastIndexOf(2)).toString("utf8");
    },
  };
}
