import { Type } from "typebox";
import { nullable } from "../../../../kernel/schema/types.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { BATCH_DELETE_KEYS_MAX, KEYS_BODY_MAX_BYTES, METADATA_BODY_MAX_BYTES } from "../limits.ts";
import { MetadataChanges } from "../model/content.ts";
import { ChangedFile, IN_BUCKET, OF_FILE, Ok, StoredFile, TAG, UploadTime } from "../model/schemas.ts";
import { storedFile } from "../service/files.ts";
import { LISTING, listObjects } from "../service/listing.ts";
import { administrationEndpoints } from "./administration.ts";
import { downloadEndpoints, uploadEndpoints } from "./contents.ts";
import type { EndpointDeps } from "./deps.ts";
import { multipartEndpoints } from "./multipart.ts";
import { signingEndpoints } from "./signing.ts";

const Listed = Type.Object({
  key: Type.String(),
  size: Type.Integer(),
  contentType: Type.Optional(Type.String({ description: "With `delimiter`" })),
  uploaded: UploadTime,
});
const Page = Type.Object(
  {
    objects: Type.Array(Listed),
    folders: Type.Optional(
      Type.Array(Type.String(), { description: "With `delimiter`: beginnings of keys, up to and with the slash" }),
    ),
    truncated: Type.Boolean(),
    cursor: nullable(Type.String()),
  },
  { description: "A page. Where a rule hides many files it may be short and still be truncated" },
);
const DeletedKeys = Type.Object(
  {
    deleted: Type.Array(Type.String()),
    failed: Type.Array(Type.Object({ key: Type.String(), error: Type.String() })),
  },
  { description: "The keys that were deleted, and those that were not" },
);

export function storageEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [
    list(deps),
    ...downloadEndpoints(deps),
    ...metadataEndpoints(deps),
    ...deleteEndpoints(deps),
    ...uploadEndpoints(deps),
    ...signingEndpoints(deps),
    ...multipartEndpoints(deps),
    ...administrationEndpoints(deps),
  ];
}

const list = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "GET /api/storage/:bucket",
    {
      tag: TAG,
      summary: "List the files that the caller may read, by key",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      query: LISTING,
      answers: { 200: Page },
      errors: [400, 404],
    },
    ({ principal, params, query }) => listObjects(deps, principal, params.bucket, query),
  );

function metadataEndpoints({ service }: EndpointDeps): readonly Endpoint[] {
  const read = endpoint(
    "GET /api/storage/:bucket/:key+/metadata",
    {
      tag: TAG,
      summary: "Get the metadata of a file",
      caller: "caller",
      place: "bucket",
      path: OF_FILE,
      answers: { 200: StoredFile },
      errors: [400, 404],
    },
    async ({ principal, params, query }) => {
      const found = await service.find(principal, params.bucket, params.key, { checkForm: query });
      return storedFile(found.object);
    },
  );
  const change = endpoint(
    "PATCH /api/storage/:bucket/:key+/metadata",
    {
      tag: TAG,
      summary: "Set custom metadata",
      description: "Members that are not named stay; null removes one.",
      caller: "caller",
      place: "bucket",
      path: OF_FILE,
      body: MetadataChanges,
      bodyMaxBytes: METADATA_BODY_MAX_BYTES,
      answers: { 200: ChangedFile },
      errors: [404],
    },
    async ({ principal, params, body }) => {
      const { object, sent } = await service.patchMetadata(principal, params.bucket, params.key, body);
      if (await service.mayRead(principal, object)) return storedFile(object);
      return { key: object.key, customMetadata: sent };
    },
  );
  return [read, change];
}

function deleteEndpoints({ service }: EndpointDeps): readonly Endpoint[] {
  const one = endpoint(
    "DELETE /api/storage/:bucket/:key+",
    {
      tag: TAG,
      summary: "Delete a file",
      caller: "caller",
      place: "bucket",
      path: OF_FILE,
      answers: { 200: { description: "The file is deleted", schema: Ok } },
      errors: [400, 404],
    },
    async ({ principal, params, query }) => {
      await service.remove(principal, params.bucket, params.key, query);
      return OK;
    },
  );
  const several = endpoint(
    "POST /api/storage/:bucket/delete-batch",
    {
      tag: TAG,
      summary: "Delete several files, each by the delete rule",
      description: "What cannot be a key is among `failed`.",
      caller: "caller",
      place: "bucket",
      path: IN_BUCKET,
      body: Type.Object({ keys: Type.Array(Type.String(), { maxItems: BATCH_DELETE_KEYS_MAX }) }),
      bodyMaxBytes: KEYS_BODY_MAX_BYTES,
      answers: { 200: DeletedKeys },
      errors: [404],
    },
    ({ principal, params, body }) => service.removeBatch(principal, params.bucket, async () => (await body()).keys),
  );
  return [one, several];
}
