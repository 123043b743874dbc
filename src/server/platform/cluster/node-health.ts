import { systemClock } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { Health } from "../../areas/system/endpoints.ts";
import { ownFigures } from "../../areas/system/processes.ts";
import type { ClusterMember } from "../../cluster/membership/member.ts";
import type { Lags } from "../../cluster/node/lags.ts";
import type { Survey } from "../../cluster/node/survey.ts";
import type { Durability } from "../../cluster/protocol/statements.ts";

export interface NodeHealthOptions {
  node: string;
  configHash: string;
  durability: Durability;
  member: ClusterMember;
  lags: Lags;
  survey: Survey;
  /** Whether this node may answer reads. */
  mayAnswer(): boolean;
  /** Requests that this process has answered or forwarded. */
  requests(): number;
}

/** Returns `checks.cluster` of the health. */
export function clusterCheck(options: NodeHealthOptions) {
  const { member, node, lags, survey, durability, configHash, mayAnswer } = options;
  const { seen } = member;
  const { facts, logBytes, durabilityProblem, stored } = survey.last;
  const nowMs = performance.now();
  const owner = seen?.group.owner ?? "";
  const nodes = (seen?.nodes ?? []).map(({ node: url, applied, isOver }) => ({
    url,
    live: !isOver,
    role: url === owner ? ("owner" as const) : ("follower" as const),
    lagMs: lags.of(applied, nowMs),
    version: facts.get(url)?.version ?? null,
    config: facts.get(url)?.config ?? null,
  }));
  const differing = nodes.filter(({ live, config }) => live && config !== null && config !== configHash);
  const isLogged = durabilityProblem === null && seen?.group.isStopped !== true;
  const areStored = stored?.ok ?? true;
  return {
    ok: mayAnswer() && isLogged && areStored && differing.length === 0,
    role: member.isOwner ? ("owner" as const) : ("follower" as const),
    epoch: seen?.group.epoch ?? 0,
    lagMs: lags.of(member.position, nowMs),
    nodes,
    log: { ok: isLogged, durability, bytes: logBytes, position: seen?.group.position ?? 0, message: durabilityProblem },
    objects: { ok: areStored, lastCopyAt: timeOf(stored?.lastCopyAt ?? null), message: stored?.message ?? null },
    message:
      differing.length === 0 ? null : `The config of ${differing.map(({ url }) => url).join(", ")} is another one`,
    node,
  };
}

const timeOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** Creates the function that returns a follower's health. */
export function followerHealth(options: NodeHealthOptions): () => Promise<Health> {
  const startedAt = systemClock.now();
  return async () => {
    const cluster = clusterCheck(options);
    return {
      status: options.mayAnswer() ? (cluster.ok ? "ok" : "degraded") : "unavailable",
      checks: { cluster },
      processes: [await ownFigures(options.requests)],
      version: VERSION,
      uptime: Math.floor((systemClock.now() - startedAt) / SECOND_MS),
      drill: false,
    };
  };
}
