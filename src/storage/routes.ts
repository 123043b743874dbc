import { type AnyElysia, Elysia } from "elysia";
import type { Http, RequestContext } from "../http/http.ts";
import { SMALL_BODY_MAX_BYTES } from "../http/limits.ts";
import { type Query, requiredText, wholeNumber } from "../http/query.ts";
import { created, OK } from "../http/reply.ts";
import { AppError, badRequest, notFound, unauthorized } from "../kernel/errors.ts";
import { refuseUnknownMembers } from "../kernel/members.ts";
import type { ListCursors } from "./cursors.ts";
import { contentOf, respondWith } from "./downloads/download.ts";
import type { Thumbs } from "./downloads/thumbs.ts";
import { pathRest } from "./keys.ts";
import { KEYS_BODY_MAX_BYTES, LIST_LIMIT_DEFAULT, METADATA_BODY_MAX_BYTES, PARTS_BODY_MAX_BYTES } from "./limits.ts";
import { listObjects } from "./listing.ts";
import type { Uploads } from "./multipart/multipart-uploads.ts";
import { parsePartNumber } from "./multipart/upload-requests.ts";
import { DESCRIPTIONS } from "./operations.ts";
import { describe, type StorageDeps, type StorageService } from "./service.ts";
import type { Signing } from "./signing/signing.ts";
import { receiveForm, receiveSigned } from "./uploads/receive-uploads.ts";

export interface StorageRouteDeps extends StorageDeps {
  service: StorageService;
  signing: Signing;
  uploads: Uploads;
  thumbs: Thumbs;
  cursors: ListCursors;
  /** What signed URLs begin with; null: the address that the request was sent to. */
  publicUrl: string | null;
}

/** What POST is for; files may have the same names. */
const ACTIONS = new Set([
  ...["upload", "delete-batch", "signed-url", "signed-urls", "signed-upload-url"],
  ...["multipart/create", "multipart/upload-part", "multipart/complete", "multipart/abort"],
]);
const METADATA = /^(.*)\/metadata$/s;
const PARTS = /^uploads\/([^/]+)\/parts$/;
const BASE = "/api/storage/:bucket";

