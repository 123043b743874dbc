import { existsSync } from "node:fs";
import * as platformModule from "../../../index.ts";
import { isJsonObject, type JsonObject } from "../../../kernel/json/json.ts";
import { loadConfig } from "../../config/loading/load.ts";
import { ownProduct } from "../../config/loading/product.ts";
import { typeOf } from "../../config/sections/tables/fields.ts";
import type { FieldType, PlatformConfig } from "../../config/types.ts";
import { requireDataDirectory } from "../data-directory.ts";
import { CommandError } from "../errors.ts";
import { createLogger } from "../logs.ts";
import { type Remote, remoteOf } from "../remote.ts";
import type { Target } from "./target.ts";

export interface Reply {
  status: number;
  body: JsonObject;
}

/** The HTTP API with a service key, of a running server or of one opened in this process. */
export interface Client {
  get(path: string): Promise<Reply>;
  post(path: string, body: unknown): Promise<Reply>;
  postForm(path: string, form: FormData): Promise<Reply>;
  patchForm(path: string, form: FormData): Promise<Reply>;
  delete(path: string): Promise<Reply>;
  /** Gets the bytes of a file. */
  bytes(path: string): Promise<Response>;
  /** Returns the declared types of a table's fields; null for a schemaless table, "unknown" when neither server nor config knows them. */
  fieldTypes(target: Target): Promise<FieldTypes | null | "unknown">;
  close(): Promise<void>;
}

export type FieldTypes = ReadonlyMap<string, FieldType>;
type Send = (path: string, init: RequestInit) => Promise<Response>;

interface ClientArguments {
  url?: string | undefined;
  key?: string | undefined;
  config: string;
  data: string;
}

export async function openClient(args: ClientArguments): Promise<Client> {
  const remote = remoteOf(args);
  return remote === null ? openStopped(args) : openRunning(args, remote);
}

/** Opens a client for a command that reads. Errors: those of `requireDataDirectory`. */
export async function openExisting(args: ClientArguments): Promise<Client> {
  if (remoteOf(args) === null) requireDataDirectory(args.data);
  return openClient(args);
}

async function openRunning(args: ClientArguments, { send, key }: Remote): Promise<Client> {
  const client = createClient(send, key);
  return {
    ...client,
    async fieldTypes(target) {
      const { status, body } = await client.get("/api/schema");
      if (status === 200) return typesFromSchema(body, target);
      // The server's schema endpoint is off; the config may be on this machine.
      if (ownProduct() === null && !existsSync(args.config)) return "unknown";
      return typesFromConfig((await loadConfig(args.config, platformModule)).config, target);
    },
    close: async () => {},
  };
}

async function openStopped(args: ClientArguments): Promise<Client> {
  const { config } = await loadConfig(args.config, platformModule);
  // Loaded here: a running server needs none of it.
  const [{ openPlatform }, { DirectoryInUse }] = await Promise.all([
    import("../../platform/open.ts"),
    import("../../db/index.ts"),
  ]);
  const options = { data: args.data, environment: process.env, logger: createLogger() };
  const platform = await openPlatform(config, options).catch((cause: unknown) => {
    if (!(cause instanceof DirectoryInUse)) throw cause;
    throw new CommandError(`${cause.message}; use --url and --key for a running server`, { cause });
  });
  const send: Send = (path, init) => platform.fetch(new Request(`http://localhost${path}`, init));
  return {
    ...createClient(send, platform.serviceKey),
    fieldTypes: async (target) => typesFromConfig(config, target),
    close: () => platform.stop(),
  };
}

function createClient(
  send: Send,
  key: string,
): Pick<Client, "get" | "post" | "postForm" | "patchForm" | "delete" | "bytes"> {
  const headers = { "x-platform-service-key": key };
  const read = async (response: Response): Promise<Reply> => {
    const text = await response.text();
    let body: unknown = null;
    try {
      body = JSON.parse(text);
    } catch {
      // The answer is no JSON object of a platform: only its status is used.
    }
    return { status: response.status, body: isJsonObject(body) ? body : {} };
  };
  return {
    bytes: (path) => send(path, { headers }),
    postForm: async (path, form) => read(await send(path, { method: "POST", headers, body: form })),
    patchForm: async (path, form) => read(await send(path, { method: "PATCH", headers, body: form })),
    delete: async (path) => read(await send(path, { method: "DELETE", headers })),
    get: async (path) => read(await send(path, { headers })),
    post: async (path, body) => {
      const json = { ...headers, "content-type": "application/json" };
      return read(await send(path, { method: "POST", headers: json, body: JSON.stringify(body) }));
    },
  };
}

function typesFromConfig(config: PlatformConfig, target: Target): FieldTypes | null {
  const schema = config.databases?.[target.namespace]?.tables[target.table]?.schema;
  if (schema === undefined) return null;
  const types = new Map<string, FieldType>([["id", "string"]]);
  for (const [name, field] of Object.entries(schema)) if (field !== false) types.set(name, typeOf(field));
  for (const name of ["createdAt", "updatedAt"]) if (schema[name] !== false) types.set(name, "datetime");
  return types;
}

/** Parses the types from the answer of `GET /api/schema`. */
function typesFromSchema(body: JsonObject, target: Target): FieldTypes | null {
  const fields = [`namespaces`, target.namespace, "tables", target.table, "fields"].reduce<unknown>(
    (value, name) => (isJsonObject(value) ? value[name] : undefined),
    body,
  );
  if (!isJsonObject(fields)) return null;
  const types = new Map<string, FieldType>();
  // The schema endpoint names types like configs do.
  for (const [name, field] of Object.entries(fields))
    if (isJsonObject(field)) types.set(name, field["type"] as FieldType);
  for (const name of ["createdAt", "updatedAt"]) if (!types.has(name)) types.set(name, "datetime");
  return types.set("id", "string");
}

/** Returns the body of a successful reply. Errors: a CommandError with the server's message. */
export function requireOk({ status, body }: Reply): JsonObject {
  if (status >= 200 && status < 300) return body;
  const message = typeof body["message"] === "string" ? body["message"] : "no reason given";
  throw new CommandError(`refused with ${status}: ${message}`);
}
