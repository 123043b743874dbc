import { Type } from "typebox";
import { unauthorized } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import type { ReadCaller } from "../../../db/index.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { IDEMPOTENCY_KEY, REPLAYED } from "../../../http/exchange/idempotency-key.ts";
import type { RequestBasics } from "../../../http/exchange/request-context.ts";
import { created, Reply } from "../../../http/reply.ts";
import { contentOf, isPublic, respondWith } from "../contents/response.ts";
import type { Thumbs } from "../contents/thumbs.ts";
import { REPLACED_ATTEMPTS_MAX } from "../limits.ts";
import { Key } from "../model/keys.ts";
import { BYTES_TYPE, Bytes, IN_BUCKET, OF_FILE, StoredFile, TAG } from "../model/schemas.ts";
import type { Content } from "../model/types.ts";
import { storedFile } from "../service/files.ts";
import type { FileFinding, FoundObject } from "../service/finding.ts";
import type { Signing } from "../service/signing.ts";
import { receiveForm, receiveSigned } from "../service/uploads.ts";
import type { EndpointDeps } from "./deps.ts";

const QUERY = {
  token: Type.Optional(Type.String({ description: "Of a signed URL" })),
  thumb: Type.Optional(Type.String({ description: "A size that the bucket declares, such as 200x200" })),
};
const NOT_MODIFIED = { description: "The file has this ETag" };

/** Dependencies of downloads, which a process that does not write has too. */
export interface DownloadDeps {
  service: FileFinding;
  signing: Pick<Signing, "verifyDownload">;
  thumbs: Pick<Thumbs, "content">;
}

export function downloadEndpoints(deps: DownloadDeps): readonly Endpoint[] {
  const download = endpoint(
    "GET /api/storage/:bucket/:key+",
    {
      tag: TAG,
      summary: "Download a file",
      caller: "rules",
      place: "bucket",
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
      place: "bucket",
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

/** Sends a file or thumbnail if the bucket's rule allows it to the caller, or to the one that asked for the signed URL. */
async function answer(
  { service, signing, thumbs }: DownloadDeps,
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
  return respondWith(request, found.bucket, found.object, content, { isPublic: isPublic(found.bucket) });
}

/**
 * Makes the thumbnail, and starts over with the present file when the picture was replaced: the bytes of a replaced or
 * deleted picture may be gone before its turn to be decoded.
 */
async function thumbnailOf(
  thumbs: DownloadDeps["thumbs"],
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

const Form = Type.Object({
  file: Bytes,
  key: Key,
  metadata: Type.Optional(Type.String({ description: "JSON: an object of strings" })),
});

export function uploadEndpoints(
  deps: Pick<EndpointDeps, "store" | "gates" | "service" | "signing" | "clock">,
): readonly Endpoint[] {
  const upload = endpoint(
    "POST /api/storage/:bucket/upload",
    {
      tag: TAG,
      summary: "Upload a file",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      headers: [IDEMPOTENCY_KEY],
      rawBody: { contentType: "multipart/form-data", schema: Form },
      answers: { 201: StoredFile },
      errors: [404, 408, 409, 422, 503],
    },
    async ({ principal, params, request, query, holdOpen, requirePresent }) => {
      holdOpen();
      const asked = { request, checkForm: query, requirePresent };
      const { file, isReplay } = await receiveForm(deps, principal, params.bucket, asked);
      return isReplay ? new Reply(201, storedFile(file), REPLAYED) : created(storedFile(file));
    },
  );
  const signed = endpoint(
    "PUT /api/storage/:bucket/:key+",
    {
      tag: TAG,
      summary: "Upload to a signed URL",
      caller: "public",
      place: "bucket",
      path: OF_FILE,
      query: { token: Type.String({ description: "Of the signed URL; good for one upload" }) },
      rawBody: { contentType: BYTES_TYPE, schema: Bytes },
      answers: { 200: StoredFile },
      errors: [404, 408, 503],
    },
    async ({ params, request, peek, query, holdOpen }) => {
      if (peek("token") === null) throw unauthorized();
      const { token } = query();
      holdOpen();
      return storedFile(await receiveSigned(deps, token, params, request));
    },
  );
  return [upload, signed];
}
