import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./platform.ts";

const PORT = 53;
const NXDOMAIN = 0x8183;

/** A name server that keeps its answers to itself until it is told to say that no name exists. */
export interface SilentDns {
  /** Starts a program that asks this name server. */
  readonly prefix: readonly string[];
  /** Questions that came. */
  readonly asked: number;
  answer(): void;
  stop(): void;
}

/** null where this process may not have one, which takes root. */
export async function startSilentDns(hostname: string): Promise<SilentDns | null> {
  const file = join(temporaryDirectory(), "resolv.conf");
  writeFileSync(file, `nameserver ${hostname}\n`);
  const mounting = `mount --bind ${file} /etc/resolv.conf && exec "$@"`;
  const prefix = ["unshare", "--mount", "sh", "-c", mounting, "sh"];
  if (process.platform !== "linux" || !Bun.spawnSync([...prefix, "true"]).success) return null;
  const waiting: (() => void)[] = [];
  let asked = 0;
  let isAnswering = false;
  const socket = await Bun.udpSocket({
    hostname,
    port: PORT,
    socket: {
      error() {},
      data(own, question, port, address) {
        asked++;
        const reply = Buffer.from(question);
        reply.writeUInt16BE(NXDOMAIN, 2);
        const answer = (): void => {
          try {
            own.send(reply, port, address);
          } catch {
            // Who asked does not wait any more.
          }
        };
        if (isAnswering) answer();
        else waiting.push(answer);
      },
    },
  });
  return {
    prefix,
    get asked() {
      return asked;
    },
    answer() {
      isAnswering = true;
      for (const one of waiting.splice(0)) one();
    },
    stop: () => socket.close(),
  };
}
