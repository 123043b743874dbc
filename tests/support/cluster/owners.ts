import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { AnswerGate } from "../../../src/kernel/answer-gate.ts";
import { ClusterOwner } from "../../../src/server/cluster/owner/owner.ts";
import type { PlatformConfig } from "../../../src/server/config/types.ts";
import { createPlatform, type Platform } from "../../../src/server/platform/index.ts";
import { createHttpClient, type HttpClient } from "../http-client.ts";
import { JWT_SECRET, SERVICE_KEY, temporaryDirectory } from "../platform.ts";
import { until } from "../until.ts";
import { startMember, type TestMember } from "./members.ts";

// Owners of a cluster in the process of a test: a platform on a directory, whose commits go to a real PostgreSQL.

export interface TestOwner {
  readonly platform: Platform;
  readonly owner: ClusterOwner;
  readonly started: TestMember;
  readonly dataDirectory: string;
  readonly url: string;
  /** Client with the root service key. */
  readonly service: HttpClient;
  /** Why nothing more can be committed. */
  readonly failures: unknown[];
  /** Answers, messages and calls that had to wait. */
  readonly heldCount: number;
  stop(): Promise<void>;
}

export interface TestOwnerOptions {
  postgres: string;
  config: PlatformConfig;
  node?: string;
  dataDirectory?: string;
  /** Clocks of its member run so many times faster: a lease takes less. */
  speed?: number;
  /** Finds what the log has of a file already: nothing by default. */
  logged?: ConstructorParameters<typeof ClusterOwner>[0]["logged"];
}

/** Waits until a member owns the group, and opens a platform on the directory. */
export async function startOwner({
  postgres,
  config,
  node = "owner",
  ...options
}: TestOwnerOptions): Promise<TestOwner> {
  const dataDirectory = options.dataDirectory ?? temporaryDirectory();
  mkdirSync(dataDirectory, { recursive: true });
  const failures: unknown[] = [];
  let owner: ClusterOwner | null = null;
  const started = startMember({
    postgres,
    node,
    directory: join(temporaryDirectory(), "noted"),
    speed: options.speed ?? 1,
    events: {
      progressed: () => owner?.progressed(),
      owns(isOwner) {
        if (!isOwner) owner?.end(new Error("this node is not the owner any more"));
      },
    },
  });
  await until("the member is the owner", () => started.member.isOwner);
  owner = new ClusterOwner({
    member: started.member,
    dataDirectory,
    logged: options.logged ?? (() => null),
    nowMs: () => performance.now() * (options.speed ?? 1),
    onFailed: (cause) => void failures.push(cause),
  });
  const { gate: ownGate } = owner;
  let heldCount = 0;
  const gate: AnswerGate = {
    get position() {
      return ownGate.position;
    },
    wait() {
      const wait = ownGate.wait();
      if (wait !== null) heldCount += 1;
      return wait;
    },
    lease: () => ownGate.lease(),
    everywhere: () => ownGate.everywhere(),
  };
  const platform = await createPlatform(config, {
    dataDirectory,
    secrets: { serviceKey: SERVICE_KEY, jwtSecret: JWT_SECRET },
    cluster: { capture: owner.capture, gate },
  });
  const { url } = await platform.listen({ port: 0 });
  return {
    platform,
    owner,
    started,
    dataDirectory,
    url,
    service: createHttpClient(() => url, { "x-platform-service-key": SERVICE_KEY }),
    failures,
    get heldCount() {
      return heldCount;
    },
    async stop() {
      await platform.stop();
      started.stop();
    },
  };
}
