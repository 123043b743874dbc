import { ClusterNode } from "../../../src/server/cluster/protocol/node.ts";
import { random as randomOf } from "../../support/random.ts";
import { Checker, type Mode } from "./checker.ts";
import { Network } from "./network.ts";
import { type NodeType, SimulatedHost } from "./simulated-host.ts";
import { type Condition, SimulatedPostgres } from "./simulated-postgres.ts";
import { World } from "./world.ts";

const FAULTS_MS = 50_000;
/** The time after which everything works again, within which the cluster has to. */
const HEALED_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Counts of what a history went through: faults that struck, and work that was done. */
export interface Counts {
  takeovers: number;
  alarms: number;
  acknowledgements: number;
  answers: number;
  revocations: number;
  late: number;
  promotions: number;
}

export interface Planted {
  nodeType?: NodeType;
  condition?: Condition | null;
}

/** Runs one history at random. Errors: something that clients were told is not so. */
export function runHistory(seed: number, { nodeType = ClusterNode, condition = null }: Planted = {}): Counts {
  const history = new History(seed, nodeType, condition);
  history.run();
  const { takeovers, alarms, acknowledgements, answers, revocations } = history.checker;
  const { promotions } = history;
  return { takeovers, alarms, acknowledgements, answers, revocations, late: history.network.late, promotions };
}

class History {
  readonly world: World;
  readonly checker: Checker;
  readonly network: Network;
  readonly #hosts: readonly SimulatedHost[];
  readonly #condition: Condition | null;
  #bodies = 0;
  #timeline = 1;
  #isAccepting = false;
  #isHealed = false;
  /** Whether nothing is written through an owner that cannot be reached, which would end its ownership soon. */
  readonly #isQuiet: boolean;
  #hasRestored = false;
  readonly #replaced: SimulatedPostgres[] = [];
  promotions = 0;

