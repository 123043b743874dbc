import { createHash, createHmac, pbkdf2Sync, timingSafeEqual } from "node:crypto";

/** The most rounds of hashing that a server may ask for: more would hold the event loop. */
const ROUNDS_MAX = 100_000;

const hash = (data: Uint8Array): Buffer => createHash("sha256").update(data).digest();
const hmac = (key: Uint8Array, data: string): Buffer => createHmac("sha256", key).update(data).digest();

/** Proves a password to a server, and has the server prove that it knows it (SCRAM-SHA-256, RFC 7677). The nonce is nobody's to guess. */
export class ScramClient {
  readonly #password: string;
  readonly #nonce: string;
  readonly #first: string;
  #serverSignature: Buffer | null = null;

  constructor(password: string, nonce: string) {
    this.#password = password;
    this.#nonce = nonce;
    this.#first = `n=,r=${nonce}`;
  }

  first(): string {
    return `n,,${this.#first}`;
  }

  /** Errors: the server's message is none, or asks for too much. */
  final(serverFirst: string): string {
    const fields = fieldsOf(serverFirst);
    const [nonce, salt, rounds] = [fields.get("r") ?? "", fields.get("s") ?? "", Number(fields.get("i"))];
    if (!nonce.startsWith(this.#nonce) || salt === "" || !(rounds >= 1 && rounds <= ROUNDS_MAX))
      throw new Error("PostgreSQL's request for a proof of the password cannot be answered");
    const salted = pbkdf2Sync(this.#password.normalize("NFKC"), Buffer.from(salt, "base64"), rounds, 32, "sha256");
    const clientKey = hmac(salted, "Client Key");
    const withoutProof = `c=biws,r=${nonce}`;
    const message = `${this.#first},${serverFirst},${withoutProof}`;
    const signature = hmac(hash(clientKey), message);
    this.#serverSignature = hmac(hmac(salted, "Server Key"), message);
    return `${withoutProof},p=${Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] ?? 0))).toString("base64")}`;
  }

  isServer(serverFinal: string): boolean {
    const proof = Buffer.from(fieldsOf(serverFinal).get("v") ?? "", "base64");
    const expected = this.#serverSignature;
    return expected !== null && proof.length === expected.length && timingSafeEqual(proof, expected);
  }
}

const fieldsOf = (message: string): Map<string, string> =>
  new Map(message.split(",").map((field) => [field.slice(0, 1), field.slice(2)]));
