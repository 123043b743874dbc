import { join } from "node:path";
import { notFound } from "../../../kernel/errors.ts";
import { type Endpoint, endpoint, HIDDEN } from "../../http/endpoint.ts";
import { packedAnswer } from "../../http/packed/answers.ts";
import { type Pack, readPack } from "../../http/packed/pack.ts";

const hidden = { ...HIDDEN, summary: "The dashboard", place: "none" } as const;

/** Headers of the page. Scripts and styles come from this server alone; the component library sets styles on elements. [AD20] */
const PAGE = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "frame-src 'self' blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
};
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** Endpoints of the dashboard: `/admin` and everything below it is one page, except its assets. Files are read on first request. */
export function pageEndpoints(): readonly Endpoint[] {
  let opening: Promise<Pack> | null = null;
  const pages = (): Promise<Pack> => {
    opening ??= pathOfPages()
      .then(readPack)
      .catch((cause) => {
        opening = null;
        throw cause;
      });
    return opening;
  };
  const page = async ({ request }: { request: Request }): Promise<Response> => {
    const answer = await packedAnswer(request, await pages(), "index.html", PAGE);
    if (answer === null) throw new Error("The dashboard has no index.html");
    return answer;
  };
  return [
    endpoint("GET /admin", hidden, page),
    endpoint("GET /admin/assets/:file", { ...hidden, path: { file: "A script or a stylesheet" } }, async (context) => {
      const { file } = context.params;
      const type = TYPES[file.slice(file.lastIndexOf(".") + 1)];
      const headers = { "content-type": type ?? "application/octet-stream" };
      const answer = file === "index.html" ? null : await packedAnswer(context.request, await pages(), file, headers);
      if (answer === null) throw notFound(`The dashboard has no file "${file}"`);
      return answer;
    }),
    endpoint("GET /admin/:page+", { ...hidden, path: { page: "A page of the dashboard" } }, page),
  ];
}

const SCRIPT = join(import.meta.dir, "../../../../scripts/client/build.ts");

/** Returns the path of the packed pages: in the executable, or, for a server run from its sources, built if these have changed. */
export async function pathOfPages(): Promise<string> {
  if (!Bun.isStandaloneExecutable) return built();
  return (await import("platform:dashboard", { with: { type: "file" } })).default;
}

async function built(): Promise<string> {
  const child = Bun.spawn([process.execPath, SCRIPT, "dashboard"], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The dashboard cannot be built:\n${errors}`);
  return output.trim();
}
