import { PlatformError } from "../../client/transport/errors.ts";

export { PlatformError };

/** What the server said, or why it could not be asked. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof PlatformError)) return error.message;
  const fields = Object.values(error.fields).map(({ message }) => message);
  return fields.length > 0 ? fields.join("; ") : error.message;
}
