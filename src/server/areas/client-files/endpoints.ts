import { type TSchema, Type } from "typebox";
import { notFound } from "../../../kernel/errors.ts";
import { type Declaration, type Endpoint, endpoint } from "../../http/endpoint.ts";
import { fileAnswer, packedAnswer } from "../../http/packed/answers.ts";
import type { Pack } from "../../http/packed/pack.ts";

const hidden = {
  tag: "System",
  summary: "The client of this server",
  caller: "open",
  place: "none",
  // A page adds a version to bypass a cache.
  otherQuery: "Anything",
  isDocumented: false,
  answers: { 200: Type.Unknown() },
} satisfies Declaration<never, "open", Record<never, never>, TSchema>;

const PACKAGE_NAME = "platform.tgz";
const SCRIPT = { "content-type": "text/javascript; charset=utf-8" };

export function clientEndpoints(parts: {
  module: () => Promise<Pack>;
  package: () => Promise<{ file: Blob; etag: string }>;
}): readonly Endpoint[] {
  return [
    endpoint("GET /client/platform.tgz", hidden, async ({ request }) => {
      const { file, etag } = await parts.package();
      const headers = {
        "content-type": "application/gzip",
        "content-disposition": `attachment; filename="${PACKAGE_NAME}"`,
        "cache-control": "no-cache",
        etag,
      };
      return fileAnswer(request, { headers, etag, content: file });
    }),
    endpoint("GET /client/:file", { ...hidden, path: { file: "index.js, or a chunk of it" } }, async (context) => {
      const { file: name } = context.params;
      const found = await packedAnswer(context.request, await parts.module(), name, SCRIPT);
      if (found === null) throw notFound(`The client has no file "${name}"; it has index.js and ${PACKAGE_NAME}`);
      return found;
    }),
  ];
}
