import { statSync } from "node:fs";
import type { Clock } from "../../../kernel/clock.ts";
import { ANONYMOUS } from "../../access/principal.ts";
import type { PackedSite } from "../../config/loading/product.ts";
import type { PlatformConfig, SiteConfig } from "../../config/types.ts";
import type { HttpParts } from "../../http/http.ts";
import { NOSNIFF, SHOWN_HEADERS } from "../../http/security-headers.ts";
import type { Site } from "../../http/server.ts";
import { answerFrom, pageAt, type SiteOptions } from "./answers.ts";
import { directoryFiles } from "./directory.ts";
import type { SiteFile, SiteFiles } from "./files.ts";
import { guideAnswer, isOfGuide } from "./guide/pages.ts";
import type { Guide } from "./guide/source.ts";
import { pageAnswer, type Welcome, welcomePage } from "./pages.ts";
import { type SitePath, sitePath } from "./paths.ts";

/** Returns the parts of the server that the first page links to. */
export const welcomeOf = ({ api, admin }: Pick<PlatformConfig, "api" | "admin">): Omit<Welcome, "hasGuide"> => ({
  hasDocs: api?.docs !== false,
  hasDashboard: admin !== false,
});

/** Creates the site. `packed`: the files in the executable, in place of a directory. Errors: the directory does not exist. */
export function createSite(
  config: SiteConfig | undefined,
  {
    http,
    clock,
    welcome,
    packed,
    guide,
  }: {
    http: HttpParts;
    clock: Clock;
    welcome: Omit<Welcome, "hasGuide">;
    packed: PackedSite | null;
    guide: Guide | null;
  },
): Site {
  if (config === undefined) return createAnswering(http, withGuide(guide, firstPage(welcome, guide)));
  const files = packed === null ? filesBelow(config.directory, clock) : packedFiles(packed);
  const options = optionsOf(config, files);
  return createAnswering(
    http,
    withGuide(guide, {
      has: (path) => pageAt(options.files, path) !== null,
      answer: (path, request, url) => answerFrom(options, path, request, url),
    }),
  );
}

const firstPage = (welcome: Omit<Welcome, "hasGuide">, guide: Guide | null): Content => ({
  has: ({ path }) => path === "",
  answer({ path }, request, { origin }) {
    return path === "" ? pageAnswer(welcomePage({ ...welcome, hasGuide: guide !== null, origin }), request) : null;
  },
});

/** Adds the guide at paths where the site has nothing: the developed site is served as in production. */
function withGuide(guide: Guide | null, content: Content): Content {
  if (guide === null) return content;
  return {
    has: (path) => content.has(path) || isOfGuide(guide, path.path),
    answer(path, request, url) {
      const isGuide = !content.has(path) && isOfGuide(guide, path.path);
      return isGuide ? guideAnswer(guide, path.path, request) : content.answer(path, request, url);
    },
  };
}

function filesBelow(directory: string, clock: Clock): SiteFiles {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return directoryFiles(directory, clock);
  throw new Error(`site.directory: there is no directory ${directory}`);
}

function optionsOf({ spa = false, headers = {} }: SiteConfig, files: SiteFiles): SiteOptions {
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { files, isSinglePage: spa, headers: Object.fromEntries(lowered) };
}

interface Content {
  has(path: SitePath): boolean;
  answer(path: SitePath, request: Request, url: URL): Response | null;
}

/** Adds the headers that all answers have, unless the config's headers override them. */
function createAnswering(http: HttpParts, content: Content): Site {
  return {
    has(pathname) {
      const path = sitePath(pathname);
      return path !== null && content.has(path);
    },
    answer(request, url) {
      const path = sitePath(url.pathname);
      if (path === null) return null;
      const startedAt = performance.now();
      http.countRequest(request, () => http.addressOf(request));
      const response = content.answer(path, request, url);
      if (response === null) return null;
      const requestId = http.nextRequestId();
      const common: Record<string, string> = { ...SHOWN_HEADERS, ...NOSNIFF, "x-request-id": requestId };
      http.decorate(common, request);
      for (const [name, value] of Object.entries(common)) {
        if (name === "vary") response.headers.append(name, value);
        else if (!response.headers.has(name)) response.headers.set(name, value);
      }
      const durationMs = performance.now() - startedAt;
      const { status } = response;
      const caller = { params: {}, principal: ANONYMOUS, trace: null };
      http.onAnswer?.({ ...caller, request, requestId, route: SITE_ROUTE, status, durationMs });
      return response;
    },
  };
}

/** The route's name in the metrics and the request log. */
const SITE_ROUTE = "/*";

/** Returns the files that `platform build` put into the executable. */
function packedFiles({ file, files, modifiedMs }: PackedSite): SiteFiles {
  const pack = Bun.file(file);
  const found = new Map<string, SiteFile | "directory">([["", "directory"]]);
  for (const [path, { start, size, hash, contentType }] of Object.entries(files)) {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      found.set(path.slice(0, slash), "directory");
    }
    const blob = () => pack.slice(start, start + size, contentType);
    found.set(path, { contentType, size, etag: `"${hash}"`, modifiedMs, blob });
  }
  return { find: (path) => found.get(path) ?? null };
}
