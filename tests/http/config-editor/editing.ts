import { readFileSync } from "node:fs";
import { SERVICE_KEY, type TestPlatform, testPlatform, until } from "../../support/index.ts";

interface Answered<Body> {
  status: number;
  body: Body;
}

/** The answer to edits, or an error's body. */
export interface Edited {
  source: string;
  diff: string;
  data: { files: number; unfit: number; notes: string[] } | null;
  problems: { path: string; message: string }[];
  /** The message of an error. */
  message?: string;
}

/** A server under `platform dev`, whose address changes with each restart. */
export interface EditedServer {
  readonly platform: TestPlatform;
  /** Sends a request with the root key to the newest server. */
  request<Body>(method: string, path: string, body?: unknown): Promise<Answered<Body>>;
  edit(edits: readonly object[], more?: object): Promise<Answered<Edited>>;
  undo(): Promise<Answered<Edited>>;
  source(): Promise<{ revision: string; undoable: number; putBack: object | null }>;
  /** Returns the config's text. */
  text(): string;
  /** Returns the newest server's address. */
  address(): string;
  /** Resolves when `dev` has started as many servers. */
  started(count: number): Promise<void>;
}

/** Starts `platform dev` with a config. */
export async function editedServer(config: string): Promise<EditedServer> {
  const platform = await testPlatform({ command: "dev", config });
  const urls = (): string[] => [...platform.stdout().matchAll(/listening on (\S+)/g)].map((match) => match[1] ?? "");
  const request: EditedServer["request"] = async (method, path, body) => {
    const answer = await fetch(`${urls().at(-1)}${path}`, {
      method,
      headers: { "x-platform-service-key": SERVICE_KEY, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  return {
    platform,
    request,
    edit: (edits, more = {}) => request("POST", "/api/admin/config/edits", { edits, ...more }),
    undo: () => request("POST", "/api/admin/config/undo"),
    source: async () =>
      (await request<Awaited<ReturnType<EditedServer["source"]>>>("GET", "/api/admin/config/source")).body,
    text: () => readFileSync(platform.configFile, "utf8"),
    address: () => urls().at(-1) ?? "",
    started: (count) => until(`dev has started ${count} servers`, () => urls().length >= count),
  };
}
