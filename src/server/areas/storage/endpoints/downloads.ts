import { Type } from "typebox";
import type { Principal } from "../../../access/principal.ts";
import type { ReadCaller } from "../../../db/index.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { RequestBasics } from "../../../http/exchange/request-context.ts";
import type { EndpointDeps } from "./endpoint-deps.ts";
import { REPLACED_ATTEMPTS_MAX } from "../limits.ts";
import { BYTES_TYPE, Bytes, OF_FILE, TAG } from "../model/schemas.ts";
import type { FoundObject } from "../service/files.ts";
import { type Content, contentOf, respondWith } from "./download.ts";

const QUERY = {
  token: Type.Optional(Type.String({ description: "Of a signed URL" })),
  thumb: Type.Optional(Type.String({ description: "A size that the bucket declares, such as 200x200" })),
};
const NOT_MODIFIED = { description: "The file has this ETag" };

export function downloadEndpoints(deps: Pick<EndpointDeps, "service" | "signing" | "thumbs">): readonly Endpoint[] {
  const download = endpoint(
    "GET /api/storage/:bucket/:key+",
    {
      tag: TAG,
      summary: "Download a file",
      caller: "rules",
      path: OF_FILE,
      query: QUERY,
      headers: [{ name: "Range" }, { name: "If-None-Match" }, { name: "If-Range" }],
      answers: {
        200: { description: "The file", schema: Bytes, contentType: BYTES_TYPE },
        206: { description: "The bytes of the range", schema: Bytes, contentType: BYTES_TYPE },
        304: NOT_MODIFIED,
      },
      errors: [400, 404, 413, 415, 416, 503],
    },
    (context) => answer(deps, context),
  );
  const head = endpoint(
    "HEAD /api/storage/:bucket/:key+",
    {
      tag: TAG,
      summary: "Get the headers of a file's download",
      caller: "rules",
      path: OF_FILE,
      query: QUERY,
      headers: [{ name: "If-None-Match" }],
      answers: { 200: { description: "The file exists" }, 304: NOT_MODIFIED },
      errors: [400, 404, 413, 415, 503],
    },
    (context) => answer(deps, context),
  );
  return [download, head];
}

/** By the bucket's rule: for the caller, or for the one that asked for the signed URL. */
async function answer(
  { service, signing, thumbs }: Pick<EndpointDeps, "service" | "signing" | "thumbs">,
  context: RequestBasics & {
    principal: Principal;
    params: { bucket: string; key: string };
    peek(name: string): string | null;
    query(): { thumb?: string };
  },
): Promise<Response> {
  const {
    principal,
    params: { bucket, key },
    request,
    peek,
    query,
  } = context;
  const token = peek("token");
  const signer = token === null ? null : signing.verifyDownload(token, bucket, key);
  const asking = token === null ? principal : signer;
  const find = async (): Promise<FoundObject> =>
    asking === null
      ? service.findSigned(bucket, key)
      : service.find(asking, bucket, key, { allowAnonymous: true, checkForm: query });
  const first = await find();
  const { thumb } = query();
  const { found, content } =
    thumb === undefined
      ? { found: first, content: contentOf(first.bucket, first.object) }
      : await thumbnailOf(thumbs, { first, find, size: thumb }, context);
  return respondWith(request, found.bucket, found.object, content);
}

/** The bytes of a picture that is replaced or deleted may be gone before its turn to be decoded: the present file counts. */
async function thumbnailOf(
  thumbs: EndpointDeps["thumbs"],
  { first, find, size }: { first: FoundObject; find: () => Promise<FoundObject>; size: string },
  caller: ReadCaller,
): Promise<{ found: FoundObject; content: Content }> {
  let found = first;
  for (let attempt = 1; ; attempt++) {
    try {
      return { found, content: await thumbs.content(found.bucket, found.object, size, caller) };
    } catch (cause) {
      const present = await find();
      if (present.object.fileId === found.object.fileId || attempt === REPLACED_ATTEMPTS_MAX) throw cause;
      found = present;
    }
  }
}
