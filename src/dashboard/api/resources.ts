import { useQuery } from "@tanstack/react-query";
import { server } from "./server.ts";

export type FieldType = "string" | "text" | "integer" | "number" | "boolean" | "datetime" | "json";

export interface Field {
  type: FieldType;
  required: boolean;
  unique: boolean;
  generated: boolean;
  min?: number;
  max?: number;
  pattern?: string;
  patternFlags?: string;
  /** An SQL expression. */
  check?: string;
  enum?: readonly (string | number)[];
  default?: unknown;
  references?: { table: string; column: string; onDelete: string };
  onUpdate?: string;
  validate?: string;
}

export interface TableSchema {
  schemaless: boolean;
  fields: Readonly<Record<string, Field>>;
  fts: { fields: readonly string[]; tokenize: string } | null;
  indexes: readonly { fields: readonly string[]; unique: boolean }[];
}

/** What the config declares, as far as the key's scopes name it. */
export interface Resources {
  namespaces: Readonly<Record<string, { instance: boolean; tables: Readonly<Record<string, TableSchema>> }>>;
  /** Source texts by namespace, table and action. */
  rules: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;
  buckets: readonly { name: string; external: boolean }[];
  /** Of those that have one; null: as much as fits. */
  quotas: {
    buckets: Readonly<Record<string, { total: number | null; perUser: number | null }>>;
    namespaces: Readonly<Record<string, { perInstance: number | null; instancesPerUser: number | null }>>;
  };
  kv: readonly string[];
  d1: readonly string[];
  vectorize: readonly { name: string; dimensions: number; metric: string }[];
  rooms: readonly string[];
  jobs: readonly string[];
  webhooks: readonly string[];
  cron: readonly { name: string; schedule: string; timezone: string | null }[];
  serviceKeys: readonly {
    name: string;
    scopes: readonly string[] | null;
    expiresAt: string | null;
    ips: readonly string[] | null;
    /** Since the start of the server; null: not since then. */
    lastUsedAt: string | null;
  }[];
  /** Of the config, as `platform check` prints them. */
  warnings: readonly { path: string; message: string }[];
}

/** What is declared under a name of an address, which may be that of a member that all JavaScript objects have. */
export const declaredAs = <T>(entries: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  entries !== undefined && Object.hasOwn(entries, name) ? entries[name] : undefined;

/** It is that of the running config, so it is loaded once. */
export const useResources = () =>
  useQuery({
    queryKey: ["resources"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => server.request<Resources>("GET", "/api/admin/resources"),
  });
