import { Type } from "typebox";
import { unauthorized } from "../../../../kernel/errors.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { IDEMPOTENCY_KEY, REPLAYED } from "../../../http/exchange/idempotency-key.ts";
import { created, Reply } from "../../../http/reply.ts";
import type { EndpointDeps } from "./endpoint-deps.ts";
import { Key } from "../model/keys.ts";
import { BYTES_TYPE, Bytes, IN_BUCKET, OF_FILE, StoredFile, TAG } from "../model/schemas.ts";
import { storedFile } from "../service/files.ts";
import { receiveForm, receiveSigned } from "../service/receive-uploads.ts";

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
