import { Type } from "typebox";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { ownOrigin } from "../../../http/exchange/own-origin.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import { KEYS_BODY_MAX_BYTES } from "../limits.ts";
import { IN_BUCKET, SignOne, SignSeveral, SignUpload, TAG, UploadTime } from "../model/schemas.ts";
import type { EndpointDeps } from "./deps.ts";

const Url = Type.Object({ url: Type.String() });
const Urls = Type.Object(
  { urls: Type.Array(Type.Object({ key: Type.String(), url: Type.String(), expiresAt: UploadTime })) },
  { description: "The URLs" },
);

export function signingEndpoints({
  signing,
  publicUrl,
}: Pick<EndpointDeps, "signing" | "publicUrl">): readonly Endpoint[] {
  const originOf = (request: Request): string => publicUrl ?? ownOrigin(request);
  const one = endpoint(
    "POST /api/storage/:bucket/signed-url",
    {
      tag: TAG,
      summary: "Sign a download URL",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: SignOne,
      bodyMaxBytes: SMALL_BODY_MAX_BYTES,
      answers: { 200: { description: "Good for GET and HEAD until it expires", schema: Url } },
      errors: [404],
    },
    ({ principal, params, request, body }) => signing.downloadUrl(principal, params.bucket, body, originOf(request)),
  );
  const several = endpoint(
    "POST /api/storage/:bucket/signed-urls",
    {
      tag: TAG,
      summary: "Sign several download URLs",
      description: "Files that do not exist are left out; a file that the caller may not read denies the request.",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: SignSeveral,
      bodyMaxBytes: KEYS_BODY_MAX_BYTES,
      answers: { 200: Urls },
      errors: [404],
    },
    ({ principal, params, request, body }) => signing.downloadUrls(principal, params.bucket, body, originOf(request)),
  );
  const upload = endpoint(
    "POST /api/storage/:bucket/signed-upload-url",
    {
      tag: TAG,
      summary: "Sign an upload URL, good for one PUT",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: SignUpload,
      bodyMaxBytes: SMALL_BODY_MAX_BYTES,
      answers: { 200: { description: "The URL to PUT the bytes to", schema: Url } },
      errors: [404],
    },
    ({ principal, params, request, body }) => signing.uploadUrl(principal, params.bucket, body, originOf(request)),
  );
  return [one, several, upload];
}
