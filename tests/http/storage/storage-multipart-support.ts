import type { HttpClient } from "../../support/index.ts";

export interface Part {
  partNumber: number;
  etag: string;
}

export const beginUpload = async (client: HttpClient, key: string, more = {}, bucket = "files"): Promise<string> =>
  (await client.post<{ uploadId: string }>(`/api/storage/${bucket}/multipart/create`, { key, ...more })).body.uploadId;

export async function putPart(
  client: HttpClient,
  target: { uploadId: string; key: string; bucket?: string },
  partNumber: number | string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<{ status: number; body: Part }> {
  const { uploadId, key, bucket = "files" } = target;
  const query = new URLSearchParams({ uploadId, key, partNumber: String(partNumber) });
  const url = `/api/storage/${bucket}/multipart/upload-part?${query}`;
  const answer = await client.fetch(url, { method: "POST", body: content });
  return { status: answer.status, body: (await answer.json()) as Part };
}

export const callMultipart = (client: HttpClient, name: string, body: unknown, bucket = "files") =>
  client.post(`/api/storage/${bucket}/multipart/${name}`, body as never);

export const listParts = (client: HttpClient, uploadId: string, key: string) =>
  client.get<{ parts: (Part & { size: number })[] }>(`/api/storage/files/uploads/${uploadId}/parts`, {
    query: { key },
  });
