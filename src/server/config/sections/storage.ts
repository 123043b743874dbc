import { type Static, Type } from "typebox";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { RuleContext } from "../context.ts";
import type { Auth } from "../identity.ts";
import { THUMB_MEGAPIXELS_MAX, THUMB_PIXELS_MAX, THUMBS_AT_ONCE_MAX } from "../limits.ts";
import { list, named, refined, rule, secretText, text, textWith, url, whole } from "../shape/schema.ts";

/** The facts of a file, as bucket rules see it; only stored files have the last three members. */
export interface FileFacts {
  key: string;
  size: number;
  contentType: string;
  uploadedBy?: string | null;
  customMetadata?: { [key: string]: string };
  /** The time of upload, in ISO 8601. */
  uploaded?: string;
}

export type BucketRule =
  | boolean
  | ((auth: Auth | null, file: FileFacts, context: RuleContext) => MaybePromise<boolean>);

const bucketRule = () => Type.Unsafe<BucketRule>(rule());

const Store = Type.Object({
  endpoint: url("https", "http"),
  bucket: text(),
  region: Type.Optional(text()),
  accessKeyId: text(),
  secretAccessKey: secretText(),
  /** The prefix of object names; empty by default. */
  prefix: Type.Optional(text()),
});
/** A bucket of an S3-compatible object store. */
export interface ObjectStore extends Static<typeof Store> {}
export const objectStore = () => Type.Unsafe<ObjectStore>(Store);

const thumb = textWith((value) => {
  const [, width, height] = /^(\d{1,4})x(\d{1,4})$/.exec(value) ?? [];
  const isRight = [width, height].every((side) => Number(side) >= 1 && Number(side) <= THUMB_PIXELS_MAX);
  return isRight ? null : `must be WIDTHxHEIGHT in pixels up to ${THUMB_PIXELS_MAX}, as in 200x200, got "${value}"`;
});

const quota = refined(
  Type.Object({
    /** The size of all files in the bucket. */
    total: Type.Optional(whole({ min: 1, unit: "bytes" })),
    /** The size of the files that one user has uploaded. */
    perUser: Type.Optional(whole({ min: 1, unit: "bytes" })),
  }),
  ({ total, perUser }, report) => {
    if (total === undefined && perUser === undefined) report.say("must have total or perUser");
  },
);

const Bucket = Type.Object({
  /** The maximum size in bytes; 100 MiB by default. It applies to every kind of upload. */
  maxFileSize: Type.Optional(whole({ min: 1, unit: "bytes" })),
  /** The bytes that may be stored, including the parts of unfinished uploads. No quota by default. */
  quota: Type.Optional(quota),
  access: Type.Optional(
    Type.Object({
      read: Type.Optional(bucketRule()),
      write: Type.Optional(bucketRule()),
      delete: Type.Optional(bucketRule()),
    }),
  ),
  /**
   * Whether files of every type are displayed in the browser, HTML and SVG too, instead of sent as attachments. false by default.
   * `true`: in a sandbox, whose scripts have an origin of their own. `"sameOrigin"`: without it, so that whoever may write files
   * acts as everybody who opens one.
   */
  inline: Type.Optional(Type.Union([Type.Boolean(), Type.Literal("sameOrigin")])),
  /** Sizes that `?thumb=` accepts, such as `["200x200"]`. None by default. */
  thumbs: Type.Optional(list(thumb, { minItems: 0 })),
  /** The store of the contents; the data directory by default. */
  backend: Type.Optional(Type.Object({ s3: objectStore() })),
});
export interface BucketConfig extends Static<typeof Bucket> {}

export const Storage = Type.Object({
  buckets: named(Type.Unsafe<BucketConfig>(Bucket)),
  /** The settings of thumbnails. Each pixel needs up to five bytes of memory: 160 MB a picture by default. */
  thumbs: Type.Optional(
    Type.Object({
      /** Pictures decoded concurrently; 2 by default, up to 16. With 1, a slow picture delays those of others by up to two seconds. */
      atOnce: Type.Optional(whole({ min: 1, max: THUMBS_AT_ONCE_MAX })),
      /** The maximum size of the original picture; 32 by default, up to 256. */
      maxMegapixels: Type.Optional(whole({ min: 1, max: THUMB_MEGAPIXELS_MAX, unit: "megapixels" })),
    }),
  ),
});
export interface StorageConfig extends Static<typeof Storage> {}
