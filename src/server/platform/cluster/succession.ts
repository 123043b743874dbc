import { pause, systemClock } from "../../../kernel/clock.ts";
import type { ClusterMember } from "../../cluster/membership/member.ts";
import { ABSTAIN_MS } from "../../cluster/node/limits.ts";

/** The time for which a node looks often whether the group is vacant, when its owner leaves, and how often. */
const HASTE_MS = 5_000;
const HASTE_EVERY_MS = 25;
/** The time that a node waits for PostgreSQL to know that it has given the group up. */
const RELEASED_MAX_MS = 2_000;
const RELEASED_LOOK_MS = 10;

/** Passing of the group from one node to another in order, and of a node's URL from one process to another. */
export class Succession {
  readonly #member: ClusterMember;
  readonly #node: string;
  readonly #incarnation: string;
  #hasteUntilMs = 0;
  /** Lease of another process that has this node's URL; null: there is none. */
  #rival: string | null = null;

  constructor(member: ClusterMember, { node, incarnation }: { node: string; incarnation: string }) {
    this.#member = member;
    this.#node = node;
    this.#incarnation = incarnation;
  }

  /** Whether another process with this node's URL renews its lease. */
  hasRival(): boolean {
    const own = this.#member.seen?.nodes.find(({ node }) => node === this.#node);
    const former = this.#rival;
    this.#rival =
      own === undefined || own.incarnation === this.#incarnation ? null : `${own.incarnation} ${own.counter}`;
    return former !== null && this.#rival !== null && this.#rival !== former;
  }

  /** Takes over from an owner that leaves, or lets the node do it that is to; null: whoever can. */
  ownerLeaves(to: string | null): void {
    if (to !== null && to !== this.#node) {
      this.#member.abstain(ABSTAIN_MS);
      return;
    }
    const isLooking = this.#hasteUntilMs > performance.now();
    this.#hasteUntilMs = performance.now() + HASTE_MS;
    if (!isLooking) this.#look(this.#member.seen?.group.epoch ?? 0);
  }

  /** Gives the group up to others, and resolves when PostgreSQL knows it. */
  async release(): Promise<void> {
    const givesUpAt = performance.now() + RELEASED_MAX_MS;
    this.#member.abstain(ABSTAIN_MS);
    this.#member.release();
    const isKnown = (): boolean => {
      const { seen } = this.#member;
      const own = seen?.nodes.find((row) => row.node === this.#node);
      return !this.#member.isOwner && (seen?.group.owner !== this.#node || own?.acting === null);
    };
    while (!isKnown() && performance.now() < givesUpAt) await pause(systemClock, RELEASED_LOOK_MS);
  }

  #look(epoch: number): void {
    const isOver = performance.now() > this.#hasteUntilMs || (this.#member.seen?.group.epoch ?? 0) !== epoch;
    if (isOver) {
      this.#hasteUntilMs = 0;
      return;
    }
    this.#member.hasten();
    systemClock.after(HASTE_EVERY_MS, () => this.#look(epoch));
  }
}