  constructor(seed: number, nodeType: NodeType, condition: Condition | null) {
    this.world = new World(randomOf(seed));
    const mode = this.world.random.pick<Mode>(["lossless", "lossless", "standby given up", "restored"]);
    this.checker = new Checker(this.world, mode, {
      hasLost: () => this.#hasRestored || this.#hasLostWeak(),
      history: () => this.network.primary.group.history,
    });
    this.#condition = condition;
    this.#isQuiet = this.world.random.chance(0.5);
    this.network = new Network(this.world, this.#postgres([]));
    this.network.primary.attachStandby();
    const names = ["a", "b", "c"].slice(0, 2 + this.world.random.below(2));
    this.#hosts = names.map((name) => new SimulatedHost(name, this.world, this.network, this.checker, nodeType));
  }

  run(): void {
    const { world } = this;
    this.#repeat(300, () => this.#work());
    this.#repeat(3_000, () => this.#fault());
    this.#repeat(1_500, () => this.#operate());
    world.runUntil(FAULTS_MS);
    this.#heal();
    world.runUntil(FAULTS_MS + HEALED_MS);
    this.#requireWorking();
    const { entries, takes } = this.network.primary;
    this.checker.requireNoneLate(entries, takes);
    this.checker.finish(
      entries,
      this.#hosts.map(({ noted }) => noted),
    );
  }

  #postgres(wal: SimulatedPostgres["wal"]): SimulatedPostgres {
    return new SimulatedPostgres(
      this.world,
      { off: this.#condition, onTake: () => this.#atTakeover() },
      this.#timeline,
      wal,
    );
  }

  /** The worst moment: the former owner wakes up, and statements arrive that were thought lost. */
  #atTakeover(): void {
    const { random } = this.world;
    this.network.releaseHeld();
    if (!this.#isHealed && random.chance(0.15)) this.#trap({ withinMs: 300 });
    for (const host of this.#hosts)
      if (host.isSuspended && random.chance(0.7)) this.world.after(random.below(30), () => host.wake());
  }

  /** Does something again and again, at random times. */
  #repeat(everyMs: number, run: () => void): void {
    const again = (): void => {
      run();
      this.world.after(1 + this.world.random.below(2 * everyMs), again);
    };
    this.world.after(this.world.random.below(everyMs), again);
  }

  #work(): void {
    const { random } = this.world;
    if (this.#isHealed && random.chance(0.8)) return;
    const host = random.pick(this.#hosts);
    const owners = this.#hosts.filter(
      (each) => each.node?.isOwner === true && !(this.#isQuiet && (each.isSuspended || this.network.isCut(each.name))),
    );
    const owner = owners.length === 0 ? undefined : random.pick(owners);
    const chance = random.below(100);
    if (chance < 45) owner?.write(`w${++this.#bodies}`);
    else if (chance < 90) host.read();
    else if (chance < 93) owner?.revoke(`r${++this.#bodies}`);
    const place = owner?.node?.announcement ?? null;
    if (place !== null && owner?.isSuspended === false && chance % 2 === 0)
      for (const other of this.#hosts)
        if (other !== owner) this.world.after(random.below(200), () => other.announced(place));
  }

  #fault(): void {
    if (this.#isHealed) return;
    const { random } = this.world;
    const chance = random.below(100);
    // Most faults strike the owner, and a PostgreSQL in which something waits.
    const owner = this.#hosts.find(({ node }) => node?.isOwner === true);
    const host = owner !== undefined && random.chance(0.6) ? owner : random.pick(this.#hosts);
    if (chance < 10) this.#crash(host);
    else if (chance < 20) this.#suspend(host);
    else if (chance < 26) this.#cut(host, random.below(20_000));
    else if (chance < 34) this.#cut(host, random.below(1_500));
    else if (chance < 38) this.network.drop({ node: host.name });
    else if (chance < 41) this.network.deafen(host.name);
    else if (chance < 46) this.#slow(host);
    else if (chance < 48) host.setWallClock(random.pick([-HOUR_MS, HOUR_MS, -5_000, 5_000]));
    else if (chance < 52) this.#hang(host);
    else if (chance < 56) host.release();
    else if (chance < 62) this.#loseStandby();
    else if (chance < 66) this.#changeNames();
    else if (chance < 70) this.#restartPostgres();
    else if (chance < 86) this.#trap({ withinMs: 3_000 });
    else if (chance < 96) this.#promote();
    else if (this.checker.mode === "restored") this.#restore();
    for (const each of this.#hosts) if (random.chance(0.3)) each.sync();
  }

  /** Wakes what is off, and lets an operator see an alarm. */
  #operate(): void {
    const { random } = this.world;
    for (const host of this.#hosts) if (host.node === null && random.chance(0.4)) host.start();
    if (!this.network.primary.group.isStopped || this.#isAccepting) return;
    this.#isAccepting = true;
    this.world.after(random.below(5_000), () => {
      this.#isAccepting = false;
      const { primary } = this.network;
      if (!primary.group.isStopped || !primary.isUp) return;
      const { position } = primary.group;
      if (position !== primary.stoppedAt) throw new Error(`a stopped group went on to ${position}`);
      this.checker.accepted(primary.entries);
      primary.acceptLoss();
    });
  }

  #crash(host: SimulatedHost): void {
    const { random } = this.world;
    const how = random.pick(["killed", "killed", "power cut", "disk lost"] as const);
    const isEverywhere = random.chance(0.1);
    if (how !== "killed" || isEverywhere) this.checker.hasLostNotes = true;
    host.crash(how);
    if (isEverywhere) for (const other of this.#hosts) other.crash("power cut");
  }

  /** Most end about when somebody else may take the group. A machine that was suspended may wake up with another time of day. */
  #suspend(host: SimulatedHost): void {
    const { random } = this.world;
    const stopsClock = random.chance(0.5);
    host.suspend(random.chance(0.6) ? 9_500 + random.below(3_500) : random.below(20_000), { stopsClock });
    if (stopsClock && random.chance(0.3)) host.setWallClock(-HOUR_MS);
  }

  #cut(host: SimulatedHost, forMs: number): void {
    const { random } = this.world;
    this.network.cut(host.name);
    if (random.chance(0.3)) host.setWallClock(-random.below(8_000));
    this.world.after(forMs, () => {
      this.network.mend(host.name);
      this.network.drop({ node: host.name });
    });
  }

  /** Answers that take seconds, and then none. */
  #slow(host: SimulatedHost): void {
    const { random } = this.world;
    this.network.slow(host.name, 3_000 + random.below(1_300));
    this.world.after(random.below(8_000), () => this.#cut(host, 8_000 + random.below(7_000)));
  }

  /** Commits wait for a standby that is away; then they are visible all the same, or the standby takes over without them. */
  #trap({ withinMs }: { withinMs: number }): void {
    const { random } = this.world;
    const { primary } = this.network;
    primary.isolateStandby();
    const again = (): void => {
      if (this.network.primary !== primary || this.#isHealed) return;
      const chance = random.below(10);
      if (chance < 3) primary.cancelWaits(null);
      else if (chance < 5) this.#changeNames();
      else if (chance < 6) this.#restartPostgres();
      else if (chance < 8) {
        // Its owner ran on the machine that has failed.
        const owner = this.#hosts.find(({ node }) => node?.isOwner === true);
        if (owner !== undefined && random.chance(0.4)) this.#crash(owner);
        this.#promote();
      } else primary.attachStandby();
      if (chance < 8) this.world.after(random.below(1_500), again);
    };
    this.world.after(random.below(withinMs), again);
  }

  #hang(host: SimulatedHost): void {
    host.hang(true);
    this.world.after(10_000 + this.world.random.below(30_000), () => host.hang(false));
  }

  #loseStandby(): void {
    const { primary } = this.network;
    primary.isolateStandby();
    this.world.after(this.world.random.below(6_000), () => primary.attachStandby());
  }

  #changeNames(): void {
    const { random } = this.world;
    const { primary } = this.network;
    // Taken away and put back at once, or, where that may lose something, given up for a while.
    if (this.checker.mode !== "standby given up") primary.setStandbyNames(["", primary.standbyNames]);
    else {
      primary.setStandbyNames([""]);
      this.world.after(random.below(10_000), () => primary.attachStandby());
    }
  }

  #restartPostgres(): void {
    const { primary } = this.network;
    primary.crash();
    this.network.drop({ server: primary });
    this.world.after(100 + this.world.random.below(5_000), () => primary.restart());
  }