/** Spec: Storage endpoints. A key may contain slashes, so what follows the bucket is told apart here, not by the router. */
export function createStorageRoutes(http: Http, deps: StorageRouteDeps): AnyElysia {
  const { service, uploads } = deps;
  const keyed = (...route: Parameters<Http["route"]>) => keyedRoute(http, ...route);

  return new Elysia()
    .get(
      BASE,
      http.route(({ principal, params, query: parameters }) =>
        listObjects(deps, principal, bucketOf({ params }), () => {
          const query = parameters();
          const limit = wholeNumber(query, "limit", { min: 1, fallback: LIST_LIMIT_DEFAULT });
          return { prefix: query.get("prefix") ?? "", limit, cursor: query.get("cursor") };
        }),
      ),
      DESCRIPTIONS.list,
    )
    .get(
      `${BASE}/*`,
      keyed((context) => read(deps, context)),
      DESCRIPTIONS.download,
    )
    .put(
      `${BASE}/*`,
      keyed(async ({ params, request, query, holdOpen }) => {
        const token = query().get("token");
        if (token === null) throw unauthorized();
        const address = { bucket: bucketOf({ params }), key: pathRest(request.url) };
        holdOpen();
        return describe(await receiveSigned(deps, token, address, request));
      }),
      DESCRIPTIONS.signedUpload,
    )
    .delete(
      `${BASE}/*`,
      keyed(async ({ principal, params, request, query }) => {
        const checkForm = () => query().refuseUnknown();
        await service.remove(principal, bucketOf({ params }), pathRest(request.url), checkForm);
        return OK;
      }),
      DESCRIPTIONS.remove,
    )
    .patch(
      `${BASE}/*`,
      keyed(
        async ({ principal, params, request, jsonObject }) => {
          // Only metadata has this method.
          const key = METADATA.exec(pathRest(request.url))?.[1] ?? "";
          return describe(await service.patchMetadata(principal, bucketOf({ params }), key, jsonObject));
        },
        { bodyMaxBytes: METADATA_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.patchMetadata,
    )
    .post(
      `${BASE}/upload`,
      http.route(async ({ principal, params, request, query, holdOpen }) => {
        holdOpen();
        return created(describe(await receiveForm(deps, principal, bucketOf({ params }), { request, query: query() })));
      }),
      DESCRIPTIONS.upload,
    )
    .post(
      `${BASE}/delete-batch`,
      http.route(
        ({ principal, params, jsonObject }) =>
          service.removeBatch(principal, bucketOf({ params }), async () => {
            const fields = await jsonObject();
            refuseUnknownMembers(fields, ["keys"], "delete-batch");
            return fields["keys"];
          }),
        { bodyMaxBytes: KEYS_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.removeBatch,
    )
    .post(
      `${BASE}/*`,
      keyed(async ({ request }) => {
        throw notFound(`There is nothing to post to at "${pathRest(request.url)}"`);
      }),
      { detail: { hide: true } },
    )
    .use(signingRoutes(http, deps))
    .use(multipartRoutes(http, uploads));
}

/**
 * A route whose path ends in a key. Which methods there are depends on what the key is, so it is looked at here, before
 * credentials as everywhere. Errors: 405. Decisions 13.
 */
function keyedRoute(http: Http, ...route: Parameters<Http["route"]>): ReturnType<Http["route"]> {
  const answer = http.route(...route);
  // Named one by one: Elysia reads which members a handler takes, and parses the body for one that takes them all.
  return ({ request, params = {}, route }) => {
    const allow = methodsAt(request.url);
    if (allow === null || allow.includes(request.method)) return answer({ request, params, route });
    const names = allow.join(", ");
    const refusal = new AppError(405, `${request.method} is not allowed here, but ${names}`, {
      headers: { allow: names },
    });
    return http.refusal(refusal, request);
  };
}

/** null: the path cannot be read, which is for the handler to say. */
function methodsAt(url: string): string[] | null {
  let rest: string;
  try {
    rest = pathRest(url);
  } catch {
    return null;
  }
  if (METADATA.test(rest)) return ["GET", "PATCH", "HEAD", "OPTIONS"];
  // Nothing after the slash: the list.
  if (rest === "" || PARTS.test(rest)) return ["GET", "HEAD", "OPTIONS"];
  return ["GET", ...(ACTIONS.has(rest) ? ["POST"] : []), "PUT", "DELETE", "HEAD", "OPTIONS"];
}

const bucketOf = ({ params }: Pick<RequestContext, "params">): string => params["bucket"] ?? "";

function signingRoutes(http: Http, { signing, publicUrl }: StorageRouteDeps): AnyElysia {
  const originOf = (request: Request): string => publicUrl ?? ownOrigin(request);
  return new Elysia()
    .post(
      `${BASE}/signed-url`,
      http.route(
        ({ principal, params, request, jsonObject }) =>
          signing.downloadUrl(principal, bucketOf({ params }), jsonObject, originOf(request)),
        { bodyMaxBytes: SMALL_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.signedUrl,
    )
    .post(
      `${BASE}/signed-urls`,
      http.route(
        ({ principal, params, request, jsonObject }) =>
          signing.downloadUrls(principal, bucketOf({ params }), jsonObject, originOf(request)),
        { bodyMaxBytes: KEYS_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.signedUrls,
    )
    .post(
      `${BASE}/signed-upload-url`,
      http.route(
        ({ principal, params, request, jsonObject }) =>
          signing.uploadUrl(principal, bucketOf({ params }), jsonObject, originOf(request)),
        { bodyMaxBytes: SMALL_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.signedUploadUrl,
    );
}

/** The address that the request was sent to. Errors: 400 for a Host header that is none. */
function ownOrigin(request: Request): string {
  const address = URL.parse(request.url);
  const host = request.headers.get("host") ?? "";
  if (address !== null && host === "") return address.origin;
  // Not the address's own: in place of a malformed one the server has put another.
  const named = URL.parse(`${address?.protocol ?? "http:"}//${host}`);
  if (named !== null && named.href === `${named.origin}/`) return named.origin;
  throw badRequest("The Host header is not the address of a server");
}

function multipartRoutes(http: Http, uploads: Uploads): AnyElysia {
  return new Elysia({ prefix: `${BASE}/multipart` })
    .post(
      "/create",
      http.route(({ principal, params, jsonObject }) => uploads.create(principal, bucketOf({ params }), jsonObject), {
        bodyMaxBytes: METADATA_BODY_MAX_BYTES,
      }),
      DESCRIPTIONS.createUpload,
    )
    .post(
      "/upload-part",
      http.route(({ principal, params, request, query, holdOpen }) => {
        holdOpen();
        return uploads.putPart(principal, bucketOf({ params }), () => partQuery(query()), request);
      }),
      DESCRIPTIONS.putPart,
    )
    .post(
      "/complete",
      http.route(
        async ({ principal, params, jsonObject, holdOpen }) => {
          const object = await uploads.complete(principal, bucketOf({ params }), async () => {
            const fields = await jsonObject();
            // Joining the parts of a large file takes its time.
            holdOpen();
            return fields;
          });
          return { key: object.key, size: object.size, uploaded: new Date(object.uploaded).toISOString() };
        },
        { bodyMaxBytes: PARTS_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.completeUpload,
    )
    .post(
      "/abort",
      http.route(
        async ({ principal, params, jsonObject }) => {
          await uploads.abort(principal, bucketOf({ params }), jsonObject);
          return OK;
        },
        { bodyMaxBytes: SMALL_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.abortUpload,
    );
}

function partQuery(query: Query): { uploadId: string; key: string; partNumber: number } {
  const uploadId = requiredText(query, "uploadId");
  const partNumber = parsePartNumber(requiredText(query, "partNumber"));
  return { uploadId, partNumber, key: requiredText(query, "key") };
}

/** What GET under a bucket is about: the parts of an upload, a file's metadata, or the file. */
async function read(deps: StorageRouteDeps, { request, params, principal, query }: RequestContext): Promise<unknown> {
  const { service, uploads } = deps;
  const bucket = bucketOf({ params });
  const rest = pathRest(request.url);
  const uploadId = PARTS.exec(rest)?.[1];
  if (uploadId !== undefined) {
    const parts = await uploads.parts(principal, bucket, uploadId, () => requiredText(query(), "key"));
    return { parts };
  }
  const metadataOf = METADATA.exec(rest)?.[1];
  if (metadataOf !== undefined) {
    const checkForm = () => query().refuseUnknown();
    return describe((await service.find(principal, bucket, metadataOf, { checkForm })).object);
  }
  return download(deps, principal, { bucket, key: rest }, { request, query: query() });
}

/** GET and HEAD of a file, by the rule or by a signed URL. */
async function download(
  { service, signing, thumbs }: StorageRouteDeps,
  principal: RequestContext["principal"],
  { bucket, key }: { bucket: string; key: string },
  { request, query }: { request: Request; query: Query },
): Promise<Response> {
  const token = query.get("token");
  if (token !== null) signing.verifyDownload(token, bucket, key);
  const found =
    token === null
      ? await service.find(principal, bucket, key, { allowAnonymous: true })
      : service.findSigned(bucket, key);
  const size = query.get("thumb");
  const content =
    size === null ? contentOf(found.bucket, found.object) : await thumbs.content(found.bucket, found.object, size);
  return respondWith(request, found.bucket, found.object, content);
}
