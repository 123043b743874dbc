/**
 * Creates a certificate for 127.0.0.1 and its authority in DIR: `bun tests/support/tls/everywhere.ts DIR`. Tests then run with
 * TLS: `PLATFORM_TEST_TLS=DIR NODE_EXTRA_CA_CERTS=DIR/authority.pem bun test …`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createAuthority } from "./certificates.ts";

const directory = resolve(process.argv[2] ?? "tls");
mkdirSync(directory, { recursive: true });
const { cert, key } = await (await createAuthority(directory)).sign();
writeFileSync(join(directory, "cert.pem"), cert);
writeFileSync(join(directory, "key.pem"), key, { mode: 0o600 });
