import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/kernel/clock.ts";
import { ClusterMember, type FollowedFiles, type MemberEvents } from "../../../src/server/cluster/membership/member.ts";
import { NotedPlace } from "../../../src/server/cluster/membership/noted-place.ts";
import type { LogEntry, Place } from "../../../src/server/cluster/protocol/statements.ts";
import { temporaryDirectory } from "../platform.ts";

// Members of a cluster in the process of a test, on a real PostgreSQL, with files in memory.

const START: Place = { position: 0, nonce: "" };

export interface TestMemberOptions {
  postgres: string;
  node: string;
  directory?: string;
  /** Clocks of the member run so many times faster: a lease takes less. */
  speed?: number;
  events?: Partial<MemberEvents>;
}

export interface TestMember {
  readonly member: ClusterMember;
  readonly directory: string;
  /** Entries that it has applied as a follower. */
  readonly applied: LogEntry[];
  setAsideCount: number;
  /** Added to its wall clock, as when its machine was suspended for so long. */
  suspendedMs: number;
  stop(): void;
}

/** Starts a member. Its directory has what it has noted, and nothing else: as a follower it begins anew. */
export function startMember({ postgres, node, speed = 1, events, ...options }: TestMemberOptions): TestMember {
  const directory = options.directory ?? temporaryDirectory();
  mkdirSync(directory, { recursive: true });
  const noted = new NotedPlace(join(directory, "noted"));
  const applied: LogEntry[] = [];
  const files: FollowedFiles = {
    place: START,
    hasRoom: true,
    rebase() {
      applied.length = 0;
    },
    apply: (entries) => void applied.push(...entries),
    setAside() {
      applied.length = 0;
      started.setAsideCount += 1;
    },
  };
  const member = new ClusterMember({
    postgres,
    node,
    incarnation: `${node}-${crypto.randomUUID()}`,
    durability: "single",
    noted,
    files,
    events: { owns() {}, progressed() {}, alarm() {}, weak() {}, failed() {}, ...events },
    clock: { after: (delayMs, run) => systemClock.after(delayMs / speed, run) },
    now: () => ({ monotonicMs: performance.now() * speed, wallMs: Date.now() * speed + started.suspendedMs }),
    nonce: () => crypto.randomUUID(),
  });
  const started: TestMember = {
    member,
    directory,
    applied,
    setAsideCount: 0,
    suspendedMs: 0,
    stop() {
      member.stop();
      noted.close();
    },
  };
  member.start();
  return started;
}
