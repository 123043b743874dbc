import "reflect-metadata";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

const DAY_MS = 86_400_000;

/** A request that the server sent to a provider. */
export interface Sent {
  method: string;
  /** Without the scheme. */
  url: string;
  headers: Headers;
  form: URLSearchParams;
}

/** The internet as the server sees it: providers by their real addresses, behind a proxy that answers for all of them. */
export interface OAuthWorld {
  /** Variables of the server's environment that lead it here. */
  readonly env: Record<string, string>;
  /** Requests since the last `answers`, in order. */
  readonly sent: readonly Sent[];
  /** Sets the answers, by method and address without scheme and query: `POST api.x.com/2/oauth2/token`. Others are 404. */
  answers(answers: Record<string, (sent: Sent) => unknown>): void;
  /** Signs an ID token, by the key that `keys` publishes. */
  idToken(claims: JWTPayload): Promise<string>;
  /** The published keys. */
  readonly keys: { keys: object[] };
  stop(): void;
}

/** Starts a world in which `hosts` have a certificate. */
export async function startOAuthWorld(hosts: readonly string[]): Promise<OAuthWorld> {
  const directory = mkdtempSync(join(tmpdir(), "platform-world-"));
  const { certificate, key } = await certificateOf(hosts);
  const caFile = join(directory, "ca.pem");
  writeFileSync(caFile, certificate);

  let sent: Sent[] = [];
  let known: Record<string, (sent: Sent) => unknown> = {};
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert: certificate, key },
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const host = request.headers.get("host") ?? "";
      const form = new URLSearchParams(await request.text());
      const one = { method: request.method, url: host + pathname + search, headers: request.headers, form };
      sent.push(one);
      const answer = known[`${request.method} ${host}${pathname}`];
      return answer === undefined ? new Response("unknown", { status: 404 }) : Response.json(await answer(one));
    },
  });

  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    sockets.add(client);
    client.on("error", () => client.destroy());
    client.once("data", () => {
      const upstream = connectTcp(server.port ?? 0, "127.0.0.1", () => {
        client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
        client.pipe(upstream).pipe(client);
      });
      sockets.add(upstream);
      upstream.on("error", () => client.destroy());
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;

  const signing = await generateKeyPair("RS256", { extractable: true });
  const jwk = { ...(await exportJWK(signing.publicKey)), kid: "1", alg: "RS256", use: "sig" };

  return {
    env: { HTTPS_PROXY: `http://127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: caFile },
    get sent() {
      return sent;
    },
    answers(answers) {
      known = answers;
      sent = [];
    },
    idToken: (claims) => new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "1" }).sign(signing.privateKey),
    keys: { keys: [jwk] },
    stop() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      void server.stop(true);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function certificateOf(hosts: readonly string[]): Promise<{ certificate: string; key: string }> {
  const signingAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(signingAlgorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: "CN=providers",
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + DAY_MS),
    extensions: [
      new BasicConstraintsExtension(true),
      new SubjectAlternativeNameExtension(hosts.map((value) => ({ type: "dns", value }))),
    ],
    signingAlgorithm,
    keys,
  });
  const key = PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  return { certificate: certificate.toString("pem"), key };
}
