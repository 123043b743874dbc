import type { JsonObject } from "../../src/kernel/json/json.ts";
import type { HttpClient } from "./http-client.ts";
import type { TestPlatform } from "./platform.ts";

export interface SignedIn extends HttpClient {
  readonly id: string;
  readonly email: string;
  readonly password: string;
  /** Access token. */
  readonly token: string;
  readonly refreshToken: string;
}

interface TokenAnswer {
  user: { id: string; email: string };
  accessToken: string;
  refreshToken: string;
}

let emailCount = 0;

/** Creates a user with this role and these claims by the administrator's endpoints, and signs in by the public one. */
export async function signIn(
  platform: TestPlatform,
  options: { email?: string; password?: string; role?: string; claims?: JsonObject } = {},
): Promise<SignedIn> {
  const { email = `user-${++emailCount}@example.com`, password = "correct horse battery", role = "user" } = options;
  const created = await platform.service.post<{ user: { id: string } }>("/api/auth/admin/users", {
    email,
    password,
    role,
  });
  if (created.status !== 201) throw new Error(`cannot create ${email}: ${JSON.stringify(created.body)}`);
  const { id } = created.body.user;
  if (options.claims !== undefined) {
    const set = await platform.service.put(`/api/auth/admin/users/${id}/claims`, options.claims);
    if (set.status !== 200) throw new Error(`cannot set the claims of ${email}: ${JSON.stringify(set.body)}`);
  }
  const signedIn = await platform.post<TokenAnswer>("/api/auth/signin", { email, password });
  if (signedIn.status !== 200) throw new Error(`cannot sign ${email} in: ${JSON.stringify(signedIn.body)}`);
  const { accessToken, refreshToken } = signedIn.body;
  return { ...platform.as(accessToken), id, email, password, token: accessToken, refreshToken };
}

/** Returns the same user with new tokens, as access tokens expire after some minutes. */
export async function renewed(platform: TestPlatform, user: SignedIn): Promise<SignedIn> {
  const { status, body } = await platform.post<TokenAnswer>("/api/auth/refresh", { refreshToken: user.refreshToken });
  if (status !== 200) throw new Error(`cannot renew the tokens of ${user.email}: ${JSON.stringify(body)}`);
  const { accessToken, refreshToken } = body;
  return { ...user, ...platform.as(accessToken), token: accessToken, refreshToken };
}
