import { useQuery } from "@tanstack/react-query";
import type { FieldType } from "../../kernel/transfer/csv-cells.ts";
import { server } from "./server.ts";

export type { FieldType };

export interface Reference {
  /** The namespace of the table, if it is another one. */
  namespace?: string;
  table: string;
  column: string;
  onDelete: string;
}

/** Returns what a field of one reference refers to; undefined for other fields, those of several references too. */
export const referenceOf = (field: Field | undefined): Reference | undefined =>
  field?.type === "references" ? undefined : field?.references;

/** Returns what a field of several references refers to; undefined for other fields. */
export const severalOf = (field: Field | undefined): Reference | undefined =>
  field?.type === "references" ? field.references : undefined;

export interface Field {
  type: FieldType;
  required: boolean;
  unique: boolean;
  generated: boolean;
  fixed?: true;
  min?: number;
  max?: number;
  /** Media types of files. */
  types?: readonly string[];
  /** Number of files of a field that has several. */
  many?: number;
  pattern?: string;
  patternFlags?: string;
  /** SQL expression of a check. */
  check?: string;
  enum?: readonly (string | number)[];
  default?: unknown;
  references?: Reference;
  onUpdate?: string;
  validate?: string;
}

export interface TableSchema {
  /** Present for a view, which is read-only. */
  view?: true;
  schemaless: boolean;
  /** Whether it is the table of users, whose records come and go with accounts. */
  users?: true;
  /** Field that titles records, where the config says so. */
  display?: string;
  fields: Readonly<Record<string, Field>>;
  fts: { fields: readonly string[]; tokenize: string } | null;
  indexes: readonly { fields: readonly string[]; unique: boolean }[];
}

/** Declarations of the config, as far as the key's scopes cover them. */
export interface Resources {
  namespaces: Readonly<Record<string, { instance: boolean; tables: Readonly<Record<string, TableSchema>> }>>;
  /** Source texts of rules, by namespace, table and action. */
  rules: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;
  buckets: readonly { name: string; external: boolean }[];
  /** Quotas of the buckets that have one; a null member is unlimited. */
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
    /** Time of the last use since the server started; null: unused. */
    lastUsedAt: string | null;
  }[];
  /** Warnings of the config, as `platform check` prints them. */
  warnings: readonly { path: string; message: string }[];
}

/** Returns the declaration of a name from an address; the name may be that of a member of every JavaScript object. */
export const declaredAs = <T>(entries: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  entries !== undefined && Object.hasOwn(entries, name) ? entries[name] : undefined;

/** Returns the running config, which is loaded once. */
export const useResources = () =>
  useQuery({
    queryKey: ["resources"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => server.request<Resources>("GET", "/api/admin/resources"),
  });
