import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./platform.ts";

const PORT = 53;
const NXDOMAIN = 0x8183;

/** Name server that withholds its answers until told to deny every name. */
export interface SilentDns {
  /** Command that starts a program with this name server. */
  readonly prefix: readonly string[];
  /** Number of queries received. */
  readonly asked: number;
  answer(): void;
  stop(): void;
}

/** Starts a name server; null if this process may not, which takes root. */
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
            // The client has stopped waiting.
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
