import { Type } from "typebox";
import { nullable } from "../../../../kernel/schema/types.ts";
import { isoTime } from "../../../../kernel/time/iso-datetime.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { UPLOAD_TTL_MS, UPLOADS_LISTED_DEFAULT, UPLOADS_LISTED_MAX } from "../limits.ts";
import { IN_BUCKET, UploadTime } from "../model/schemas.ts";
import { listUploads } from "../service/listing.ts";
import type { EndpointDeps } from "./deps.ts";

const Bytes = (description: string) => nullable(Type.Integer({ description }));
const DescribedBucket = Type.Object(
  {
    name: Type.String(),
    external: Type.Boolean({ description: "Its files are in an object store" }),
    readOnly: Type.Boolean({ description: "In a drill: its object store belongs to another server" }),
    inline: Type.Union([Type.Boolean(), Type.Literal("sameOrigin")], {
      description: "Files of every type are shown in browsers: true in a sandbox, sameOrigin as pages of this origin",
    }),
    maxFileSize: Type.Integer({ description: "Bytes" }),
    thumbs: Type.Array(Type.String(), { description: "Sizes of thumbnails, such as 200x200" }),
    quota: nullable(
      Type.Object({
        total: Bytes("Bytes of all files together; null: not limited"),
        perUser: Bytes("Bytes of the files of one user; null: not limited"),
        used: Type.Integer({ description: "Bytes of all files and of the parts of unfinished uploads" }),
      }),
    ),
  },
  { description: "What the config says of the bucket, and what is used of its quota" },
);

const Unfinished = Type.Object({
  uploadId: Type.String(),
  key: Type.String(),
  contentType: Type.String(),
  ownerId: nullable(Type.String({ description: "A user; null: a service key" })),
  parts: Type.Integer({ description: "Parts that have arrived" }),
  size: Type.Integer({ description: "Their bytes" }),
  createdAt: UploadTime,
  expiresAt: UploadTime,
});
const Uploads = Type.Object(
  { uploads: Type.Array(Unfinished), cursor: nullable(Type.String()) },
  { description: "Newest first. Where other buckets have many, a page may be short and still have a cursor" },
);

const BY_ADMINISTRATOR = { tag: "Administration", caller: "serviceKey", place: "bucket", path: IN_BUCKET } as const;

/** Endpoints for service keys about a bucket beside its files; they need the scope for reading its files. */
export function administrationEndpoints(
  deps: Pick<EndpointDeps, "gates" | "store" | "cursors" | "paces" | "clock">,
): readonly Endpoint[] {
  const { gates, store } = deps;
  return [
    endpoint(
      "GET /api/admin/storage/:bucket",
      {
        ...BY_ADMINISTRATOR,
        summary: "Describe a bucket: limits, sizes of thumbnails, quota",
        answers: { 200: DescribedBucket },
        errors: [404],
      },
      async ({ principal, params, query }) => {
        const { bucket } = await gates.enter(principal, params.bucket, "read");
        query();
        const { backend, inline = false, thumbs = [] } = bucket.config;
        return {
          name: bucket.name,
          external: backend !== undefined,
          readOnly: bucket.isReadOnly,
          inline,
          maxFileSize: bucket.maxFileBytes,
          thumbs: [...thumbs],
          quota: store.quotaUse(bucket.name),
        };
      },
    ),
    endpoint(
      "GET /api/admin/storage/:bucket/uploads",
      {
        ...BY_ADMINISTRATOR,
        summary: "List the unfinished multipart uploads of a bucket",
        description: "`POST multipart/abort` with a service key ends any of them.",
        query: {
          limit: Type.Optional(
            Type.Integer({
              minimum: 1,
              default: UPLOADS_LISTED_DEFAULT,
              description: `More counts as ${UPLOADS_LISTED_MAX}`,
            }),
          ),
          cursor: Type.Optional(Type.String({ description: "`cursor` of the previous page" })),
        },
        answers: { 200: Uploads },
        errors: [400, 404],
      },
      async ({ principal, params, query }) => {
        const { bucket } = await gates.enter(principal, params.bucket, "read");
        const { limit = UPLOADS_LISTED_DEFAULT, cursor = null } = query();
        const page = await listUploads(deps, bucket.name, { limit: Math.min(limit, UPLOADS_LISTED_MAX), cursor });
        return {
          uploads: page.uploads.map(({ id, key, contentType, ownerId, createdAt, parts, size }) => ({
            uploadId: id,
            key,
            contentType,
            ownerId,
            parts,
            size,
            createdAt: isoTime(createdAt),
            expiresAt: isoTime(createdAt + UPLOAD_TTL_MS),
          })),
          cursor: page.cursor,
        };
      },
    ),
  ];
}
