import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { ClusterMember, type MemberEvents, type MemberOptions } from "../../cluster/membership/member.ts";

const NONCE_BYTES = 18;

/** Creates the member of a node on the system's clocks; what happens to it is logged. */
export function createMember(
  options: Pick<MemberOptions, "postgres" | "node" | "incarnation" | "durability" | "noted" | "files">,
  { logger, ...events }: Pick<MemberEvents, "owns" | "progressed"> & { logger: Logger },
): ClusterMember {
  let hasFailed = false;
  const member: ClusterMember = new ClusterMember({
    ...options,
    clock: systemClock,
    now: () => ({ monotonicMs: performance.now(), wallMs: systemClock.now() }),
    nonce: () => systemIds.secret(NONCE_BYTES),
    events: {
      owns(isOwner) {
        logger.info(isOwner ? "cluster: this node owns the group" : "cluster: this node follows");
        events.owns(isOwner);
      },
      progressed() {
        if (hasFailed && member.mayAnswer(0)) hasFailed = false;
        events.progressed();
      },
      alarm: (group) =>
        logger.error("cluster: the log has lost what was acknowledged: see platform cluster accept-loss", {
          position: group.position,
        }),
      weak: (isWeak) =>
        isWeak
          ? logger.error("cluster: commits are in one PostgreSQL: it has no standby that they wait for")
          : logger.info("cluster: commits wait for a standby again"),
      failed(cause) {
        // It tries again several times a second.
        if (!hasFailed) logger.warn("cluster: PostgreSQL does not answer", { cause });
        hasFailed = true;
      },
    },
  });
  return member;
}
