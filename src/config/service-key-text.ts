/** Characters of a service key. A shorter one could be guessed: nothing counts the wrong keys of many addresses. */
const SERVICE_KEY_LENGTH_MIN = 20;

/** What is wrong with a service key, as in "must be …", without the key itself; null when it can be used. */
export function serviceKeyProblem(key: string): string | null {
  // Anything else cannot be sent in a header, so that nobody could ever use the key.
  if (!/^[\x21-\x7e]+$/.test(key)) return "must be printable ASCII without spaces, since it travels in a header";
  if (key.length >= SERVICE_KEY_LENGTH_MIN) return null;
  return `must have at least ${SERVICE_KEY_LENGTH_MIN} characters, got ${key.length}: make one with \`openssl rand -base64 32\``;
}
