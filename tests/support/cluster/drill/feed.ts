/** One change, as a subscriber has got it. */
export interface FeedEvent {
  seq: number;
  id: string;
}

/** Changes that a subscriber has got without loading the list in between: everything that was committed behind `from`. */
export interface FeedSegment {
  from: number;
  events: FeedEvent[];
}

const RETRY_MS = 150;
/** A connection without a word for so long is given up: a network that holds everything would never end it. */
const SILENT_MS = 6_000;

interface Change {
  seq: number;
  docId: string;
}

type Message =
  | { type: "auth_success" | "auth_error" | "error" | "pong" }
  | { type: "subscribed"; seq: number; resync?: boolean }
  | ({ type: "db_change" } & Change)
  | { type: "batch_changes"; changes: Change[] };

/** Subscriber of a table: connects again whenever its connection ends, and goes on with `since`. */
export class Feed {
  readonly name: string;
  readonly segments: FeedSegment[] = [];
  /** Number of connections, and of those that could not go on where the last had ended. */
  connections = 0;
  resyncs = 0;
  readonly #url: () => string;
  readonly #channel: string;
  #socket: WebSocket | null = null;
  #isStopped = false;

  /** `url` is asked before each connection, and begins with `ws://`. */
  constructor(name: string, { url, channel }: { url: () => string; channel: string }) {
    this.name = name;
    this.#url = url;
    this.#channel = channel;
    this.#connect();
  }

  /** Number of the last change that it has, or knows to have missed none before; 0: it has not begun. */
  get last(): number {
    const segment = this.segments.at(-1);
    return segment?.events.at(-1)?.seq ?? segment?.from ?? 0;
  }

  stop(): void {
    this.#isStopped = true;
    this.#socket?.close();
  }

  #connect(): void {
    if (this.#isStopped) return;
    const socket = new WebSocket(`${this.#url()}/api/realtime`);
    this.#socket = socket;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout>;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      clearInterval(pings);
      socket.close();
      setTimeout(() => this.#connect(), RETRY_MS);
    };
    const watch = (): void => {
      clearTimeout(timer);
      timer = setTimeout(over, SILENT_MS);
    };
    const send = (message: unknown): void => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    };
    const pings = setInterval(() => send({ type: "ping" }), SILENT_MS / 4);
    watch();
    socket.onopen = () => send({ type: "auth", anonymous: true });
    socket.onclose = over;
    socket.onerror = over;
    socket.onmessage = ({ data }) => {
      if (isOver) return;
      watch();
      // The server sends JSON objects.
      const message = JSON.parse(String(data)) as Message;
      if (message.type === "auth_success") {
        const since = this.segments.length === 0 ? {} : { since: this.last };
        send({ type: "subscribe", channel: this.#channel, ...since });
      } else if (message.type === "subscribed") this.#begin(message);
      else if (message.type === "db_change") this.#take([message]);
      else if (message.type === "batch_changes") this.#take(message.changes);
      else if (message.type === "error" || message.type === "auth_error") over();
    };
  }

  #begin({ seq, resync = false }: { seq: number; resync?: boolean }): void {
    this.connections += 1;
    if (this.segments.length > 0 && !resync) return;
    if (resync) this.resyncs += 1;
    this.segments.push({ from: seq, events: [] });
  }

  #take(changes: readonly Change[]): void {
    const segment = this.segments.at(-1);
    for (const { seq, docId } of changes) segment?.events.push({ seq, id: docId });
  }
}
