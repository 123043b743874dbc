import { createHttpClient, type HttpClient } from "./http-client.ts";

/** Browser in which an administrator is signed in. */
export interface Administrator extends HttpClient {
  /** Value of the `Cookie` header. */
  readonly cookie: string;
}

/** Signs in with a service key. */
export async function createAdministrator(
  platform: HttpClient & { readonly url: string },
  key: string,
): Promise<Administrator> {
  const { status, headers } = await platform.post("/api/admin/session", { key });
  if (status !== 204) throw new Error(`signing in was answered ${status}`);
  const cookie = headers.get("set-cookie")?.split(";")[0] ?? "";
  return { ...createHttpClient(() => platform.url, { cookie, "x-platform-admin": "1" }), cookie };
}
