import type { ClientContext } from "../context.ts";
import { PlatformError } from "../transport/errors.ts";
import type { Method } from "../transport/types.ts";
import { contentOf } from "./content.ts";

/** What a call takes beside its body. */
interface CallOptions {
  query?: Readonly<Record<string, unknown>>;
  headers?: HeadersInit;
  fetch?: RequestInit;
  throwHttpError?: boolean | ((error: RouteError) => boolean);
}

interface Outcome {
  data: unknown;
  error: RouteError | null;
  response: Response | undefined;
  status: number;
  headers: Headers | undefined;
}

/** Of an answer other than 2xx, with its content; or of a request that nothing answered, with the `PlatformError`. */
class RouteError extends Error {
  readonly status: number;
  readonly value: unknown;

  constructor(status: number, value: unknown) {
    super(String(value));
    this.status = status;
    this.value = value;
  }
}

/** Calls a route as Eden Treaty does, whose types it has: `path` ends with the method. */
export async function call(
  context: ClientContext,
  path: readonly string[],
  given: readonly unknown[],
): Promise<Outcome> {
  const method = path.at(-1) ?? "";
  const hasBody = method !== "get" && method !== "head";
  // What Eden's types let pass.
  const [body, options = {}] = (hasBody ? given : [undefined, given[0]]) as [unknown, CallOptions?];
  const outcome = await send(context, path, body, options).then(
    async (response) => {
      const { status, headers, ok } = response;
      const content = await contentOf(response);
      return {
        data: ok ? content : null,
        error: ok ? null : new RouteError(status, content),
        response,
        status,
        headers,
      };
    },
    (cause) => ({
      data: null,
      error: new RouteError(503, cause),
      response: undefined,
      status: 503,
      headers: undefined,
    }),
  );
  const { throwHttpError: isThrown } = options;
  const { error } = outcome;
  if (error !== null && (typeof isThrown === "function" ? isThrown(error) : isThrown === true)) throw error;
  return outcome;
}

/** The answer, whatever its status. Errors: `PlatformError` where there is none. */
async function send(
  { transport }: ClientContext,
  path: readonly string[],
  given: unknown,
  { query = {}, headers, fetch: init }: CallOptions,
): Promise<Response> {
  let refusal: Response | null = null;
  const body = bodyOf(given);
  const type = typeof given === "object" ? "application/json" : "text/plain";
  const declared = given === undefined || body instanceof FormData ? {} : { "content-type": type };
  try {
    return await transport.request<Response>(
      // The last name of a path is a method of HTTP in small letters.
      (path.at(-1) ?? "").toUpperCase() as Method,
      `${["/api/functions", ...path.slice(0, -1)].join("/")}${queryText(query)}`,
      {
        body,
        headers: { ...declared, ...Object.fromEntries(new Headers(headers)) },
        signal: init?.signal ?? undefined,
        raw: true,
        // A stream of the route's may take any time.
        timeoutMs: 0,
        async fetch(address, sent) {
          const response = await fetch(address, { ...init, ...sent });
          refusal = response.status < 400 ? null : response.clone();
          return response;
        },
      },
    );
  } catch (error) {
    // What another try was answered counts only if this one was not.
    if (error instanceof PlatformError && error.status !== 0 && refusal !== null) return refusal;
    throw error;
  }
}

/** Lists repeat their name; null and undefined are left out. */
function queryText(query: Readonly<Record<string, unknown>>): string {
  const parameters = new URLSearchParams();
  for (const [name, given] of Object.entries(query)) {
    for (const value of Array.isArray(given) ? given : [given]) {
      if (value != null) parameters.append(name, textOf(value instanceof Date ? value.toISOString() : value));
    }
  }
  const text = String(parameters);
  return text === "" ? "" : `?${text}`;
}

const textOf = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

const isList = (value: unknown): value is Iterable<unknown> =>
  Array.isArray(value) || (typeof FileList !== "undefined" && value instanceof FileList);
const isFile = (value: unknown): value is Blob => value instanceof Blob;

/** An object with files is a form, any other one JSON. */
function bodyOf(given: unknown): string | FormData | undefined {
  if (given === undefined || given instanceof FormData) return given;
  const members = Object.entries(typeof given === "object" ? (given ?? {}) : {});
  if (!members.some(([, value]) => isFile(value) || (isList(value) && [...value].some(isFile)))) return textOf(given);
  const form = new FormData();
  const add = (name: string, value: unknown) => form.append(name, isFile(value) ? value : textOf(value));
  for (const [name, value] of members) {
    // A list of objects is one field.
    const isSplit = isList(value) && ![...value].some((one) => typeof one === "object" && one !== null && !isFile(one));
    for (const one of isSplit ? value : [value]) add(name, one);
  }
  return form;
}
