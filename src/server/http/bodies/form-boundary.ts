import { badRequest, unsupportedMediaType } from "../../../kernel/errors.ts";

/** Parses the boundary of a form. Errors: 415 for another or no content type, 400 without a boundary. */
export function parseBoundary(contentType: string | null): string {
  if (contentType === null || !/^multipart\/form-data\s*(?:;|$)/i.test(contentType)) {
    throw unsupportedMediaType(`The body must be multipart/form-data, got ${contentType ?? "no content type"}`);
  }
  const match = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw badRequest("The multipart/form-data content type has no boundary");
  return boundary;
}
