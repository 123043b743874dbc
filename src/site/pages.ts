import { pageHeaders } from "../http/security-headers.ts";
import { VERSION } from "../kernel/version.ts";

const STYLE = "body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}";

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title}</title>
    <link rel="icon" href="data:,">
    <style>${STYLE}</style>
  </head>
  <body>
    ${body}
  </body>
</html>
`;

/** They have no script. */
export const PAGE_HEADERS = pageHeaders("");

export const NOT_FOUND_PAGE = page("Not found", "<h1>Not found</h1>\n    <p>There is no page at this address.</p>");

/** What `/` shows without a site. */
export function welcomePage({ hasDocs }: { hasDocs: boolean }): string {
  const links = hasDocs ? '<p><a href="/swagger">The API of this server</a></p>' : "";
  return page(
    "Platform",
    `<h1>Platform ${VERSION}</h1>
    <p>This server answers requests below <code>/api</code>. It has no site: <code>site: { directory: "./public" }</code> in its config serves
    files here.</p>
    ${links}`,
  );
}
