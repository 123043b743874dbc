import { VERSION } from "../../../kernel/version.ts";
import { emptyAnswer } from "../../http/bodies/file-answer.ts";
import { pageHeaders } from "../../http/security-headers.ts";

const STYLE =
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}table{border-collapse:collapse}td,th{padding:.25rem .5rem;border:1px solid #8884;text-align:left}pre{overflow:auto;padding:1rem;background:#8881;border-radius:.5rem}:root{color-scheme:light dark}";

export const page = (title: string, body: string): string => `<!doctype html>
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

/** The headers of pages, which have no script. */
export const PAGE_HEADERS = pageHeaders("");

/** Answers GET with a page, and HEAD with its headers. */
export function pageAnswer(html: string, request: Request): Response {
  if (request.method !== "HEAD") return new Response(html, { headers: PAGE_HEADERS });
  return emptyAnswer(request, { status: 200, headers: PAGE_HEADERS, sizeBytes: Buffer.byteLength(html) });
}

export const NOT_FOUND_PAGE = page("Not found", "<h1>Not found</h1>\n    <p>There is no page at this address.</p>");

/** The parts of the server that the welcome page links to. */
export interface Welcome {
  hasDocs: boolean;
  hasDashboard: boolean;
  /** Whether the guide is served. */
  hasGuide: boolean;
}

/** Renders `/` without a site: how to begin. `origin`: the address that the browser used. */
export function welcomePage({ hasDocs, hasDashboard, hasGuide, origin }: Welcome & { origin: string }): string {
  const address = Bun.escapeHTML(origin);
  const api = hasDocs ? ', described at <a href="/swagger">/swagger</a>' : "";
  const dashboard = hasDashboard
    ? `<p>Its data is in the <a href="/admin">dashboard</a>: <code>platform admin-link</code> prints a link that signs in.</p>
    `
    : "";
  const guide = hasGuide
    ? '<a href="/docs">The guide</a> begins with a <a href="/docs/tutorial.md">tutorial</a>.'
    : "<code>platform docs</code> prints the guide, and <code>platform dev</code> serves it at <code>/docs</code>.";
  return page(
    "Platform",
    `<h1>Platform ${VERSION}</h1>
    <p>This server answers requests below <code>/api</code>${api}.</p>
    ${dashboard}<p>Install its typed client beside the config, or in the project of a front end:</p>
    <pre>npm install ${address}/client/platform.tgz</pre>
    <pre>import { createClient } from "platform/client";
import type config from "./platform.config.ts";

const client = createClient&lt;typeof config&gt;({ url: "${address}" });</pre>
    <p>A page without a build imports it from <a href="/client/index.js">/client/index.js</a>. ${guide}</p>
    <p><code>site: { directory: "./public" }</code> in the config serves files at this address.</p>`,
  );
}
