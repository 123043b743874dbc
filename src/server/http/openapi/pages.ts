import type { Principal } from "../../access/principal.ts";
import { type Endpoint, endpoint, HIDDEN } from "../endpoint.ts";
import { pageHeaders } from "../security-headers.ts";
import type { ApiDocument } from "./document.ts";
import { type UiFile, uiAnswer } from "./ui-files.ts";

const SCRIPT =
  'SwaggerUIBundle({ url: "/swagger/json", dom_id: "#api", deepLinking: true, displayRequestDuration: true });';

/** The page loads nothing from other servers: it works on a machine without internet. */
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Platform API</title>
    <link rel="stylesheet" href="/swagger/ui.css">
    <link rel="icon" href="data:,">
  </head>
  <body>
    <div id="api"></div>
    <script src="/swagger/ui.js"></script>
    <script>${SCRIPT}</script>
  </body>
</html>
`;

const hidden = { ...HIDDEN, summary: "The API document and its page", place: "none" } as const;

/** The endpoints of `/swagger`, its files, and `/swagger/json`. */
export function documentationEndpoints(document: ApiDocument): readonly Endpoint[] {
  const json = async ({ principal }: { principal: Principal }) =>
    new Response(await document.jsonFor(principal), { headers: { "content-type": "application/json" } });
  return [...pageEndpoints(), endpoint("GET /swagger/json", { ...hidden, caller: document.caller }, json)];
}

/** Returns the endpoints of the page and its files. */
export function pageEndpoints(): readonly Endpoint[] {
  const headers = pageHeaders(SCRIPT);
  const file =
    (name: UiFile) =>
    ({ request }: { request: Request }) =>
      uiAnswer(request, name);
  return [
    endpoint(
      "GET /swagger",
      hidden,
      () => new Response(PAGE, { headers: { ...headers, "cache-control": "no-cache" } }),
    ),
    endpoint("GET /swagger/ui.js", hidden, file("ui.js")),
    endpoint("GET /swagger/ui.css", hidden, file("ui.css")),
  ];
}
