import { useEffect, useRef, useState } from "react";
import type { ServerMessage } from "../../../client/socket/types.ts";
import { server } from "../../api/server.ts";

/** Bound of the messages kept per channel, and characters of one shown in a line. */
const TAIL_MESSAGES_MAX = 200;

/** Message received on a channel. */
export interface Heard {
  /** Sequence number in order of arrival. */
  number: number;
  at: number;
  type: string;
  /** Content without the channel. */
  content: Readonly<Record<string, unknown>>;
}

export interface Tail {
  /** Messages, newest first. */
  messages: readonly Heard[];
  /** Number of messages received. */
  count: number;
  /** Why the server refuses the channel; null: it does not, or has not responded yet. */
  refused: string | null;
  isListening: boolean;
  isPaused: boolean;
  pause(): void;
  resume(): void;
  clear(): void;
}

const NOTHING: readonly Heard[] = [];
const TYPES = [
  ...["db_change", "batch_changes", "broadcast_event"],
  ...["presence_sync", "presence_join", "presence_update", "presence_leave"],
];

/** Returns the messages of a channel as they arrive, at most TAIL_MESSAGES_MAX. A pause drops none of the last ones. */
export function useTail(channel: string): Tail {
  const [shown, setShown] = useState<{ messages: readonly Heard[]; count: number }>({ messages: NOTHING, count: 0 });
  const [refused, setRefused] = useState<string | null>(null);
  const [isListening, setIsListening] = useState(false);
  const [isPaused, setIsPaused] = useState(false);
  const heard = useRef<Heard[]>([]);
  const count = useRef(0);
  const paused = useRef(false);

  useEffect(() => {
    const { socket } = server;
    let frame: number | null = null;
    const show = (): void => {
      frame = null;
      if (!paused.current) setShown({ messages: heard.current, count: count.current });
    };
    const take = ({ type, channel: of, ...content }: ServerMessage): void => {
      if (of !== channel) return;
      const message = { number: ++count.current, at: Date.now(), type, content };
      heard.current = [message, ...heard.current].slice(0, TAIL_MESSAGES_MAX);
      // Messages that arrive within a frame are shown together.
      frame ??= requestAnimationFrame(show);
    };
    const release = socket.hold();
    const ends = [
      ...TYPES.map((type) => socket.on(type, take)),
      socket.on("subscribed", (message) => {
        if (message["channel"] !== channel) return;
        setRefused(null);
        setIsListening(true);
      }),
      socket.on("error", ({ channel: of, message }) => {
        if (of === channel) setRefused(String(message));
      }),
      socket.onConnected(() => socket.send({ type: "subscribe", channel })),
    ];
    return () => {
      socket.send({ type: "unsubscribe", channel });
      for (const end of ends) end();
      if (frame !== null) cancelAnimationFrame(frame);
      release();
    };
  }, [channel]);

  const pause = (isNow: boolean): void => {
    paused.current = isNow;
    setIsPaused(isNow);
    if (!isNow) setShown({ messages: heard.current, count: count.current });
  };
  return {
    ...shown,
    refused,
    isListening,
    isPaused,
    pause: () => pause(true),
    resume: () => pause(false),
    clear() {
      heard.current = [];
      setShown({ messages: NOTHING, count: count.current });
    },
  };
}
