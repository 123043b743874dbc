import { Type } from "typebox";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import { OK } from "../../../http/reply.ts";
import { METADATA_BODY_MAX_BYTES, PARTS_BODY_MAX_BYTES } from "../limits.ts";
import { Key } from "../model/keys.ts";
import {
  BYTES_TYPE,
  Bytes,
  CompletedUpload,
  IN_BUCKET,
  NAMED_PART,
  NamedUpload,
  NewUpload,
  Ok,
  PartNumber,
  TAG,
  UploadTime,
} from "../model/schemas.ts";
import type { EndpointDeps } from "./deps.ts";

const Part = Type.Object({ partNumber: PartNumber, etag: Type.String() });
const StoredPart = Type.Object({
  partNumber: PartNumber,
  size: Type.Integer({ description: "Bytes" }),
  etag: Type.String(),
});
const Parts = Type.Object({ parts: Type.Array(StoredPart) }, { description: "The parts, by number" });
const File = Type.Object(
  { key: Type.String(), size: Type.Integer(), uploaded: UploadTime },
  { description: "The file" },
);

type Deps = Pick<EndpointDeps, "uploads">;

export const multipartEndpoints = (deps: Deps): readonly Endpoint[] => [
  create(deps),
  putPart(deps),
  complete(deps),
  abort(deps),
  listParts(deps),
];

const create = ({ uploads }: Deps): Endpoint =>
  endpoint(
    "POST /api/storage/:bucket/multipart/create",
    {
      tag: TAG,
      summary: "Begin a multipart upload",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: NewUpload,
      bodyMaxBytes: METADATA_BODY_MAX_BYTES,
      answers: { 200: { description: "The id of the upload", schema: NamedUpload } },
      errors: [404, 409],
    },
    ({ principal, params, body }) => uploads.create(principal, params.bucket, body),
  );

const putPart = ({ uploads }: Deps): Endpoint =>
  endpoint(
    "POST /api/storage/:bucket/multipart/upload-part",
    {
      tag: TAG,
      summary: "Upload one part; parts may be sent in parallel",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      query: NAMED_PART,
      rawBody: { contentType: BYTES_TYPE, schema: Bytes },
      answers: { 200: { description: "Name both when you complete the upload", schema: Part } },
      errors: [404, 408],
    },
    ({ principal, params, request, query, holdOpen, requirePresent }) => {
      holdOpen();
      return uploads.putPart(principal, params.bucket, query, { request, requirePresent });
    },
  );

const complete = ({ uploads }: Deps): Endpoint =>
  endpoint(
    "POST /api/storage/:bucket/multipart/complete",
    {
      tag: TAG,
      summary: "Join the parts to a file",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: CompletedUpload,
      bodyMaxBytes: PARTS_BODY_MAX_BYTES,
      answers: { 200: File },
      errors: [404, 409, 503],
    },
    async ({ principal, params, body, holdOpen }) => {
      const { key, size, uploaded } = await uploads.complete(principal, params.bucket, async () => {
        const named = await body();
        // Joining the parts of a large file takes long.
        holdOpen();
        return named;
      });
      return { key, size, uploaded: new Date(uploaded).toISOString() };
    },
  );

const abort = ({ uploads }: Deps): Endpoint =>
  endpoint(
    "POST /api/storage/:bucket/multipart/abort",
    {
      tag: TAG,
      summary: "Abort a multipart upload",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: NamedUpload,
      bodyMaxBytes: SMALL_BODY_MAX_BYTES,
      answers: { 200: { description: "The upload is gone", schema: Ok } },
      errors: [404],
    },
    async ({ principal, params, body }) => {
      await uploads.abort(principal, params.bucket, body);
      return OK;
    },
  );

const listParts = ({ uploads }: Deps): Endpoint =>
  endpoint(
    "GET /api/storage/:bucket/uploads/:uploadId/parts",
    {
      tag: TAG,
      summary: "List the parts of a multipart upload",
      caller: "caller",
      place: "bucket",
      path: { bucket: IN_BUCKET.bucket, uploadId: "Of a multipart upload that is not finished" },
      query: { key: Key },
      answers: { 200: Parts },
      errors: [400, 404],
    },
    async ({ principal, params, query }) => ({
      parts: await uploads.parts(principal, params.bucket, params.uploadId, () => query().key),
    }),
  );
