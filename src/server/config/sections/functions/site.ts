import { type Static, Type } from "typebox";
import { named, textWith } from "../../shape/schema.ts";

/** Headers that the server itself sets for a file. */
const OWN_HEADERS = [
  "accept-ranges",
  "connection",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "date",
  "etag",
  "last-modified",
  "set-cookie",
  "transfer-encoding",
  "vary",
  "x-request-id",
];

function headerNameProblem(name: string): string | null {
  if (!/^[A-Za-z0-9-]{1,100}$/.test(name)) return "is not the name of a header";
  return OWN_HEADERS.includes(name.toLowerCase()) ? "is set by the server itself" : null;
}

const headerValue = textWith((value) =>
  /^[\t\x20-\x7e]*$/.test(value) ? null : "must be visible ASCII, without line breaks",
);

const SiteShape = Type.Object({
  /** A directory with the files of a web page, relative to the config file. */
  directory: textWith(() => null),
  /** true: a navigation that matches no file receives `index.html`. false by default. */
  spa: Type.Optional(Type.Boolean()),
  /** Headers of every file. */
  headers: Type.Optional(named(headerValue, headerNameProblem)),
});
export interface SiteConfig extends Static<typeof SiteShape> {}

export const Site = Type.Unsafe<SiteConfig>(SiteShape);