  #promote(): void {
    const { random } = this.world;
    const former = this.network.primary;
    this.#replace(former.wal.slice(0, former.flushed));
    if (random.chance(0.5)) {
      // The former primary does not know, and one node still reaches it.
      this.network.former = { server: former, node: random.pick(this.#hosts).name };
      this.world.after(random.below(30_000), () => this.#end(former));
    } else this.#end(former);
  }

  /** A backup of some moment before takes the place of PostgreSQL. */
  #restore(): void {
    const former = this.network.primary;
    this.#hasRestored = true;
    this.#replace(former.wal.slice(0, this.world.random.below(former.wal.length + 1)));
    this.#end(former);
  }

  #replace(wal: SimulatedPostgres["wal"]): void {
    this.promotions += 1;
    this.#timeline += 1;
    const { former } = this.network;
    if (former !== null) this.#end(former.server);
    const next = this.#postgres(wal);
    this.world.after(this.world.random.below(4_000), () => next.attachStandby());
    for (const host of this.#hosts) if (this.world.random.chance(0.5)) this.network.drop({ node: host.name });
    this.#replaced.push(this.network.primary);
    this.network.primary.isReplaced = true;
    this.network.primary.isolateStandby();
    this.network.primary = next;
  }

  #end(server: SimulatedPostgres): void {
    if (this.network.former?.server === server) this.network.former = null;
    server.crash();
    this.network.drop({ server });
  }

  /** Whether a server has confirmed what the one that was promoted in its place does not have. */
  #hasLostWeak(): boolean {
    return this.#replaced.some(({ confirmed, flushed }) => confirmed > flushed);
  }

  #heal(): void {
    this.#isHealed = true;
    const { primary, former } = this.network;
    if (former !== null) this.#end(former.server);
    if (!primary.isUp) primary.restart();
    primary.attachStandby();
    for (const host of this.#hosts) {
      this.network.mend(host.name);
      this.network.drop({ node: host.name });
      host.hang(false);
      host.start();
    }
  }

  /** Everything works again, so writes are taken, and every node shows the whole log. */
  #requireWorking(): void {
    const { primary } = this.network;
    const owners = this.#hosts.filter(({ node }) => node?.isOwner === true);
    if (owners.length !== 1) throw new Error(`${owners.length} nodes are the owner at the end: nothing goes on`);
    const before = this.checker.acknowledgements;
    const owner = owners[0];
    this.#isHealed = true;
    owner?.write(`w${++this.#bodies}`);
    this.world.runUntil(this.world.now + 6_000);
    if (this.checker.acknowledgements === before) throw new Error("a write is not answered at the end");
    const end = primary.group.position;
    for (const host of this.#hosts) {
      const shown = host.node?.position ?? -1;
      if (shown < end - 20) throw new Error(`${host.name} shows ${shown} of ${end} at the end`);
    }
  }
}
