import { SERVICE_KEY_LENGTH_MIN } from "../limits.ts";

/** Describes the problem of a service key, as in "must be …", without the key itself; null when it is valid. */
export function serviceKeyProblem(key: string): string | null {
  // Other characters cannot be sent in a header.
  if (!/^[\x21-\x7e]+$/.test(key)) return "must be printable ASCII without spaces, since it is sent in a header";
  if (key.length >= SERVICE_KEY_LENGTH_MIN) return null;
  return `must have at least ${SERVICE_KEY_LENGTH_MIN} characters, got ${key.length}: generate one with \`openssl rand -base64 32\``;
}
