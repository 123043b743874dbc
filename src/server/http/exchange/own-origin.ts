import { badRequest } from "../../../kernel/errors.ts";

/** Returns the origin that the request was sent to. Errors: 400 for a Host header that is not an address. */
export function ownOrigin(request: Request): string {
  const address = URL.parse(request.url);
  const host = request.headers.get("host") ?? "";
  if (address !== null && host === "") return address.origin;
  // Not the host in the URL: for a malformed header the server has put another one there.
  const named = URL.parse(`${address?.protocol ?? "http:"}//${host}`);
  if (named !== null && named.href === `${named.origin}/`) return named.origin;
  throw badRequest("The Host header is not the address of a server");
}
