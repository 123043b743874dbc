import { readFileSync } from "node:fs";
import { reasonOf } from "../../../../kernel/errors.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import { ConfigError } from "../../../config/problems.ts";
import { rsaKey } from "../../../config/sections/push-keys.ts";
import type { PushConfig } from "../../../config/types.ts";
import type { ServiceAccount } from "./access-tokens.ts";

const PATH = "push.fcm.serviceAccount";

/**
 * The service account for FCM, from the config or from the file that it names (relative to the working directory). Errors:
 * `ConfigError` if the file cannot be read or is not a service account; no message contains the key. [PU33]
 */
export function loadServiceAccount({ serviceAccount }: NonNullable<PushConfig["fcm"]>): ServiceAccount {
  const account: unknown = typeof serviceAccount === "string" ? readAccount(serviceAccount) : serviceAccount;
  const { client_email: email, private_key: pem, private_key_id: keyId } = isJsonObject(account) ? account : {};
  if (typeof email !== "string" || typeof pem !== "string") {
    throw wrong("must have client_email and private_key, like the file from Google");
  }
  const key = rsaKey(pem);
  if (key === null) throw wrong("must have an RSA key in PEM as its private_key");
  return { email, key, keyId: typeof keyId === "string" ? keyId : null };
}

function readAccount(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw wrong(`cannot be read: ${reasonOf(cause)}`, cause);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(`is not JSON: ${file}`);
  }
}

const wrong = (message: string, cause?: unknown): ConfigError =>
  new ConfigError("The push credentials cannot be used", [{ path: PATH, message }], cause);
