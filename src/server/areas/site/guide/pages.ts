import { NOSNIFF } from "../../../http/security-headers.ts";
import { page, pageAnswer } from "../pages.ts";
import { LLMS_NAME, llmsText } from "./llms.ts";
import type { Guide } from "./source.ts";

/** The path of the guide in `platform dev`, without a slash. */
const GUIDE_PATH = "docs";
const FIRST_PAGE = "README.md";

/** Answers a path without a leading slash; null where it is not in the guide. */
export function guideAnswer(guide: Guide, path: string, request: Request): Response | null {
  if (path === GUIDE_PATH) return Response.redirect(`/${GUIDE_PATH}/${FIRST_PAGE}`, 302);
  const name = guidePage(path);
  if (name === LLMS_NAME) return markdownAnswer(llmsText(guide, `/${GUIDE_PATH}`));
  const text = name === null ? undefined : guide.get(name);
  if (text === undefined) return null;
  if (!wantsHtml(request)) return markdownAnswer(text);
  const answer = pageAnswer(guideHtml(text), request);
  answer.headers.append("vary", "Accept");
  return answer;
}

/** Whether the client shows pages: browsers name HTML. Others read the text. */
const wantsHtml = (request: Request): boolean => request.headers.get("accept")?.includes("text/html") === true;

const markdownAnswer = (text: string): Response =>
  new Response(text, {
    headers: {
      "content-type": "text/markdown; charset=utf-8",
      "cache-control": "no-cache",
      vary: "Accept",
      ...NOSNIFF,
    },
  });

export function isOfGuide(guide: Guide, path: string): boolean {
  const name = guidePage(path);
  return path === GUIDE_PATH || name === LLMS_NAME || (name !== null && guide.has(name));
}

/** Returns the name of a page below GUIDE_PATH; null for another path. */
const guidePage = (path: string): string | null =>
  path.startsWith(`${GUIDE_PATH}/`) ? path.slice(GUIDE_PATH.length + 1) : null;

function guideHtml(text: string): string {
  const html = Bun.markdown
    .html(text, { headings: { ids: true, autolink: false } })
    // Links to files of the repository outside the guide, and pictures, are dropped.
    .replaceAll(/<a href="\.\.\/[^"]*">(.*?)<\/a>/gs, "$1")
    .replaceAll(/<img [^>]*>/g, "");
  const title = /^# (.+)$/m.exec(text)?.[1] ?? "Guide";
  return page(Bun.escapeHTML(title), `<p><a href="/${GUIDE_PATH}/${FIRST_PAGE}">The guide</a></p>\n    ${html}`);
}
