import type { HttpClient, SignedIn, TestPlatform } from "../../tests/support/index.ts";
import type { Random } from "../../tests/support/random.ts";

export interface Client {
  platform: TestPlatform;
  service: HttpClient;
  user: SignedIn;
  random: Random;
  prefix: string;
}

export type Answer = { status: number; body?: unknown };
export type Request = (client: Client) => Promise<Answer>;
