import { packedAnswer } from "../packed/answers.ts";
import { type Pack, readPack } from "../packed/pack.ts";

/** The files of the `/swagger` page: their places in the package, and their types. */
export const UI_FILES = {
  "ui.js": { source: "swagger-ui-dist/swagger-ui-bundle.js", contentType: "text/javascript" },
  "ui.css": { source: "swagger-ui-dist/swagger-ui.css", contentType: "text/css" },
} as const;

export type UiFile = keyof typeof UI_FILES;

let opening: Promise<Pack> | null = null;

/** Returns the path of the files in the executable, compressed; null for a server that runs from its sources. */
export async function pathOfUi(): Promise<string | null> {
  if (!Bun.isStandaloneExecutable) return null;
  return (await import("platform:swagger-ui", { with: { type: "file" } })).default;
}

/** Answers with a file; it is read on the first request. */
export async function uiAnswer(request: Request, name: UiFile): Promise<Response> {
  const { source, contentType } = UI_FILES[name];
  const headers = { "content-type": contentType, "cache-control": "no-cache" };
  const path = await pathOfUi();
  if (path === null) return new Response(Bun.file(Bun.resolveSync(source, import.meta.dir)), { headers });
  opening ??= readPack(path);
  const answer = await packedAnswer(request, await opening, name, headers);
  if (answer === null) throw new Error(`The executable has no ${name}`);
  return answer;
}
