export { type Administrator, createAdministrator } from "./administrator.ts";
export { settle, type TestClock, testClock } from "./clock.ts";
export type { Answer, ErrorAnswer, HttpClient, ListAnswer, RequestOptions } from "./http-client.ts";
export {
  configSource,
  JWT_SECRET,
  platformCommand,
  SERVICE_KEY,
  type TestPlatform,
  type TestPlatformOptions,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "./platform.ts";
export { type SignedIn, signIn } from "./sign-in.ts";
export { openSocket, type TestSocket } from "./socket.ts";
export { signToken } from "./token.ts";
export { until } from "./until.ts";
