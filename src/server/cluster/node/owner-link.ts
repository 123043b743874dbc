import type { Clock } from "../../../kernel/clock.ts";
import { createForwarding, type Forwarding } from "../../http/workers/forwarding.ts";
import type { Place } from "../protocol/statements.ts";
import { NODE_NAME, type NodeCredentials } from "./credentials.ts";
import { LEAVING_MAX_MS, MESSAGE_MAX_LENGTH, RECONNECT_MS, SILENT_MAX_MS } from "./limits.ts";
import { FOLLOW_PATH, type OwnerMessage } from "./messages.ts";

export interface OwnerLinkOptions {
  credentials: NodeCredentials;
  clock: Clock;
  /** Returns a number that no other node has. */
  number(): number;
  /** The owner has said what is acknowledged. */
  announced(history: number, place: Place): void;
  /** The owner waits until PostgreSQL knows that this node shows a position. */
  confirm(position: number): void;
  /** The owner has said that it leaves: soon somebody may take the group, or `to` alone. */
  left(to: string | null): void;
  /** A request may be forwarded from now on, or no longer. */
  changed(): void;
  /** The client's connection of a request has to be held open, or no longer. */
  hold(request: Request, isHeld: boolean): void;
}

/** Returns the origin of a node's port. It speaks TLS, whatever the scheme of its URL is. */
export const originOf = (url: string): string => `https://${new URL(url).host}`;

/** Returns what proves this node to others, and them to it. */
export const nodeTls = ({ cert, key, ca }: NodeCredentials) => ({ cert, key, ca, serverName: NODE_NAME });

/** A follower's connection to the owner, whoever that is: opened again when it ends. */
export class OwnerLink {
  readonly #options: OwnerLinkOptions;
  /** The node to which it leads; null: there is no owner. */
  #owner: string | null = null;
  #forwarding: Forwarding | null = null;
  /** Ends everything that was begun with the present owner. */
  #ended = new AbortController();
  #cancel: () => void = () => {};

  constructor(options: OwnerLinkOptions) {
    this.#options = options;
  }

  /** Passes requests on to the owner; null while it is not connected. */
  get forwarding(): Forwarding | null {
    return this.#forwarding;
  }

  /** Leads to this node from now on, by its URL; null: to none. */
  lead(owner: string | null): void {
    if (owner === this.#owner) return;
    this.#drop();
    this.#owner = owner;
    if (owner !== null) this.#connect(owner);
  }

  stop(): void {
    this.lead(null);
  }

  #connect(owner: string): void {
    const ended = new AbortController();
    this.#ended = ended;
    const { credentials, clock, number } = this.#options;
    const at = { origin: originOf(owner), tls: nodeTls(credentials) };
    const forwarding = createForwarding({ at, secret: credentials.secret, worker: number() }, ended.signal);
    const over = (isLeft: boolean): void => {
      if (this.#ended !== ended) return;
      // What an owner has taken before it leaves is still answered.
      if (isLeft) this.#leave(ended);
      this.#drop();
      this.#cancel = clock.after(RECONNECT_MS, () => this.#connect(owner));
    };
    this.#follow(forwarding, ended).then(over, () => over(false));
  }

  /** Takes messages until the connection ends. Returns whether the owner has said that it leaves. */
  async #follow(forwarding: Forwarding, ended: AbortController): Promise<boolean> {
    const { clock } = this.#options;
    const watch = (): void => {
      this.#cancel();
      this.#cancel = clock.after(SILENT_MAX_MS, () => ended.abort());
    };
    watch();
    const answer = await forwarding.tell(FOLLOW_PATH);
    if (!answer.ok || answer.body === null || this.#ended !== ended) return false;
    this.#forwarding = forwarding;
    this.#options.changed();
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of answer.body) {
      if (this.#ended !== ended) return false;
      watch();
      const lines = (text + decoder.decode(chunk, { stream: true })).split("\n");
      text = lines.pop() ?? "";
      if (text.length > MESSAGE_MAX_LENGTH) return false;
      // A node of the cluster has written them.
      for (const line of lines) if (this.#isLast(JSON.parse(line) as OwnerMessage, forwarding)) return true;
    }
    return false;
  }

  /** Takes a message. Returns whether it is the last one. */
  #isLast(message: OwnerMessage, forwarding: Forwarding): boolean {
    if (message.kind === "place") this.#options.announced(message.history, message.place);
    if (message.kind === "confirm") this.#options.confirm(message.position);
    if (message.kind === "hold") {
      const request = forwarding.underWay(message.id);
      if (request !== undefined) this.#options.hold(request, message.isHeld);
    }
    if (message.kind === "leaving") this.#options.left(message.to);
    return message.kind === "leaving";
  }

  /** Gives what is under way its time to be answered. */
  #leave(ended: AbortController): void {
    this.#ended = new AbortController();
    this.#options.clock.after(LEAVING_MAX_MS, () => ended.abort());
  }

  #drop(): void {
    this.#cancel();
    this.#ended.abort();
    this.#ended = new AbortController();
    if (this.#forwarding === null) return;
    this.#forwarding = null;
    this.#options.changed();
  }
}
