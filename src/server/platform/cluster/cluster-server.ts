import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { AnswerGate } from "../../../kernel/answer-gate.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { StoredFiles } from "../../areas/backup/continuous/restore/stored-files.ts";
import { FollowerFiles } from "../../cluster/follower/follower-files.ts";
import type { FollowedFacts } from "../../cluster/follower/follower-state.ts";
import { createLogSource } from "../../cluster/follower/log-source.ts";
import type { ClusterMember } from "../../cluster/membership/member.ts";
import { NotedPlace } from "../../cluster/membership/noted-place.ts";
import type { NodeCredentials } from "../../cluster/node/credentials.ts";
import { Lags } from "../../cluster/node/lags.ts";
import { NodePort } from "../../cluster/node/node-port.ts";
import { OwnerForwarding } from "../../cluster/node/owner-forwarding.ts";
import { OwnerLink } from "../../cluster/node/owner-link.ts";
import { Positions } from "../../cluster/node/positions.ts";
import { Survey } from "../../cluster/node/survey.ts";
import { placeOfCopies } from "../../cluster/objects/stored-place.ts";
import { ClusterOwner } from "../../cluster/owner/owner.ts";
import type { ClusterConfig, PlatformConfig } from "../../config/types.ts";
import type { DirectoryLock } from "../../db/index.ts";
import type { SharedPage } from "../../db/readers/shared-page.ts";
import { createPlatform, type Platform } from "../index.ts";
import { answersIn } from "../workers/reports.ts";
import { Confirmations } from "./confirmations.ts";
import { createFollowerHttp } from "./follower-http.ts";
import { FollowerServer } from "./follower-server.ts";
import { clusterCheck, followerHealth, type NodeHealthOptions } from "./node-health.ts";
import { createMember } from "./node-member.ts";
import { ObjectCopies } from "./object-copies.ts";
import { Succession } from "./succession.ts";
import { TurningFiles } from "./turning-files.ts";

/** The interval at which a follower that does not read its files yet tries to. */
const READ_RETRY_MS = 200;
const NODE_NUMBER_BYTES = 6;
const NONCE_BYTES = 18;
/** The time within which a taker's files have to be as the log has them; else it ends, and another node takes the group. */
const SETTLED_MAX_MS = 15_000;

export interface ClusterServerOptions {
  /** The identity of this node: its URL. */
  node: string;
  /** The identity of the cluster. */
  cluster: string;
  configHash: string;
  dataDirectory: string;
  lock: DirectoryLock;
  secrets: { jwtSecret: string; serviceKey: string };
  credentials: NodeCredentials;
  /** Path of the file with what this node knows to be acknowledged. */
  noted: string;
  logger: Logger;
}

type NodeConfig = PlatformConfig & { cluster: ClusterConfig };

