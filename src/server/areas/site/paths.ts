import { SERVER_PATHS } from "../../config/server-paths.ts";

/** Characters of a path. */
const PATH_LENGTH_MAX = 2_000;

const RESERVED: ReadonlySet<string> = new Set(SERVER_PATHS);

/** The path that a request asks for. */
export interface SitePath {
  /** The decoded path, without slashes at its ends. */
  path: string;
  /** Whether the path has a trailing slash, as of a directory. */
  endsWithSlash: boolean;
}

/**
 * Parses the path of a URL in the site. null: no file can be there, since the path is the server's own, or has a segment that is
 * empty, begins with a dot (`/.well-known/` is allowed), or contains an encoded separator.
 */
export function sitePath(pathname: string): SitePath | null {
  if (pathname.length > PATH_LENGTH_MAX || !pathname.startsWith("/")) return null;
  const segments = pathname.slice(1).split("/");
  const endsWithSlash = segments.at(-1) === "";
  if (endsWithSlash) segments.pop();
  const decoded: string[] = [];
  for (const [index, segment] of segments.entries()) {
    const name = decodedName(segment);
    if (name === null || (name.startsWith(".") && !(index === 0 && name === ".well-known"))) return null;
    decoded.push(name);
  }
  if (RESERVED.has(decoded[0] ?? "")) return null;
  return { path: decoded.join("/"), endsWithSlash };
}

/** Decodes a segment; null for one that is no name: empty, not decodable, or with a separator or a control character. */
function decodedName(segment: string): string | null {
  if (segment === "") return null;
  if (!segment.includes("%")) return isName(segment) ? segment : null;
  try {
    const name = decodeURIComponent(segment);
    return isName(name) ? name : null;
  } catch {
    return null;
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const isName = (name: string): boolean => !/[/\\\x00-\x1f\x7f]/.test(name);

/** Matches a hash of letters and digits before the extension, such as in `index-B2x9kQz1.js` and `main.3f2a1b9c.chunk.js`. */
const LONG_HASH = /[-._]([A-Za-z0-9]{8,})(?:\.[A-Za-z]\w{0,9}){1,2}$/;
/** Matches a hash of eight characters, as bundlers write it in base64. */
const BASE64_HASH = /[-.]([\w-]{8})(?:\.[A-Za-z]\w{0,9}){1,2}$/;

/**
 * Whether a file's name contains a hash of its content, so that a changed content has another name. Words and dates are excluded:
 * browsers would cache a file that is mistaken for a hashed one for a year.
 */
export function hasHash(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.endsWith(".html")) return false;
  const [, long = ""] = LONG_HASH.exec(name) ?? [];
  if (/[A-Za-z]/.test(long) && /\d/.test(long) && !/^(?:[A-Za-z][a-z]*\d+|\d+[A-Za-z]+)$/.test(long)) return true;
  const [, short = ""] = BASE64_HASH.exec(name) ?? [];
  return /[a-z]/.test(short) && /[A-Z]/.test(short) && /\d/.test(short);
}
