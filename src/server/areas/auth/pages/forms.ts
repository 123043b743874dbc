import { AppError, badField } from "../../../../kernel/errors.ts";
import type { PageTexts } from "../../../config/sections/page-texts.ts";
import { parseBoundary } from "../../../http/bodies/form-boundary.ts";
import { readForm as readParts } from "../../../http/bodies/form-stream.ts";
import { singleFields } from "../../../http/bodies/urlencoded.ts";
import { beginningOf } from "../../../http/outgoing/call.ts";
import { PAGE_FORM_MAX_BYTES, PICTURE_MAX_BYTES, SMALL_FORM_FIELDS_MAX } from "../limits.ts";
import type { Fault } from "./faults.ts";
import type { Visitor } from "./visitor.ts";

const FORM_TIMEOUT_MS = 30_000;

/** The fields of a form that a browser has sent. */
export interface Form {
  text(name: string): string;
  picture: Blob | null;
}

/**
 * Reads a form of these pages. Errors as values: 403 for one that another site has sent, 413, 400.
 */
export async function readForm(visitor: Visitor): Promise<Form | Fault> {
  if (!isOwnForm(visitor)) return { status: 403, text: "otherSite" };
  const { request } = visitor;
  const contentType = request.headers.get("content-type") ?? "";
  const isMultipart = contentType.startsWith("multipart/form-data");
  if (!isMultipart && !contentType.startsWith("application/x-www-form-urlencoded"))
    return { status: 415, text: "failed" };
  const maxBytes = isMultipart ? PICTURE_MAX_BYTES + PAGE_FORM_MAX_BYTES : PAGE_FORM_MAX_BYTES;
  const until = AbortSignal.timeout(FORM_TIMEOUT_MS);
  const { bytes, isCut, cause } = await beginningOf(request.body, { maxBytes, until });
  if (isCut) {
    const isLarge = cause === undefined && !until.aborted;
    return isLarge ? { status: 413, text: isMultipart ? "pictureRefused" : "failed" } : { status: 400, text: "failed" };
  }
  try {
    if (isMultipart) return await multipart(bytes, contentType);
    const fields = singleFields(bytes, SMALL_FORM_FIELDS_MAX);
    return { text: (name) => fields.get(name) ?? "", picture: null };
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    return { status: 400, text: "failed" };
  }
}

/** Reads a form with a picture. Errors: 400 for one that is malformed, or has a part twice. */
async function multipart(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<Form> {
  const texts = new Map<string, string>();
  const seen = new Set<string>();
  let picture: Blob | null = null;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  await readParts(
    chunks(),
    { boundary: parseBoundary(contentType), partsMax: SMALL_FORM_FIELDS_MAX },
    async (header) => {
      const taken: Uint8Array<ArrayBuffer>[] = [];
      return {
        // A copy: the bytes are valid for a moment.
        take: async (chunk) => void taken.push(new Uint8Array(chunk)),
        async end() {
          const content = new Blob(taken, { type: header.contentType ?? "" });
          const name = header.name ?? "";
          if (seen.has(name))
            throw badField(name, "invalid_value", `${name} is a part that can be sent once, and was repeated`);
          seen.add(name);
          if (header.fileName === null) texts.set(name, await content.text());
          else if (name === "picture" && content.size > 0) picture = content;
        },
      };
    },
  );
  return { text: (name) => texts.get(name) ?? "", picture };
}

export const isFault = (form: Form | Fault): form is Fault => "status" in form;

/**
 * Whether a form comes from these pages. Browsers say so by `Sec-Fetch-Site`, except over plain http; there the pages' forms have
 * the origin `null`, as their policy is no-referrer, and the cookie that no other site's form is sent with. [AU334]
 */
export function isOwnForm({ request: { headers }, origins, hasVisit }: Visitor): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = headers.get("origin");
  if (origin === null) return true;
  return origin === "null" ? hasVisit : origins.includes(origin);
}

/** Returns the name of a text, of those that a notice may be. */
export type TextName = Exclude<keyof PageTexts, "dir">;