/** A node of a cluster: follows, owns the group while it can have it, and turns from one to the other. */
export class ClusterServer {
  readonly serviceKey: string;
  /** Resolves when this process cannot go on. */
  readonly lost: Promise<void>;
  readonly #lose: () => void;
  readonly #config: NodeConfig;
  readonly #options: ClusterServerOptions;
  readonly #noted: NotedPlace;
  readonly #member: ClusterMember;
  readonly #files: TurningFiles;
  readonly #positions: Positions;
  readonly #link: OwnerLink;
  readonly #forwarding: OwnerForwarding;
  readonly #port: NodePort;
  readonly #follower: FollowerServer;
  readonly #succession: Succession;
  readonly #survey: Survey;
  readonly #copies: ObjectCopies;
  readonly #stored: StoredFiles;
  readonly #health: NodeHealthOptions;
  readonly #lags = new Lags();
  readonly #confirmations = new Confirmations({
    clock: systemClock,
    ask: (position) => this.#port.followers.confirm(position),
    look: () => this.#member.hasten(),
    isWaiting: () => this.#owner?.isRevoking === true,
  });
  /** The files while this node follows; null: the platform has them. */
  #followed: FollowerFiles | null = null;
  /** The page on which is counted what becomes visible in the files. */
  #page: SharedPage | null = null;
  #isReading = false;
  #owner: ClusterOwner | null = null;
  #platform: Platform | null = null;
  #address: { host: string | undefined; port: number } | null = null;
  #turning: Promise<void> = Promise.resolve();
  #isTurning = false;
  #isStopping = false;
  /** Whether the group is to be given to another node, although this one could keep it. */
  #isMoving = false;
  /** The position that the log had when this node first saw it. */
  #startPosition: number | null = null;
  #ready: (() => void) | null = null;
  #failure: unknown = null;
  /** Files as the log had them when this node began to own them. */
  #former = new Map<string, FollowedFacts>();

  static async open(config: NodeConfig, options: ClusterServerOptions): Promise<ClusterServer> {
    mkdirSync(dirname(options.noted), { recursive: true, mode: 0o700 });
    const server = new ClusterServer(config, options);
    server.#member.start();
    server.#survey.start();
    return server;
  }

  private constructor(config: NodeConfig, options: ClusterServerOptions) {
    const { promise, resolve } = Promise.withResolvers<void>();
    [this.lost, this.#lose] = [promise, resolve];
    [this.#config, this.#options] = [config, options];
    const { logger, credentials, secrets, dataDirectory, node, cluster } = options;
    [this.serviceKey, this.#noted] = [secrets.serviceKey, new NotedPlace(options.noted)];
    this.#stored = new StoredFiles(placeOfCopies(config.cluster.objects, cluster), systemClock);
    this.#followed = this.#openFiles({ wasOwner: true });
    this.#files = new TurningFiles(this.#followed, {
      onOverflow: () => this.#fail(new Error("too much of the log waits while the node turns to a follower")),
    });
    const { postgres, durability = "standby" } = config.cluster;
    const identity = { node, incarnation: systemIds.uuid() };
    this.#member = createMember(
      { ...identity, postgres, durability, noted: this.#noted, files: this.#files },
      { logger, owns: () => this.#turn(), progressed: () => this.#progressed() },
    );
    this.#succession = new Succession(this.#member, identity);
    this.#positions = new Positions({ clock: systemClock, cluster, history: () => this.#member.history });
    this.#link = new OwnerLink({
      credentials,
      clock: systemClock,
      number: () => Buffer.from(systemIds.secret(NODE_NUMBER_BYTES), "base64url").readUIntBE(0, NODE_NUMBER_BYTES),
      announced: (history, place) => {
        if (history === this.#member.history) this.#member.announced(place);
      },
      confirm: (position) => this.#member.confirm(position),
      left: (to) => this.#ownerLeaves(to),
      changed: () => this.#forwarding.changed(),
      hold: (request, isHeld) => this.#follower.hold(request, isHeld),
    });
    this.#forwarding = new OwnerForwarding({
      clock: systemClock,
      link: this.#link,
      answered: (request, answer) => this.#positions.answered(request, answer),
    });
    const { hostname, port } = listenOf(config.cluster);
    this.#port = new NodePort({
      hostname,
      port,
      credentials,
      clock: systemClock,
      place: () => {
        const place = this.#member.announcement;
        return place === null ? null : { history: this.#member.history, place };
      },
      reported: (answers) => this.#platform?.count(answersIn(answers)),
      command: (path, request) => (path === "/move" ? this.#move(new URL(request.url).searchParams.get("to")) : null),
    });
    this.#copies = new ObjectCopies(config.cluster, cluster, this.#member);
    this.#survey = new Survey({
      postgres,
      durability,
      clock: systemClock,
      ids: systemIds,
      isOwner: () => this.#member.isOwner,
      stored: (connection) => this.#copies.state(connection),
      trimmed: () => (this.#member.isOwner ? { incarnation: identity.incarnation, upTo: this.#appliedByAll() } : null),
      onChange: (problem) => this.#noteDurability(problem),
    });
    this.#health = {
      member: this.#member,
      node,
      configHash: options.configHash,
      durability,
      lags: this.#lags,
      survey: this.#survey,
      mayAnswer: () => this.#mayAnswer(),
      requests: () => this.#follower.requests,
    };
    this.#follower = new FollowerServer({
      config,
      secrets,
      dataDirectory,
      logger,
      http: createFollowerHttp(config, { secrets, logger, health: followerHealth(this.#health) }),
      forwarding: this.#forwarding,
      positions: this.#positions,
      shown: {
        position: () => this.#member.announcement?.position ?? this.#member.position,
        mayAnswer: () => this.#mayAnswer(),
      },
    });
  }

  /** Returns the last position that every live node has applied. */
  #appliedByAll(): number {
    const live = (this.#member.seen?.nodes ?? []).filter(({ isOver }) => !isOver);
    return live.reduce((least, { applied }) => Math.min(least, applied), this.#member.announcement?.position ?? 0);
  }

  #noteDurability(problem: string | null): void {
    const { logger } = this.#options;
    if (problem === null) logger.info("cluster: PostgreSQL is as durable as it has to be again");
    else logger.error(`cluster: ${problem}`);
  }

  /** Listens, and resolves when this node has core at the position that the log had when it began. Errors: the port is not available. */
  async listen({ host, port }: { host?: string | undefined; port?: number | undefined } = {}): Promise<{
    url: string;
    port: number;
  }> {
    const number = this.#follower.listen({ host, port });
    this.#address = { host, port: number };
    this.#page = this.#follower.makePage();
    const ready = new Promise<void>((resolve) => {
      this.#ready = resolve;
      this.#progressed();
    });
    await Promise.race([ready, this.lost.then(() => Promise.reject(this.#failure))]);
    const shownHost = host ?? "127.0.0.1";
    return { url: `http://${shownHost.includes(":") ? `[${shownHost}]` : shownHost}:${number}`, port: number };
  }

  /** Gives the group up in order, answers what it has begun, and ends. */
  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    await this.#turning.catch(() => {});
    if (this.#platform !== null) await this.#endPlatform(this.#platform);
    this.#link.stop();
    this.#forwarding.stop();
    await this.#follower.stop();
    await this.#stored.stop();
    await this.#followed?.close();
    this.#survey.stop();
    this.#member.stop();
    this.#noted.close();
    this.#options.lock.release();
  }

  /** Whether this node may answer reads now. */
  #mayAnswer(): boolean {
    const isThere = this.#platform !== null || this.#followed?.isSettled === true;
    return isThere && this.#member.mayAnswer(this.#member.position);
  }

  #openFiles({ wasOwner }: { wasOwner: boolean }): FollowerFiles {
    const { dataDirectory, logger } = this.#options;
    return new FollowerFiles(
      {
        directory: dataDirectory,
        clock: systemClock,
        ids: systemIds,
        onVisible: (path) => this.#page?.onVisible(path),
        onClosing: () => this.#stopReading(),
        onFailure: (path, cause) => logger.error("cluster: a file is not as the log has it", { path, cause }),
        source: createLogSource({
          url: this.#config.cluster.postgres,
          applicationName: "platform files",
          nonce: () => systemIds.secret(NONCE_BYTES),
          copies: this.#stored,
        }),
      },
      { wasOwner },
    );
  }

  /** Does what may be due: called whenever anything has changed, and some times a second. */
  #progressed(): void {
    // The member tells of itself before it is known here.
    if (this.#address === null) return;
    this.#owner?.progressed();
    this.#port.followers.announce();
    this.#positions.progressed();
    this.#leadLink();
    const { seen } = this.#member;
    if (this.#succession.hasRival())
      this.#fail(new Error(`another live node has cluster.url ${this.#options.node}: each node has a URL of its own`));
    this.#startPosition ??= seen?.group.position ?? null;
    if (seen !== null) this.#lags.add(seen.group.position, performance.now());
    if (!this.#isReading && !this.#isTurning && this.#platform === null) this.#mayRead();
    this.#mayBeReady();
  }

  #mayBeReady(): void {
    if (this.#ready === null || this.#startPosition === null || this.#isTurning) return;
    const isThere =
      this.#platform !== null ||
      (this.#isReading && this.#followed?.isSettled === true && this.#member.position >= this.#startPosition);
    if (!isThere || !this.#member.mayAnswer(this.#startPosition)) return;
    this.#ready();
    this.#ready = null;
  }

  /** Leads to whoever is the owner; that may be this node: what has come before its platform has opened waits for that. */
  #leadLink(): void {
    const { seen } = this.#member;
    const owner = seen === null || seen.group.owner === "" ? null : seen.group.owner;
    this.#link.lead(owner);
  }

  #mayRead(): void {
    const files = this.#followed;
    if (files === null || this.#page === null || !this.#member.mayAnswer(this.#member.position)) return;
    files.reachedEnd();
    if (!files.isSettled) return;
    this.#isReading = true;
    this.#follower.read(this.#page).catch((cause: unknown) => {
      this.#options.logger.info("cluster: the files cannot be read yet: requests go to the owner", { cause });
      systemClock.after(READ_RETRY_MS, () => {
        this.#isReading = false;
      });
    });
  }

  #stopReading(): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    void this.#follower.stopReading();
    this.#page = this.#follower.makePage();
  }

  /** Hands over to a node that lives, as an operator asks. */
  async #move(to: string | null): Promise<Response> {
    const { node } = this.#options;
    const row = this.#member.seen?.nodes.find((one) => one.node === to);
    if (row === undefined || row.isOver) return new Response(`${to} is no live node of the cluster`, { status: 400 });
    if (to === node || this.#platform === null) return new Response("");
    this.#port.successor = to;
    this.#isMoving = true;
    this.#turn();
    return new Response("");
  }

  /** Becomes what the member is, one turn after another. */
  #turn(): void {
    this.#turning = this.#turning.then(async () => {
      const isOwner = this.#member.isOwner && !this.#isMoving;
      if (this.#isStopping || isOwner === (this.#platform !== null)) return;
      this.#isTurning = true;
      try {
        if (isOwner) await this.#lead();
        else if (this.#platform !== null) await this.#follow(this.#platform);
      } catch (cause) {
        this.#fail(cause);
      } finally {
        this.#isTurning = false;
        this.#isMoving = false;
        this.#port.successor = null;
        this.#progressed();
      }
    });
  }

  async #lead(): Promise<void> {
    const { dataDirectory, secrets, lock, logger } = this.#options;
    const files = this.#followed;
    if (files === null || this.#address === null) throw new Error("the node has not begun to listen");
    const startedAt = performance.now();
    files.reachedEnd();
    if (!(await endsWithin(files.settled(), SETTLED_MAX_MS, systemClock)))
      throw new Error("the files are not as the log has them, and cannot be fetched");
    this.#stopReading();
    const facts = new Map<string, FollowedFacts>();
    for (const path of files.paths) {
      const known = files.logged(path);
      if (known !== null) facts.set(path, { ...known });
    }
    this.#files.give();
    this.#followed = null;
    await files.close();
    const owner = new ClusterOwner({
      member: this.#member,
      dataDirectory,
      logged: (path) => facts.get(path) ?? null,
      nowMs: () => performance.now(),
      onRevocation: (position) => this.#confirmations.hasten(position),
      onFailed: (cause) => {
        // In an orderly end nothing is missing.
        if (!this.#isMoving && !this.#isStopping)
          logger.error("cluster: this node cannot go on as the owner", { cause });
        this.#member.release();
      },
    });
    this.#owner = owner;
    this.#former = facts;
    const platform = await createPlatform(this.#config, {
      dataDirectory,
      secrets,
      lock,
      logger,
      cluster: {
        capture: owner.capture,
        gate: this.#gateOf(owner),
        store: this.#copies.begin(),
        node: {
          openInner: ({ serve, ...serving }) =>
            this.#port.open({ ...serving, serve: (request) => this.#follower.asOwner(request, () => serve(request)) }),
          check: () => clusterCheck(this.#health),
          mayAnswer: () => this.#member.mayAnswer(0),
        },
      },
      onTaken: () => this.#fail(new Error("another process has taken the data directory")),
    });
    this.#platform = platform;
    await platform.listen({ ...this.#address, serve: this.#follower.serve });
    logger.info("cluster: this node answers as the owner", { afterMs: Math.round(performance.now() - startedAt) });
  }

  #ownerLeaves(to: string | null): void {
    this.#follower.ownerLeaves();
    this.#succession.ownerLeaves(to);
  }

  /** Returns an owner's gate, which also waits until followers have closed the sockets of those from whom something was taken. */
  #gateOf({ gate }: ClusterOwner): AnswerGate {
    return {
      get position() {
        return gate.position;
      },
      wait: () => gate.wait(),
      lease: () => gate.lease(),
      everywhere: () => gate.everywhere().then(() => this.#port.socketsTold()),
    };
  }

  async #follow(platform: Platform): Promise<void> {
    await this.#endPlatform(platform);
    const isClean = !this.#files.isSetAside;
    const files = this.#openFiles({ wasOwner: !isClean });
    if (isClean) files.takeOver(this.#noted.noted.place, this.#facts());
    this.#owner = null;
    this.#followed = files;
    this.#page = this.#follower.makePage();
    this.#files.take(files);
  }

  /** Returns what the log has of each file, as this owner leaves them. */
  #facts(): Iterable<FollowedFacts> {
    const facts = new Map(this.#former);
    for (const [path, file] of this.#owner?.logged ?? []) {
      if (file === null) facts.delete(path);
      else facts.set(path, { path, ...file });
    }
    return facts.values();
  }

  /** Stops the platform: while this node is the owner, in order, and the group is given up behind it. */
  async #endPlatform(platform: Platform): Promise<void> {
    await platform.stop().catch((cause: unknown) => {
      this.#options.logger.error("cluster: the platform did not stop in order", { cause });
    });
    this.#copies.end();
    this.#owner?.close();
    if (this.#member.isOwner) await this.#succession.release();
    this.#platform = null;
  }

  #fail(cause: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = cause;
    this.#options.logger.error("cluster: this node cannot go on", { cause });
    this.#lose();
  }
}

/** Returns where the node port listens. */
function listenOf({ url, listen }: ClusterConfig): { hostname: string; port: number } {
  const { hostname, port } = new URL(`tcp://${listen ?? new URL(url).host}`);
  return {
    hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port) || (url.startsWith("https:") ? 443 : 80),
  };
}
