import { type Static, Type } from "typebox";
import { SERVER_PATHS } from "../server-paths.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "../shape/report.ts";
import { checkedBy, named, text, textWith } from "../shape/schema.ts";
import { PAGE_TEXTS, type PageTexts } from "./page-texts.ts";

/** The path below which the pages are, by default. */
export const PAGES_PATH = "/auth";
const PATH = /^(?:\/[A-Za-z0-9][A-Za-z0-9._~-]*){1,8}$/;
const TAG = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/;
const LOGO = /\.(?:svg|png|webp|jpe?g|gif)$/i;

const pagesPath = textWith((value) => {
  if (!PATH.test(value))
    return `must be a path such as "${PAGES_PATH}", without a slash at its end, got ${describe(value)}`;
  const first = value.split("/")[1] ?? "";
  return SERVER_PATHS.some((own) => own === first.toLowerCase())
    ? `must not begin with /${first}, which is the server's own`
    : null;
});

/** An address of the web, or a path of this server. */
const webAddress = textWith((value) => {
  if (/^\/(?![/\\])/.test(value)) return null;
  const protocol = URL.parse(value)?.protocol;
  return protocol === "https:" || protocol === "http:" ? null : `must be a URL or a path, got ${describe(value)}`;
});

const texts = checkedBy<PageTexts>((value, report: Report) => {
  if (!isPlainObject(value)) return report.say(`must be an object with all texts, got ${describe(value)}`);
  for (const name of PAGE_TEXTS) {
    const given = value[name];
    if (given === undefined) report.at(name).say("is missing");
    else if (typeof given !== "string" || given === "") report.at(name).say(`must be a text, got ${describe(given)}`);
  }
  const { dir } = value;
  if (dir !== undefined && dir !== "ltr" && dir !== "rtl")
    report.at("dir").say(`must be "ltr" or "rtl", got ${describe(dir)}`);
  const known: readonly string[] = PAGE_TEXTS;
  for (const name of Object.keys(value)) if (name !== "dir" && !known.includes(name)) report.at(name).say("is unknown");
});

const Shape = Type.Object({
  /** The path below which the pages are; "/auth" by default. */
  path: Type.Optional(pagesPath),
  /** Name of the product on the pages; `auth.appName` by default. */
  name: Type.Optional(text()),
  /** A picture in place of the name, relative to the config file. */
  logo: Type.Optional(
    textWith((value) => (LOGO.test(value) ? null : `must be an SVG, PNG, WebP, JPEG or GIF, got ${describe(value)}`)),
  ),
  /** The colour of buttons and links, as `#rgb` or `#rrggbb`. */
  accent: Type.Optional(
    textWith((value) =>
      /^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(value) ? null : `must be a colour such as "#3b5bdb", got ${describe(value)}`,
    ),
  ),
  /** The address of your terms. */
  terms: Type.Optional(webAddress),
  /** The address of your privacy policy. */
  privacy: Type.Optional(webAddress),
  /** Address to which a sign-in leads that comes from no application; the account page by default. */
  home: Type.Optional(webAddress),
  /** The bucket of users' pictures. None by default: then the pages change no picture. */
  pictures: Type.Optional(text()),
  /** Further languages, by their tags; English and German are there. */
  languages: Type.Optional(
    named(texts, (name) => (TAG.test(name) ? null : "is not the tag of a language, such as fr or pt-BR")),
  ),
});
export interface PagesConfig extends Static<typeof Shape> {}

export const Pages = Type.Unsafe<PagesConfig>(Shape);

/** Checks the pages against other sections of the same config. Broken parts are skipped. */
export function checkPages({ auth, server, storage }: PlainObject, report: Report): void {
  const pages = isPlainObject(auth) ? auth["pages"] : undefined;
  if (!isPlainObject(auth) || !isPlainObject(pages)) return;
  const at = report.at("auth").at("pages");
  const { pictures, home } = pages;
  const buckets = isPlainObject(storage) && isPlainObject(storage["buckets"]) ? storage["buckets"] : {};
  if (typeof pictures === "string" && !Object.hasOwn(buckets, pictures)) {
    at.at("pictures").say(`${describe(pictures)} is not a bucket of this config`);
  }
  if (typeof home !== "string" || home.startsWith("/")) return;
  const allowed = Array.isArray(auth["redirectUrls"]) ? auth["redirectUrls"] : [];
  const own = isPlainObject(server) ? server["publicUrl"] : undefined;
  const ownOrigin = typeof own === "string" ? URL.parse(own)?.origin : undefined;
  const isAllowed = allowed.some((pattern) => typeof pattern === "string" && isMatch(home, pattern));
  if (!isAllowed && URL.parse(home)?.origin !== ownOrigin)
    at.at("home").say("must match auth.redirectUrls, or be of the origin of server.publicUrl");
}

function isMatch(address: string, pattern: string): boolean {
  const isPrefix = pattern.endsWith("*");
  const wanted = URL.parse(isPrefix ? pattern.slice(0, -1) : pattern);
  const given = URL.parse(address);
  if (wanted === null || given === null || given.origin !== wanted.origin) return false;
  return isPrefix ? given.href.startsWith(wanted.href) : given.href === wanted.href;
}
